//! The half of a packet socket that sends.

use crate::port::merge::Run;
use crate::port::sys::{bind_packet, set_option};
use crate::port::{Batch, PortDrop, PortDrops};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, MMsgHdr, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, sendmmsg,
    socket_with,
};
use smallvec::SmallVec;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Frames given to the kernel in one call.
const TRANSMIT_BATCH: usize = 64;

/// Sends past the queueing discipline, each packet with a virtual header: a run of segments is one packet, which the device cuts.
#[derive(Debug)]
pub(in crate::port) struct Transmit {
    fd: OwnedFd,
    /// Packets given to the kernel; each may be a run of frames.
    writes: u64,
    /// Runs may be given as one packet.
    may_merge: bool,
    /// They are. Past the queueing discipline the kernel cuts nothing: it refuses them for a device that
    /// cannot cut them itself (ENOBUFS).
    merges: bool,
}

impl Transmit {
    /// On the interface of this index.
    pub(in crate::port) fn open(index: u32, merges: bool) -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        // Protocol 0: it receives nothing.
        let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
        for option in [libc::PACKET_QDISC_BYPASS, libc::PACKET_VNET_HDR] {
            set_option(fd.as_fd(), libc::SOL_PACKET, option, &[1_i32])?;
        }
        bind_packet(fd.as_fd(), index, 0)?;
        Ok(Self {
            fd,
            writes: 0,
            may_merge: merges,
            merges,
        })
    }

    /// Packets given to the kernel so far.
    pub(in crate::port) fn writes(&self) -> u64 {
        self.writes
    }

    /// Sends from the front of `batch`, as [`Port::send`](crate::port::Port::send) does.
    pub(in crate::port) fn send(
        &mut self,
        batch: &mut Batch,
        drops: &mut PortDrops,
    ) -> io::Result<()> {
        let mut sent = false;
        while !batch.is_empty() {
            let runs = runs_of(batch, self.merges);
            let frames = |count| runs.iter().take(count).map(|run| run.frames).sum();
            match send_runs(self.fd.as_fd(), &runs, batch) {
                Ok(count) => {
                    sent = true;
                    self.writes += count as u64;
                    batch.sent(frames(count));
                }
                Err(Errno::NOBUFS) if self.merges && runs[0].frames > 1 => self.merges = false,
                Err(Errno::NOBUFS) if !self.merges && !sent => {
                    // Single frames find no room either.
                    self.merges = self.may_merge;
                    break;
                }
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => break,
                Err(Errno::NETDOWN) => {
                    drops.add(PortDrop::LinkDown, runs[0].frames as u64);
                    batch.sent(frames(1));
                }
                Err(Errno::MSGSIZE | Errno::INVAL) => {
                    drops.add(PortDrop::TransmitRefused, runs[0].frames as u64);
                    batch.sent(frames(1));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// The runs at the front of `batch`, as many as are given to the kernel in one call; each a single frame unless `merges`.
fn runs_of(batch: &Batch, merges: bool) -> SmallVec<[Run; TRANSMIT_BATCH]> {
    let longest = if merges { usize::MAX } else { 1 };
    let mut runs = SmallVec::new();
    let mut frames = 0;
    while runs.len() < TRANSMIT_BATCH
        && let Some(run) = Run::at_front(batch.iter_from(frames).take(longest))
    {
        frames += run.frames;
        runs.push(run);
    }
    runs
}

/// Gives the kernel these runs, which are at the front of `batch`; says how many it took.
fn send_runs(fd: BorrowedFd<'_>, runs: &[Run], batch: &Batch) -> Result<usize, Errno> {
    let mut slices: SmallVec<[IoSlice<'_>; 2 * TRANSMIT_BATCH]> = SmallVec::new();
    let mut ends: SmallVec<[usize; TRANSMIT_BATCH]> = SmallVec::new();
    let mut frames = batch.iter();
    for run in runs {
        slices.push(IoSlice::new(run.headers()));
        let data = frames.by_ref().take(run.frames);
        slices.extend(data.map(|frame| IoSlice::new(&frame[run.data..])));
        ends.push(slices.len());
    }
    let mut controls: SmallVec<[SendAncillaryBuffer<'_, '_, '_>; TRANSMIT_BATCH]> = runs
        .iter()
        .map(|_| SendAncillaryBuffer::default())
        .collect();
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let mut messages: SmallVec<[MMsgHdr<'_>; TRANSMIT_BATCH]> = starts
        .zip(&ends)
        .zip(&mut controls)
        .map(|((start, &end), control)| MMsgHdr::new(&slices[start..end], control))
        .collect();
    sendmmsg(fd, &mut messages, SendFlags::DONTWAIT)
}
