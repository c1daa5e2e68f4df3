//! Middleware that counts frames.

use super::{Batch, CounterSink, LinkInfo, Port};
use baton_wire::Time;
use bytes::Bytes;
use std::io;
use std::os::fd::BorrowedFd;

/// Frames and bytes of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Number of frames.
    pub frames: u64,
    /// Number of bytes in them, without the frame check sequence.
    pub bytes: u64,
}

/// A port with counters of its traffic.
#[derive(Debug)]
pub struct Counted<T> {
    inner: T,
    received: Traffic,
    sent: Traffic,
}

impl<T: Port> Counted<T> {
    /// Wraps a port, with counters of zero.
    pub fn new(inner: T) -> Self {
        Self {
            inner,
            received: Traffic::default(),
            sent: Traffic::default(),
        }
    }

    /// Returns the counters of received frames.
    pub fn received(&self) -> Traffic {
        self.received
    }

    /// Returns the counters of sent frames, including those that the port dropped.
    pub fn sent(&self) -> Traffic {
        self.sent
    }
}

impl<T: Port> Port for Counted<T> {
    fn receive(&mut self, now: Time, frames: &mut Vec<Bytes>) -> io::Result<()> {
        let before = frames.len();
        self.inner.receive(now, frames)?;
        for frame in &frames[before..] {
            self.received.frames += 1;
            self.received.bytes += frame.len() as u64;
        }
        Ok(())
    }

    fn send(&mut self, now: Time, batch: &mut Batch) -> io::Result<()> {
        let before = waiting(batch);
        self.inner.send(now, batch)?;
        let after = waiting(batch);
        self.sent.frames += before.frames - after.frames;
        self.sent.bytes += before.bytes - after.bytes;
        Ok(())
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.fd()
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.inner.poll_timeout()
    }

    fn completes_checksums(&self) -> bool {
        self.inner.completes_checksums()
    }

    fn link(&self) -> &LinkInfo {
        self.inner.link()
    }

    fn counters(&self, sink: &mut dyn CounterSink) {
        sink.counter("port.received.frames", self.received.frames);
        sink.counter("port.received.bytes", self.received.bytes);
        sink.counter("port.sent.frames", self.sent.frames);
        sink.counter("port.sent.bytes", self.sent.bytes);
        self.inner.counters(sink);
    }
}

fn waiting(batch: &Batch) -> Traffic {
    Traffic {
        frames: batch.len() as u64,
        bytes: batch.waiting_bytes() as u64,
    }
}
