//! Checks that the C header describes the interface of the shared object.

use baton_packetdrill::Interface;
use std::fmt::Write;
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

/// A C compiler checks the offset of each entry.
#[test]
fn entries_have_the_offsets_of_the_header() {
    let mut program = "#include \"baton_packetdrill.h\"\n".to_owned();
    macro_rules! entries {
        ($($name:ident),* $(,)?) => {$(
            let name = stringify!($name);
            let at = offset_of!(Interface, $name);
            writeln!(program, "_Static_assert(offsetof(struct packetdrill_interface, {name}) == {at}, \"{name}\");")
                .expect("writing to memory succeeds");
        )*};
    }
    entries!(
        userdata,
        free,
        socket,
        bind,
        listen,
        accept,
        connect,
        read,
        readv,
        recv,
        recvfrom,
        recvmsg,
        write,
        writev,
        send,
        sendto,
        sendmsg,
        fcntl,
        ioctl,
        close,
        shutdown,
        getsockopt,
        setsockopt,
        poll,
        netdev_send,
        netdev_receive,
        usleep,
        gettimeofday,
        epoll_create,
        epoll_ctl,
        epoll_wait,
        pipe,
        splice,
    );
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
