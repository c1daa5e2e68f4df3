//! Checks that the C header describes the interface of the shared object.

use baton_packetdrill::Interface;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// A C compiler checks the offset of each entry.
#[test]
fn entries_have_the_offsets_of_the_header() {
    let mut program = "#include \"baton_packetdrill.h\"\n".to_owned();
    for (name, at) in Interface::ENTRIES {
        writeln!(
            program,
            "_Static_assert(offsetof(struct packetdrill_interface, {name}) == {at}, \"{name}\");"
        )
        .expect("writing to memory succeeds");
    }
    let size = size_of::<Interface>();
    writeln!(
        program,
        "_Static_assert(sizeof(struct packetdrill_interface) == {size}, \"size\");"
    )
    .expect("writing to memory succeeds");
    let place = tempfile::tempdir().expect("a temporary directory");
    let source = place.path().join("entries.c");
    std::fs::write(&source, program).expect("a writable folder");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let checked = Command::new("cc")
        .args(["-fsyntax-only", "-Werror", "-I"])
        .arg(include)
        .arg(source)
        .status();
    assert!(checked.expect("a C compiler is installed").success());
}
