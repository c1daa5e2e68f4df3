//! The engines that handle frames, and the start of DMAs.

use super::super::Occupancy;
use super::{Around, Event, Firmware, Frame, Nic};
use baton_wire::{Span, Time};

/// Maximum length in bytes of a frame that the host keeps in one small buffer (FreeBSD: MHLEN, 256 less its header). Larger frames have
/// their headers there and their data in another buffer.
const SMALL_BUFFER: u32 = 216;

/// A frame that an engine handles.
#[derive(Clone, Debug)]
pub(super) enum Work<F> {
    /// A frame to send from this slot of the driver's ring, or, without a slot, from the firmware.
    Send(Option<u32>, F),
    /// A received frame to give to the host, or to the adapter.
    Receive(F),
}

/// An engine that handles frames.
#[derive(Clone, Debug)]
pub(super) struct Engine<F> {
    pub(super) occupancy: Occupancy,
    work: Option<Work<F>>,
    /// Whether its last frame was one to send. With work in both directions, the engine alternates.
    has_sent: bool,
}

impl<F> Default for Engine<F> {
    fn default() -> Self {
        Self {
            occupancy: Occupancy::default(),
            work: None,
            has_sent: false,
        }
    }
}

impl<F: Frame> Nic<F> {
    /// Gives an idle engine the next frame.
    pub(super) fn begin_work(&mut self, around: &mut impl Around<F>, engine: usize) {
        if self.engines[engine].work.is_some() {
            return;
        }
        let (rule, dma) = (self.profile.processor, self.profile.dma);
        let alone = self.engines.len() == 1;
        let send = (alone || engine == 0)
            .then(|| self.sender.ready_queue(dma.frames))
            .flatten();
        let receive = (alone || engine == 1) && self.receiver.can_begin(dma.frames, self.firmware);
        let in_turn = !receive || !self.engines[engine].has_sent;
        let (work, time) = if let Some(queue) = send.filter(|_| in_turn) {
            let work = self.sender.begin(queue);
            let more = match work {
                Some(Work::Send(_, ref frame)) if frame.bytes() > SMALL_BUFFER => {
                    rule.second_buffer_ns
                }
                _ => 0,
            };
            (work, rule.send_ns + more)
        } else if receive {
            (self.receiver.begin(self.firmware), rule.receive_ns)
        } else {
            return;
        };
        let waits = match rule.memory_bytes {
            0 => Span::ZERO,
            bytes => self.wait_for_memory(around.now(), bytes),
        };
        let one = &mut self.engines[engine];
        one.has_sent = matches!(work, Some(Work::Send(..)));
        one.work = work;
        let span = Span::from_ns(time.into()) + waits;
        let until = one.occupancy.occupy(around.now(), span);
        around.at(until, Event::Engine(engine as u8));
    }

    /// Returns how long an engine waits for its code and data in packet memory. Frame transfers leave the engine every second access.
    fn wait_for_memory(&mut self, now: Time, bytes: u32) -> Span {
        let alone = self.memory_time(bytes).unwrap_or(Span::ZERO);
        let until = self.occupy_memory(now, bytes).unwrap_or(now);
        (until - now).min(alone * 2)
    }

    /// Handles the end of an engine's work on a frame, whose DMA is next.
    pub(super) fn handle_engine(&mut self, around: &mut impl Around<F>, engine: u8) {
        let Some(work) = self.engines[usize::from(engine)].work.take() else {
            return;
        };
        match work {
            Work::Receive(frame) if self.firmware != Firmware::None => {
                self.receiver.under_way -= 1;
                self.receiver.arrived.push_back(frame);
            }
            Work::Send(None, frame) => {
                self.sender.under_way -= 1;
                self.sender.to_send.push_back(frame);
            }
            work => self.start(around, work),
        }
    }

    /// Starts the DMA of a frame.
    pub(super) fn start(&mut self, around: &mut impl Around<F>, work: Work<F>) {
        let dma = self.profile.dma;
        let (start_ns, transfers) = match work {
            Work::Send(_, ref frame) => (dma.start_ns, frame.bytes().div_ceil(self.send_limit())),
            Work::Receive(ref frame) => {
                let transfers = frame.bytes().div_ceil(self.receive_limit());
                (dma.receive_start_ns.unwrap_or(dma.start_ns), transfers)
            }
        };
        self.starting.push_back(work);
        let start = Span::from_ns(start_ns.into());
        let until = self.dma.occupy(around.now(), start * u64::from(transfers));
        around.at(until, Event::Dma);
    }

    /// Handles the start of a DMA.
    pub(super) fn handle_dma(&mut self, around: &mut impl Around<F>) {
        match self.starting.pop_front() {
            Some(Work::Send(Some(slot), frame)) => self.read(around, slot, frame),
            Some(Work::Receive(frame)) => self.write(around, frame),
            Some(Work::Send(None, _)) | None => {}
        }
    }

    /// Returns the maximum number of bytes of one DMA from the host.
    pub(super) fn send_limit(&self) -> u32 {
        self.profile.dma.send_limit_bytes.unwrap_or(u32::MAX)
    }

    /// Returns the maximum number of bytes of one DMA to the host.
    pub(super) fn receive_limit(&self) -> u32 {
        self.profile.dma.receive_limit_bytes.unwrap_or(u32::MAX)
    }
}
