//! Translates a configuration to rules for transactions: the phases before the data, and the number of bytes in a burst.

use baton_wire::{Span, Time};

use super::config::{PciConfig, PciXConfig, clock_period};
use crate::interconnect::Operation;
use crate::interconnect::size::PowerOfTwo;

/// PCI-X disconnects at addresses that are multiples of this many bytes (PCI-X 2.2, allowable disconnect boundary).
const DISCONNECT_BOUNDARY: u32 = 128;

/// The rules of a bus.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) clock: Span,
    /// Bytes of one data phase.
    pub(super) width: PowerOfTwo,
    /// Duration of one data phase.
    pub(super) word: Span,
    pub(super) arbitration: Span,
    pub(super) hidden_arbitration: bool,
    /// Time from the end of a transaction until another can start.
    pub(super) idle: Span,
    /// Time from the last data phase of a burst to the address phase of the next, if that already waits.
    pub(super) between_bursts: Span,
    pub(super) latency_timer: Span,
    /// A burst that must yield the bus ends after a multiple of this many bytes.
    pub(super) cut_bytes: PowerOfTwo,
    pub(super) write: Run,
    pub(super) read: ReadRule,
    /// Time before the data of a register write.
    pub(super) register_write: Span,
    /// Time before the data of a register read.
    pub(super) register_read: Span,
    pub(super) posted_write: Span,
}

/// Phases of a transaction that moves data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phases {
    /// Time before the first data phase.
    pub(super) head: Span,
    /// Maximum number of bytes moved.
    pub(super) burst_bytes: PowerOfTwo,
}

/// A sequence of transactions that move data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// Time before the first data phase of the first transaction for a piece of contiguous memory.
    pub(super) first: Span,
    /// Time before the first data phase of the others.
    pub(super) next: Span,
    /// Maximum number of bytes per transaction.
    pub(super) burst_bytes: PowerOfTwo,
}

/// How devices read memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReadRule {
    /// The bridge adds wait states until it has the data.
    Waits(Run),
    /// The bridge answers with retry until it has the data.
    Delayed {
        /// Duration of an attempt that is answered with retry.
        attempt: Span,
        /// Time from one such attempt to the next.
        interval: Span,
        /// Time from the first attempt to the data.
        latency: Span,
        /// Time from a burst to the data of the next.
        next_latency: Span,
        hit: Phases,
    },
    /// The bridge becomes master and delivers the data once it has them.
    Split {
        /// Duration of the request, which moves no data.
        request: Span,
        /// Bytes that one request asks for.
        request_bytes: u64,
        /// Time from the request to the data.
        latency: Span,
        /// Maximum number of pending requests of one device.
        outstanding: u32,
        completion: Phases,
    },
}

impl Rules {
    pub(super) fn pci(config: &PciConfig) -> Self {
        let clock = clock_period(config.clock_mhz);
        let clocks = |clocks: u32| clock * u64::from(clocks);
        let address = clocks(1 + u32::from(config.dual_address_cycle));
        let turnaround = address + clocks(config.read_turnaround_clocks);
        let (first, next) = (
            clocks(config.read_wait_clocks),
            clocks(config.read_next_wait_clocks),
        );
        let (idle, arbitration) = (
            clocks(config.idle_clocks),
            clocks(config.arbitration_clocks),
        );
        let width = PowerOfTwo::new(config.width_bits / 8);
        let write = address + clocks(config.write_wait_clocks);
        let read_burst = PowerOfTwo::new(config.read_burst_bytes);
        Self {
            clock,
            width,
            word: clocks(1 + config.data_wait_clocks),
            arbitration,
            hidden_arbitration: config.hidden_arbitration,
            idle,
            between_bursts: between_bursts(idle, arbitration, config.hidden_arbitration),
            latency_timer: clocks(config.latency_timer_clocks),
            cut_bytes: width,
            write: Run {
                first: write,
                next: write,
                burst_bytes: PowerOfTwo::new(config.write_burst_bytes),
            },
            read: if config.delayed_reads {
                ReadRule::Delayed {
                    attempt: clocks(config.retry_clocks),
                    interval: clocks(config.retry_interval_clocks),
                    latency: first,
                    next_latency: next,
                    hit: Phases {
                        head: turnaround,
                        burst_bytes: read_burst,
                    },
                }
            } else {
                ReadRule::Waits(Run {
                    first: turnaround + first,
                    next: turnaround + next,
                    burst_bytes: read_burst,
                })
            },
            register_write: address + clocks(config.register_write_wait_clocks),
            register_read: turnaround + clocks(config.register_read_wait_clocks),
            posted_write: Span::from_ns(config.posted_write_ns.into()),
        }
    }

