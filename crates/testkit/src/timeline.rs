//! Parsing of timeline files.

use baton_timeline::proto::{EventType, Trace, TrackDescriptor, TrackEvent};
use prost::Message;
use std::collections::BTreeMap;

/// A span or moment on a track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Name of the track's process, and of the track.
    pub track: (String, String),
    /// Number of the track; several rows may share a name.
    pub number: u64,
    /// Name of the event.
    pub name: String,
    /// Start, nanoseconds.
    pub from: u64,
    /// End, nanoseconds; equals `from` for a moment.
    pub to: u64,
    /// Number of spans of its track that enclose the event.
    pub depth: usize,
    /// Numeric annotations.
    pub numbers: BTreeMap<String, u64>,
    /// Text annotations.
    pub words: BTreeMap<String, String>,
}

impl Told {
    /// Returns a numeric annotation, or 0 if there is none.
    pub fn number(&self, name: &str) -> u64 {
        self.numbers.get(name).copied().unwrap_or(0)
    }
}

/// The content of a file written by a [`Writer`](baton_timeline::Writer).
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Spans, in the order in which they end.
    pub spans: Vec<Told>,
    /// Moments, in the order of the file.
    pub moments: Vec<Told>,
    /// Values with the times at which they were set, nanoseconds, by process and name.
    pub counters: BTreeMap<(String, String), Vec<(u64, i64)>>,
    /// Facts about the whole timeline.
    pub facts: BTreeMap<String, String>,
}

impl Timeline {
    /// Reads a file, and asserts that Perfetto could read it too: tracks and names are defined before they are used, events on a track are
    /// in order, and spans on a track are nested or follow each other.
    pub fn read(bytes: &[u8]) -> Self {
        let reader = Reader::read(bytes);
        let open: usize = reader.open.values().map(Vec::len).sum();
        assert_eq!(open, 0, "all spans have ended");
        reader.timeline
    }

    /// Reads a file whose writer was stopped; spans that have not ended are omitted.
    pub fn read_cut_off(bytes: &[u8]) -> Self {
        Reader::read(bytes).timeline
    }

    /// Returns the spans on the tracks of a process that have this name.
    pub fn spans_on<'a>(
        &'a self,
        process: &'a str,
        track: &'a str,
    ) -> impl Iterator<Item = &'a Told> {
        let is_on = move |told: &&Told| told.track.0 == process && told.track.1 == track;
        self.spans.iter().filter(is_on)
    }

    /// Returns the values of a counter, with their times.
    pub fn counter(&self, process: &str, name: &str) -> &[(u64, i64)] {
        let counter = self.counters.get(&(process.to_owned(), name.to_owned()));
        counter.map_or(&[], Vec::as_slice)
    }
}

#[derive(Default)]
struct Reader {
    timeline: Timeline,
    tracks: BTreeMap<u64, TrackDescriptor>,
    names: BTreeMap<u64, String>,
    /// Open spans by track. `last` has the time of the last event of each track.
    open: BTreeMap<u64, Vec<Told>>,
    last: BTreeMap<u64, u64>,
}

impl Reader {
    fn read(bytes: &[u8]) -> Self {
        let trace = Trace::decode(bytes).expect("it is a trace");
        let mut reader = Self::default();
        for packet in trace.packet {
            assert_eq!(packet.trusted_packet_sequence_id, Some(1));
            for fact in packet
                .trace_attributes
                .into_iter()
                .flat_map(|facts| facts.attribute)
            {
                let (key, words) = (fact.key(), fact.string_value());
                reader
                    .timeline
                    .facts
                    .insert(key.to_owned(), words.to_owned());
            }
            if let Some(track) = packet.track_descriptor {
                let twice = reader.tracks.insert(track.uuid(), track);
                assert_eq!(twice, None, "a track is described once");
            }
            if let Some(names) = packet.interned_data {
                for name in names.event_names {
                    reader.names.insert(name.iid(), name.name().to_owned());
                }
            }
            if let Some(event) = packet.track_event {
                reader.take(packet.timestamp.expect("a time"), &event);
            }
        }
        reader
    }

    fn track(&self, number: u64) -> (String, String) {
        let track = &self.tracks[&number];
        let process = |number| {
            let process: &TrackDescriptor = &self.tracks[&number];
            let process = process.process.as_ref().expect("a process");
            process.process_name().to_owned()
        };
        match &track.thread {
            Some(thread) => {
                let of = |track: &&TrackDescriptor| {
                    track
                        .process
                        .as_ref()
                        .is_some_and(|process| process.pid == thread.pid)
                };
                let of = self.tracks.values().find(of).expect("its process");
                (process(of.uuid()), thread.thread_name().to_owned())
            }
            None => (process(track.parent_uuid()), track.name().to_owned()),
        }
    }

    fn take(&mut self, at: u64, event: &TrackEvent) {
        let number = event.track_uuid();
        let last = self.last.insert(number, at).unwrap_or(0);
        assert!(last <= at, "{:?} is in order", self.track(number));
        let open = self.open.entry(number).or_default();
        match event.r#type() {
            EventType::SliceBegin => {
                let told = self.told(at, event);
                self.open.entry(number).or_default().push(told);
            }
            EventType::SliceEnd => {
                let begun = open.pop().expect("it has begun");
                self.timeline.spans.push(Told { to: at, ..begun });
            }
            EventType::Instant => {
                let told = self.told(at, event);
                self.timeline.moments.push(told);
            }
            EventType::Counter => {
                let name = self.track(number);
                let values = self.timeline.counters.entry(name).or_default();
                values.push((at, event.counter_value()));
            }
            EventType::Unspecified => panic!("{event:?}"),
        }
    }

    fn told(&self, at: u64, event: &TrackEvent) -> Told {
        let name = |iid: u64| self.names[&iid].clone();
        let about = || event.debug_annotations.iter();
        let numbers = about().filter_map(|one| Some((name(one.name_iid()), one.uint_value?)));
        let words =
            about().filter_map(|one| Some((name(one.name_iid()), one.string_value.clone()?)));
        Told {
            track: self.track(event.track_uuid()),
            number: event.track_uuid(),
            name: name(event.name_iid()),
            from: at,
            to: at,
            depth: self.open.get(&event.track_uuid()).map_or(0, Vec::len),
            numbers: numbers.collect(),
            words: words.collect(),
        }
    }
}
