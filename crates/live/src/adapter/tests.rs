//! Tests of the service with applications in the same process, over real shared memory.

mod engines;
mod faults;

use super::*;
use crate::Application;
use crate::ending::Stop;
use crate::snapshot::{Snapshot, SnapshotSource};
use crate::tests::World;
use baton_bus::descriptor::{Action, Opcode, Outcome, Request, Response, Status};
use baton_bus::link::{HostLink, LinkError};
use baton_bus::{BatchingRule, Descriptor, Urgency};
use baton_cache::Replacement;
use baton_inet::Host;
use baton_iolib::{AdapterAddress, ConnectError, Geometry, Refusal, ShmHost};
use baton_nic::{Config, Governor, Load};
use baton_sockets::{Driver, DriverConfig};
use baton_tcp::{CloseReason, Event};
use baton_testkit::Timeline;
use baton_timeline::{Connections, Sampling};
use baton_wire::{Endpoint, Flow, Span, Time};
use rustix::event::{PollFd, Timespec, poll};
use std::collections::BTreeMap;
use std::convert::identity;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// The peer's application, which does nothing: only TCP works.
struct Nobody;

impl Application for Nobody {
    fn handle(&mut self, _now: Time, _host: &mut Host) {}

    fn poll_timeout(&self) -> Option<Time> {
        None
    }
}

/// An adapter's service and a peer, each on an engine in this process.
type Desk = World<AdapterService>;

/// Configurations of the two ways to work: all at once, and one piece at a time.
fn both_ways() -> [Option<Config>; 2] {
    [None, Some(Config::default())]
}

impl Desk {
    fn new(most_applications: u32) -> Self {
        Self::with(most_applications, None)
    }

    fn with(most_applications: u32, firmware: Option<Config>) -> Self {
        Self::configured(|config| {
            config.limits.applications = most_applications;
            config.firmware = firmware;
            config.adapter.cache_bytes = 1 << 16;
        })
    }

    fn configured(change: impl FnOnce(&mut AdapterServiceConfig)) -> Self {
        Self::of(identity, |folder, host| {
            let mut config = AdapterServiceConfig::default();
            change(&mut config);
            let listeners = Listeners::open(&folder.join("adapter"), None, config.limits);
            let service = AdapterService::new(config, listeners.ok(), host);
            service.expect("an adapter")
        })
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("adapter")
    }

    fn turn(&mut self) {
        let turned = run::turn(&mut self.server, &mut self.service);
        turned.expect("memory does not fail");
        self.service.adapter().check();
    }

    /// Runs one turn of the peer's engine, at the other end of the cable.
    fn peer_turn(&mut self) {
        let turned = self.client.turn(&mut Nobody);
        turned.expect("memory does not fail");
    }

    /// Attaches an application, or returns why it may not attach.
    fn attach(&mut self) -> Result<ShmHost, ConnectError> {
        let path = self.path();
        let attaching = thread::spawn(move || ShmHost::connect(&path, &Geometry::default()));
        while !attaching.is_finished() {
            self.turn();
        }
        // An application that waits at the listeners is served when the service next checks them.
        self.awake();
        self.turn();
        attaching.join().expect("no panic")
    }

    /// Reports a wait in which all descriptors became ready.
    fn awake(&mut self) {
        let ready = [true; 2];
        let awake = self.service.awake(self.server.now(), &ready);
        awake.expect("an answer");
    }

    /// Returns whether an application has rung since the adapter prepared to sleep.
    fn is_woken(&self) -> bool {
        let fds = self.service.fds();
        let fds = fds
            .iter()
            .map(|&(fd, interest)| PollFd::from_borrowed_fd(fd, interest));
        poll(&mut fds.collect::<Vec<_>>(), Some(&Timespec::default())) == Ok(1)
    }