    pub(super) fn pci_x(config: &PciXConfig) -> Self {
        let clock = clock_period(config.clock_mhz);
        let clocks = |clocks: u32| clock * u64::from(clocks);
        let before_response = clocks(
            1 + u32::from(config.dual_address_cycle)
                + config.attribute_clocks
                + config.response_clocks,
        );
        let (idle, arbitration) = (
            clocks(config.idle_clocks),
            clocks(config.arbitration_clocks),
        );
        let head = before_response + clocks(config.initial_wait_clocks);
        let burst_bytes = PowerOfTwo::new(config.burst_bytes);
        Self {
            clock,
            width: PowerOfTwo::new(config.width_bits / 8),
            word: clock,
            arbitration,
            hidden_arbitration: config.hidden_arbitration,
            idle,
            between_bursts: between_bursts(idle, arbitration, config.hidden_arbitration),
            latency_timer: clocks(config.latency_timer_clocks),
            cut_bytes: PowerOfTwo::new(DISCONNECT_BOUNDARY),
            write: Run {
                first: head,
                next: head,
                burst_bytes,
            },
            read: ReadRule::Split {
                request: before_response,
                request_bytes: config.max_read_bytes.into(),
                latency: Span::from_ns(config.memory_latency_ns.into()),
                outstanding: config.outstanding_splits,
                completion: Phases { head, burst_bytes },
            },
            register_write: head,
            register_read: before_response + clocks(config.register_read_wait_clocks),
            posted_write: Span::from_ns(config.posted_write_ns.into()),
        }
    }

    /// Returns the clock edge at or after `time`.
    pub(super) fn edge(&self, time: Time) -> Time {
        Time::from_ps(time.as_ps().next_multiple_of(self.clock.as_ps()))
    }

    /// Returns the sequence of bursts of a device's transfer, or `None` if the bus does other things between them.
    pub(super) fn run_of(&self, operation: Operation) -> Option<&Run> {
        match &self.read {
            _ if operation != Operation::DmaRead => Some(&self.write),
            ReadRule::Waits(run) => Some(run),
            ReadRule::Delayed { .. } | ReadRule::Split { .. } => None,
        }
    }

    /// Returns the phases in which the bridge delivers data that a device has asked for before.
    pub(super) fn completion(&self) -> Phases {
        match self.read {
            ReadRule::Split { completion, .. } => completion,
            ReadRule::Delayed { hit, .. } => hit,
            ReadRule::Waits(Run {
                first: head,
                burst_bytes,
                ..
            }) => Phases { head, burst_bytes },
        }
    }

    /// Returns the duration of the data phases that move `bytes`. An empty transfer has one phase with no byte enabled.
    pub(super) fn data_phases(&self, bytes: u64) -> Span {
        self.word * self.width.count(bytes).max(1)
    }

    /// Returns the time from the last data phase of a transfer until it completes.
    pub(super) fn after_data(&self, operation: Operation) -> Span {
        match operation {
            Operation::DmaWrite => self.posted_write,
            _ => Span::ZERO,
        }
    }

    /// Returns the time that `bytes` take if every clock moves a full word.
    pub(super) fn data_time(&self, bytes: u64) -> Span {
        Span::from_ps(bytes * self.clock.as_ps() / self.width.get())
    }

    /// Returns the minimum duration of a processor access.
    pub(super) fn access_time(&self, bytes: u64) -> Span {
        self.register_write.min(self.register_read) + self.data_phases(bytes)
    }

    /// Returns the duration of `bytes` of one piece with nothing else on the bus, from the first address phase to the last data phase.
    /// `started` says whether bursts of the piece have already been made.
    pub(super) fn run_time(&self, run: &Run, bytes: u64, started: bool) -> Span {
        let bursts = run.burst_bytes.count(bytes).max(1);
        let head = if started { run.next } else { run.first };
        head + (self.between_bursts + run.next) * (bursts - 1) + self.data_phases(bytes)
    }

    /// Returns the duration of `bytes` in bursts of equal `phases`.
    pub(super) fn time_alone(&self, phases: Phases, bytes: u64) -> Span {
        let Phases { head, burst_bytes } = phases;
        let run = Run {
            first: head,
            next: head,
            burst_bytes,
        };
        self.run_time(&run, bytes, false)
    }

    /// Applies the latency timer: returns the bytes that a burst of `bytes` still moves if another master wants the bus from `request_at`
    /// on.
    pub(super) fn shortened(
        &self,
        bytes: u64,
        (start, data_at): (Time, Time),
        request_at: Time,
    ) -> u64 {
        let data_end = data_at + self.data_phases(bytes);
        let expires = start + self.latency_timer;
        if expires >= data_end {
            return bytes;
        }
        let seen = self.edge(request_at.max(data_at)) + self.clock;
        let limit = expires.max(seen);
        if limit >= data_end {
            return bytes;
        }
        let words = ((limit - data_at).as_ps() / self.word.as_ps()).max(1);
        bytes.min(self.cut_bytes.round_up(words * self.width.get()))
    }
}

fn between_bursts(idle: Span, arbitration: Span, hidden_arbitration: bool) -> Span {
    if hidden_arbitration {
        idle
    } else {
        idle + arbitration
    }
}
