//! Sizing of the offered window as in Linux: it starts small and grows with arriving data, and the buffer grows with the data
//! that the application reads (tcp(7): tcp_rmem, tcp_moderate_rcvbuf, TCP_WINDOW_CLAMP).

use baton_wire::{Span, Time};

/// The window of a SYN is not scaled (RFC 7323 2.2).
const FIRST_WINDOW: u32 = 65_535;

/// Minimum length of a segment that makes the window grow: the memory of smaller segments is mostly overhead.
const LEAST_GROWING_SEGMENT: usize = 128;

/// Buffer and window of one socket, bytes.
#[derive(Clone, Debug)]
pub(crate) struct ReceiveWindow {
    /// Kernel memory for arrived data.
    buffer: u32,
    /// Limit of autotuning; `None` if the application set the buffer.
    autotune_max: Option<u32>,
    /// Largest window that is offered now.
    threshold: u32,
    /// The application's limit of the window.
    clamp: u32,
    /// Bytes read since `measured_at`, and the most read in one round trip so far.
    copied: u32,
    copied_before: u32,
    measured_at: Time,
    /// The receiver's own estimate of the round-trip time; zero before the first measurement.
    round_trip: Span,
}

impl ReceiveWindow {
    pub(crate) fn new(buffer: u32, autotune_max: Option<u32>) -> Self {
        let mut window = Self {
            buffer,
            autotune_max,
            threshold: 0,
            clamp: u32::MAX,
            copied: 0,
            copied_before: 0,
            measured_at: Time::ZERO,
            round_trip: Span::ZERO,
        };
        window.threshold = window.full_space().min(FIRST_WINDOW);
        window
    }

    /// Kernel memory that the socket may use.
    pub(crate) fn buffer(&self) -> u32 {
        self.buffer
    }

    /// Bytes that fit if the overhead is as large as the data (tcp_adv_win_scale 1).
    pub(crate) fn full_space(&self) -> u32 {
        self.buffer / 2
    }

    /// Largest window to offer now, in whole units of the window field, so that scaling loses nothing.
    pub(crate) fn offered(&self) -> u32 {
        let unit = 1 << self.scale();
        self.threshold.min(self.clamp).max(1).next_multiple_of(unit)
    }

    /// The window scale to offer (RFC 7323 2.3): that of the largest possible buffer.
    pub(crate) fn scale(&self) -> u8 {
        let space = match self.autotune_max {
            Some(most) => most.max(self.full_space()),
            None => self.full_space(),
        };
        let bits = space.min(self.clamp).max(1).ilog2();
        bits.saturating_sub(15).min(14) as u8
    }

    /// Sets the buffer for the application, which ends autotuning (SO_RCVBUF).
    pub(crate) fn set_buffer(&mut self, buffer: u32) {
        self.buffer = buffer;
        self.autotune_max = None;
        self.threshold = self.threshold.min(self.full_space());
        if self.threshold < FIRST_WINDOW {
            self.threshold = self.full_space().min(FIRST_WINDOW);
        }
    }

    /// Sets the application's limit of the window (TCP_WINDOW_CLAMP).
    pub(crate) fn set_clamp(&mut self, clamp: u32) {
        self.clamp = clamp;
    }

    /// The application's limit of the window, if set.
    pub(crate) fn clamp(&self) -> Option<u32> {
        (self.clamp != u32::MAX).then_some(self.clamp)
    }

    /// Opens the window after a segment arrived in order, unless it is short: by twice the MSS, or by twice its length if that is more.
    pub(crate) fn arrived(&mut self, len: usize, mss: u16, unread: u32) {
        if len < LEAST_GROWING_SEGMENT {
            return;
        }
        let room = self.full_space().saturating_sub(unread);
        let growth = (2 * u32::from(mss)).max(2 * len as u32);
        if self.threshold < room {
            self.threshold = room.min(self.threshold + growth);
        }
    }

    /// Takes a sample of the round-trip time with a weight of one eighth.
    pub(crate) fn measured(&mut self, sample: Span) {
        self.round_trip = match self.round_trip {
            Span::ZERO => sample,
            before => (before * 7 + sample) / 8,
        };
    }

    /// The receiver's estimate of the round-trip time; zero before the first measurement.
    pub(crate) fn round_trip(&self) -> Span {
        self.round_trip
    }

    /// Records that the application read `len` bytes; `round_trip` is the time in which the peer reacts to a window. If the
    /// application reads more in a round trip than ever before, enlarges the buffer to hold twice that and a burst.
    pub(crate) fn read(&mut self, now: Time, len: usize, round_trip: Span, mss: u16) {
        self.copied = self.copied.saturating_add(len as u32);
        if round_trip == Span::ZERO || now.saturating_since(self.measured_at) < round_trip {
            return;
        }
        if self.copied > self.copied_before {
            if let Some(most) = self.autotune_max {
                let window = self
                    .copied
                    .saturating_mul(2)
                    .saturating_add(16 * u32::from(mss));
                self.buffer = self.buffer.max(window.saturating_mul(2).min(most));
            }
            self.copied_before = self.copied;
        }
        self.copied = 0;
        self.measured_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linux() -> ReceiveWindow {
        ReceiveWindow::new(540_000, Some(15 << 20))
    }

    #[test]
    fn a_usual_host_offers_64_kib_and_scale_8() {
        assert_eq!((linux().offered(), linux().scale()), (65_536, 8));
    }

    #[test]
    fn full_segments_open_the_window_and_small_ones_do_not() {
        let mut window = linux();
        window.arrived(100, 1460, 0);
        assert_eq!(window.offered(), 65_536);
        window.arrived(1460, 1460, 0);
        assert_eq!(window.offered(), 68_608);
        for _ in 0..1000 {
            window.arrived(1460, 1460, 0);
        }
        assert_eq!(window.offered(), 270_080, "no more than the buffer holds");
    }

    #[test]
    fn a_buffer_that_the_application_sets_stays() {
        let mut window = linux();
        window.set_buffer(20_000);
        assert_eq!((window.offered(), window.scale()), (10_000, 0));
        window.read(
            Time::ZERO + Span::from_secs(1),
            1 << 20,
            Span::from_ms(1),
            1460,
        );
        assert_eq!(window.buffer(), 20_000);
    }

    #[test]
    fn a_fast_reader_gets_a_larger_buffer() {
        let mut window = linux();
        window.read(
            Time::ZERO + Span::from_secs(1),
            400_000,
            Span::from_ms(100),
            1460,
        );
        assert_eq!(window.buffer(), 2 * (800_000 + 16 * 1460));
    }

    #[test]
    fn a_clamp_limits_window_and_scale() {
        let mut window = linux();
        window.set_clamp(30_000);
        assert_eq!((window.offered(), window.scale()), (30_000, 0));
    }
}
