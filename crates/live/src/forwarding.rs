//! A router on ports: the loop that receives frames from each port and passes them to the port through which they leave.

use crate::clock::Clock;
use crate::error::LiveError;
use crate::port::{Batch, CounterSink, Port, RECEIVE_BATCH};
use baton_inet::{Router, Verdict};
use baton_iolib::sleep;
use baton_wire::{Span, Time};
use bytes::Bytes;
use rustix::event::{PollFd, PollFlags};
use std::io;

/// Maximum time until the loop checks again whether to stop.
const LONGEST_WAIT: Span = Span::from_ms(100);
/// Maximum number of frames that wait for a port; further ones are dropped, as by a full queue.
const MOST_WAITING: usize = 1024;

/// A port of the router with its queue.
struct End<T> {
    port: T,
    batch: Batch,
    /// The interface through which the previous frame from this port left; the next frame usually leaves through it too.
    leads_to: usize,
}

/// A router on ports; each port has the number of its interface.
pub struct Forwarding<T> {
    router: Router,
    ends: Vec<End<T>>,
    clock: Clock,
    received: Vec<Bytes>,
    /// Buffer for a frame that leaves through another interface than predicted.
    stray: Vec<u8>,
    /// Number of frames dropped because too many waited for the port.
    queue_full: u64,
}

impl<T: Port> Forwarding<T> {
    /// Creates a router on ports.
    ///
    /// # Panics
    /// Panics if there are not as many ports as interfaces.
    pub fn new(router: Router, ports: Vec<T>, clock: Clock) -> Self {
        assert_eq!(router.interfaces().len(), ports.len(), "a port for each");
        let end = |port| End {
            port,
            batch: Batch::default(),
            leads_to: 0,
        };
        Self {
            router,
            ends: ports.into_iter().map(end).collect(),
            clock,
            received: Vec::new(),
            stray: Vec::new(),
            queue_full: 0,
        }
    }

    /// Returns the router.
    pub fn router(&self) -> &Router {
        &self.router
    }

    /// Reports the counters of the router and of its ports; the names of the latter start with `0.` and so on.
    pub fn counters(&mut self, sink: &mut dyn CounterSink) {
        let stats = self.router.stats();
        sink.counter("router.forwarded", stats.forwarded);
        sink.counter("router.waited", stats.waited);
        sink.counter("router.fragmented", stats.fragmented);
        sink.counter("router.fragments", stats.fragments);
        sink.counter("router.queue_full", self.queue_full);
        for (reason, count) in stats.refused.iter() {
            sink.counter(&format!("router.refused.{reason:?}"), count);
        }
        for (number, end) in self.ends.iter().enumerate() {
            let mut of_port = |name: &str, value| sink.counter(&format!("{number}.{name}"), value);
            end.port.counters(&mut of_port);
        }
    }

    /// Forwards until `stop` returns true.
    ///
    /// # Errors
    /// A port is gone.
    pub fn run(&mut self, stop: impl Fn() -> bool) -> Result<(), LiveError> {
        let gone = || LiveError::failed("an interface can no longer be used");
        while !stop() {
            if !self.turn().map_err(gone())? {
                self.wait()
                    .map_err(LiveError::failed("cannot wait for frames"))?;
            }
        }
        Ok(())
    }

    /// Receives and forwards frames. Returns true if there may be more to do immediately.
    ///
    /// # Errors
    /// A port is gone.
    pub fn turn(&mut self) -> io::Result<bool> {
        let now = self.clock.now();
        let mut more = false;
        for at in 0..self.ends.len() {
            self.ends[at].port.receive(now, &mut self.received)?;
            more |= self.received.len() >= RECEIVE_BATCH;
            let mut received = std::mem::take(&mut self.received);
            received
                .drain(..)
                .for_each(|frame| self.take(now, at, &frame));
            self.received = received;
        }
        if self.router.poll_timeout().is_some_and(|due| due <= now) {
            self.router.handle_timeouts(now);
        }
        let router = &mut self.router;
        for (at, End { port, batch, .. }) in self.ends.iter_mut().enumerate() {
            while batch.push_with(|frame| router.poll_frame(now, at, frame)) {}
            if !batch.is_empty() {
                port.send(now, batch)?;
            }
        }
        Ok(more)
    }

