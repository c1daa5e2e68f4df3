//! Writes a timeline while the events happen.

use crate::proto::{
    Attribute, CounterDescriptor, DebugAnnotation, EventType, INCREMENTAL_STATE_CLEARED,
    InternedData, InternedName, NEEDS_INCREMENTAL_STATE, ProcessDescriptor, ThreadDescriptor,
    TraceAttributes, TracePacket, TrackDescriptor, TrackEvent,
};
use baton_wire::Time;
use prost::Message;
use rustc_hash::FxHashMap;
use std::io::{self, Write};

/// Minimum size limit of a timeline, bytes.
pub const LEAST_BYTES: u64 = 1 << 20;
/// Part of the limit that is reserved for names, ends of spans and facts about the whole trace, bytes.
const RESERVE: u64 = 64 << 10;
/// Maximum size of the end of a span, bytes.
const END_BYTES: u64 = 40;
/// Number of bytes that are buffered before they are written to the file.
const BUFFER_BYTES: usize = 64 << 10;
/// Number of the only writer.
const SEQUENCE: u32 = 1;
/// Field of a trace that holds packets, as encoded in protocol buffers: number 1, length-delimited.
const PACKET: u8 = 0x0a;

/// A track, identified by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Track(u64);

/// A number or a text about an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number.
    Number(u64),
    /// A text.
    Words(&'a str),
}

baton_named::named! {
    /// Classes of events, the most frequent first. Events of a class are omitted when only space for the classes after it is left.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u8)]
    pub enum Grain {
        /// Pieces of work, transfers and queue lengths: written until the file is three quarters full.
        Work => "pieces of work and transfers",
        /// Events of chosen connections: written until the file is seven eighths full.
        Connection => "events of connections",
        /// Samples.
        Sample => "samples",
    }
}

/// Omitted events of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Time from which on all events were omitted, if any were.
    pub since: Option<Time>,
    /// Number of omitted events.
    pub events: u64,
}

