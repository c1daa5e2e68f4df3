//! Loads the shared object at run time, as a tool does.

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
    // SAFETY: this is our own object, which runs no code when it is loaded.
    unsafe { Library::new(path()) }.expect("the object loads")
});

/// Returns the path of the object, which is in the directory of the test programs or in its parent.
pub fn path() -> PathBuf {
    let test = std::env::current_exe().expect("the program's path");
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
    // SAFETY: the callers pass the types of the header.
    unsafe { LIBRARY.get(name.as_bytes()) }.expect("the object exports the symbol")
}

/// Initializes an instance. Returns the result and the table, which is filled in even if the initialization fails.
pub fn table(flags: &CStr) -> (c_int, Interface) {
    let init = symbol::<Init>("packetdrill_interface_init");
    let mut table = MaybeUninit::uninit();
    // SAFETY: the arguments are a C string and memory for a table, which the function fills in.
    unsafe {
        let outcome = init(flags.as_ptr(), table.as_mut_ptr());
        (outcome, table.assume_init())
    }
}

/// Calls the object's getsockopt, which replaces that of the C library where the object is preloaded.
#[allow(dead_code)]
pub fn getsockopt(fd: c_int, level: c_int, name: c_int, value: &mut [u8]) -> c_int {
    let mut len = value.len() as socklen_t;
    // SAFETY: the value has the given length.
    unsafe {
        symbol::<GetSockOpt>("getsockopt")(fd, level, name, value.as_mut_ptr().cast(), &mut len)
    }
}
