//! Arguments and environments that `baton live adapter` refuses, and the remedies that its messages name.

mod common;

use baton_testkit::process::{signal, until};
use common::{Ran, Workbench};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::thread;
use std::time::Duration;

/// The id of a user and group without privileges.
const NOBODY: u32 = 65_534;

/// Runs an adapter on an interface that does not exist. If its arguments are accepted, it fails when it opens the interface.
fn adapter(bench: &Workbench, more: &[&str]) -> Ran {
    let mut arguments = vec!["live", "adapter", "--addr", "10.9.0.2/24"];
    if !more.contains(&"--tap") {
        arguments.extend(["--iface", "nowhere0"]);
    }
    for (flag, path) in [("--listen", "baton.sock"), ("--control", "control.sock")] {
        if !more.contains(&flag) {
            arguments.extend([flag, path]);
        }
    }
    arguments.extend(more);
    bench.run(&arguments)
}

#[test]
fn measuring_batching_without_what_it_needs() {
    let bench = Workbench::new();
    let reproduce = ["reproduce", "batching", "--live"];
    let mut command = bench.command(&reproduce);
    let nowhere = command.env("PATH", bench.path("."));
    Ran::of(nowhere.output().expect("the program starts"))
        .refused(&["the command `httperf` is missing; install the package httperf"]);
    let simulated = [&reproduce[..], &["--profile", "offload-pcie"]].concat();
    bench.run(&simulated).refused(&["--live", "--profile"]);
}

/// `live serve` waits a moment for the socket of an adapter that has only just been started.
#[test]
fn an_adapter_that_starts_late() {
    let bench = Workbench::new();
    let serve = [
        "live",
        "serve",
        "--adapter",
        "baton.sock",
        "--control",
        "c",
        "--root",
        ".",
    ];
    let late = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(300));
            // Dropping the listener leaves a socket that refuses connections. The program must now report that, and not a missing socket.
            drop(UnixListener::bind(bench.path("baton.sock")).expect("a socket"));
        });
        bench.run(&serve)
    });
    late.refused(&["left behind by a process that has exited"]);
    fs::remove_file(bench.path("baton.sock")).expect("it is there");
    bench
        .run(&serve)
        .refused(&["there is no socket; start `baton live adapter"]);
}

#[test]
fn a_process_that_does_not_answer() {
    let bench = Workbench::new();
    let _silent = UnixListener::bind(bench.path("c.sock")).expect("a socket");
    let ran = bench.run(&["live", "stat", "--control", "c.sock"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("no answer within 10 s"), "{ran:?}");
    let mut command = bench.command(&["live", "stat", "--why", "--broker", "c.sock"]);
    let mut child = command.spawn().expect("the program starts");
    thread::sleep(Duration::from_millis(500));
    signal(&child, "INT");
    let start = std::time::Instant::now();
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert!(
        start.elapsed() < Duration::from_secs(8),
        "the interrupt ends the wait for an answer"
    );
}

#[test]
fn a_broker_that_was_killed() {
    let bench = Workbench::new();
    drop(UnixListener::bind(bench.path("broker.sock")).expect("a socket"));
    bench
        .run(&["live", "stat", "--why", "--broker", "broker.sock"])
        .refused(&["left behind", "`baton live broker --iface NAME`"]);
}

#[test]
fn a_program_that_cannot_be_executed() {
    let bench = Workbench::new();
    let _adapter = UnixListener::bind(bench.path("baton.sock")).expect("a socket");
    bench.write("data", "data");
    for (program, reason) in [
        ("./data", "it is not executable"),
        ("./none", "no such program"),
    ] {
        bench
            .run(&["live", "run", "--adapter", "baton.sock", "--", program])
            .refused(&[reason]);
    }
}

/// If the program may not connect to a socket, `live run` warns before it runs the program.
#[test]
fn sockets_of_another_user() {
    let bench = Workbench::new();
    let _adapter = UnixListener::bind(bench.path("baton.sock")).expect("a socket");
    let folder = bench.path(".");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777))
        .expect("the test owns the folder");
    let arguments = ["live", "run", "--adapter", "baton.sock", "--", "true"];
    let mode = |mode| {
        let path = bench.path("baton.sock");
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
            .expect("the test owns the socket");
    };
    if !rustix::process::geteuid().is_root() {
        return;
    }
    mode(0o755);
    let ran = bench.run(&arguments).ok();
    assert!(ran.stderr.contains("only root may connect"), "{ran:?}");
    let mut command = bench.command(&arguments);
    let ran = Ran::of(command.uid(NOBODY).gid(NOBODY).output().expect("it starts")).ok();
    assert!(
        ran.stderr.contains("warning: no permission to connect"),
        "{ran:?}"
    );
    mode(0o777);
    let ran = bench.run(&arguments).ok();
    assert!(!ran.stderr.contains("connect"), "{ran:?}");
}

#[test]
fn a_socket_on_which_another_process_answers() {
    let bench = Workbench::new();
    for flag in ["--listen", "--control"] {
        let path = format!("{}.sock", &flag[2..]);
        let held = UnixListener::bind(bench.path(&path)).expect("a socket");
        adapter(&bench, &[flag, &path]).refused(&[
            &format!("{flag} {path}: another process answers there"),
            "end it or give another path",
        ]);
        drop(held);
        // A child that another test forks holds a copy of the listener until it calls exec, so wait until no process accepts.
        until("nothing accepts", || {
            UnixStream::connect(bench.path(&path)).is_err()
        });
        // The adapter replaces a socket that no process listens on, and then reports the missing interface.
        adapter(&bench, &[flag, &path]).refused(&["there is no interface nowhere0"]);
        assert!(
            !bench.path(&path).exists(),
            "the adapter removes its own socket"
        );
    }
}

#[test]
fn a_tcp_port_that_is_in_use() {
    let bench = Workbench::new();
    let held = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = held.local_addr().expect("its address").to_string();
    adapter(&bench, &["--listen-tcp", &address]).refused(&[
        &format!("--listen-tcp {address}: "),
        "in use",
        "a free port",
    ]);
}

/// Only root can make interfaces.
#[test]
fn missing_privilege() {
    let bench = Workbench::new();
    let folder = bench.path(".");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777))
        .expect("the test owns the folder");
    let mut command = bench.command(&[
        "live",
        "adapter",
        "--tap",
        "baton9",
        "--addr",
        "10.9.0.2/24",
        "--listen",
        "baton.sock",
        "--control",
        "control.sock",
    ]);
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let ran = Ran::of(command.output().expect("the program starts"));
    ran.refused(&["baton9", "run as root, or with CAP_NET_ADMIN"]);
}
