//! The shared object as a tool loads it: from Rust, and from a C program built against the header.
#![allow(unsafe_code)]

use baton_packetdrill::Interface;
use std::ffi::{CString, c_char, c_int};
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::process::Command;

type Init = unsafe extern "C" fn(*const c_char, *mut Interface) -> c_int;

/// The object lies beside the directory of the test programs, or in it.
fn object() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let name = "libbaton_packetdrill.so";
    let places = test
        .ancestors()
        .skip(1)
        .take(2)
        .map(|place| place.join(name));
    let found = places.into_iter().find(|path| path.exists());
    found.expect("the object is built with the tests")
}

#[test]
fn the_object_loads_and_its_instances_are_apart() {
    // SAFETY: our own object, which does nothing when it is loaded.
    let library = unsafe { libloading::Library::new(object()) }.expect("it loads");
    // SAFETY: the function has this type.
    let init = unsafe { library.get::<Init>(b"packetdrill_interface_init\0") };
    let init = init.expect("it is exported");
    let table = |flags: &str| {
        let flags = CString::new(flags).expect("no zero inside");
        let mut table = MaybeUninit::<Interface>::uninit();
        // SAFETY: a C string and room for a table, which is filled in when the outcome is 0.
        unsafe { (init(flags.as_ptr(), table.as_mut_ptr()) == 0).then(|| table.assume_init()) }
    };
    assert!(table("gso=perhaps").is_none());
    let (one, other) = (
        table("").expect("flags"),
        table("gso=off,sack=off").expect("flags"),
    );
    for instance in [one, other] {
        // SAFETY: the instance lives.
        let fd = unsafe { (instance.socket)(instance.userdata, 2, 1, 0) };
        assert_eq!(fd, 3);
    }
    // SAFETY: each is freed once and not used again.
    unsafe {
        (one.free)(one.userdata);
        (other.free)(other.userdata);
    }
}

#[test]
fn a_c_program_plays_a_dialogue() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let place = tempfile::tempdir().expect("a temporary directory");
    let program = place.path().join("driver");
    let built = Command::new("cc")
        .args(["-Wall", "-Wextra", "-Werror", "-pthread", "-o"])
        .arg(&program)
        .arg("-I")
        .arg(manifest.join("include"))
        .arg(manifest.join("tests/c/driver.c"))
        .arg("-ldl")
        .status()
        .expect("there is a C compiler");
    assert!(built.success(), "the driver is built");
    let played = Command::new(&program)
        .arg(object())
        .output()
        .expect("it runs");
    let message = String::from_utf8_lossy(&played.stderr);
    assert!(
        played.status.success(),
        "the dialogue goes as it says: {message}"
    );
}
