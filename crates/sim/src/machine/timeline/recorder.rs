//! Writes down what the machine does.

use super::super::host_processor::HostProcessor;
use super::super::meter::NicMeter;
use super::super::names::snake_case;
use super::super::server::BusTransfer;
use super::Timeline;
use crate::config::Experiment;
use crate::results::{Cycles, Sample};
use baton_host::layer::Move;
use baton_host::{LAYERS, Layer};
use baton_nic::{QueueLengths, TASKS, Task};
use baton_tcp::Segment;
use baton_timeline::{
    ConnectionTracks, Connections, Counters, Grain, Summary, Track, Value, Way, Window, Within,
    Writer,
};
use baton_wire::{Endpoint, Span, Symbolic, Time};
use std::fs::File;
use std::io;

/// Where connections live at first.
const HOST: &str = "on the host";

/// Writes a timeline.
pub(in super::super) struct Recorder {
    writer: Writer<File>,
    window: Window,
    rule: Connections,
    connections: ConnectionTracks,
    host: HostTracks,
    nics: Vec<NicTracks>,
    /// Rows for transfers by device, the disks' controller last, and when each row is free: those of one row do not overlap.
    bus: Vec<(String, Vec<(Track, Time)>)>,
    bus_process: Track,
    samples: Counters,
}

/// The host's tracks.
struct HostTracks {
    processor: Track,
    interrupts: Track,
    /// As they were after the last piece of work.
    layers: [Cycles; LAYERS.len()],
    interrupts_before: u64,
    drops: Counters,
}

/// Those of a NIC.
struct NicTracks {
    processor: Track,
    /// As they were after the last piece of work.
    counts: [u64; TASKS.len()],
    queues: Counters,
    drops: Counters,
}

