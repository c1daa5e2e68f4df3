//! The messages of Perfetto's trace format that are used here, with the numbers of `protos/perfetto/trace` in its source. Readers leave
//! fields out that they do not know, and so does what is read by these.

use prost::Message;

/// A file: packets one behind the other, so that files can be joined.
#[derive(Clone, PartialEq, Message)]
pub struct Trace {
    /// All packets.
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// The names that are interned before are valid no more.
pub const INCREMENTAL_STATE_CLEARED: u32 = 1;
/// What follows uses names that were interned before.
pub const NEEDS_INCREMENTAL_STATE: u32 = 2;

/// One thing that is told.
#[derive(Clone, PartialEq, Message)]
pub struct TracePacket {
    /// When, nanoseconds.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// Who writes: names are interned for each.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    /// Something happens.
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    /// Names that are used from here on.
    #[prost(message, optional, tag = "12")]
    pub interned_data: Option<InternedData>,
    /// See [`INCREMENTAL_STATE_CLEARED`].
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    /// A track comes to be.
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
    /// What is known of all of it; of the same key the last counts.
    #[prost(message, optional, tag = "126")]
    pub trace_attributes: Option<TraceAttributes>,
}

/// A track.
#[derive(Clone, PartialEq, Message)]
pub struct TrackDescriptor {
    /// Its number.
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    /// Its name. Siblings of one name are shown as one.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// It is a process.
    #[prost(message, optional, tag = "3")]
    pub process: Option<ProcessDescriptor>,
    /// It is a thread.
    #[prost(message, optional, tag = "4")]
    pub thread: Option<ThreadDescriptor>,
    /// The track that it belongs to.
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    /// It has values.
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
}

/// A process.
#[derive(Clone, PartialEq, Message)]
pub struct ProcessDescriptor {
    /// Its number.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Its name.
    #[prost(string, optional, tag = "6")]
    pub process_name: Option<String>,
}

/// A thread.
#[derive(Clone, PartialEq, Message)]
pub struct ThreadDescriptor {
    /// The number of its process.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Its own.
    #[prost(int64, optional, tag = "2")]
    pub tid: Option<i64>,
    /// Its name.
    #[prost(string, optional, tag = "5")]
    pub thread_name: Option<String>,
}

/// What the values of a counter are.
#[derive(Clone, PartialEq, Message)]
pub struct CounterDescriptor {
    /// Their unit.
    #[prost(string, optional, tag = "6")]
    pub unit_name: Option<String>,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum EventType {
    /// Nobody has said.
    Unspecified = 0,
    /// A span begins.
    SliceBegin = 1,
    /// The span that began last on its track ends.
    SliceEnd = 2,
    /// Something that takes no time.
    Instant = 3,
    /// A counter has another value.
    Counter = 4,
}

/// Something happens on a track.
#[derive(Clone, PartialEq, Message)]
pub struct TrackEvent {
    /// Numbers and words about it.
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    /// What.
    #[prost(enumeration = "EventType", optional, tag = "9")]
    pub r#type: Option<i32>,
    /// The number of its interned name.
    #[prost(uint64, optional, tag = "10")]
    pub name_iid: Option<u64>,
    /// Where.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    /// A counter's value.
    #[prost(int64, optional, tag = "30")]
    pub counter_value: Option<i64>,
}

/// A number or words.
#[derive(Clone, PartialEq, Message)]
pub struct DebugAnnotation {
    /// The number of its interned name.
    #[prost(uint64, optional, tag = "1")]
    pub name_iid: Option<u64>,
    /// The number.
    #[prost(uint64, optional, tag = "3")]
    pub uint_value: Option<u64>,
    /// The words.
    #[prost(string, optional, tag = "6")]
    pub string_value: Option<String>,
}

/// Names by their numbers.
#[derive(Clone, PartialEq, Message)]
pub struct InternedData {
    /// Of events.
    #[prost(message, repeated, tag = "2")]
    pub event_names: Vec<InternedName>,
    /// Of what is told about them.
    #[prost(message, repeated, tag = "3")]
    pub debug_annotation_names: Vec<InternedName>,
}

/// A name by its number: Perfetto's `EventName`, and its `DebugAnnotationName`.
#[derive(Clone, PartialEq, Message)]
pub struct InternedName {
    /// The number.
    #[prost(uint64, optional, tag = "1")]
    pub iid: Option<u64>,
    /// The name.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
}

/// What is known of all of a trace.
#[derive(Clone, PartialEq, Message)]
pub struct TraceAttributes {
    /// One by one.
    #[prost(message, repeated, tag = "1")]
    pub attribute: Vec<Attribute>,
}

/// One fact; `metadata` of `trace_processor` has it as `trace_attribute.KEY`.
#[derive(Clone, PartialEq, Message)]
pub struct Attribute {
    /// What it is about.
    #[prost(string, optional, tag = "1")]
    pub key: Option<String>,
    /// A number.
    #[prost(int64, optional, tag = "2")]
    pub long_value: Option<i64>,
    /// Words.
    #[prost(string, optional, tag = "3")]
    pub string_value: Option<String>,
}
