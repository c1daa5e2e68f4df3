//! Middleware that impairs a link: loss, burst loss, duplication, reordering, corruption, delay with jitter and a rate limit, separately
//! for each direction. Everything is drawn from a seed: the same frames at the same times suffer the same faults.

mod pipe;
mod profile;
mod spec;

#[cfg(test)]
mod tests;

pub use pipe::{FaultCounts, FaultKind};
pub use profile::FaultProfile;
pub use spec::{FaultSpec, FaultSpecError};

use super::{Batch, CounterSink, LinkInfo, Port, RECEIVE_BATCH};
use baton_wire::Time;
use bytes::Bytes;
use pipe::Pipe;
use std::io;
use std::os::fd::BorrowedFd;

/// A port that impairs its frames.
#[derive(Debug)]
pub struct Faults<T> {
    inner: T,
    receive: Pipe,
    transmit: Pipe,
    /// Received frames on their way from the port to the pipe.
    arrived: Vec<Bytes>,
    /// Frames to send on their way from the pipe to the port.
    leaving: Batch,
}

impl<T: Port> Faults<T> {
    /// Impairs `inner` as `spec` describes; `seed` determines which frames are affected.
    pub fn new(inner: T, spec: &FaultSpec, seed: u64) -> Self {
        Self {
            inner,
            receive: Pipe::new(spec.receive.clone(), seed),
            transmit: Pipe::new(spec.transmit.clone(), seed ^ 0x9e37_79b9_7f4a_7c15),
            arrived: Vec::new(),
            leaving: Batch::default(),
        }
    }

    /// Returns the faults of received frames.
    pub fn received(&self) -> &FaultCounts {
        self.receive.counts()
    }

    /// Returns the faults of sent frames.
    pub fn sent(&self) -> &FaultCounts {
        self.transmit.counts()
    }
}

impl<T: Port> Port for Faults<T> {
    fn receive(&mut self, now: Time, frames: &mut Vec<Bytes>) -> io::Result<()> {
        self.inner.receive(now, &mut self.arrived)?;
        for frame in self.arrived.drain(..) {
            self.receive.push(now, frame);
        }
        let due = std::iter::from_fn(|| self.receive.pop(now));
        frames.extend(due.take(RECEIVE_BATCH));
        Ok(())
    }

    fn send(&mut self, now: Time, batch: &mut Batch) -> io::Result<()> {
        for frame in batch.iter() {
            self.transmit.push(now, Bytes::copy_from_slice(frame));
        }
        batch.sent(batch.len());
        // A port may merge frames that are passed together, and leave the checksum of the result to hardware, which would cover corrupted
        // data.
        let together = match self.transmit.corrupts() {
            true => 1,
            false => RECEIVE_BATCH,
        };
        loop {
            self.inner.send(now, &mut self.leaving)?;
            if !self.leaving.is_empty() {
                return Ok(());
            }
            let due = std::iter::from_fn(|| self.transmit.pop(now));
            for frame in due.take(together) {
                self.leaving.push(&frame);
            }
            if self.leaving.is_empty() {
                return Ok(());
            }
        }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.fd()
    }

    fn poll_timeout(&self) -> Option<Time> {
        let times = [
            self.receive.next_due(),
            self.transmit.next_due(),
            self.inner.poll_timeout(),
        ];
        times.into_iter().flatten().min()
    }

    fn link(&self) -> &LinkInfo {
        self.inner.link()
    }

    fn counters(&self, sink: &mut dyn CounterSink) {
        for (direction, pipe) in [("rx", &self.receive), ("tx", &self.transmit)] {
            for kind in FaultKind::ALL {
                let name = format!("faults.{direction}.{}", kind.name());
                sink.counter(&name, pipe.counts().get(kind));
            }
        }
        self.inner.counters(sink);
    }
}
