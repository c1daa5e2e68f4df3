//! Loads the shared object as a tool does, from Rust and from a C program that is built with the header.
#![allow(unsafe_code)]

#[path = "player/object.rs"]
mod object;

use baton_packetdrill::Interface;
use libc::c_int;
use object::table;
use std::ffi::CString;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

#[test]
fn the_object_loads_and_its_instances_are_independent() {
    let ((first, one), (second, other)) = (table(c""), table(c"gso=off,sack=off"));
    assert_eq!((first, second), (0, 0));
    let sockets = [one, other].map(|instance| {
        // SAFETY: the instance is alive.
        let fd = unsafe { (instance.socket)(instance.userdata, 2, 1, 0) };
        assert!(fd > 2);
        fd
    });
    assert_ne!(sockets[0], sockets[1]);
    // SAFETY: each is freed once and not used again.
    unsafe {
        (one.free)(one.userdata);
        (other.free)(other.userdata);
    }
}

/// A tool may close the object's descriptors like its own. This harms neither the tool's files nor the instance.
#[test]
fn descriptors_belong_to_the_process() {
    let (outcome, table) = table(c"");
    assert_eq!(outcome, 0);
    let own = std::fs::File::open("/dev/zero").expect("/dev/zero exists");
    // SAFETY: the instance is alive.
    let socket = || unsafe { (table.socket)(table.userdata, 2, 1, 0) };
    let fds = [socket(), socket()];
    assert!(!fds.contains(&own.as_raw_fd()) && fds[0] != fds[1]);
    // SAFETY: only this test closes them.
    unsafe {
        assert_eq!(libc::close(fds[0]), 0);
        assert_eq!(libc::close(fds[0]), -1, "the descriptor is closed");
    }
    // One of these files gets the number of the closed descriptor, unless a concurrent test takes it.
    let others: Vec<_> = (0..16)
        .map(|_| std::fs::File::open("/dev/zero").expect("/dev/zero exists"))
        .collect();
    let third = socket();
    assert!(third != fds[0] && third != fds[1]);
    // SAFETY: the instance is alive, and is not used again after it is freed.
    unsafe {
        assert_eq!(
            (table.listen)(table.userdata, fds[0], 1),
            0,
            "the instance still has the socket"
        );
        assert_eq!((table.close)(table.userdata, fds[0]), 0);
        assert_eq!(libc::close(fds[1]), 0);
        (table.free)(table.userdata);
    }
    for mut file in std::iter::once(own).chain(others) {
        file.read_exact(&mut [0]).expect("the file is open");
    }
}

/// A tool that ignores the failed initialization gets errors from later calls and does not crash.
#[test]
fn tables_of_refused_instances_return_errors() {
    let (outcome, table) = table(c"no such flag");
    assert_eq!(outcome, -1);
    assert_eq!(object::table(c"gso=perhaps").0, -1);
    // SAFETY: the functions of a table without an instance accept any userdata and pointers.
    unsafe {
        assert_eq!((table.socket)(table.userdata, 2, 1, 0), -1);
        assert_eq!((table.usleep)(table.userdata, 10), -1);
        (table.free)(table.userdata);
    }
}

#[derive(Clone, Copy)]
struct Shared(Interface);

// SAFETY: the instance behind the table supports calls from several threads.
unsafe impl Send for Shared {}

impl Shared {
    fn clock_us(&self) -> i64 {
        let mut time = libc::timeval {
            tv_sec: 0,
            tv_usec: 0,
        };
        // SAFETY: the instance is alive, and the time may be written.
        unsafe { (self.0.gettimeofday)(self.0.userdata, &mut time, std::ptr::null_mut()) };
        time.tv_sec * 1_000_000 + time.tv_usec
    }

    fn sleep(&self, us: u32) {
        // SAFETY: the instance is alive.
        unsafe { (self.0.usleep)(self.0.userdata, us) };
    }

    /// Creates an instance with these flags.
    fn new(flags: &str) -> Self {
        let flags = CString::new(flags).expect("no zero byte");
        let (outcome, table) = table(&flags);
        assert_eq!(outcome, 0);
        Self(table)
    }

    fn socket(&self) -> c_int {
        // SAFETY: the instance is alive.
        unsafe { (self.0.socket)(self.0.userdata, libc::AF_INET, libc::SOCK_STREAM, 0) }
    }

    fn set_one(&self, fd: c_int, level: c_int, name: c_int) -> c_int {
        let one: c_int = 1;
        let (data, len) = (&raw const one, size_of::<c_int>() as u32);
        // SAFETY: the instance is alive, and the value has the given length.
        unsafe { (self.0.setsockopt)(self.0.userdata, fd, level, name, data.cast(), len) }
    }

    /// Frees the instance, which must not be used afterwards.
    fn free(self) {
        // SAFETY: by this function's contract, which tests keep.
        unsafe { (self.0.free)(self.0.userdata) };
    }
}

/// A script changes settings while it runs, by commands that write them to a file.
#[test]
fn settings_change_by_a_file() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let path = place.path().join("settings");
    let shared = Shared::new(&format!("fastopen=0,changes={}", path.display()));
    let fd = shared.socket();
    let connects_fast = || shared.set_one(fd, libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT);
    assert_eq!(connects_fast(), -1);
    std::fs::write(&path, "fastopen=1\n").expect("a writable file");
    assert_eq!(connects_fast(), 0);
    shared.free();
}

/// Virtual time advances to the end of a sleep of the tool's second thread while the first thread waits for the second outside of the object.
#[test]
fn virtual_time_advances_for_any_sleeping_thread() {
    let shared = Shared::new("");
    let start_us = shared.clock_us();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let shared = shared;
        shared.sleep(50_000);
        tell.send(shared.clock_us())
            .expect("the other thread waits");
    });
    let slept = told.recv_timeout(Duration::from_secs(60));
    let slept_us = slept.expect("the sleep ends without another call") - start_us;
    assert!((50_000..51_000).contains(&slept_us), "{slept_us}");
    shared.free();
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
        .expect("a C compiler is installed");
    assert!(built.success(), "the driver compiles");
    let played = Command::new(&program)
        .env("LD_PRELOAD", object::path())
        .arg(object::path())
        .output()
        .expect("a process");
    let message = String::from_utf8_lossy(&played.stderr);
    assert!(played.status.success(), "the dialogue succeeds: {message}");
}
