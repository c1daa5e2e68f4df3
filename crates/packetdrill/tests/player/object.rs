//! The object as a tool has it: loaded when the program runs.

use baton_packetdrill::Interface;
use libc::{c_char, c_int, c_void, socklen_t};
use libloading::{Library, Symbol};
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::sync::LazyLock;

type Init = unsafe extern "C" fn(*const c_char, *mut Interface) -> c_int;
type GetSockOpt = unsafe extern "C" fn(c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int;

static LIBRARY: LazyLock<Library> = LazyLock::new(|| {
    // SAFETY: our own object, which does nothing when it is loaded.
    unsafe { Library::new(path()) }.expect("it loads")
});

/// The object lies beside the directory of the test programs, or in it.
pub fn path() -> PathBuf {
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

fn symbol<T>(name: &str) -> Symbol<'static, T> {
    // SAFETY: the callers give the types that the header has.
    unsafe { LIBRARY.get(name.as_bytes()) }.expect("it is exported")
}

/// What the set-up came to, and the table, which is filled in whatever that is.
pub fn table(flags: &CStr) -> (c_int, Interface) {
    let init = symbol::<Init>("packetdrill_interface_init");
    let mut table = MaybeUninit::uninit();
    // SAFETY: a C string, and room for a table, which is filled in.
    unsafe {
        let outcome = init(flags.as_ptr(), table.as_mut_ptr());
        (outcome, table.assume_init())
    }
}

/// The C library's getsockopt where the object is preloaded.
#[allow(dead_code)]
pub fn getsockopt(fd: c_int, level: c_int, name: c_int, value: &mut [u8]) -> c_int {
    let mut len = value.len() as socklen_t;
    // SAFETY: the value has the length that is said.
    unsafe {
        symbol::<GetSockOpt>("getsockopt")(fd, level, name, value.as_mut_ptr().cast(), &mut len)
    }
}
