//! The privileges that adapter and broker keep once they share an interface with the kernel, the default paths of their sockets, and an address that
//! the kernel has. The tests make network namespaces with interfaces.

#[path = "../common/mod.rs"]
mod common;

use baton_testkit::needs::{self, Need};
use baton_testkit::process::{Process, run, until};
use common::Workbench;
use libtest_mimic::Arguments;
use std::fs;
use std::process::{self, Command, Output, Stdio};

/// The capabilities that the broker keeps: CAP_NET_BIND_SERVICE, CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF.
const OF_BROKER: u64 = 1 << 10 | 1 << 12 | 1 << 13 | 1 << 39;
/// The name of the thread that waits for signals, which keeps no capabilities.
const WITHOUT: &str = "ctrl-c";

fn main() {
    let tests: &[needs::Test] = baton_testkit::tests![
        each_thread_keeps_only_what_is_documented,
        each_namespace_has_an_adapter_of_its_own,
        a_broker_of_another_namespace_is_named,
        an_address_that_is_in_use,
    ];
    needs::run(&Arguments::from_args(), Need::Root, tests);
}

fn each_thread_keeps_only_what_is_documented() {
    let namespace = Namespace::new("threads");
    let broker = namespace.start(&["broker"], None);
    let places = namespace.places();
    let socket = format!("{places}/broker.sock");
    until(&socket, || fs::exists(&socket).unwrap_or_default());
    let adapter = namespace.start(&["adapter", "--handoff", "never"], Some("taking over"));
    for (daemon, kept, least) in [(&broker, OF_BROKER, 4), (&adapter, 0, 2)] {
        let threads = await_confined(daemon);
        assert!(threads.len() >= least, "{threads:?}");
        for thread in threads {
            for ids in ["Uid", "Gid"] {
                let ids = thread.field(ids).split_whitespace();
                assert!(ids.clone().count() == 4 && ids.into_iter().all(|id| id != "0"));
            }
            assert_eq!(thread.field("Groups"), "", "{thread:?}");
            let kept = if thread.field("Name") == WITHOUT {
                0
            } else {
                kept
            };
            for (set, expected) in [
                ("CapPrm", kept),
                ("CapEff", kept),
                ("CapInh", 0),
                ("CapAmb", 0),
                ("CapBnd", 0),
            ] {
                assert_eq!(thread.field(set), format!("{expected:016x}"), "{thread:?}");
            }
            assert_eq!(thread.field("NoNewPrivs"), "1", "{thread:?}");
        }
    }
    // Adapter and broker remove their files when they end.
    adapter.end();
    broker.end();
    assert_eq!(fs::read_dir(&places).expect("a folder").count(), 0);
}

fn each_namespace_has_an_adapter_of_its_own() {
    let namespaces = ["first", "second"].map(Namespace::new);
    let adapters = namespaces.each_ref().map(|namespace| {
        let adapter = namespace.start(&["adapter", "--handoff", "never"], Some("taking over"));
        (namespace, adapter)
    });
    for (namespace, adapter) in &adapters {
        let stat = namespace.run(&["stat", "--json", "--control"], "control.sock");
        let text = String::from_utf8_lossy(&stat.stdout);
        let pid = format!("\"pid\":{}", adapter.pid());
        assert!(stat.status.success() && text.contains(&pid), "{stat:?}");
        // Without a path, the command uses the default path of the namespace.
        let restored = namespace.inside(&["restore", "--all"]);
        assert!(restored.status.success(), "{restored:?}");
    }
}

fn a_broker_of_another_namespace_is_named() {
    let [first, second] = ["named", "stranger"].map(Namespace::new);
    let _adapter = first.start(&["adapter", "--handoff", "never"], Some("taking over"));
    let broker = format!("--broker={}/broker.sock", first.places());
    let refused = second.inside(&["adapter", "--iface", "eth1", &broker]);
    let text = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{text}");
    for expected in [
        &broker[9..],
        &format!(
            "this broker serves eth1 in network namespace {}",
            first.number()
        ),
        &format!(
            "the adapter uses eth1 in network namespace {}",
            second.number()
        ),
    ] {
        assert!(text.contains(expected), "{text}");
    }
    let absent = second.inside(&["restore", "--all"]);
    let text = String::from_utf8_lossy(&absent.stderr);
    let path = format!("{}/broker.sock", second.places());
    assert!(text.contains(&path) && text.contains("the default path in this network namespace"));
}

