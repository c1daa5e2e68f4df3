//! Middleware that counts what passes.

use super::{Batch, CounterSink, LinkInfo, Port};
use baton_wire::Time;
use bytes::Bytes;
use std::io;
use std::os::fd::BorrowedFd;

/// Frames and bytes of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Frames.
    pub frames: u64,
    /// Their bytes, check sequence not counted.
    pub bytes: u64,
}

/// A port and what passed it.
#[derive(Debug)]
pub struct Counted<T> {
    inner: T,
    received: Traffic,
    sent: Traffic,
}

impl<T: Port> Counted<T> {
    /// Counts from here on.
    pub fn new(inner: T) -> Self {
        Self {
            inner,
            received: Traffic::default(),
            sent: Traffic::default(),
        }
    }

    /// What was received.
    pub fn received(&self) -> Traffic {
        self.received
    }

    /// What was sent, and what the port dropped in doing so.
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

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn waiting(batch: &Batch) -> Traffic {
    Traffic {
        frames: batch.len() as u64,
        bytes: batch.waiting_bytes() as u64,
    }
}