impl Recorder {
    /// Begins to write a timeline of this experiment.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(in super::super) fn new(timeline: &Timeline, experiment: &Experiment) -> io::Result<Self> {
        let file = File::create(&timeline.path)?;
        let mut writer = Writer::new(file, timeline.sampling.most_bytes);
        let to = &mut writer;
        let server = to.process("server");
        let host = HostTracks::new(to);
        let kinds = experiment
            .nic_names()
            .take(experiment.nics.count() as usize);
        let name =
            |(number, kind): (usize, &str)| format!("NIC {number} {kind}").trim_end().to_owned();
        let names: Vec<String> = kinds.enumerate().map(name).collect();
        let nics = names.iter().map(|name| NicTracks::new(to, name)).collect();
        let bus_process = to.process("bus");
        let devices = names.into_iter().chain(["disks".to_owned()]);
        let connections = to.process("connections");
        Ok(Self {
            connections: ConnectionTracks::new(timeline.sampling.connections, connections, HOST),
            window: Window::new(&timeline.sampling),
            rule: timeline.sampling.connections,
            host,
            nics,
            bus: devices.map(|name| (name, Vec::new())).collect(),
            bus_process,
            samples: Counters::new(server, Grain::Sample),
            writer,
        })
    }

    /// Measurement begins, and with it the window, unless that was said otherwise. Counts begin anew.
    pub(in super::super) fn restart_counts(&mut self, now: Time) {
        self.window.begin(now);
        self.host.layers = Default::default();
        self.host.interrupts_before = 0;
        for nic in &mut self.nics {
            nic.counts = Default::default();
        }
    }

    // --- processors ---

    /// The host works for so long. Within a piece of work its layers stand from the wire up, as long as each took in all.
    pub(in super::super) fn host_works(
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

    /// A NIC works for so long; so much waits for it then. Its tasks stand in a piece of work as the host's layers do.
    pub(in super::super) fn nic_works(
        &mut self,
        (now, until): (Time, Time),
        nic: u8,
        meter: &NicMeter,
        waiting: &QueueLengths,
    ) {
        let tracks = &mut self.nics[usize::from(nic)];
        let before = std::mem::replace(&mut tracks.counts, meter.counts);
        let Some(opened) = self.window.opened(now) else {
            return;
        };
        let (to, tracks) = (&mut self.writer, &mut self.nics[usize::from(nic)]);
        let spent = |task: Task| {
            let count = tracks.counts[task as usize] - before[task as usize];
            (count, count * meter.cost(task))
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

    // --- the bus ---

    /// A transfer is over.
    pub(in super::super) fn crossed(&mut self, transfer: &BusTransfer) {
        let BusTransfer { from, to, .. } = *transfer;
        if self.window.opened(from).is_none() || !self.writer.admits(Grain::Work, from) {
            return;
        }
        let (name, rows) = &mut self.bus[transfer.device.index()];
        let free = rows.iter().position(|(_, free)| *free <= from);
        let row = free.unwrap_or_else(|| {
            rows.push((self.writer.row(self.bus_process, name), to));
            rows.len() - 1
        });
        let (row, free) = &mut rows[row];
        *free = to;
        let about = [("bytes", Value::Number(transfer.bytes))];
        let about = &about[..usize::from(transfer.bytes > 0)];
        match from == to {
            true => self.writer.moment(*row, from, transfer.name, about),
            false => self.writer.span(*row, (from, to), transfer.name, about),
        }
    }

    // --- connections ---

    fn connections(&mut self, now: Time) -> (&mut ConnectionTracks, Within<'_, File>) {
        self.window.opened(now);
        let within = Within {
            writer: &mut self.writer,
            window: &self.window,
            now,
        };
        (&mut self.connections, within)
    }

    /// A frame is at a NIC, and the client whose it is.
    pub(in super::super) fn frame(
        &mut self,
        now: Time,
        way: Way,
        segment: &Segment<Symbolic>,
    ) -> Endpoint {
        let client = match way {
            Way::In => segment.src,
            Way::Out => segment.dst,
        };
        let bytes = segment.payload_len() as u32;
        let (connections, mut to) = self.connections(now);
        connections.segment(&mut to, client, way, &segment.header, bytes);
        client
    }

    /// A frame of a client's connection was lost, by this name.
    pub(in super::super) fn lost(&mut self, now: Time, client: Endpoint, name: &'static str) {
        let (connections, mut to) = self.connections(now);
        connections.lost(&mut to, client, name);
    }

    /// A client's connection gets on that is to move.
    pub(in super::super) fn connection_moves(&mut self, now: Time, client: Endpoint, what: Move) {
        let (connections, mut to) = self.connections(now);
        let mut lives = |place| connections.lives(&mut to, client, place);
        match what {
            Move::HandingOff => lives("handing off"),
            Move::HandedOff | Move::NotRestored => lives("on the NIC"),
            Move::Restoring => lives("coming back"),
            Move::Restored => lives(HOST),
            Move::Refused(why) => {
                connections.refused(&mut to, client, why.name());
            }
        }
    }

    // --- samples ---

    /// A point of the time series, and what else is looked at as often: of the host, and of each NIC, by name and unit.
    pub(in super::super) fn sample(
        &mut self,
        now: Time,
        sample: &Sample,
        host: Vec<Gauge>,
        nics: Vec<Vec<Gauge>>,
    ) {
        let Some(opened) = self.window.opened(now) else {
            return;
        };
        let (to, when) = (&mut self.writer, (opened, now));
        for (name, value) in [
            ("open connections", sample.open),
            ("connections on NICs", sample.connections),
            ("Qlen", sample.qlen),
            ("Soft_Limit", sample.soft_limit),
        ] {
            let name = (name, "");
            self.samples.set(to, when, name, value.into());
        }
        let sides = [(&mut self.host.drops, host)];
        let of_nics = self.nics.iter_mut().map(|nic| &mut nic.drops).zip(nics);
        for (counters, gauges) in sides.into_iter().chain(of_nics) {
            for (name, unit, value) in gauges {
                counters.set(to, when, (&name, unit), value);
            }
        }
    }

    /// Ends the timeline; what is in it. None if its window has not opened.
    ///
    /// # Errors
    /// It cannot be written.
    pub(in super::super) fn finish(
        &mut self,
        now: Time,
        experiment: &Experiment,
        commit: &str,
    ) -> io::Result<Option<Summary>> {
        let Some((from, to)) = self.window.bounds(now) else {
            return Ok(None);
        };
        let (connections, mut within) = self.connections(now);
        connections.finish(&mut within);
        let (opened, shown) = self.connections.counts();
        let summary = Summary {
            from,
            to,
            rule: self.rule,
            opened,
            shown,
            left_out: self.writer.left_out(),
            bytes: self.writer.written(),
        };
        let of_run = [
            ("experiment", experiment.name.clone()),
            ("seed", experiment.run.seed.to_string()),
            ("commit", commit.to_owned()),
        ];
        self.writer.facts(of_run.into_iter().chain(summary.facts()));
        self.writer.flush()?;
        Ok(Some(summary))
    }

    /// The first error of the file, once.
    pub(in super::super) fn error(&mut self) -> io::Result<()> {
        self.writer.error()
    }
}

/// The name, unit and value of something that is looked at now and then.
pub(in super::super) type Gauge = (String, &'static str, u64);

impl HostTracks {
    fn new(to: &mut Writer<File>) -> Self {
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
    fn new(to: &mut Writer<File>, name: &str) -> Self {
        let process = to.process(name);
        Self {
            processor: to.thread(process, "processor"),
            counts: Default::default(),
            queues: Counters::new(process, Grain::Work),
            drops: Counters::new(process, Grain::Sample),
        }
    }
}

/// Divides a stretch of time among parts as they have shares of it.
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

    /// That of the next, which has this share.
    fn next(&mut self, share: u64) -> (Time, Time) {
        let from = self.at();
        self.done += share;
        (from, self.at())
    }
}
