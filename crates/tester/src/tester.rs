//! The port on which the tests of `baton-microbench` run.

use crate::error::TesterError;
use crate::losses::placed;
use crate::peer::Peer;
use crate::plan::{Addresses, Role, tasks};
use crate::signal::Signal;
use crate::task::{Outcome, Task};
use baton_microbench::frame::{Carried, LinkRate};
use baton_microbench::{
    Load, Losses, Machine, Place, Port, Request, Resource, Stream, Test, Trial, Unit, Use,
};
use baton_wire::Span;
use serde::Serialize;
use std::thread;
use std::time::Duration;

/// Link rate assumed for the search if no link limits the rate.
const BEYOND: LinkRate = LinkRate { mbps: 100_000 };
/// How often interruption is checked.
const LOOK: Duration = Duration::from_millis(10);

/// Outcomes of the participants of a trial.
#[derive(Clone, Debug, Serialize)]
pub struct Detail {
    /// Outcome of the NIC under test.
    pub under_test: Outcome,
    /// Outcome of its partner.
    pub partner: Outcome,
    /// Outcome of the receiver, in tests with two partners.
    pub receiver: Option<Outcome>,
}

/// Callback for each trial.
pub type Told<'a> = Box<dyn FnMut(&Trial) + 'a>;

/// Tests interfaces.
pub struct Tester<'a> {
    /// The NIC under test, its partner and, in 3-way tests with two partners, the receiver.
    peers: Vec<Box<dyn Peer + 'a>>,
    gateways: [Option<[u8; 6]>; 2],
    interrupted: &'a (dyn Fn() -> bool + Sync),
    /// Rate of the link, if a link limits the rate.
    link: Option<LinkRate>,
    trial: u8,
    /// Outcomes of each trial, in order.
    details: Vec<Detail>,
    told: Told<'a>,
}

impl<'a> Tester<'a> {
    /// Creates a tester with these participants. It polls `interrupted`, and calls `told` after each trial.
    pub fn new(
        under_test: Box<dyn Peer + 'a>,
        partner: Box<dyn Peer + 'a>,
        receiver: Option<Box<dyn Peer + 'a>>,
        interrupted: &'a (dyn Fn() -> bool + Sync),
        told: Told<'a>,
    ) -> Self {
        let mut peers = vec![under_test, partner];
        peers.extend(receiver);
        Self {
            peers,
            gateways: [None; 2],
            interrupted,
            link: None,
            trial: 0,
            details: Vec::new(),
            told,
        }
    }

    /// Sends through a router: the NIC under test sends to the first address, and its partner to the second.
    pub fn set_gateways(&mut self, gateways: [Option<[u8; 6]>; 2]) {
        self.gateways = gateways;
    }

    /// Sets the rate of the link. By default, no link limits the rate.
    pub fn set_link(&mut self, link: LinkRate) {
        self.link = Some(link);
    }

    /// Takes the outcomes of the trials made since the last call, in order.
    pub fn take_details(&mut self) -> Vec<Detail> {
        std::mem::take(&mut self.details)
    }

