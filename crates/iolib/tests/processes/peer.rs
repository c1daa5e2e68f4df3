//! The process at the other end of a link, which is another process of this program.

use crate::{LONG, now_since, traffic};
use baton_bus::{AdapterLink, HostLink};
use baton_iolib::{
    AdapterAddress, AdapterListener, AnyAdapterLink, AnyHostLink, Geometry, Limits, LiveLink, Spin,
    TcpAdapterListener, wait,
};
use baton_testkit::process::Process;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Environment variable with the role of a child process.
const ROLE: &str = "BATON_TEST_ROLE";
/// Environment variable with the address of the adapter.
const ADDRESS: &str = "BATON_TEST_ADDRESS";

/// What the other process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    SleepingAdapter,
    SpinningAdapter,
    SleepingHost,
    SpinningHost,
    EchoOverMemory,
    EchoOverTcp,
}

const ROLES: [Role; 6] = [
    Role::SleepingAdapter,
    Role::SpinningAdapter,
    Role::SleepingHost,
    Role::SpinningHost,
    Role::EchoOverMemory,
    Role::EchoOverTcp,
];

/// The other process, which is killed when this is dropped.
pub struct Peer {
    process: Process,
    /// The address at which the process listens, if it is an adapter.
    address: Option<AdapterAddress>,
    _folder: tempfile::TempDir,
}

impl Peer {
    /// Starts an adapter, and waits until it prints the address at which it listens.
    pub fn start(role: Role) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("adapter.sock");
        let mut command = command(role, &AdapterAddress::Unix(path));
        let process = Process::start(command.stdout(Stdio::piped()));
        let address = process.line().parse().expect("an address");
        Self {
            process,
            address: Some(address),
            _folder: folder,
        }
    }

    /// Starts a host of the adapter at `address`.
    pub fn start_at(role: Role, address: &AdapterAddress) -> Self {
        Self {
            process: Process::start(&mut command(role, address)),
            address: None,
            _folder: tempfile::tempdir().expect("a folder"),
        }
    }

    pub fn connect(&self, wishes: &Geometry) -> AnyHostLink {
        let address = self.address.as_ref().expect("the peer is an adapter");
        AnyHostLink::connect(address, wishes).expect("the adapter listens")
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Kills the process by SIGKILL, so that it cannot close the link.
    pub fn kill(self) {
        drop(self);
    }
}

fn command(role: Role, address: &AdapterAddress) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the program's path"));
    command
        .env(ROLE, format!("{role:?}"))
        .env(ADDRESS, address.to_string());
    command
}

/// Plays the role of the other process if the environment gives this process a role. Returns whether it did.
pub fn act_if_asked() -> bool {
    let Ok(asked) = std::env::var(ROLE) else {
        return false;
    };
    let role = ROLES.into_iter().find(|role| format!("{role:?}") == asked);
    let address: AdapterAddress = std::env::var(ADDRESS)
        .expect("an address")
        .parse()
        .expect("an address");
    match role.expect("a role") {
        role @ (Role::SleepingHost | Role::SpinningHost) => {
            let mut link = AnyHostLink::connect(&address, &Geometry::default()).expect("a link");
            idle(&mut link, role == Role::SleepingHost, |link, now| {
                link.get(now, &mut Vec::new()).is_ok()
            });
        }
        role @ (Role::SleepingAdapter | Role::SpinningAdapter) => {
            let mut link = accept_over_memory(&address);
            idle(&mut link, role == Role::SleepingAdapter, |link, now| {
                link.get(now, 9, &mut Vec::new()).is_ok()
            });
        }
        Role::EchoOverMemory => traffic::echo(&mut accept_over_memory(&address)),
        Role::EchoOverTcp => traffic::echo(&mut accept_over_tcp()),
    }
    true
}

/// Waits until the other side is gone, or for the maximum time of a test.
fn idle<L: LiveLink>(link: &mut L, asleep: bool, get: impl Fn(&mut L, baton_wire::Time) -> bool) {
    let start = Instant::now();
    let mut spin = Spin::new(Duration::ZERO);
    while get(link, now_since(start)) && start.elapsed() < LONG {
        if asleep {
            wait(link, &mut spin, Some(LONG)).expect("the system can wait");
        }
    }
}

fn accept_over_memory(address: &AdapterAddress) -> AnyAdapterLink {
    let AdapterAddress::Unix(path) = address else {
        panic!("the address is not a path");
    };
    let mut listener = AdapterListener::bind(path, Limits::default()).expect("a socket");
    println!("{address}");
    until_some(|| listener.accept(&[])).into()
}

fn accept_over_tcp() -> AnyAdapterLink {
    let mut listener = TcpAdapterListener::bind("127.0.0.1:0", Limits::default()).expect("a port");
    println!("tcp://{}", listener.local_addr().expect("an address"));
    until_some(|| listener.accept(&[])).into()
}

fn until_some<T>(mut next: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(value) = next() {
            return value;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
