//! Main memory behind the caches: latency, open rows, and one channel's bandwidth.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config_error::{ConfigError, check_range};

/// Speed and geometry of main memory. All times are cycles of the host processor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DramConfig {
    /// Time from a miss to its data if a row must be opened first, the common case with many connections (195, handoff-policies, Table 2).
    #[schemars(range(min = 1, max = 100000))]
    pub latency_cycles: u32,
    /// Time from a miss to its data if its row is open. This saves the 18 ns in which DDR333 opens a row: 36 cycles at 2 GHz.
    #[schemars(range(min = 1, max = 100000))]
    pub open_page_latency_cycles: u32,
    /// Independent banks, each with one open row; a power of two.
    #[schemars(range(min = 1, max = 1024), extend("x-power-of-two" = true))]
    pub banks: u32,
    /// Bytes in a row, a power of two.
    #[schemars(range(min = 256, max = 1 << 20), extend("x-power-of-two" = true))]
    pub row_bytes: u32,
    /// Time for which moving one cache line occupies the channel. DDR333 moves 64 bytes in 24 ns.
    #[schemars(range(max = 100000))]
    pub line_transfer_cycles: u32,
    /// Maximum number of lines of write-backs, prefetches and DMA that the controller defers in favour of the processor's misses.
    #[schemars(range(min = 1, max = 65536))]
    pub buffer_lines: u32,
}

impl Default for DramConfig {
    fn default() -> Self {
        Self {
            latency_cycles: 195,
            open_page_latency_cycles: 159,
            banks: 4,
            row_bytes: 8192,
            line_transfer_cycles: 48,
            buffer_lines: 64,
        }
    }
}

impl DramConfig {
    /// Checks that such a memory is possible.
    ///
    /// # Errors
    /// Returns the first invalid field and the expected value.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check_range("latency_cycles", self.latency_cycles.into(), 1, 100_000)?;
        check_range("banks", self.banks.into(), 1, 1024)?;
        check_range("row_bytes", self.row_bytes.into(), 256, 1 << 20)?;
        check_range("buffer_lines", self.buffer_lines.into(), 1, 65_536)?;
        let (open, latency) = (self.open_page_latency_cycles, self.latency_cycles);
        if !(1..=latency).contains(&open) {
            let expected = format!("1 to latency_cycles = {latency}");
            return Err(ConfigError::new("open_page_latency_cycles", open, expected));
        }
        if self.line_transfer_cycles > open {
            let expected = format!("0 to open_page_latency_cycles = {open}");
            let found = self.line_transfer_cycles;
            return Err(ConfigError::new("line_transfer_cycles", found, expected));
        }
        for (field, value) in [("banks", self.banks), ("row_bytes", self.row_bytes)] {
            if !value.is_power_of_two() {
                return Err(ConfigError::new(field, value, "a power of two"));
            }
        }
        Ok(())
    }
}

/// Counters of the memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DramCounters {
    /// Lines that the processor waited for.
    pub demand_lines: u64,
    /// Demand lines that found their row open.
    pub open_page_hits: u64,
    /// Lines transferred without the processor waiting: write-backs, prefetches, DMA.
    pub deferred_lines: u64,
    /// Cycles in which the processor waited for the channel, in addition to the latency.
    pub channel_wait_cycles: u64,
}

/// Main memory. The processor waits for *demand* lines. All other lines are *deferred*: they use the channel when it would be idle, and
/// delay a demand line only by the transfer in progress, or when the controller's buffer is full.
#[derive(Clone, Debug)]
pub struct Dram {
    config: DramConfig,
    row_shift: u32,
    /// The open row of each bank; initially a row that contains no address.
    open_rows: Vec<u64>,
    /// Remaining cycles of the deferred transfer in progress at `settled_cycle`; 0 if the channel is idle.
    in_progress_cycles: u64,
    /// Deferred lines whose transfer has not started; 0 if the channel is idle.
    waiting_lines: u64,
    settled_cycle: u64,
    counters: DramCounters,
}

impl Dram {
    /// Creates a memory with all rows closed, which is read in lines of `line_bytes` (a power of two).
    ///
    /// # Errors
    /// Returns the first invalid field and the expected value.
    pub fn new(config: &DramConfig, line_bytes: u32) -> Result<Self, ConfigError> {
        config.validate()?;
        if config.row_bytes < line_bytes {
            return Err(ConfigError::new(
                "row_bytes",
                config.row_bytes,
                format!("at least line_bytes = {line_bytes}"),
            ));
        }
        Ok(Self {
            row_shift: (config.row_bytes / line_bytes).trailing_zeros(),
            open_rows: vec![u64::MAX; config.banks as usize],
            in_progress_cycles: 0,
            waiting_lines: 0,
            settled_cycle: 0,
            counters: DramCounters::default(),
            config: config.clone(),
        })
    }

