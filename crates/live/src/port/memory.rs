//! Two in-memory ports, connected by a cable: for tests of the layers above.

use super::{Batch, CounterSink, LinkInfo, Port, RECEIVE_BATCH};
use baton_wire::Time;
use bytes::Bytes;
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of frames that one direction of the cable holds; a sender waits if it is full.
const CABLE_FRAMES: usize = 1024;

type Cable = Arc<Mutex<VecDeque<Bytes>>>;

/// Locks a cable. A thread that panicked while it held the lock has left no partial frame.
fn on(cable: &Cable) -> MutexGuard<'_, VecDeque<Bytes>> {
    cable.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One end of a cable.
#[derive(Debug)]
pub struct MemoryPort {
    link: LinkInfo,
    incoming: Cable,
    outgoing: Cable,
}

/// Creates the two ends of a cable with the given addresses and MTU.
pub fn memory_pair(macs: [[u8; 6]; 2], mtu: u16) -> (MemoryPort, MemoryPort) {
    let (left, right) = (Cable::default(), Cable::default());
    let end = |name: &str, mac, incoming: &Cable, outgoing: &Cable| MemoryPort {
        link: LinkInfo {
            name: name.to_owned(),
            mac,
            mtu,
        },
        incoming: Arc::clone(incoming),
        outgoing: Arc::clone(outgoing),
    };
    (
        end("left", macs[0], &left, &right),
        end("right", macs[1], &right, &left),
    )
}

impl Port for MemoryPort {
    fn receive(&mut self, _now: Time, frames: &mut Vec<Bytes>) -> io::Result<()> {
        let mut incoming = on(&self.incoming);
        let count = incoming.len().min(RECEIVE_BATCH);
        frames.extend(incoming.drain(..count));
        Ok(())
    }

    fn send(&mut self, _now: Time, batch: &mut Batch) -> io::Result<()> {
        let mut outgoing = on(&self.outgoing);
        let count = batch.len().min(CABLE_FRAMES - outgoing.len());
        outgoing.extend(batch.iter().take(count).map(Bytes::copy_from_slice));
        batch.sent(count);
        Ok(())
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn link(&self) -> &LinkInfo {
        &self.link
    }

    fn counters(&self, _sink: &mut dyn CounterSink) {}
}
