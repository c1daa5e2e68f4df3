//! The service with applications in the same process, over real shared memory.

use super::*;
use crate::port::{MemoryPort, memory_pair};
use crate::snapshot::{Snapshot, SnapshotSource};
use crate::{Application, Clock, Engine};
use baton_bus::Descriptor;
use baton_bus::descriptor::{Action, Opcode, Outcome, Request, Response, Status};
use baton_bus::link::{HostLink, LinkError};
use baton_inet::{Host, InterfaceConfig};
use baton_iolib::{ConnectError, Geometry, Refusal, ShmHost};
use baton_tcp::{CloseReason, Config, Event};
use baton_wire::{Endpoint, Flow, Span, Time};
use rustix::event::{PollFd, Timespec, poll};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;
use tempfile::TempDir;

fn host_of(mac: [u8; 6], address: &str) -> Host {
    let addresses = vec![address.parse().expect("an address")];
    let interface = InterfaceConfig::new(mac, addresses);
    Host::new(interface, Config::default(), 1).expect("a host")
}

/// Whoever only lets TCP work.
struct Nobody;

impl Application for Nobody {
    fn handle(&mut self, _now: Time, _host: &mut Host) {}

    fn poll_timeout(&self) -> Option<Time> {
        None
    }
}

/// An adapter process without a process.
struct Desk {
    folder: TempDir,
    engine: Engine<MemoryPort>,
    service: AdapterService,
    /// The other end of the cable.
    network: Engine<MemoryPort>,
}

impl Desk {
    fn new(most_applications: u32) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (port, network) = memory_pair([[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]], 1500);
        let mut host = host_of([2, 0, 0, 0, 0, 1], "10.9.0.2/24");
        let other = host_of([2, 0, 0, 0, 0, 2], "10.9.0.1/24");
        let mut config = AdapterServiceConfig::default();
        config.limits.applications = most_applications;
        let path = folder.path().join("adapter");
        let listeners = Listeners::open(&path, None, config.limits).expect("a socket");
        let service = AdapterService::new(config, listeners, &mut host).expect("an adapter");
        Self {
            folder,
            engine: Engine::new(host, port, Clock::start()),
            service,
            network: Engine::new(other, network, Clock::start()),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("adapter")
    }

    fn turn(&mut self) {
        let turned = self.engine.turn(&mut self.service);
        turned.expect("memory does not fail");
        self.service.adapter().check();
    }

    /// An application, or why it may not attach.
    fn attach(&mut self) -> Result<ShmHost, ConnectError> {
        let path = self.path();
        let attaching = thread::spawn(move || ShmHost::connect(&path, &Geometry::default()));
        while !attaching.is_finished() {
            self.turn();
        }
        // Who waited at the listeners is served by the next look at them.
        self.awake();
        self.turn();
        attaching.join().expect("no panic")
    }

    /// A wait has ended that has seen everything.
    fn awake(&mut self) {
        let ready = [true; 2];
        let awake = self.service.awake(self.engine.now(), &ready);
        awake.expect("an answer");
    }

    /// Whether somebody on the network who tries to connect at `now` is refused.
    fn refuses(&mut self, now: Time) -> bool {
        let flow = Flow {
            local: Endpoint::new([10, 9, 0, 1].into(), 4000),
            remote: Endpoint::new([10, 9, 0, 2].into(), 80),
        };
        let stack = self.network.host_mut().stack_mut();
        let conn = stack.connect(now, flow).expect("a free port");
        for _ in 0..4 {
            let network = self.network.turn_at(now, &mut Nobody);
            network.expect("memory does not fail");
            let adapter = self.engine.turn_at(now, &mut self.service);
            adapter.expect("memory does not fail");
        }
        let stack = self.network.host_mut().stack_mut();
        let events = std::iter::from_fn(|| stack.poll_event());
        let refused =
            events.filter(|event| matches!(event, (_, Event::Closed(CloseReason::Refused))));
        let refused = refused.count() > 0;
        if !refused {
            stack.abort(conn);
            let network = self.network.turn_at(now, &mut Nobody);
            network.expect("memory does not fail");
        }
        refused
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        let mut counters = BTreeMap::new();
        self.service.add_counters(&mut counters);
        counters
    }

    fn notices(&mut self) -> Vec<String> {
        let notices = std::iter::from_fn(|| self.service.poll_notice());
        notices.map(|notice| notice.to_string()).collect()
    }
}

fn ask(host: &mut ShmHost, descriptor: Descriptor) {
    assert_eq!(host.put(Time::ZERO, &[descriptor]), Ok(1));
}

fn socket(number: u32) -> Descriptor {
    Request {
        socket: number,
        tag: 7,
        action: Action::Socket,
    }
    .encode()
}

fn answers(host: &mut ShmHost) -> Result<Vec<Response>, LinkError> {
    let mut descriptors = Vec::new();
    host.get(Time::ZERO, &mut descriptors)?;
    let decoded = descriptors.iter().map(Response::decode);
    Ok(decoded.map(|answer| answer.expect("sense")).collect())
}

