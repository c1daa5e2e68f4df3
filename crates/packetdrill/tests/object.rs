//! The shared object as a tool loads it: from Rust, and from a C program built against the header.
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
        // SAFETY: the instance lives.
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

/// A tool may close what it got as it closes its own: it harms neither the tool's files nor the instance.
#[test]
fn descriptors_belong_to_the_process() {
    let (outcome, table) = table(c"");
    assert_eq!(outcome, 0);
    let own = std::fs::File::open("/dev/zero").expect("it is there");
    // SAFETY: the instance lives.
    let socket = || unsafe { (table.socket)(table.userdata, 2, 1, 0) };
    let fds = [socket(), socket()];
    assert!(!fds.contains(&own.as_raw_fd()) && fds[0] != fds[1]);
    // SAFETY: nobody else closes them.
    unsafe {
        assert_eq!(libc::close(fds[0]), 0);
        assert_eq!(libc::close(fds[0]), -1, "it is closed already");
    }
    // One of these takes the number, if no other test does.
    let others: Vec<_> = (0..16)
        .map(|_| std::fs::File::open("/dev/zero").expect("it is there"))
        .collect();
    let third = socket();
    assert!(third != fds[0] && third != fds[1]);
    // SAFETY: the instance lives, and is not used again after it is freed.
    unsafe {
        assert_eq!(
            (table.listen)(table.userdata, fds[0], 1),
            0,
            "it still is a socket"
        );
        assert_eq!((table.close)(table.userdata, fds[0]), 0);
        assert_eq!(libc::close(fds[1]), 0);
        (table.free)(table.userdata);
    }
    for mut file in std::iter::once(own).chain(others) {
        file.read_exact(&mut [0]).expect("it is still open");
    }
}

/// A tool that does not look at the outcome gets errors, and no crash.
#[test]
fn tables_of_refused_instances_return_errors() {
    let (outcome, table) = table(c"no such flag");
    assert_eq!(outcome, -1);
    assert_eq!(object::table(c"gso=perhaps").0, -1);
    // SAFETY: a table without an instance takes any userdata and pointers.
    unsafe {
        assert_eq!((table.socket)(table.userdata, 2, 1, 0), -1);
        assert_eq!((table.usleep)(table.userdata, 10), -1);
        (table.free)(table.userdata);
    }
}

#[derive(Clone, Copy)]
struct Shared(Interface);

// SAFETY: the instance behind it is made for calls from several threads.
unsafe impl Send for Shared {}

impl Shared {
    fn clock_us(&self) -> i64 {
        let mut time = libc::timeval {
            tv_sec: 0,
            tv_usec: 0,
        };
        // SAFETY: the instance lives, and the time may be written.
        unsafe { (self.0.gettimeofday)(self.0.userdata, &mut time, std::ptr::null_mut()) };
        time.tv_sec * 1_000_000 + time.tv_usec
    }

    fn sleep(&self, us: u32) {
        // SAFETY: the instance lives.
        unsafe { (self.0.usleep)(self.0.userdata, us) };
    }

    /// An instance with these flags.
    fn new(flags: &str) -> Self {
        let flags = CString::new(flags).expect("no zero inside");
        let (outcome, table) = table(&flags);
        assert_eq!(outcome, 0);
        Self(table)
    }

    fn socket(&self) -> c_int {
        // SAFETY: the instance lives.
        unsafe { (self.0.socket)(self.0.userdata, libc::AF_INET, libc::SOCK_STREAM, 0) }
    }

    fn set_one(&self, fd: c_int, level: c_int, name: c_int) -> c_int {
        let one: c_int = 1;
        let (data, len) = (&raw const one, size_of::<c_int>() as u32);
        // SAFETY: the instance lives, and the value is as long as is said.
        unsafe { (self.0.setsockopt)(self.0.userdata, fd, level, name, data.cast(), len) }
    }

    /// Frees the instance, which nobody uses any more.
    fn free(self) {
        // SAFETY: by this function's contract, which tests keep.
        unsafe { (self.0.free)(self.0.userdata) };
    }
}

/// Settings change while a script runs, as its commands say in a file.
#[test]
fn settings_change_by_a_file() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let path = place.path().join("settings");
    let shared = Shared::new(&format!("fastopen=0,changes={}", path.display()));
    let fd = shared.socket();
    let connects_fast = || shared.set_one(fd, libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT);
    assert_eq!(connects_fast(), -1);
    std::fs::write(&path, "fastopen=1\n").expect("room");
    assert_eq!(connects_fast(), 0);
    shared.free();
}

/// A tool's second thread lets time pass up to its call while the first waits for it outside of the object.
#[test]
fn virtual_time_advances_for_any_sleeping_thread() {
    let shared = Shared::new("");
    let start_us = shared.clock_us();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let shared = shared;
        shared.sleep(50_000);
        tell.send(shared.clock_us()).expect("it is waited for");
    });
    let slept = told.recv_timeout(Duration::from_secs(60));
    let slept_us = slept.expect("nobody else need do anything") - start_us;
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
        .expect("there is a C compiler");
    assert!(built.success(), "the driver is built");
    let played = Command::new(&program)
        .env("LD_PRELOAD", object::path())
        .arg(object::path())
        .output()
        .expect("it runs");
    let message = String::from_utf8_lossy(&played.stderr);
    assert!(
        played.status.success(),
        "the dialogue goes as it says: {message}"
    );
}
