//! Checks that system calls which the seccomp filters forbid kill a process, and that the filters allow the calls that daemons need. This program
//! starts itself again as a child process, which makes the call.
#![allow(unsafe_code)]

use baton_live::{Confinement, confine};
use libc::c_long;
use libtest_mimic::{Arguments, Trial};
use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, exit};
use std::thread;
use std::time::Duration;

/// Environment variable that tells a child process which call to make and which filter to apply.
const ROLE: &str = "BATON_TEST_ROLE";
const BOTH: &[Confinement] = &[Confinement::Adapter, Confinement::Broker];
const ADAPTER: &[Confinement] = &[Confinement::Adapter];
const BROKER: &[Confinement] = &[Confinement::Broker];

/// A name, the filters under which the call is made, the call, and whether the process survives it.
type Case = (&'static str, &'static [Confinement], fn(), bool);

const CASES: &[Case] = &[
    ("using threads, memory and time", BOTH, work, true),
    ("a panic in a thread", BOTH, panic_in_a_thread, true),
    (
        "opening a file for reading",
        BOTH,
        || drop(File::open("/dev/null")),
        true,
    ),
    ("opening a file for writing", BOTH, open_for_writing, false),
    (
        "creating a file",
        BOTH,
        || {
            call(
                libc::SYS_openat,
                [libc::AT_FDCWD.into(), empty(), libc::O_CREAT.into()],
            )
        },
        false,
    ),
    (
        "executing another program",
        BOTH,
        || call(libc::SYS_execve, [empty(), 0, 0]),
        false,
    ),
    (
        "starting another process",
        BOTH,
        || drop(Command::new("true").spawn()),
        false,
    ),
    (
        "entering another namespace",
        BOTH,
        || call(libc::SYS_unshare, [libc::CLONE_NEWUSER.into(), 0, 0]),
        false,
    ),
    (
        "mounting a file system",
        BOTH,
        || call(libc::SYS_mount, [empty(), empty(), empty()]),
        false,
    ),
    (
        "tracing another process",
        BOTH,
        || call(libc::SYS_ptrace, [libc::PTRACE_ATTACH.into(), 1, 0]),
        false,
    ),
    (
        "reading the memory of another process",
        BOTH,
        || call(libc::SYS_process_vm_readv, [1, 0, 0]),
        false,
    ),
    (
        "killing another process",
        BOTH,
        || call(libc::SYS_kill, [1, 0, 0]),
        false,
    ),
    (
        "sending a signal to a thread of another process",
        BOTH,
        || call(libc::SYS_tgkill, [1, 1, 0]),
        false,
    ),
    (
        "becoming another user",
        BOTH,
        || call(libc::SYS_setresuid, [0, 0, 0]),
        false,
    ),
    ("executable memory", BOTH, executable_memory, false),
    (
        "setting up io_uring",
        BOTH,
        || call(libc::SYS_io_uring_setup, [1, 0, 0]),
        false,
    ),
    (
        "opening a packet socket",
        BOTH,
        || socket(libc::AF_PACKET, libc::SOCK_RAW),
        false,
    ),
    (
        "opening a raw socket",
        BOTH,
        || socket(libc::AF_INET, libc::SOCK_RAW),
        false,
    ),
    (
        "opening a TCP socket, adapter",
        ADAPTER,
        || socket(libc::AF_INET, libc::SOCK_STREAM),
        false,
    ),
    (
        "opening a TCP socket, broker",
        BROKER,
        || socket(libc::AF_INET6, libc::SOCK_STREAM),
        true,
    ),
    (
        "opening a Unix socket, adapter",
        ADAPTER,
        || socket(libc::AF_UNIX, libc::SOCK_STREAM),
        true,
    ),
    (
        "opening a Unix socket, broker",
        BROKER,
        || socket(libc::AF_UNIX, libc::SOCK_STREAM),
        false,
    ),
    (
        "calling bpf, adapter",
        ADAPTER,
        || call(libc::SYS_bpf, [1, 0, 0]),
        false,
    ),
    (
        "reading a BPF map, broker",
        BROKER,
        || call(libc::SYS_bpf, [1, 0, 0]),
        true,
    ),
    (
        "creating a BPF map, broker",
        BROKER,
        || call(libc::SYS_bpf, [0, 0, 0]),
        false,
    ),
    (
        "injecting terminal input",
        BOTH,
        || call(libc::SYS_ioctl, [0, libc::TIOCSTI as c_long, empty()]),
        false,
    ),
];

fn main() {
    if let Ok(role) = std::env::var(ROLE) {
        let (name, kind) = role.split_once('/').expect("a name and a confinement");
        let case = CASES
            .iter()
            .find(|(of, ..)| *of == name)
            .expect("a case with this name");
        let kind = case.1.iter().find(|of| format!("{of:?}") == kind);
        confine(*kind.expect("a confinement of this case")).expect("the kernel supports seccomp");
        case.2();
        // Exits directly, because the filter may not allow what the test harness does at its end.
        exit(0);
    }
    let trials = CASES.iter().flat_map(|&(name, kinds, _, lives)| {
        kinds.iter().map(move |kind| {
            let role = format!("{name}/{kind:?}");
            Trial::test(role.clone(), move || {
                let this = std::env::current_exe().map_err(|error| error.to_string())?;
                let output = Command::new(this)
                    .env(ROLE, role)
                    .env("RUST_BACKTRACE", "1")
                    .output();
                let output = output.map_err(|error| error.to_string())?;
                let expected = if lives { None } else { Some(libc::SIGSYS) };
                match output.status.signal() == expected && (output.status.success() == lives) {
                    true => Ok(()),
                    false => Err(format!("{output:?}").into()),
                }
            })
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}

fn call(number: c_long, arguments: [c_long; 3]) {
    let [first, second, third] = arguments;
    // SAFETY: the arguments are numbers, null, or an empty string: no call makes the kernel write to memory.
    let _ = unsafe { libc::syscall(number, first, second, third, 0, 0, 0) };
}

/// Returns the address of an empty string.
fn empty() -> c_long {
    c"".as_ptr().expose_provenance() as c_long
}

fn socket(family: i32, kind: i32) {
    call(libc::SYS_socket, [family.into(), kind.into(), 0]);
}

fn open_for_writing() {
    drop(OpenOptions::new().write(true).open("/dev/null"));
}

fn executable_memory() {
    let protection = libc::PROT_READ | libc::PROT_EXEC;
    call(libc::SYS_mmap, [0, 4096, protection.into()]);
}

fn work() {
    let threads: Vec<_> = (0..8)
        .map(|_| {
            thread::spawn(|| {
                let memory = black_box(vec![1_u8; 64 << 20]);
                thread::sleep(Duration::from_millis(1));
                eprintln!("{}", memory.len());
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
}

fn panic_in_a_thread() {
    let thread = thread::Builder::new().name("panics".to_owned());
    let thread = thread.spawn(|| panic!("on purpose")).expect("a thread");
    assert!(thread.join().is_err());
}