#[test]
fn an_application_is_served_until_it_is_gone() {
    let mut desk = Desk::new(2);
    let mut host = desk.attach().expect("there is room");
    ask(&mut host, socket(5));
    desk.turn();
    let made = Response {
        socket: 5,
        tag: 7,
        status: Status::Ok,
        outcome: Outcome::Done(Opcode::Socket),
    };
    assert_eq!(answers(&mut host), Ok(vec![made]));
    let snapshot = Snapshot::take(&desk.engine, &desk.service);
    let [row] = &snapshot.applications[..] else {
        panic!("one application, not {:?}", snapshot.applications);
    };
    assert_eq!(row.pid, Some(std::process::id()));
    assert_eq!((row.sockets, row.link.as_str()), (1, "shared memory"));
    assert_eq!(row.bus.requests.per_transfer.entries, 1);
    assert_eq!(row.bus.crossings.crossings(), 2);
    assert_eq!(row.bus.memory_bytes, Geometry::default().pool_bytes());

    drop(host);
    while desk.counters()["applications.left"] == 0 {
        desk.turn();
    }
    let counters = desk.counters();
    assert_eq!(counters["applications.shared_bytes"], 0);
    assert_eq!(
        counters["applications.reclaimed_bytes"],
        Geometry::default().pool_bytes()
    );
    let notices = desk.notices();
    assert!(notices[0].ends_with("has attached"), "{notices:?}");
    assert!(
        notices[1].ends_with("is gone; its 1 sockets are reset"),
        "{notices:?}"
    );
}

#[test]
fn one_that_sleeps_is_woken_by_the_doorbell() {
    let mut desk = Desk::new(2);
    let (mut host, mut other) = (desk.attach().expect("room"), desk.attach().expect("room"));
    desk.turn();
    assert!(desk.service.prepare_to_sleep(), "there is nothing to do");
    let is_woken = |desk: &Desk| {
        let fds = desk.service.fds();
        let fds = fds
            .iter()
            .map(|&(fd, interest)| PollFd::from_borrowed_fd(fd, interest));
        let mut fds: Vec<_> = fds.collect();
        poll(&mut fds, Some(&Timespec::default())) == Ok(1)
    };
    assert!(!is_woken(&desk));
    ask(&mut other, socket(1));
    assert!(is_woken(&desk));
    desk.turn();
    assert_eq!(answers(&mut other), Ok(vec![]), "it was not looked at");
    desk.awake();
    desk.turn();
    assert!(desk.service.was_busy());
    assert_eq!(answers(&mut other).map(|answers| answers.len()), Ok(1));
    // One is awake, and looked at before it is told to sleep; one still sleeps.
    ask(&mut other, socket(2));
    assert!(!desk.service.prepare_to_sleep(), "there is something to do");
    desk.turn();
    assert_eq!(answers(&mut other).map(|answers| answers.len()), Ok(1));
    assert!(desk.service.prepare_to_sleep());
    ask(&mut host, socket(1));
    assert!(is_woken(&desk));
}

#[test]
fn one_too_many_is_refused_and_counted() {
    let mut desk = Desk::new(1);
    let host = desk.attach().expect("there is room");
    let refused = desk.attach().expect_err("there is no room");
    assert!(
        matches!(refused, ConnectError::Refused(Refusal::TooMany { most: 1 })),
        "{refused}"
    );
    assert_eq!(desk.counters()["applications.refused.too_many"], 1);
    drop(host);
    while desk.counters()["applications.attached_now"] > 0 {
        desk.turn();
    }
    desk.attach().expect("there is room again");
}

#[test]
fn the_end_closes_the_listeners_and_lets_go_of_everyone() {
    let mut desk = Desk::new(2);
    let mut host = desk.attach().expect("there is room");
    ask(&mut host, socket(1));
    desk.turn();
    let now = desk.engine.now();
    desk.service.begin_end(now, desk.engine.host_mut());
    assert!(!desk.path().exists());
    assert!(desk.service.has_ended(now, desk.engine.host()));
    assert_eq!(answers(&mut host).map(|answers| answers.len()), Ok(1));
    // It looks now and then.
    let later = Time::ZERO + Span::from_secs(1);
    let lost = host.get(later, &mut Vec::new());
    assert_eq!(lost, Err(LinkError::Gone));
    desk.turn();
}

/// Hosts find an adapter again after it was started anew, and take their connections back before it ends: what is theirs is not refused.
#[test]
fn nothing_is_refused_at_the_start_and_at_the_end() {
    let mut desk = Desk::new(1);
    let start = Time::ZERO + Span::from_secs(1);
    desk.engine
        .turn_at(start, &mut desk.service)
        .expect("memory does not fail");
    assert!(!desk.refuses(start));
    let later = start + service::QUIET_START;
    assert!(desk.refuses(later));
    desk.service.begin_end(later, desk.engine.host_mut());
    desk.engine
        .turn_at(later, &mut desk.service)
        .expect("memory does not fail");
    assert!(!desk.refuses(later));
}
