//! How XDP programs and guards are attached to an interface, and that none remains afterwards.

use crate::frames::flow_between;
use crate::wire::{NEAR, on_veth, run};
use baton_live::port::{AfXdp, AfXdpConfig};
use baton_live::xdp::{GuardKind, Lookup, LookupConfig, Mode, Steering, XdpError};
use baton_testkit::process::{Process, until};
use std::io::Read;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

pub const ALL: &[(&str, fn())] = baton_testkit::tests![
    a_guard_left_behind_is_taken_over_and_removed,
    links_disappear_with_a_killed_process,
    a_second_program_is_refused_with_a_reason,
    the_mode_is_native_unless_another_is_requested,
    a_driver_without_xdp_gets_generic_mode,
    missing_permissions_and_interfaces_are_named,
    three_capabilities_are_enough,
    frames_that_are_too_long_are_refused_before_anything_is_attached,
];

/// Environment variable that tells a child process which kind of guard to attach, and optionally the endpoints of a flow to capture.
const CHILD: &str = "BATON_TEST_XDP_CHILD";
pub const ATTACHED: &str = "attached";

/// In a child process that a test has started, attaches the XDP program and the guard, reports this, and waits. Returns immediately in any other
/// process.
pub fn serve_parent() {
    let Some(line) = std::env::var_os(CHILD) else {
        return;
    };
    let line = line.into_string().expect("UTF-8");
    let attach = || {
        let mut words = line.split(' ');
        let config = LookupConfig {
            guard: match words.next() {
                Some("clsact") => Some(GuardKind::Clsact),
                _ => Some(GuardKind::Tcx),
            },
            ..LookupConfig::default()
        };
        let lookup = Lookup::attach(NEAR, config)?;
        let port = AfXdp::with_lookup(NEAR, &AfXdpConfig::default(), &lookup)?;
        let ends: Vec<SocketAddr> = words
            .map(|word| word.parse().expect("an address"))
            .collect();
        if let [local, remote] = ends[..] {
            lookup.insert(&flow_between(local, remote))?;
        }
        Ok::<_, XdpError>((lookup, port))
    };
    match attach() {
        Ok(_kept) => {
            println!("{ATTACHED}");
            // Waits until the parent closes its end of the pipe.
            let _ = std::io::stdin().read(&mut [0]);
        }
        Err(error) => println!("{}", error.to_string().replace('\n', " | ")),
    }
    std::process::exit(0);
}

/// Starts this program as a child process by the command `before`, with `line` as its task. Returns the process and the first line that it prints.
pub fn child(before: &[&str], line: &str) -> (Process, String) {
    let this = std::env::current_exe().expect("the program's path");
    let mut words = before
        .iter()
        .map(std::ffi::OsStr::new)
        .chain([this.as_os_str()]);
    let mut command = Command::new(words.next().expect("a program"));
    command.args(words).env(CHILD, line);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let child = Process::start(&mut command);
    let line = child.line();
    (child, line)
}

/// Returns whether an XDP program is attached to the interface, and how many programs are attached to its egress.
fn programs() -> (bool, u32) {
    let link = run("ip", &["-d", "link", "show", "dev", NEAR]);
    (link.contains("prog/xdp"), egress_programs())
}

/// Returns the number of programs that are attached to the interface's egress (BPF_PROG_QUERY).
#[allow(unsafe_code)]
fn egress_programs() -> u32 {
    #[repr(C)]
    #[derive(Default)]
    struct Query {
        interface: u32,
        attach_type: u32,
        query_flags: u32,
        attach_flags: u32,
        ids: u64,
        count: u32,
        padding: u32,
        program_flags: u64,
        links: u64,
        link_flags: u64,
        // The kernel writes this field even if the given length excludes it.
        revision: u64,
    }
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        None,
    );
    let index = rustix::net::netdevice::name_to_index(socket.expect("a socket"), NEAR);
    let mut query = Query {
        interface: index.expect("the interface exists"),
        attach_type: 47,
        ..Query::default()
    };
    // SAFETY: these are the attributes of the command; without a buffer for identifiers the kernel writes none.
    let result = unsafe { libc::syscall(libc::SYS_bpf, 16, &raw mut query, size_of::<Query>()) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    query.count
}

fn links_disappear_with_a_killed_process() {
    on_veth(1, || {
        assert_eq!(programs(), (false, 0));
        let (mut child, line) = child(&["env"], "tcx");
        assert_eq!(line, ATTACHED);
        assert_eq!(programs(), (true, 1));
        child.kill();
        // The kernel cleans up asynchronously.
        until("the programs are detached", || programs() == (false, 0));
        // Another lookup can use the interface again.
        let lookup = Lookup::attach(NEAR, LookupConfig::default()).expect("it attaches");
        AfXdp::with_lookup(NEAR, &AfXdpConfig::default(), &lookup).expect("a socket");
        drop(lookup);
        assert_eq!(programs(), (false, 0));
    });
}