/// Writes packets to `W`.
///
/// After an error of `W` all output is dropped; the error is kept: see [`Writer::error`].
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    limit: u64,
    written: u64,
    /// Number of open spans.
    open: u64,
    tracks: u64,
    names: FxHashMap<String, u64>,
    left_out: [LeftOut; 3],
    error: Option<io::Error>,
    /// Whole packets, so that the file never ends in half a packet, even if the process is killed.
    buffer: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Creates a writer of at most `limit` bytes, but at least [`LEAST_BYTES`], to `out`.
    pub fn new(out: W, limit: u64) -> Self {
        let mut writer = Self {
            out,
            limit: limit.max(LEAST_BYTES),
            written: 0,
            open: 0,
            tracks: 0,
            names: FxHashMap::default(),
            left_out: [LeftOut::default(); 3],
            error: None,
            buffer: Vec::new(),
        };
        writer.write(&TracePacket {
            sequence_flags: Some(INCREMENTAL_STATE_CLEARED),
            ..packet()
        });
        writer
    }

    // --- getters ---

    /// Returns the number of bytes so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Returns the events omitted because of the size limit, by class.
    pub fn left_out(&self) -> [LeftOut; 3] {
        self.left_out
    }

    /// Returns the first error of the file, once.
    ///
    /// # Errors
    /// Returns that error.
    pub fn error(&mut self) -> io::Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }

    /// Reports whether there is space for another event of this class, at time `at`. After the first refusal all later events of the class
    /// are refused, so that the trace is complete up to that point.
    pub fn admits(&mut self, grain: Grain, at: Time) -> bool {
        let limit = match grain {
            Grain::Work => self.limit / 8 * 6,
            Grain::Connection => self.limit / 8 * 7,
            Grain::Sample => self.limit,
        };
        let kept = RESERVE + END_BYTES * self.open;
        let left_out = &mut self.left_out[grain as usize];
        if left_out.since.is_none() && self.written + kept < limit {
            return true;
        }
        left_out.since = Some(left_out.since.map_or(at, |since| since.min(at)));
        left_out.events += 1;
        false
    }

    // --- tracks ---

    /// Adds a process, which contains tracks.
    pub fn process(&mut self, name: &str) -> Track {
        let pid = self.tracks as i32 + 1;
        self.track(TrackDescriptor {
            process: Some(ProcessDescriptor {
                pid: Some(pid),
                process_name: Some(name.to_owned()),
            }),
            ..TrackDescriptor::default()
        })
    }

    /// Adds a thread of a process, whose spans follow each other.
    pub fn thread(&mut self, process: Track, name: &str) -> Track {
        let tid = self.tracks as i64 + 1;
        self.track(TrackDescriptor {
            thread: Some(ThreadDescriptor {
                pid: Some(process.0 as i32),
                tid: Some(tid),
                thread_name: Some(name.to_owned()),
            }),
            ..TrackDescriptor::default()
        })
    }

    /// Adds another track of a process, for spans and moments.
    pub fn row(&mut self, process: Track, name: &str) -> Track {
        self.track(TrackDescriptor {
            name: Some(name.to_owned()),
            parent_uuid: Some(process.0),
            ..TrackDescriptor::default()
        })
    }

    /// Adds a counter of a process, with this unit; "" is for plain counts.
    pub fn counter(&mut self, process: Track, name: &str, unit: &str) -> Track {
        self.track(TrackDescriptor {
            name: Some(name.to_owned()),
            parent_uuid: Some(process.0),
            counter: Some(CounterDescriptor {
                unit_name: (!unit.is_empty()).then(|| unit.to_owned()),
            }),
            ..TrackDescriptor::default()
        })
    }

    fn track(&mut self, descriptor: TrackDescriptor) -> Track {
        self.tracks += 1;
        self.write(&TracePacket {
            track_descriptor: Some(TrackDescriptor {
                uuid: Some(self.tracks),
                ..descriptor
            }),
            ..packet()
        });
        Track(self.tracks)
    }

    // --- events, each of which is admitted before ---

    /// Begins a span on a track, which must be ended. Spans of one track must be nested or consecutive.
    pub fn begin(&mut self, track: Track, at: Time, name: &str, about: About<'_>) {
        self.open += 1;
        self.event(track, at, EventType::SliceBegin, name, about);
    }

    /// Ends the latest span on a track.
    pub fn end(&mut self, track: Track, at: Time) {
        self.open -= 1;
        let event = TrackEvent {
            r#type: Some(EventType::SliceEnd.into()),
            ..on(track)
        };
        self.write_event(at, event);
    }

    /// Writes a span on a track.
    pub fn span(&mut self, track: Track, (from, to): (Time, Time), name: &str, about: About<'_>) {
        self.begin(track, from, name, about);
        self.end(track, to);
    }

    /// Writes an event without duration.
    pub fn moment(&mut self, track: Track, at: Time, name: &str, about: About<'_>) {
        self.event(track, at, EventType::Instant, name, about);
    }

    /// Writes a new value of a counter.
    pub fn set(&mut self, counter: Track, at: Time, value: i64) {
        let event = TrackEvent {
            r#type: Some(EventType::Counter.into()),
            counter_value: Some(value),
            ..on(counter)
        };
        self.write_event(at, event);
    }

    fn event(&mut self, track: Track, at: Time, kind: EventType, name: &str, about: About<'_>) {
        let name = self.intern(name);
        let annotation = |&(name, value): &(&str, Value<'_>)| DebugAnnotation {
            name_iid: Some(self.intern(name)),
            uint_value: match value {
                Value::Number(number) => Some(number),
                Value::Words(_) => None,
            },
            string_value: match value {
                Value::Number(_) => None,
                Value::Words(words) => Some(words.to_owned()),
            },
        };
        let event = TrackEvent {
            debug_annotations: about.iter().map(annotation).collect(),
            r#type: Some(kind.into()),
            name_iid: Some(name),
            ..on(track)
        };
        self.write_event(at, event);
    }

    // --- the whole trace ---

    /// Writes facts about the whole trace. The last value of a key applies.
    pub fn facts<'a>(&mut self, facts: impl IntoIterator<Item = (&'a str, String)>) {
        let attribute = |(key, words): (&str, String)| Attribute {
            key: Some(key.to_owned()),
            string_value: Some(words),
            long_value: None,
        };
        self.write(&TracePacket {
            trace_attributes: Some(TraceAttributes {
                attribute: facts.into_iter().map(attribute).collect(),
            }),
            ..packet()
        });
    }

    /// Flushes all data to its destination.
    ///
    /// # Errors
    /// Not all data could be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.pass_on();
        self.error()?;
        self.out.flush()
    }

    fn intern(&mut self, name: &str) -> u64 {
        if let Some(&iid) = self.names.get(name) {
            return iid;
        }
        let iid = self.names.len() as u64 + 1;
        self.names.insert(name.to_owned(), iid);
        let names = vec![InternedName {
            iid: Some(iid),
            name: Some(name.to_owned()),
        }];
        self.write(&TracePacket {
            interned_data: Some(InternedData {
                event_names: names.clone(),
                debug_annotation_names: names,
            }),
            sequence_flags: Some(NEEDS_INCREMENTAL_STATE),
            ..packet()
        });
        iid
    }

    fn write_event(&mut self, at: Time, event: TrackEvent) {
        self.write(&TracePacket {
            timestamp: Some(at.as_ps() / 1_000),
            track_event: Some(event),
            sequence_flags: Some(NEEDS_INCREMENTAL_STATE),
            ..packet()
        });
    }

    fn write(&mut self, packet: &TracePacket) {
        let before = self.buffer.len();
        self.buffer.push(PACKET);
        let encoded = packet.encode_length_delimited(&mut self.buffer);
        debug_assert!(encoded.is_ok(), "writing to a vector does not fail");
        self.written += (self.buffer.len() - before) as u64;
        if self.buffer.len() >= BUFFER_BYTES {
            self.pass_on();
        }
    }

    /// Writes the buffered data to the file. An error is kept for [`Writer::flush`].
    pub fn pass_on(&mut self) {
        if self.error.is_none() {
            self.error = self.out.write_all(&self.buffer).err();
        }
        self.buffer.clear();
    }
}

/// Named numbers and texts about an event.
pub type About<'a> = &'a [(&'a str, Value<'a>)];

fn packet() -> TracePacket {
    TracePacket {
        trusted_packet_sequence_id: Some(SEQUENCE),
        ..TracePacket::default()
    }
}

fn on(track: Track) -> TrackEvent {
    TrackEvent {
        track_uuid: Some(track.0),
        ..TrackEvent::default()
    }
}
