//! How programs are attached, and that none of them remains.

use crate::frames::flow_between;
use crate::wire::{NEAR, on_veth, run};
use baton_live::port::{AfXdp, AfXdpConfig};
use baton_live::xdp::{GuardKind, Lookup, LookupConfig, Mode, Steering, XdpError};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub const ALL: &[(&str, fn())] = &[
    (
        "a_guard_left_behind_is_taken_over_and_removed",
        a_guard_left_behind_is_taken_over_and_removed,
    ),
    (
        "links_disappear_with_a_killed_process",
        links_disappear_with_a_killed_process,
    ),
    (
        "a_second_program_is_refused_with_a_reason",
        a_second_program_is_refused_with_a_reason,
    ),
    (
        "the_mode_is_native_unless_another_is_requested",
        the_mode_is_native_unless_another_is_requested,
    ),
    (
        "a_driver_without_xdp_gets_generic_mode",
        a_driver_without_xdp_gets_generic_mode,
    ),
    (
        "missing_permissions_and_interfaces_are_named",
        missing_permissions_and_interfaces_are_named,
    ),
    (
        "three_capabilities_are_enough",
        three_capabilities_are_enough,
    ),
    (
        "frames_that_are_too_long_are_refused_before_anything_is_attached",
        frames_that_are_too_long_are_refused_before_anything_is_attached,
    ),
];

/// Environment variable of a child, with the kind of guard, and optionally the endpoints of a flow to capture.
const CHILD: &str = "BATON_TEST_XDP_CHILD";
pub const ATTACHED: &str = "attached";

/// In a child that a test has started, attaches everything, reports this, and waits. Returns immediately in any other process.
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
        let ends: Vec<SocketAddr> = words.map(|word| word.parse().expect("an end")).collect();
        if let [local, remote] = ends[..] {
            lookup.insert(&flow_between(local, remote))?;
        }
        Ok::<_, XdpError>((lookup, port))
    };
    match attach() {
        Ok(_kept) => {
            println!("{ATTACHED}");
            // Until the parent closes its end.
            let _ = std::io::stdin().read(&mut [0]);
        }
        Err(error) => println!("{}", error.to_string().replace('\n', " | ")),
    }
    std::process::exit(0);
}

/// Starts this program as a child, with the command `before` in front and `line` as its task; returns the first line that it prints.
pub fn child(before: &[&str], line: &str) -> (Child, String) {
    let this = std::env::current_exe().expect("it has a path");
    let mut words = before
        .iter()
        .map(std::ffi::OsStr::new)
        .chain([this.as_os_str()]);
    let mut command = Command::new(words.next().expect("a program"));
    command.args(words).env(CHILD, line);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut line = String::new();
    let output = child.stdout.as_mut().expect("a pipe");
    BufReader::new(output)
        .read_line(&mut line)
        .expect("it speaks");
    (child, line.trim().to_owned())
}

/// Returns whether a program sees the interface's received packets, and how many programs see its sent packets.
fn programs() -> (bool, u32) {
    let link = run("ip", &["-d", "link", "show", "dev", NEAR]);
    (link.contains("prog/xdp"), egress_programs())
}

/// Returns the number of programs that see sent packets (BPF_PROG_QUERY).
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
        interface: index.expect("the interface is there"),
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
        child.kill().expect("it is there");
        child.wait().expect("it is gone");
        // The kernel cleans up asynchronously.
        let start = Instant::now();
        while programs() != (false, 0) {
            assert!(start.elapsed() < Duration::from_secs(30), "they stay");
            std::thread::sleep(Duration::from_millis(5));
        }
        // The next lookup finds everything free.
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
        child.kill().expect("it is there");
        child.wait().expect("it is gone");
        assert_eq!(filters(), 1, "nobody takes it away");
        let lookup = Lookup::attach(NEAR, config).expect("it attaches");
        assert_eq!(filters(), 1, "it is taken over");
        drop(lookup);
        assert_eq!(filters(), 0);
    });
}

fn a_second_program_is_refused_with_a_reason() {
    on_veth(1, || {
        for first in [Mode::Native, Mode::Generic] {
            let _first = Steering::of_everything(NEAR, Some(first)).expect("it attaches");
            for second in [None, Some(Mode::Native), Some(Mode::Generic)] {
                let refused = Steering::of_everything(NEAR, second).expect_err("occupied");
                assert!(
                    matches!(&refused, XdpError::Occupied(name) if name == NEAR),
                    "{first} and {second:?}: {refused}"
                );
            }
        }
        let _port = AfXdp::open(NEAR, &AfXdpConfig::default()).expect("all is free again");
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
            assert!(!port.is_zero_copy(), "veth cannot");
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
        let (mut child, line) = child(&nobody, "tcx");
        assert!(line.contains("no permission to"), "{line}");
        assert!(
            line.contains("CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW"),
            "{line}"
        );
        child.wait().expect("it is gone");
        let absent = AfXdp::open("nowhere0", &AfXdpConfig::default()).expect_err("absent");
        assert!(
            absent.to_string().contains("no interface nowhere0"),
            "{absent}"
        );
        let loopback = AfXdp::open("lo", &AfXdpConfig::default()).expect_err("no Ethernet");
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
        let (mut child, line) = child(&before, "tcx");
        assert_eq!(line, ATTACHED);
        child.kill().expect("it is there");
        child.wait().expect("it is gone");
    });
}

fn frames_that_are_too_long_are_refused_before_anything_is_attached() {
    on_veth(1, || {
        run("ip", &["link", "set", NEAR, "mtu", "9000"]);
        let config = AfXdpConfig {
            mode: Some(Mode::Generic),
            ..AfXdpConfig::default()
        };
        let refused = AfXdp::open(NEAR, &config).expect_err("too long");
        let text = refused.to_string();
        assert!(
            text.contains("its MTU is 9000, expected at most 3822"),
            "{text}"
        );
        assert_eq!(programs(), (false, 0));
        run("ip", &["link", "set", NEAR, "mtu", "3822"]);
        AfXdp::open(NEAR, &config).expect("it fits");
    });
}