    /// Handles a received frame. The frame is copied to the port that it is expected to leave through, and rewritten there, since ports
    /// only lend their frames.
    fn take(&mut self, now: Time, at: usize, frame: &[u8]) {
        let Self {
            router,
            ends,
            stray,
            queue_full,
            ..
        } = self;
        let expected = ends[at].leads_to;
        let batch = &mut ends[expected].batch;
        let is_full = batch.len() >= MOST_WAITING;
        let mut goes_to = None;
        batch.push_with(|bytes| {
            let start = bytes.len();
            bytes.extend_from_slice(frame);
            let verdict = router.handle_frame(now, at, &mut bytes[start..]);
            let Verdict::Forward { interface, len } = verdict else {
                return false;
            };
            bytes.truncate(start + len);
            let is_expected = interface == expected;
            if !is_expected {
                stray.clear();
                stray.extend_from_slice(&bytes[start..]);
                goes_to = Some(interface);
            }
            *queue_full += u64::from(is_expected && is_full);
            is_expected && !is_full
        });
        let Some(interface) = goes_to else {
            return;
        };
        ends[at].leads_to = interface;
        let batch = &mut ends[interface].batch;
        if batch.len() >= MOST_WAITING {
            *queue_full += 1;
            return;
        }
        batch.push(stray);
    }

    /// Waits until a port or a timer needs attention, for 100 ms at most.
    fn wait(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        let ports = self.ends.iter().filter_map(|end| end.port.poll_timeout());
        let due = ports.chain(self.router.poll_timeout()).min();
        let until = due.map_or(now + LONGEST_WAIT, |due| due.min(now + LONGEST_WAIT));
        let mut fds = Vec::with_capacity(self.ends.len());
        for end in &self.ends {
            let mut interest = PollFlags::IN;
            interest.set(PollFlags::OUT, !end.batch.is_empty());
            fds.extend(
                end.port
                    .fd()
                    .map(|fd| PollFd::from_borrowed_fd(fd, interest)),
            );
        }
        sleep(&mut fds, Some(until.saturating_since(now).into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::{MemoryPort, memory_pair};
    use baton_inet::{Cidr, Host, InterfaceConfig};
    use baton_tcp::{Config, ListenerId};
    use baton_wire::{Endpoint, Flow};

    const ENDS: u8 = 3;

    fn mac(kind: u8, number: u8) -> [u8; 6] {
        [2, 0, 0, 0, kind, number]
    }

    /// Returns a host that has a link of its own to the router.
    fn host(number: u8) -> Host {
        let address: Cidr = format!("10.0.{number}.2/24").parse().expect("an address");
        let router: std::net::IpAddr = [10, 0, number, 1].into();
        let interface = InterfaceConfig {
            routes: vec![baton_inet::Route::default_by(router)],
            ..InterfaceConfig::new(mac(1, number), vec![address])
        };
        Host::new(interface, Config::default(), number.into()).expect("right parameters")
    }

    fn turn(host: &mut Host, port: &mut MemoryPort) {
        let mut frames = Vec::new();
        port.receive(Time::ZERO, &mut frames).expect("memory");
        host.handle_frames(Time::ZERO, frames);
        let mut batch = Batch::default();
        while batch.push_with(|frame| host.poll_frame(Time::ZERO, frame)) {}
        port.send(Time::ZERO, &mut batch).expect("memory");
    }

    #[test]
    fn frames_leave_by_the_right_interface_whatever_was_predicted() {
        let (mut configs, mut inner, mut outer) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..ENDS {
            let (left, right) = memory_pair([mac(0, number), mac(1, number)], 1_500);
            let address: Cidr = format!("10.0.{number}.1/24").parse().expect("an address");
            configs.push(InterfaceConfig::new(mac(0, number), vec![address]));
            inner.push(left);
            outer.push((host(number), right));
        }
        let router = Router::new(configs).expect("right parameters");
        let mut forwarding = Forwarding::new(router, inner, Clock::start());
        let port_of = |number: u8| Endpoint::new([10, 0, number, 2].into(), 80);
        let listeners: Vec<ListenerId> = (0..ENDS)
            .map(|number| {
                let stack = outer[usize::from(number)].0.stack_mut();
                stack.listen(port_of(number), 16)
            })
            .collect();
        // The first host opens connections to the others in turn: successive frames leave through different interfaces.
        const EACH: u16 = 8;
        for step in 0..2 * EACH {
            let local = Endpoint::new([10, 0, 0, 2].into(), 50_000 + step);
            let remote = port_of(1 + (step % 2) as u8);
            let connection = outer[0]
                .0
                .stack_mut()
                .connect(Time::ZERO, Flow { local, remote });
            connection.expect("the flow is free");
        }
        for _ in 0..20 {
            outer.iter_mut().for_each(|(host, port)| turn(host, port));
            forwarding.turn().expect("memory");
        }
        for number in [1, 2] {
            let stack = outer[number].0.stack_mut();
            let accepted = std::iter::from_fn(|| stack.accept(listeners[number])).count();
            assert_eq!(accepted, usize::from(EACH), "at {number}");
        }
        let mut full = None;
        forwarding.counters(&mut |name: &str, value| {
            if name == "router.queue_full" {
                full = Some(value);
            }
        });
        assert_eq!(full, Some(0));
    }
}
