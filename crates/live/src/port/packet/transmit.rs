//! The sending half of a packet socket.

use crate::port::merge::Run;
use crate::port::sys::{bind_packet, set_option};
use crate::port::{Batch, LinkWatch, PortDrop, PortDrops};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, MMsgHdr, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, sendmmsg,
    socket_with,
};
use smallvec::SmallVec;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Maximum number of packets passed to the kernel in one call.
const TRANSMIT_BATCH: usize = 64;

/// Sends frames past the queueing discipline. If runs of segments may be merged into one packet, which the device cuts, each packet has a
/// virtual header.
#[derive(Debug)]
pub(in crate::port) struct Transmit {
    fd: OwnedFd,
    link: LinkWatch,
    /// Number of packets passed to the kernel; each may be a run of frames.
    writes: u64,
    /// Whether the configuration allows merging.
    may_merge: bool,
    /// Whether runs are merged at present. Past the queueing discipline the kernel does not cut packets: it refuses merged ones if the
    /// device cannot cut them itself (ENOBUFS).
    merges: bool,
}

impl Transmit {
    /// Opens a socket on the interface with this name and index.
    pub(in crate::port) fn open(name: &str, index: u32, merges: bool) -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        // Protocol 0: the socket receives nothing.
        let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
        for (option, is_on) in [
            (libc::PACKET_QDISC_BYPASS, true),
            (libc::PACKET_VNET_HDR, merges),
        ] {
            set_option(fd.as_fd(), libc::SOL_PACKET, option, &[i32::from(is_on)])?;
        }
        bind_packet(fd.as_fd(), index, 0)?;
        Ok(Self {
            fd,
            link: LinkWatch::of(name).map_err(io::Error::other)?,
            writes: 0,
            may_merge: merges,
            merges,
        })
    }

    /// Returns whether each packet has a virtual header, by which the kernel completes its checksum.
    pub(in crate::port) fn has_virtual_headers(&self) -> bool {
        self.may_merge
    }

    /// Returns the number of packets passed to the kernel so far.
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
            let (outcome, first) = match self.may_merge {
                true => {
                    let runs = runs_of(batch, self.merges);
                    let frames = |count| runs.iter().take(count).map(|run| run.frames).sum();
                    let sent = send_runs(self.fd.as_fd(), &runs, batch);
                    (sent.map(|count| (count, frames(count))), runs[0].frames)
                }
                false => {
                    let sent = send_frames(self.fd.as_fd(), batch);
                    (sent.map(|count| (count, count)), 1)
                }
            };
            match outcome {
                Ok((packets, frames)) => {
                    sent = true;
                    self.writes += packets as u64;
                    batch.sent(frames);
                }
                Err(Errno::NOBUFS) if self.merges && first > 1 => self.merges = false,
                Err(Errno::NOBUFS) if !sent => {
                    // Single frames are refused too.
                    self.merges = self.may_merge;
                    if self.link.ask().is_ok_and(|link| link.has_carrier) {
                        break;
                    }
                    // The socket always has space, but each attempt fails: drop the frames, so that the sender notices as with a cut cable.
                    drops.add(PortDrop::LinkDown, batch.len() as u64);
                    batch.sent(batch.len());
                }
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => break,
                Err(Errno::NETDOWN) => {
                    drops.add(PortDrop::LinkDown, first as u64);
                    batch.sent(first);
                }
                Err(Errno::MSGSIZE | Errno::INVAL) => {
                    drops.add(PortDrop::TransmitRefused, first as u64);
                    batch.sent(first);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Returns the runs at the front of `batch` that fit into one call to the kernel; each is a single frame unless `merges` is set.
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

/// Passes these runs, which are at the front of `batch`, to the kernel; returns the number of runs that it accepted.
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
    let start_of = |run: usize| run.checked_sub(1).map_or(0, |before| ends[before]);
    let messages = (0..runs.len()).map(|run| &slices[start_of(run)..ends[run]]);
    send_messages(fd, messages)
}

/// Passes as many frames at the front of `batch` to the kernel as fit into one call; returns the number of frames that it accepted.
fn send_frames(fd: BorrowedFd<'_>, batch: &Batch) -> Result<usize, Errno> {
    let frames = batch.iter().take(TRANSMIT_BATCH).map(IoSlice::new);
    let slices: SmallVec<[IoSlice<'_>; TRANSMIT_BATCH]> = frames.collect();
    send_messages(fd, slices.chunks(1))
}

fn send_messages<'a>(
    fd: BorrowedFd<'_>,
    messages: impl ExactSizeIterator<Item = &'a [IoSlice<'a>]>,
) -> Result<usize, Errno> {
    let mut controls: SmallVec<[SendAncillaryBuffer<'_, '_, '_>; TRANSMIT_BATCH]> = (0..messages
        .len())
        .map(|_| SendAncillaryBuffer::default())
        .collect();
    let messages = messages.zip(&mut controls);
    let mut messages: SmallVec<[MMsgHdr<'_>; TRANSMIT_BATCH]> = messages
        .map(|(slices, control)| MMsgHdr::new(slices, control))
        .collect();
    sendmmsg(fd, &mut messages, SendFlags::DONTWAIT)
}