    /// Lets all participants do their tasks, and returns their outcomes.
    fn make(&mut self, request: &Request) -> Result<Detail, TesterError> {
        self.trial = self.trial.wrapping_add(1);
        let has_receiver = self.peers.len() > 2;
        let mut own = [[0; 6]; 3];
        for (own, peer) in own.iter_mut().zip(&self.peers) {
            *own = peer.mac();
        }
        let addresses = Addresses {
            own,
            gateways: self.gateways,
        };
        let same_clock = self.peers.iter().all(|peer| peer.is_here());
        let tasks = tasks(request, &addresses, has_receiver, self.trial, same_clock);
        let mut parts: Vec<(&mut Box<dyn Peer + 'a>, Role, Task)> = Vec::new();
        let mut peers = self.peers.iter_mut();
        for (role, task) in tasks {
            let peer = peers.next().expect("a participant for each role");
            peer.prepare(&task)?;
            parts.push((peer, role, task));
        }
        together(&mut parts, self.interrupted)?;
        let mut outcomes = Vec::new();
        for (peer, ..) in &mut parts {
            outcomes.push(peer.finish()?);
        }
        let mut outcomes = outcomes.into_iter();
        Ok(Detail {
            under_test: outcomes.next().unwrap_or_default(),
            partner: outcomes.next().unwrap_or_default(),
            receiver: outcomes.next(),
        })
    }

    fn trial_of(&self, request: &Request, detail: &Detail) -> Trial {
        let test = request.test;
        let receiver = detail.receiver.as_ref().unwrap_or(&detail.partner);
        let between = self.gateways.map(|gateway| match gateway {
            Some(_) => Place::Switch,
            None => Place::Wire,
        });
        let mut sent = placed(&detail.under_test, receiver, between[0]);
        let mut received = placed(&detail.partner, &detail.under_test, between[1]);
        let (goodput_bytes, connections, opened) = of_tcp(test, detail);
        match test {
            Test::Accept => received = opened,
            Test::Initiate => sent = opened,
            _ => {}
        }
        let latency = |outcome: &Outcome| outcome.arrivals.and_then(|found| found.latency);
        let seconds = request.duration.as_secs_f64();
        Trial {
            test,
            load: request.load,
            seconds,
            goodput_bytes,
            connections,
            latency: latency(&detail.under_test).or_else(|| latency(receiver)),
            interrupts: 0,
            uses: self.uses(test, seconds, detail, &[sent, received]),
            sent,
            received,
            tolerance: 0,
        }
    }

    /// Returns the utilisation of senders, receivers and wire.
    fn uses(&self, test: Test, seconds: f64, detail: &Detail, streams: &[Stream]) -> Vec<Use> {
        let host = |machine, outcome: &Outcome| Use {
            machine,
            resource: Resource::Host,
            share: 1.0 - outcome.idle,
        };
        let mut uses = vec![
            host(Machine::UnderTest, &detail.under_test),
            host(Machine::Partner, &detail.partner),
        ];
        uses.extend(
            detail
                .receiver
                .iter()
                .map(|one| host(Machine::Receiver, one)),
        );
        if let (Some(link), Carried::Udp(_)) = (self.link, test.carried()) {
            let frames = streams.iter().map(|stream| stream.sent).max();
            let bits = frames.unwrap_or_default() as f64 * 8.0 * test.carried().line_len() as f64;
            uses.push(Use {
                machine: Machine::UnderTest,
                resource: Resource::Wire,
                share: bits / seconds / link.bits_per_second() as f64,
            });
        }
        uses
    }
}

/// Returns the bytes received in order, the connections opened and closed, and the connections as a stream.
fn of_tcp(test: Test, detail: &Detail) -> (u64, u64, Stream) {
    let counts = |outcome: &Outcome| outcome.tcp.unwrap_or_default();
    let (under_test, partner) = (counts(&detail.under_test), counts(&detail.partner));
    let opener = match test {
        Test::Initiate => under_test,
        _ => partner,
    };
    let mut losses = Losses::default();
    losses.add(
        Place::Sender,
        opener.offered.saturating_sub(opener.completed),
    );
    let stream = Stream {
        offered: opener.offered,
        sent: opener.completed,
        delivered: opener.completed,
        losses,
    };
    match test.unit() {
        Unit::ConnectionsPerMs => (0, opener.completed, stream),
        Unit::PayloadMbps => (under_test.bytes + partner.bytes, 0, Stream::default()),
    }
}

/// Runs all participants at the same time, each in its own thread.
fn together(
    parts: &mut [(&mut Box<dyn Peer + '_>, Role, Task)],
    interrupted: &(dyn Fn() -> bool + Sync),
) -> Result<(), TesterError> {
    let signal = Signal::default();
    thread::scope(|scope| {
        let threads: Vec<_> = parts
            .iter_mut()
            .map(|(peer, _, task)| {
                let signal = &signal;
                scope.spawn(move || {
                    let done = peer.run(task, signal);
                    if done.is_err() {
                        // Otherwise the other participants would wait for this one.
                        signal.abort();
                    }
                    done
                })
            })
            .collect();
        while !threads.iter().all(|thread| thread.is_finished()) {
            if interrupted() {
                signal.abort();
            }
            thread::sleep(LOOK);
        }
        for thread in threads {
            match thread.join() {
                Ok(done) => done?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        match interrupted() {
            true => Err(TesterError::Interrupted),
            false => Ok(()),
        }
    })
}

impl Port for Tester<'_> {
    type Error = TesterError;

    fn link_rate(&self) -> LinkRate {
        self.link.unwrap_or(BEYOND)
    }

    fn trial(&mut self, request: &Request) -> Result<Trial, TesterError> {
        let is_tcp = !crate::plan::is_of_datagrams(request.test);
        // With TCP, the hosts warm up by themselves. With datagrams, the warm-up is a separate trial, and counting starts after silence.
        if !is_tcp && request.warm_up > Span::ZERO && !matches!(request.load, Load::Burst(_)) {
            self.make(&Request {
                duration: request.warm_up,
                ..*request
            })?;
        }
        let detail = self.make(request)?;
        let trial = self.trial_of(request, &detail);
        (self.told)(&trial);
        self.details.push(detail);
        Ok(trial)
    }
}