    /// Returns whether a connection attempt from the network is refused.
    fn refuses(&mut self) -> bool {
        let flow = Flow {
            local: Endpoint::new([10, 9, 0, 1].into(), 4000),
            remote: Endpoint::new([10, 9, 0, 2].into(), 80),
        };
        let stack = self.client.host_mut().stack_mut();
        let conn = stack.connect(self.now, flow).expect("a free port");
        (0..5).for_each(|_| self.step(&mut Nobody));
        let stack = self.client.host_mut().stack_mut();
        let mut events = std::iter::from_fn(|| stack.poll_event());
        let refused = events.any(|event| matches!(event, (_, Event::Closed(CloseReason::Refused))));
        if !refused {
            stack.abort(conn);
            self.step(&mut Nobody);
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
fn an_application_is_served_until_it_detaches() {
    for firmware in both_ways() {
        let mut desk = Desk::with(2, firmware);
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
        let snapshot = Snapshot::take(&desk.server, &desk.service);
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
            notices[1].ends_with("has detached; 1 open socket will be reset"),
            "{notices:?}"
        );
    }
}

#[test]
fn a_sleeping_adapter_is_woken_by_the_doorbell() {
    for firmware in both_ways() {
        let mut desk = Desk::with(2, firmware);
        let (mut host, mut other) = (desk.attach().expect("room"), desk.attach().expect("room"));
        desk.turn();
        assert!(desk.service.prepare_to_sleep(), "there is nothing to do");
        assert!(!desk.is_woken());
        ask(&mut other, socket(1));
        assert!(desk.is_woken());
        desk.turn();
        assert_eq!(answers(&mut other), Ok(vec![]), "it was not looked at");
        desk.awake();
        desk.turn();
        assert!(desk.service.was_busy());
        assert_eq!(answers(&mut other).map(|answers| answers.len()), Ok(1));
        // `other` is awake, so the adapter checks its link before asking it to ring. `host` still sleeps.
        ask(&mut other, socket(2));
        assert!(!desk.service.prepare_to_sleep(), "there is something to do");
        desk.turn();
        assert_eq!(answers(&mut other).map(|answers| answers.len()), Ok(1));
        assert!(desk.service.prepare_to_sleep());
        ask(&mut host, socket(1));
        assert!(desk.is_woken());
    }
}

/// A response caused by a frame goes to an application that was asked to ring. From then on it need not ring until it is asked again.
#[test]
fn an_application_that_is_answered_is_polled_again() {
    for firmware in both_ways() {
        let mut desk = Desk::with(2, firmware);
        let mut host = desk.attach().expect("room");
        ask(&mut host, socket(5));
        let nobody = Endpoint::new([10, 9, 0, 1].into(), 9);
        let connect = Request {
            socket: 5,
            tag: 8,
            action: Action::Connect(nobody),
        };
        ask(&mut host, connect.encode());
        // An ARP request and its reply, then a SYN.
        desk.turn();
        desk.peer_turn();
        desk.turn();
        assert_eq!(answers(&mut host).map(|answers| answers.len()), Ok(1));
        assert!(desk.service.prepare_to_sleep(), "there is nothing to do");
        desk.peer_turn();
        desk.turn();
        let refused = answers(&mut host).expect("the adapter is there");
        assert_eq!(refused[0].status, Status::Refused);
        ask(&mut host, socket(6));
        assert!(!desk.service.prepare_to_sleep(), "there is something to do");
    }
}

#[test]
fn a_timeline_records_turns_counters_and_connections() {
    for firmware in both_ways() {
        let mut desk = Desk::with(2, firmware);
        let path = desk.folder.path().join("timeline");
        let sampling = Sampling {
            connections: Connections::Every(1),
            ..Sampling::default()
        };
        let timeline = AdapterTimeline::create(&path, &sampling).expect("a file");
        desk.service.set_timeline(timeline);
        let server = Endpoint::new([10, 9, 0, 1].into(), 80);
        desk.client.host_mut().stack_mut().listen(server, 4);
        let mut host = desk.attach().expect("there is room");
        let connect = Request {
            socket: 5,
            tag: 8,
            action: Action::Connect(server),
        };
        ask(&mut host, socket(5));
        ask(&mut host, connect.encode());
        let mut answered = 0;
        while answered < 2 {
            desk.turn();
            desk.peer_turn();
            answered += answers(&mut host).expect("an adapter").len();
        }
        // The next sample of the counters is due.
        thread::sleep(Duration::from_millis(11));
        desk.turn();
        let counters = desk.counters();
        drop(host);
        while desk.counters()["applications.left"] == 0 {
            desk.turn();
        }
        // Pending packets of the connection leave by the next turn at the latest, and then the next sample of the connection's location is due.
        desk.turn();
        thread::sleep(Duration::from_millis(11));
        desk.turn();
        let timeline = desk.service.take_timeline().expect("it was set");
        let summary = timeline.finish(desk.server.now()).expect("a file");
        let summary = summary.expect("it began");
        assert_eq!((summary.opened, summary.shown), (1, 1));
        let read = Timeline::read(&std::fs::read(&path).expect("a file"));
        let turns = || read.spans_on("adapter", "engine");
        let requests: u64 = turns().map(|turn| turn.number("requests")).sum();
        assert_eq!(requests, desk.service.adapter().stats().requests);
        let connected = read.counter("adapter", "adapter.connected");
        assert_eq!(connected.last().map(|last| last.1), Some(1));
        assert_eq!(counters["adapter.connected"], 1);
        let lives = read
            .spans
            .iter()
            .filter(|span| span.track.0 == "connections");
        let lives: Vec<_> = lives.map(|span| &*span.name).collect();
        assert_eq!(lives, ["arriving", "on the adapter"], "and there it ended");
        let names: Vec<_> = read.moments.iter().map(|moment| &*moment.name).collect();
        assert_eq!(names, ["SYN in", "ACK out", "RST out"]);
    }
}

#[test]
fn one_application_too_many_is_refused_and_counted() {
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
fn shutdown_closes_listeners_and_detaches_applications() {
    for firmware in both_ways() {
        let mut desk = Desk::with(2, firmware);
        let mut host = desk.attach().expect("there is room");
        ask(&mut host, socket(1));
        desk.turn();
        let now = desk.server.now();
        desk.service
            .handle_stop(now, desk.server.host_mut(), Stop::InOrder);
        assert!(!desk.path().exists());
        assert!(desk.service.has_ended(now, desk.server.host()));
        assert_eq!(answers(&mut host).map(|answers| answers.len()), Ok(1));
        // The link checks only occasionally whether the adapter still exists.
        let later = Time::ZERO + Span::from_secs(1);
        let lost = host.get(later, &mut Vec::new());
        assert_eq!(lost, Err(LinkError::Gone));
        desk.turn();
    }
}

/// Hosts find a restarted adapter again, and take their connections back before an adapter ends. Their packets are not refused.
#[test]
fn packets_are_not_refused_at_start_and_shutdown() {
    for firmware in both_ways() {
        let mut desk = Desk::with(1, firmware);
        desk.now += Span::from_secs(1);
        desk.step(&mut Nobody);
        assert!(!desk.refuses());
        desk.now += service::QUIET_START;
        assert!(desk.refuses());
        let (now, host) = (desk.now, desk.server.host_mut());
        desk.service.handle_stop(now, host, Stop::InOrder);
        desk.step(&mut Nobody);
        assert!(!desk.refuses());
    }
}

/// Always allows the same number of connections.
#[derive(Debug)]
struct Steady(u32);

impl Governor for Steady {
    fn run(&mut self, _load: &Load, _cnum: u32) {}

    fn soft_limit(&self) -> u32 {
        self.0
    }
}

/// Transfers everything at once, and counts the transfers.
#[derive(Debug)]
struct Told(Arc<AtomicUsize>);

impl BatchingRule for Told {
    fn queued(&mut self, now: Time, _flow: u32, _urgency: Urgency) -> Time {
        now
    }

    fn most_waiting(&self) -> u32 {
        1
    }

    fn taken(&mut self, _now: Time) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn clear(&mut self) {}
}

/// Evicts the newest block.
#[derive(Debug, Default)]
struct Newest(Vec<u32>);

impl Replacement for Newest {
    fn inserted(&mut self, slot: u32, _key: u64, _bytes: u32) {
        self.0.push(slot);
    }

    fn used(&mut self, _slot: u32) {}

    fn removed(&mut self, slot: u32) {
        self.0.retain(|&other| other != slot);
    }

    fn victim(&mut self) -> Option<u32> {
        self.0.pop()
    }

    fn check(&self) {}
}

/// The caller supplies load control and batching to the adapter, and cache replacement to a host.
#[test]
fn policies_can_be_supplied_by_the_caller() {
    let mut desk = Desk::new(2);
    desk.service.set_governor(Box::new(Steady(7)));
    let transfers = Arc::new(AtomicUsize::new(0));
    let told = Arc::clone(&transfers);
    desk.service
        .set_batching(move |_depth| Box::new(Told(Arc::clone(&told))));
    let mut host = desk.attach().expect("there is room");
    assert_eq!(desk.service.adapter().soft_limit(), 7);
    ask(&mut host, socket(5));
    desk.turn();
    assert_eq!(answers(&mut host).map(|answers| answers.len()), Ok(1));
    assert_eq!(transfers.load(Ordering::Relaxed), 1);

    let (path, mut config) = (desk.path(), DriverConfig::default());
    config.os.nic_cache.enabled = true;
    let blocks = Arc::new(AtomicUsize::new(0));
    let made_for = Arc::clone(&blocks);
    let opening = thread::spawn(move || {
        let mut driver = Driver::open(AdapterAddress::Unix(path), config).expect("an adapter");
        driver.os_mut().set_replacement(move |blocks| {
            made_for.store(blocks as usize, Ordering::Relaxed);
            Box::new(Newest::default())
        });
        while driver.os().nic_cache_blocks().1 == 0 {
            driver.turn();
        }
    });
    while !opening.is_finished() {
        desk.turn();
        desk.awake();
    }
    opening.join().expect("no panic");
    assert_eq!(blocks.load(Ordering::Relaxed), (1 << 16) / 4096);
}