    /// Reads `line` for the processor at `now_cycle` and returns how many cycles the processor waits. Calls may go back in time by the
    /// length of a piece of work; the channel is then assumed to be as busy as before.
    #[inline]
    pub fn demand(&mut self, now_cycle: u64, line: u64) -> u32 {
        self.settle(now_cycle);
        let wait = self.channel_wait();
        let open = self.open_row(line);
        let latency = if open {
            self.config.open_page_latency_cycles
        } else {
            self.config.latency_cycles
        };

        // Until the demand transfer begins, the channel is free for deferred transfers.
        let before_transfer = u64::from(latency - self.config.line_transfer_cycles);
        self.advance(wait + before_transfer);
        self.settled_cycle = self
            .settled_cycle
            .max(now_cycle + wait + u64::from(latency));

        self.counters.demand_lines += 1;
        self.counters.open_page_hits += u64::from(open);
        self.counters.channel_wait_cycles += wait;
        wait as u32 + latency
    }

    /// Transfers `lines` lines at `now_cycle` or as soon as the channel is free, while no one waits. The caller has
    /// [opened](Dram::open_row) their rows.
    #[inline]
    pub fn defer(&mut self, now_cycle: u64, lines: u64) {
        if lines == 0 {
            return;
        }
        self.settle(now_cycle);
        self.counters.deferred_lines += lines;
        self.waiting_lines += lines;
        if self.in_progress_cycles == 0 {
            self.advance(0);
        }
    }

    /// Returns the number of the next line to be deferred. Lines are transferred in the order of these numbers.
    pub fn next_deferred(&self) -> u64 {
        self.counters.deferred_lines
    }

    /// Waits for the deferred line with this number from `now_cycle` on, and returns how many cycles the processor waits. A line whose turn
    /// would come later than a new request's is transferred like a demand line from an open row.
    pub fn demand_deferred(&mut self, now_cycle: u64, number: u64) -> u32 {
        self.settle(now_cycle);
        let Some(before) = self.lines_before(number) else {
            return 0;
        };
        let transfer = u64::from(self.config.line_transfer_cycles);
        let latency = u64::from(self.config.open_page_latency_cycles);
        let (in_turn, ahead) = (
            self.in_progress_cycles + before * transfer,
            self.channel_wait() + latency,
        );
        if in_turn <= ahead {
            self.advance(in_turn);
        } else {
            self.waiting_lines -= 1;
            self.advance(ahead - transfer);
        }
        let wait = in_turn.min(ahead);
        self.settled_cycle = self.settled_cycle.max(now_cycle + wait);
        wait as u32
    }

    /// Reports whether the deferred line with this number has been transferred, up to the time that the channel has been simulated.
    pub fn is_moved(&self, number: u64) -> bool {
        self.lines_before(number).is_none()
    }

    /// Returns how many deferred lines are transferred before this line, including the transfer in progress, or `None` if this line has
    /// been transferred.
    fn lines_before(&self, number: u64) -> Option<u64> {
        let in_progress = u64::from(self.in_progress_cycles > 0);
        let left = self.waiting_lines + in_progress;
        number.checked_sub(self.counters.deferred_lines - left)
    }

    /// Opens the rows of `lines` and defers their transfer.
    pub fn defer_range(&mut self, now_cycle: u64, lines: Range<u64>) {
        let mut next = lines.start;
        while next < lines.end {
            self.open_row(next);
            next = ((next >> self.row_shift) + 1) << self.row_shift;
        }
        self.defer(now_cycle, lines.end - lines.start);
    }

    /// Opens the row of `line`. Returns whether the row was already open.
    #[inline]
    pub fn open_row(&mut self, line: u64) -> bool {
        let row = line >> self.row_shift;
        let bank = row as usize & (self.open_rows.len() - 1);
        std::mem::replace(&mut self.open_rows[bank], row) == row
    }

    /// Returns the counters since the start.
    pub fn counters(&self) -> DramCounters {
        self.counters
    }

    /// Lets deferred transfers use the channel until `now_cycle`.
    #[inline]
    fn settle(&mut self, now_cycle: u64) {
        let elapsed = now_cycle.saturating_sub(self.settled_cycle);
        self.settled_cycle += elapsed;
        self.advance(elapsed);
    }

    /// Lets deferred transfers use the channel for `cycles` cycles.
    #[inline]
    fn advance(&mut self, cycles: u64) {
        if cycles < self.in_progress_cycles {
            self.in_progress_cycles -= cycles;
            return;
        }
        let cycles = cycles - self.in_progress_cycles;
        let transfer = u64::from(self.config.line_transfer_cycles);
        if cycles >= self.waiting_lines * transfer {
            (self.in_progress_cycles, self.waiting_lines) = (0, 0);
            return;
        }
        self.in_progress_cycles = transfer - cycles % transfer;
        self.waiting_lines -= cycles / transfer + 1;
    }

    /// Returns the remaining time of the deferred transfer in progress and of the transfers that exceed the buffer.
    #[inline]
    fn channel_wait(&self) -> u64 {
        let excess = self
            .waiting_lines
            .saturating_sub(self.config.buffer_lines.into());
        self.in_progress_cycles + excess * u64::from(self.config.line_transfer_cycles)
    }
}
