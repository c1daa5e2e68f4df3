//! Records the activity of processors.

use super::super::super::host_processor::HostProcessor;
use super::super::super::meter::NicMeter;
use super::super::super::names::snake_case;
use super::Recorder;
use crate::results::Cycles;
use baton_kernel::{LAYERS, Layer};
use baton_nic::{QueueLengths, TASKS, Task};
use baton_timeline::{Counters, Grain, Track, Value, Writer};
use baton_wire::{Span, Time};
use std::fs::File;

/// The host's tracks.
pub(super) struct HostTracks {
    processor: Track,
    interrupts: Track,
    /// Cycles after the last piece of work.
    pub(super) layers: [Cycles; LAYERS.len()],
    pub(super) interrupts_before: u64,
    pub(super) drops: Counters,
}

/// The tracks of a NIC.
pub(super) struct NicTracks {
    processor: Track,
    /// Counts and instructions of tasks after the last piece of work.
    pub(super) done: ([u64; TASKS.len()], [u64; TASKS.len()]),
    queues: Counters,
    pub(super) drops: Counters,
}

impl Recorder {
    /// Records a piece of work of the host. Within the piece, the layers are drawn in order from the wire up, each with its total duration.
    pub(in super::super::super) fn host_works(
        &mut self,
        (now, until): (Time, Time),
        host: &HostProcessor,
    ) {
        let before = std::mem::replace(&mut self.host.layers, *host.layers());
        let interrupts = host.interrupts() - self.host.interrupts_before;
        self.host.interrupts_before = host.interrupts();
        if self.window.opened(now).is_none() {
            return;
        }
        let (to, tracks) = (&mut self.writer, &self.host);
        if interrupts > 0 && to.admits(Grain::Work, now) {
            let about = [("count", Value::Number(interrupts))];
            to.moment(tracks.interrupts, now, "interrupt", &about);
        }
        let spent = |layer: &Layer| {
            let (now, before) = (&tracks.layers[*layer as usize], &before[*layer as usize]);
            (now.total() - before.total(), now.memory - before.memory)
        };
        let parts: Vec<_> = LAYERS.iter().map(spent).collect();
        let mut parts_of = Parts::new((now, until), parts.iter().map(|(cycles, _)| *cycles));
        for (&layer, (cycles, memory)) in LAYERS.iter().zip(parts) {
            let span = parts_of.next(cycles);
            if cycles > 0 && to.admits(Grain::Work, now) {
                let about = [
                    ("cycles", Value::Number(cycles)),
                    ("memory", Value::Number(memory)),
                ];
                let about = &about[..1 + usize::from(memory > 0)];
                to.span(tracks.processor, span, &snake_case(layer), about);
            }
        }
    }

    /// Records a piece of work of a NIC, and the lengths of its queues. Within the piece, its tasks are drawn like the host's layers.
    pub(in super::super::super) fn nic_works(
        &mut self,
        (now, until): (Time, Time),
        nic: u8,
        meter: &NicMeter,
        waiting: &QueueLengths,
    ) {
        let tracks = &mut self.nics[usize::from(nic)];
        let before = std::mem::replace(&mut tracks.done, (meter.counts, meter.by_task));
        let Some(opened) = self.window.opened(now) else {
            return;
        };
        let (to, tracks) = (&mut self.writer, &mut self.nics[usize::from(nic)]);
        let spent = |task: Task| {
            let index = task as usize;
            let (counts, instructions) = tracks.done;
            (
                counts[index] - before.0[index],
                instructions[index] - before.1[index],
            )
        };
        let parts = TASKS.map(spent);
        let mut parts_of = Parts::new((now, until), parts.iter().map(|(_, cost)| *cost));
        for (task, (count, instructions)) in TASKS.into_iter().zip(parts) {
            let span = parts_of.next(instructions);
            if count > 0 && to.admits(Grain::Work, now) {
                let about = [
                    ("instructions", Value::Number(instructions)),
                    ("count", Value::Number(count)),
                ];
                to.span(tracks.processor, span, &snake_case(task), &about);
            }
        }
        for (queue, length) in [
            ("arrivals", waiting.arrivals),
            ("host receive", waiting.host_receive),
            ("NIC receive", waiting.nic_receive),
            ("host send", waiting.host_send),
            ("commands", waiting.commands),
        ] {
            let name = (&*format!("waiting: {queue}"), "entries");
            tracks.queues.set(to, (opened, now), name, length as u64);
        }
    }
}

impl HostTracks {
    pub(super) fn new(to: &mut Writer<File>) -> Self {
        let process = to.process("host");
        Self {
            processor: to.thread(process, "processor"),
            interrupts: to.row(process, "interrupts"),
            layers: Default::default(),
            interrupts_before: 0,
            drops: Counters::new(process, Grain::Sample),
        }
    }
}

impl NicTracks {
    pub(super) fn new(to: &mut Writer<File>, name: &str) -> Self {
        let process = to.process(name);
        Self {
            processor: to.thread(process, "processor"),
            done: Default::default(),
            queues: Counters::new(process, Grain::Work),
            drops: Counters::new(process, Grain::Sample),
        }
    }
}

/// Divides a span of time among parts in proportion to their shares.
struct Parts {
    from: Time,
    span: Span,
    all: u64,
    done: u64,
}

impl Parts {
    fn new((from, to): (Time, Time), parts: impl Iterator<Item = u64>) -> Self {
        Self {
            from,
            span: to - from,
            all: parts.sum::<u64>().max(1),
            done: 0,
        }
    }

    fn at(&self) -> Time {
        let ps = u128::from(self.span.as_ps()) * u128::from(self.done) / u128::from(self.all);
        self.from + Span::from_ps(ps as u64)
    }

    /// Returns the span of the next part, which has this share.
    fn next(&mut self, share: u64) -> (Time, Time) {
        let from = self.at();
        self.done += share;
        (from, self.at())
    }
}
