//! The messages of Perfetto's trace format that are used here, with the field numbers of `protos/perfetto/trace` in its source. Readers
//! ignore unknown fields, and so do readers that use these messages.

use prost::Message;

/// A file. Packets are concatenated, so files can be joined.
#[derive(Clone, PartialEq, Message)]
pub struct Trace {
    /// All packets.
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// Invalidates all names that were interned before.
pub const INCREMENTAL_STATE_CLEARED: u32 = 1;
/// Declares that the packet uses names that were interned before.
pub const NEEDS_INCREMENTAL_STATE: u32 = 2;

/// One item of a trace.
#[derive(Clone, PartialEq, Message)]
pub struct TracePacket {
    /// Time, nanoseconds.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// The writer, for which names are interned.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    /// An event.
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    /// Names that are used from here on.
    #[prost(message, optional, tag = "12")]
    pub interned_data: Option<InternedData>,
    /// See [`INCREMENTAL_STATE_CLEARED`].
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    /// A new track.
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
    /// Facts about the whole trace; the last value of a key applies.
    #[prost(message, optional, tag = "126")]
    pub trace_attributes: Option<TraceAttributes>,
}

/// A track.
#[derive(Clone, PartialEq, Message)]
pub struct TrackDescriptor {
    /// Number of the track.
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    /// Name of the track. Siblings with the same name are displayed as one.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// Set if the track is a process.
    #[prost(message, optional, tag = "3")]
    pub process: Option<ProcessDescriptor>,
    /// Set if the track is a thread.
    #[prost(message, optional, tag = "4")]
    pub thread: Option<ThreadDescriptor>,
    /// Parent track.
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    /// Set if the track is a counter.
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
}

/// A process.
#[derive(Clone, PartialEq, Message)]
pub struct ProcessDescriptor {
    /// Number of the process.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Name of the process.
    #[prost(string, optional, tag = "6")]
    pub process_name: Option<String>,
}

/// A thread.
#[derive(Clone, PartialEq, Message)]
pub struct ThreadDescriptor {
    /// Number of the thread's process.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Number of the thread.
    #[prost(int64, optional, tag = "2")]
    pub tid: Option<i64>,
    /// Name of the thread.
    #[prost(string, optional, tag = "5")]
    pub thread_name: Option<String>,
}

/// Description of the values of a counter.
#[derive(Clone, PartialEq, Message)]
pub struct CounterDescriptor {
    /// Unit of the values.
    #[prost(string, optional, tag = "6")]
    pub unit_name: Option<String>,
}

/// Type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum EventType {
    /// The type is not specified.
    Unspecified = 0,
    /// A span begins.
    SliceBegin = 1,
    /// The span that began last on its track ends.
    SliceEnd = 2,
    /// An event without duration.
    Instant = 3,
    /// A counter changes its value.
    Counter = 4,
}

/// An event on a track.
#[derive(Clone, PartialEq, Message)]
pub struct TrackEvent {
    /// Numbers and texts about the event.
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    /// Type of the event.
    #[prost(enumeration = "EventType", optional, tag = "9")]
    pub r#type: Option<i32>,
    /// Number of the event's interned name.
    #[prost(uint64, optional, tag = "10")]
    pub name_iid: Option<u64>,
    /// Track of the event.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    /// Value of a counter.
    #[prost(int64, optional, tag = "30")]
    pub counter_value: Option<i64>,
}

/// A number or a text.
#[derive(Clone, PartialEq, Message)]
pub struct DebugAnnotation {
    /// Number of the annotation's interned name.
    #[prost(uint64, optional, tag = "1")]
    pub name_iid: Option<u64>,
    /// The number.
    #[prost(uint64, optional, tag = "3")]
    pub uint_value: Option<u64>,
    /// The text.
    #[prost(string, optional, tag = "6")]
    pub string_value: Option<String>,
}

/// Names by their numbers.
#[derive(Clone, PartialEq, Message)]
pub struct InternedData {
    /// Names of events.
    #[prost(message, repeated, tag = "2")]
    pub event_names: Vec<InternedName>,
    /// Names of annotations.
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

/// Facts about the whole trace.
#[derive(Clone, PartialEq, Message)]
pub struct TraceAttributes {
    /// The facts.
    #[prost(message, repeated, tag = "1")]
    pub attribute: Vec<Attribute>,
}

/// One fact, which is in `metadata` of `trace_processor` as `trace_attribute.KEY`.
#[derive(Clone, PartialEq, Message)]
pub struct Attribute {
    /// Name of the fact.
    #[prost(string, optional, tag = "1")]
    pub key: Option<String>,
    /// A number.
    #[prost(int64, optional, tag = "2")]
    pub long_value: Option<i64>,
    /// A text.
    #[prost(string, optional, tag = "3")]
    pub string_value: Option<String>,
}
