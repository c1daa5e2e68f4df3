//! Records the activity of the machine.

mod processors;

use super::super::server::BusTransfer;
use super::Timeline;
use crate::config::Experiment;
use crate::results::Sample;
use baton_host::layer::Move;
use baton_tcp::Segment;
use baton_timeline::{
    ConnectionTracks, Counters, Grain, Summary, Track, Value, Way, Window, Within, Writer,
};
use baton_wire::{Endpoint, Symbolic, Time};
use processors::{HostTracks, NicTracks};
use std::fs::File;
use std::io;

/// Initial place of connections.
const HOST: &str = "on the host";

/// Writes a timeline.
pub(in super::super) struct Recorder {
    writer: Writer<File>,
    window: Window,
    connections: ConnectionTracks,
    host: HostTracks,
    nics: Vec<NicTracks>,
    /// Rows for transfers, by device, with the disks' controller last, and the time at which each row is free. Transfers in one row do not
    /// overlap.
    bus: Vec<(String, Vec<(Track, Time)>)>,
    bus_process: Track,
    samples: Counters,
}

impl Recorder {
    /// Starts a timeline of this experiment.
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
            host,
            nics,
            bus: devices.map(|name| (name, Vec::new())).collect(),
            bus_process,
            samples: Counters::new(server, Grain::Sample),
            writer,
        })
    }

    /// Starts the measurement, and with it the window unless it is configured otherwise. Counters are reset.
    pub(in super::super) fn restart_counts(&mut self, now: Time) {
        self.window.begin(now);
        self.host.layers = Default::default();
        self.host.interrupts_before = 0;
        for nic in &mut self.nics {
            nic.done = Default::default();
        }
    }

    // --- the bus ---

    /// Records a completed transfer.
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
        let within = Within::new(now, &mut self.writer, &mut self.window);
        (&mut self.connections, within)
    }

    /// Records a frame at a NIC, and returns the client of its connection.
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

    /// Records that a frame of a client's connection was lost, with `name` as the reason.
    pub(in super::super) fn lost(&mut self, now: Time, client: Endpoint, name: &'static str) {
        let (connections, mut to) = self.connections(now);
        connections.lost(&mut to, client, name);
    }

    /// Records progress of a client's moving connection.
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

    /// Records a point of the time series, and other values of the host and of each NIC, by name and unit.
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

    /// Ends the timeline and returns its summary, or `None` if its window has not opened.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(in super::super) fn finish(
        &mut self,
        now: Time,
        experiment: &Experiment,
        commit: &str,
    ) -> io::Result<Option<Summary>> {
        let (connections, mut within) = self.connections(now);
        connections.finish(&mut within);
        let summary = Summary::of(&self.writer, &self.window, &self.connections, now);
        let Some(summary) = summary else {
            return Ok(None);
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

    /// Returns the first error of the file, once.
    pub(in super::super) fn error(&mut self) -> io::Result<()> {
        self.writer.error()
    }
}

/// Name, unit and value of a quantity that is sampled.
pub(in super::super) type Gauge = (String, &'static str, u64);