fn a_guard_left_behind_is_taken_over_and_removed() {
    on_veth(1, || {
        let filters = || {
            let shown = run("tc", &["filter", "show", "dev", NEAR, "egress"]);
            shown.matches("baton_guard direct-action").count()
        };
        let config = LookupConfig {
            guard: Some(GuardKind::Clsact),
            ..LookupConfig::default()
        };
        let lookup = Lookup::attach(NEAR, config).expect("it attaches");
        assert_eq!((lookup.guard(), filters()), (Some(GuardKind::Clsact), 1));
        drop(lookup);
        assert_eq!(filters(), 0);
        let (mut child, line) = child(&["env"], "clsact");
        assert_eq!(line, ATTACHED);
        child.kill();
        assert_eq!(filters(), 1, "the filter outlives the process");
        let lookup = Lookup::attach(NEAR, config).expect("it attaches");
        assert_eq!(filters(), 1, "the lookup takes the filter over");
        drop(lookup);
        assert_eq!(filters(), 0);
    });
}

fn a_second_program_is_refused_with_a_reason() {
    on_veth(1, || {
        for first in [Mode::Native, Mode::Generic] {
            let _first = Steering::of_everything(NEAR, Some(first)).expect("it attaches");
            for second in [None, Some(Mode::Native), Some(Mode::Generic)] {
                let refused =
                    Steering::of_everything(NEAR, second).expect_err("the interface is in use");
                assert!(
                    matches!(&refused, XdpError::Occupied(name) if name == NEAR),
                    "{first} and {second:?}: {refused}"
                );
            }
        }
        let _port =
            AfXdp::open(NEAR, &AfXdpConfig::default()).expect("the interface is free again");
    });
}

fn the_mode_is_native_unless_another_is_requested() {
    on_veth(1, || {
        for (asked, expected) in [
            (None, Mode::Native),
            (Some(Mode::Native), Mode::Native),
            (Some(Mode::Generic), Mode::Generic),
        ] {
            let config = AfXdpConfig {
                mode: asked,
                ..AfXdpConfig::default()
            };
            let port = AfXdp::open(NEAR, &config).expect("it opens");
            assert_eq!(port.mode(), expected);
            assert!(!port.is_zero_copy(), "veth does not support zero copy");
            let shown = run("ip", &["-d", "link", "show", "dev", NEAR]);
            let word = match expected {
                Mode::Native => " xdp ",
                Mode::Generic => " xdpgeneric ",
            };
            assert!(shown.contains(word), "{shown}");
        }
    });
}

fn a_driver_without_xdp_gets_generic_mode() {
    crate::wire::apart(|| {
        run("ip", &["link", "add", NEAR, "type", "bridge"]);
        run("ip", &["link", "set", NEAR, "up"]);
        let port = AfXdp::open(NEAR, &AfXdpConfig::default()).expect("it opens");
        assert_eq!(port.mode(), Mode::Generic);
        drop(port);
        let refused = Steering::of_everything(NEAR, Some(Mode::Native)).expect_err("refused");
        let text = refused.to_string();
        assert!(text.contains("no XDP program in native mode"), "{text}");
    });
}

fn missing_permissions_and_interfaces_are_named() {
    on_veth(1, || {
        let nobody = [
            "setpriv",
            "--reuid",
            "65534",
            "--clear-groups",
            "--inh-caps=-all",
        ];
        let (_child, line) = child(&nobody, "tcx");
        assert!(line.contains("no permission to"), "{line}");
        assert!(
            line.contains("CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW"),
            "{line}"
        );
        let absent =
            AfXdp::open("nowhere0", &AfXdpConfig::default()).expect_err("no such interface");
        assert!(
            absent.to_string().contains("no interface nowhere0"),
            "{absent}"
        );
        let loopback =
            AfXdp::open("lo", &AfXdpConfig::default()).expect_err("not an Ethernet interface");
        assert!(
            loopback.to_string().contains("not an Ethernet interface"),
            "{loopback}"
        );
    });
}

fn three_capabilities_are_enough() {
    on_veth(1, || {
        let given = "+bpf,+net_admin,+net_raw";
        let (inherited, ambient) = (
            format!("--inh-caps={given}"),
            format!("--ambient-caps={given}"),
        );
        let user = ["--reuid", "65534", "--clear-groups"];
        let before = [&["setpriv"], &user[..], &[&inherited, &ambient]].concat();
        let (_child, line) = child(&before, "tcx");
        assert_eq!(line, ATTACHED);
    });
}

fn frames_that_are_too_long_are_refused_before_anything_is_attached() {
    on_veth(1, || {
        run("ip", &["link", "set", NEAR, "mtu", "9000"]);
        let config = AfXdpConfig {
            mode: Some(Mode::Generic),
            ..AfXdpConfig::default()
        };
        let refused = AfXdp::open(NEAR, &config).expect_err("frames that are too long");
        let text = refused.to_string();
        assert!(
            text.contains("its MTU is 9000, expected at most 3822"),
            "{text}"
        );
        assert_eq!(programs(), (false, 0));
        run("ip", &["link", "set", NEAR, "mtu", "3822"]);
        AfXdp::open(NEAR, &config).expect("the largest MTU");
    });
}
