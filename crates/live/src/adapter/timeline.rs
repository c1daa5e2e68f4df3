//! What an adapter does, as a timeline: turns of its loop, its counters, and chosen connections.

use super::service::AdapterService;
use crate::engine::Engine;
use crate::port::Port;
use crate::snapshot::Snapshot;
use baton_timeline::{
    ConnectionTracks, Counters, Grain, Sampling, Summary, Track, Value, Way, Window, Within, Writer,
};
use baton_wire::{Endpoint, Span, Time, decode_frame_unverified};
use rustc_hash::FxHashSet;
use std::fs::File;
use std::io;
use std::path::Path;

/// Interval between two samples of the counters.
const SAMPLE_EVERY: Span = Span::from_ms(10);
/// Maximum time until a recorded event is in the file. A killed process loses at most the events of this time.
const FLUSH_EVERY: Span = Span::from_secs(1);
/// Label of a connection until it is known whether it is on the host or on the adapter.
const ARRIVING: &str = "arriving";

/// Writes a timeline of an adapter. Times are those of its engine.
pub struct AdapterTimeline {
    writer: Writer<File>,
    window: Window,
    connections: ConnectionTracks,
    engine: Track,
    counters: Counters,
    /// Frames received and sent, requests and responses, as of the last turn.
    moved: [u64; 4],
    /// Connections that came from hosts and went back, as of the last look.
    imports_and_exports: (u64, u64),
    sample_at: Time,
    flush_at: Time,
}

impl AdapterTimeline {
    /// Creates the file and starts writing.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: &Path, sampling: &Sampling) -> io::Result<Self> {
        let mut writer = Writer::new(File::create(path)?, sampling.most_bytes);
        let process = writer.process("adapter");
        let engine = writer.thread(process, "engine");
        let connections = writer.process("connections");
        let mut connections = ConnectionTracks::new(sampling.connections, connections, ARRIVING);
        connections.know_midway();
        let mut window = Window::new(sampling);
        window.begin(Time::ZERO);
        Ok(Self {
            writer,
            window,
            connections,
            engine,
            counters: Counters::new(process, Grain::Sample),
            moved: [0; 4],
            imports_and_exports: (0, 0),
            sample_at: Time::ZERO,
            flush_at: Time::ZERO,
        })
    }

    /// Records a frame that was received from the link or is being sent to it.
    pub(super) fn frame(&mut self, now: Time, way: Way, frame: &[u8]) {
        let Ok((packet, data)) = decode_frame_unverified(frame) else {
            return;
        };
        let client = match way {
            Way::In => packet.src,
            Way::Out => packet.dst,
        };
        let (connections, mut to) = self.connections(now);
        connections.segment(&mut to, client, way, &packet.header, data.len() as u32);
    }

    /// Records that a turn of the loop has ended.
    pub(super) fn turn<T: Port>(
        &mut self,
        (from, to): (Time, Time),
        engine: &Engine<T>,
        service: &AdapterService,
    ) {
        let (inet, adapter) = (engine.host().interface().stats(), service.adapter().stats());
        let moved = [
            inet.frames_received,
            inet.frames_sent,
            adapter.requests,
            adapter.responses,
        ];
        let before = std::mem::replace(&mut self.moved, moved);
        let is_open = self.window.opened(from).is_some();
        if is_open && moved != before && self.writer.admits(Grain::Work, from) {
            let number = |place: usize| Value::Number(moved[place] - before[place]);
            let about = [
                ("frames_in", number(0)),
                ("frames_out", number(1)),
                ("requests", number(2)),
                ("responses", number(3)),
            ];
            self.writer.span(self.engine, (from, to), "turn", &about);
        }
        let imports_and_exports = (adapter.imported, adapter.exported);
        let is_due = self.sample_at <= to;
        if self.imports_and_exports != imports_and_exports || is_due {
            self.imports_and_exports = imports_and_exports;
            self.settle(to, engine);
        }
        if is_due {
            self.sample_at = to + SAMPLE_EVERY;
            self.sample(to, engine, service);
        }
    }

    /// Records where each connection lives.
    fn settle<T: Port>(&mut self, now: Time, engine: &Engine<T>) {
        let stack = engine.host().stack();
        let here: FxHashSet<Endpoint> = stack
            .connections()
            .map(|conn| stack.flow(conn).remote)
            .collect();
        let (connections, mut to) = self.connections(now);
        connections.settle(&mut to, |client| match here.contains(&client) {
            true => "on the adapter",
            false => "on the host",
        });
    }

    /// Records the counters that `baton live stat` shows.
    fn sample<T: Port>(&mut self, now: Time, engine: &Engine<T>, service: &AdapterService) {
        let Some(opened) = self.window.opened(now) else {
            return;
        };
        let here = engine.host().stack().len() as u64;
        let of_stack = [("connections".to_owned(), here)];
        for (name, value) in Snapshot::counters(engine, service)
            .into_iter()
            .chain(of_stack)
        {
            self.counters
                .set(&mut self.writer, (opened, now), (&name, ""), value);
        }
        if self.flush_at <= now {
            self.flush_at = now + FLUSH_EVERY;
            self.writer.pass_on();
        }
    }

    /// Completes the file and returns a summary of it.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn finish(mut self, now: Time) -> io::Result<Option<Summary>> {
        let (connections, mut to) = self.connections(now);
        connections.finish(&mut to);
        let summary = Summary::of(&self.writer, &self.window, &self.connections, now);
        if let Some(summary) = &summary {
            self.writer.facts(summary.facts());
        }
        self.writer.flush().map(|()| summary)
    }

    fn connections(&mut self, now: Time) -> (&mut ConnectionTracks, Within<'_, File>) {
        let within = Within::new(now, &mut self.writer, &mut self.window);
        (&mut self.connections, within)
    }
}