/// The kernel answers for its own addresses, so the adapter's TCP engine must not use one of them.
fn an_address_that_is_in_use() {
    let bench = Workbench::new();
    let id = process::id();
    let (tap, namespace) = (format!("ba{id}"), format!("baton-refusals-{id}"));
    let adapter = ["live", "adapter", "--addr", "10.9.0.2/24"];
    let places = ["--listen", "baton.sock", "--control", "control.sock"];
    let link = [
        "--tap",
        &tap,
        "--netns",
        &namespace,
        "--host-addr",
        "10.9.0.2/24",
    ];
    let ran = bench.run(&[&adapter[..], &places, &link].concat());
    ran.refused(&[
        "10.9.0.2 is in use",
        "give the engine an address of its own",
    ]);
    let left = fs::exists(format!("/run/netns/{namespace}"));
    assert!(
        !left.expect("the path can be checked"),
        "the adapter deletes the namespace that it made"
    );
}

/// A network namespace with an interface `eth1`; deleted when dropped.
struct Namespace {
    name: String,
}

impl Namespace {
    fn new(name: &str) -> Self {
        let name = format!("baton-priv-{}-{name}", process::id());
        run("ip", &["netns", "add", &name]);
        let namespace = Self { name };
        namespace.ip("link add eth1 type veth peer name eth1p");
        namespace.ip("addr add 10.7.8.1/24 dev eth1");
        namespace.ip("link set eth1 up");
        namespace.ip("link set eth1p up");
        namespace
    }

    fn ip(&self, arguments: &str) {
        let mut all = vec!["-n", &self.name];
        all.extend(arguments.split(' '));
        run("ip", &all);
    }

    fn number(&self) -> u64 {
        use std::os::unix::fs::MetadataExt;
        let about = fs::metadata(format!("/run/netns/{}", self.name));
        about.expect("it was made").ino()
    }

    /// Returns the folder of the default paths in the namespace.
    fn places(&self) -> String {
        format!("/run/baton-{}", self.number())
    }

    /// Starts a daemon on the namespace's interface from outside, and waits until it prints a line that contains `says`.
    fn start(&self, arguments: &[&str], says: Option<&str>) -> Process {
        let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
        command.arg("live").args(arguments);
        command.args(["--iface", "eth1", "--netns", &self.name]);
        command.stdout(Stdio::null());
        let daemon = Process::start(command.stderr(Stdio::piped()));
        if let Some(text) = says {
            daemon.says(text);
        }
        daemon
    }

    /// Runs a command in the namespace.
    fn inside(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]);
        command.arg(env!("CARGO_BIN_EXE_baton")).arg("live");
        command.args(arguments).output().expect("it starts")
    }

    /// Runs a command outside of the namespace, with the path of a socket in the namespace's folder.
    fn run(&self, arguments: &[&str], socket: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
        command.arg("live").args(arguments);
        command.arg(format!("{}/{socket}", self.places()));
        command.output().expect("it starts")
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let places = self.places();
        run("ip", &["netns", "delete", &self.name]);
        let _ = fs::remove_dir_all(places);
    }
}

/// The status of a thread as the kernel reports it (proc_pid_status(5)).
#[derive(Debug)]
struct Thread(String);

impl Thread {
    fn field(&self, name: &str) -> &str {
        let mut lines = self.0.lines().filter_map(|line| line.split_once(':'));
        let found = lines.find(|(key, _)| *key == name);
        found.expect("the kernel reports it").1.trim()
    }
}

/// Waits until all threads of a process have a filter of system calls, and returns them.
fn await_confined(process: &Process) -> Vec<Thread> {
    let threads = || {
        let tasks = fs::read_dir(format!("/proc/{}/task", process.pid()));
        let tasks = tasks.expect("it runs").filter_map(Result::ok);
        let status = tasks.filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
        status.map(Thread).collect::<Vec<_>>()
    };
    until("a filter in each thread", || {
        threads()
            .iter()
            .all(|thread| thread.field("Seccomp") == "2")
    });
    threads()
}
