//! The meters that charge host cycles and NIC instructions.

use crate::config::{HostConfig, NicConfig};
use crate::hardware::{ConfigError, MemoryHierarchy};
use crate::results::Cycles;
use baton_kernel::{Access, LAYERS, Layer, OPS, Op, Owner, POOLS, Pool};
use baton_nic::{TASKS, Task};
use std::ops::Range;

/// Distance between the modelled arrays of two pools, as a shift; no pool grows that large.
const POOL_SPACING_SHIFT: u32 = 36;

/// Cost of one kind of packet in the network stack.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) cycles: u64,
    /// Cycles in which instructions were executed.
    pub(super) executed: u64,
    pub(super) l2_misses: u64,
}

/// Charges host operations and memory accesses, by layer, by cause and by the kind of connection that they are for.
#[derive(Debug)]
pub struct HostMeter {
    enabled: bool,
    /// Whole cycles that the instructions of each operation take.
    cycles: [u32; OPS.len()],
    /// Instructions of a cycle.
    pub(super) instructions_per_cycle: u32,
    memory: MemoryHierarchy,
    /// Cycle at which the current piece of work began.
    started: u64,
    /// Cycles of the current piece of work so far in which instructions were executed.
    executed: u64,
    /// Stall cycles of the current piece of work so far.
    stalled: u64,
    owner: Owner,
    pub(super) layers: [Cycles; LAYERS.len()],
    pub(super) tallies: [Tally; 2],
}

impl HostMeter {
    pub(super) fn new(config: &HostConfig, enabled: bool) -> Result<Self, ConfigError> {
        let instructions_per_cycle = config.instructions_per_cycle;
        let mut cycles = [0; OPS.len()];
        for op in OPS {
            let scale = match (op, op.layer()) {
                (op, _) if op.is_counted() => 100,
                (Op::DriverCommand | Op::DriverEvent | Op::DriverDoorbell, _) => {
                    config.scale.bypass
                }
                (_, Layer::Bypass | Layer::Handoff) => config.scale.bypass,
                (_, layer) if layer.is_network_stack() => config.scale.network_stack,
                _ => config.scale.application,
            };
            let scaled = u64::from(config.instructions.of(op)) * u64::from(scale) / 100;
            let instructions = u32::try_from(scaled).unwrap_or(u32::MAX);
            cycles[op as usize] = instructions.div_ceil(instructions_per_cycle);
        }
        Ok(Self {
            enabled,
            cycles,
            instructions_per_cycle,
            memory: MemoryHierarchy::new(&config.memory())?,
            started: 0,
            executed: 0,
            stalled: 0,
            owner: Owner::Host,
            layers: Default::default(),
            tallies: Default::default(),
        })
    }

    /// Begins a piece of work at this cycle.
    pub(super) fn begin(&mut self, cycle: u64) {
        self.started = cycle;
        self.executed = 0;
        self.stalled = 0;
        self.owner = Owner::Host;
    }

    /// Returns the cycles of the current piece of work.
    pub(super) fn spent(&self) -> u64 {
        self.executed + self.stalled
    }

    fn cycle(&self) -> u64 {
        self.started + self.executed + self.stalled
    }

    /// Resets the counters; caches keep their content.
    pub(super) fn restart_counts(&mut self) {
        self.layers = Default::default();
        self.tallies = Default::default();
    }

    /// Charges instructions to this layer.
    pub fn execute(&mut self, layer: Layer, instructions: u32) {
        if self.enabled {
            let cycles = instructions.div_ceil(self.instructions_per_cycle);
            self.charge(layer, cycles.into());
        }
    }

    #[inline(always)]
    fn charge(&mut self, layer: Layer, cycles: u64) {
        self.layers[layer as usize].execute += cycles;
        self.executed += cycles;
        if layer.is_network_stack() {
            let tally = &mut self.tallies[self.owner as usize];
            tally.cycles += cycles;
            tally.executed += cycles;
        }
    }

    /// Charges an access of the processor to memory to this layer.
    #[inline(never)]
    pub fn touch_memory(&mut self, layer: Layer, address: u64, len: u32, is_write: bool) {
        debug_assert!(self.enabled);
        let lines = self.memory.lines_of(address, len);
        // Two of three accesses are to memory that was accessed just before.
        if !self.memory.access_again(&lines, is_write) {
            self.access_lines(layer, lines, is_write);
        }
    }

    #[inline(never)]
    fn access_lines(&mut self, layer: Layer, lines: Range<u64>, is_write: bool) {
        let cost = (self.memory).access_lines(self.cycle(), lines, is_write);
        let stall = cost.stall_cycles();
        if stall == 0 {
            return;
        }
        let cycles = &mut self.layers[layer as usize];
        cycles.execute += u64::from(cost.stall_l1_cycles);
        cycles.l2 += u64::from(cost.stall_l2_cycles);
        cycles.memory += u64::from(cost.stall_memory_cycles);
        cycles.l2_misses += u64::from(cost.misses);
        self.stalled += stall;
        if layer.is_network_stack() {
            let tally = &mut self.tallies[self.owner as usize];
            tally.cycles += stall;
            tally.l2_misses += u64::from(cost.misses);
        }
    }

    #[inline]
    pub(super) fn dma_at(&mut self, cycle: u64, address: u64, len: u32, access: Access) {
        match access {
            Access::Write => self.memory.dma_write(cycle, address, len),
            Access::Read => self.memory.dma_read(cycle, address, len),
        }
    }

