//! What a configuration means for transactions: clocks before the data, bytes in a burst.

use baton_wire::{Span, Time};

use super::config::{PciConfig, PciXConfig, clock_period};
use crate::interconnect::size::PowerOfTwo;

/// PCI-X disconnects where the address is a multiple of this many bytes (PCI-X 2.2, allowable disconnect boundary).
const DISCONNECT_BOUNDARY: u64 = 128;

/// The rules of a bus, in clocks unless a type says otherwise.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) clock: Span,
    /// Bytes of a data phase.
    pub(super) width: PowerOfTwo,
    /// Clocks of a data phase.
    pub(super) per_word: u64,
    pub(super) arbitration: u64,
    pub(super) hidden_arbitration: bool,
    pub(super) idle: u64,
    pub(super) latency_timer: u64,
    /// A burst that must make room ends after a multiple of so many bytes.
    pub(super) cut_bytes: u64,
    pub(super) write: Phases,
    pub(super) read: ReadRule,
    /// Clocks before the word of a register that is written.
    pub(super) register_write: u64,
    /// Clocks before the word of a register that is read.
    pub(super) register_read: u64,
    pub(super) posted_write: Span,
}

/// A transaction that moves data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phases {
    /// Clocks before the first data phase.
    pub(super) head: u64,
    /// The most bytes it moves.
    pub(super) burst_bytes: PowerOfTwo,
}

/// How devices read memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReadRule {
    /// The bridge adds wait states until it has the data.
    Waits {
        first: Phases,
        /// Further bursts of the same transfer.
        next: Phases,
    },
    /// The bridge answers with retry until it has the data.
    Delayed {
        /// An attempt that is answered with retry.
        attempt: u64,
        /// From one such attempt to the next.
        interval: u64,
        /// From the first attempt to the data.
        latency: u64,
        /// From a burst to the data of the next.
        next_latency: u64,
        hit: Phases,
    },
    /// The bridge becomes master and brings the data when it has them.
    Split {
        /// The request, which moves no data.
        request: u64,
        /// Bytes a request asks for.
        request_bytes: u64,
        /// From the request to the data.
        latency: Span,
        /// Requests of one device under way.
        outstanding: u32,
        completion: Phases,
    },
}

impl Rules {
    pub(super) fn pci(config: &PciConfig) -> Self {
        let clocks = |clocks: u32| u64::from(clocks);
        let address = 1 + u64::from(config.dual_address_cycle);
        let turnaround = address + clocks(config.read_turnaround_clocks);
        let read = |wait| Phases {
            head: turnaround + wait,
            burst_bytes: PowerOfTwo::new(config.read_burst_bytes),
        };
        let (first, next) = (
            clocks(config.read_wait_clocks),
            clocks(config.read_next_wait_clocks),
        );
        let width = PowerOfTwo::new(config.width_bits / 8);
        Self {
            clock: clock_period(config.clock_mhz),
            width,
            per_word: 1 + clocks(config.data_wait_clocks),
            arbitration: config.arbitration_clocks.into(),
            hidden_arbitration: config.hidden_arbitration,
            idle: config.idle_clocks.into(),
            latency_timer: config.latency_timer_clocks.into(),
            cut_bytes: width.get(),
            write: Phases {
                head: address + clocks(config.write_wait_clocks),
                burst_bytes: PowerOfTwo::new(config.write_burst_bytes),
            },
            read: if config.delayed_reads {
                ReadRule::Delayed {
                    attempt: config.retry_clocks.into(),
                    interval: config.retry_interval_clocks.into(),
                    latency: first,
                    next_latency: next,
                    hit: read(0),
                }
            } else {
                ReadRule::Waits {
                    first: read(first),
                    next: read(next),
                }
            },
            register_write: address + clocks(config.register_write_wait_clocks),
            register_read: turnaround + clocks(config.register_read_wait_clocks),
            posted_write: Span::from_ns(config.posted_write_ns.into()),
        }
    }

    pub(super) fn pci_x(config: &PciXConfig) -> Self {
        let before_response = 1
            + u64::from(config.dual_address_cycle)
            + u64::from(config.attribute_clocks)
            + u64::from(config.response_clocks);
        let data = Phases {
            head: before_response + u64::from(config.initial_wait_clocks),
            burst_bytes: PowerOfTwo::new(config.burst_bytes),
        };
        Self {
            clock: clock_period(config.clock_mhz),
            width: PowerOfTwo::new(config.width_bits / 8),
            per_word: 1,
            arbitration: config.arbitration_clocks.into(),
            hidden_arbitration: config.hidden_arbitration,
            idle: config.idle_clocks.into(),
            latency_timer: config.latency_timer_clocks.into(),
            cut_bytes: DISCONNECT_BOUNDARY,
            write: data,
            read: ReadRule::Split {
                request: before_response,
                request_bytes: config.max_read_bytes.into(),
                latency: Span::from_ns(config.memory_latency_ns.into()),
                outstanding: config.outstanding_splits,
                completion: data,
            },
            register_write: data.head,
            register_read: before_response + u64::from(config.register_read_wait_clocks),
            posted_write: Span::from_ns(config.posted_write_ns.into()),
        }
    }

    /// The clock edge at or after `time`.
    pub(super) fn edge(&self, time: Time) -> Time {
        Time::from_ps(time.as_ps().next_multiple_of(self.clock.as_ps()))
    }

    /// Clocks of the data phases that move `bytes`. A transfer of nothing has a data phase with no byte enabled.
    pub(super) fn data_clocks(&self, bytes: u64) -> u64 {
        self.width.count(bytes).max(1) * self.per_word
    }

    /// How long `bytes` take if every clock moves a full word.
    pub(super) fn data_time(&self, bytes: u64) -> Span {
        Span::from_ps(bytes * self.clock.as_ps() / self.width.get())
    }

    /// Clocks that an access of the processor needs at least.
    pub(super) fn access_clocks(&self, bytes: u64) -> u64 {
        self.register_write.min(self.register_read) + self.data_clocks(bytes)
    }

    /// Clocks from the last data phase of a burst to the address phase of the next of the same master.
    pub(super) fn between_bursts(&self) -> u64 {
        let arbitration = if self.hidden_arbitration {
            0
        } else {
            self.arbitration
        };
        self.idle + arbitration
    }

    /// Clocks that `bytes` need in bursts with nothing else on the bus, up to the last data phase.
    pub(super) fn clocks_alone(&self, phases: Phases, bytes: u64) -> u64 {
        let bursts = phases.burst_bytes.count(bytes).max(1);
        bursts * (phases.head + self.idle) + self.data_clocks(bytes) - self.idle
    }
}