    /// Returns the address in the modelled memory. The pool is a constant at each call, so that most of this is computed at compile time.
    #[inline(always)]
    fn address(pool: Pool, slot: u32, offset: u32) -> u64 {
        let stride = POOLS[pool as usize].1;
        // The odd multiple of a line keeps the pools from starting in the same cache set.
        let base = ((pool as u64 + 1) << POOL_SPACING_SHIFT) + (pool as u64) * 64 * 137;
        base + u64::from(slot) * u64::from(stride) + u64::from(offset)
    }
}

impl baton_kernel::Meter for HostMeter {
    fn owner(&mut self, owner: Owner) {
        self.owner = owner;
    }

    #[inline]
    fn run(&mut self, op: Op, count: u32) {
        if !self.enabled {
            return;
        }
        let cycles = u64::from(self.cycles[op as usize]) * u64::from(count);
        self.charge(op.layer(), cycles);
    }

    #[inline(always)]
    fn touch(
        &mut self,
        layer: Layer,
        pool: Pool,
        slot: u32,
        offset: u32,
        len: u32,
        access: Access,
    ) {
        if !self.enabled {
            return;
        }
        let address = Self::address(pool, slot, offset);
        self.touch_memory(layer, address, len, access == Access::Write);
    }

    #[inline]
    fn dma(&mut self, pool: Pool, slot: u32, offset: u32, len: u32, access: Access) {
        if !self.enabled {
            return;
        }
        let address = Self::address(pool, slot, offset);
        self.dma_at(self.cycle(), address, len, access);
    }
}

/// Charges firmware tasks.
#[derive(Debug)]
pub struct NicMeter {
    enabled: bool,
    instructions: [u32; TASKS.len()],
    /// Chains of the lookup table, and instructions per connection compared.
    chains: (u32, u32),
    /// Comparisons not yet charged, in units of a connection divided by twice the number of chains.
    compared: u64,
    spent: u64,
    /// Instructions by task.
    pub(super) by_task: [u64; TASKS.len()],
    pub(super) counts: [u64; TASKS.len()],
}

impl NicMeter {
    /// Creates the meter of a NIC. Unless it is `enabled`, all work takes no time.
    pub fn new(config: &NicConfig, enabled: bool) -> Self {
        let instructions = TASKS.map(|task| config.instructions_of(task));
        Self {
            enabled,
            instructions,
            chains: (
                config.lookup.buckets,
                config.lookup.compare_instructions * config.scale.host / 100,
            ),
            compared: 0,
            spent: 0,
            by_task: [0; TASKS.len()],
            counts: [0; TASKS.len()],
        }
    }

    /// Returns the instructions since the last call.
    pub fn take_spent(&mut self) -> u64 {
        std::mem::take(&mut self.spent)
    }

    /// Charges the search of a chain. `connections` are in the table, in chains of the same length; half of a chain is searched for one of
    /// them, and all of it for a packet of the host.
    pub(super) fn search(&mut self, connections: usize, is_found: bool) {
        let (buckets, instructions) = self.chains;
        if buckets == 0 {
            return;
        }
        let halves = if is_found { 1 } else { 2 };
        self.compared += connections as u64 * halves;
        let whole = 2 * u64::from(buckets);
        let cost = self.compared / whole * u64::from(instructions);
        self.compared %= whole;
        self.charge(Task::Lookup, cost);
    }

    #[inline]
    fn charge(&mut self, task: Task, instructions: u64) {
        self.by_task[task as usize] += instructions;
        if self.enabled {
            self.spent += instructions;
        }
    }

    /// Resets the counters.
    pub(super) fn restart_counts(&mut self) {
        self.counts = [0; TASKS.len()];
        self.by_task = [0; TASKS.len()];
    }
}

impl baton_nic::Meter for NicMeter {
    #[inline]
    fn run(&mut self, task: Task) {
        self.run_many(task, 1);
    }

    #[inline]
    fn run_many(&mut self, task: Task, count: u32) {
        self.counts[task as usize] += u64::from(count);
        self.charge(
            task,
            u64::from(self.instructions[task as usize]) * u64::from(count),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::LookupConfig;
    use baton_nic::Meter as _;

    #[test]
    fn the_cost_of_a_search_grows_with_its_chain() {
        let config = NicConfig {
            lookup: LookupConfig {
                buckets: 4,
                compare_instructions: 10,
            },
            ..NicConfig::default()
        };
        let mut meter = NicMeter::new(&config, true);
        meter.search(8, false);
        assert_eq!(meter.take_spent(), 20, "all of a chain of two");
        meter.search(8, true);
        assert_eq!(meter.take_spent(), 10, "half of it");
        for _ in 0..8 {
            meter.search(1, true);
        }
        assert_eq!(meter.take_spent(), 10, "an eighth of a connection each");
        meter.run(Task::Lookup);
        let lookup = u64::from(config.instructions_of(Task::Lookup));
        assert_eq!(meter.by_task[Task::Lookup as usize], 40 + lookup);
    }

    #[test]
    fn without_chains_a_search_costs_nothing() {
        let mut meter = NicMeter::new(&NicConfig::default(), true);
        meter.search(1_000, false);
        assert_eq!(meter.take_spent(), 0);
    }
}
