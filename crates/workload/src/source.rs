//! The interface between a load and the clients that apply it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Picoseconds in a second.
pub(crate) const SECOND_PS: u64 = 1_000_000_000_000;

/// Source of a response's content; the dynamic kinds are those of SPECweb99 (its white paper, 4.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// The file, from the file cache by `sendfile`.
    #[default]
    Static,
    /// The server produces the content without a file; it is copied through the socket layer.
    Produced,
    /// A program in the server embeds the file in a page, which is copied through the socket layer.
    Get,
    /// Like [`Content::Get`], by a program that is started for the request.
    CgiGet,
    /// Like [`Content::Get`], with an advertisement that suits the client's cookie.
    AdRotation,
    /// The data from the client is appended to a log; the response is like that to [`Content::Get`].
    Post,
}

/// One request of a connection script.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RequestSpec {
    /// Content bytes of the response (its body); 0 for a response without a body, such as status 304. At most the file's size plus what the
    /// program adds.
    pub bytes: u64,
    /// The requested file, an index into the workload's [`FileSet`].
    pub file: u32,
    /// Time after the preceding event at which this request is due, picoseconds; [`Demand`] defines that event. Zero if `pipelined`.
    pub wait_ps: u64,
    /// Source of the content.
    #[serde(default)]
    pub content: Content,
    /// Whether the request is sent together with the previous one of the connection, without waiting for its response. Never set on the
    /// first request of a connection.
    pub pipelined: bool,
    /// Whether the client writes `bytes` of the file instead of reading them. Only servers of remote files accept writes.
    #[serde(default)]
    pub write: bool,
    /// Whether the client says that this is its last request on the connection, so that the server closes it after the response. Otherwise
    /// the client closes after its last response.
    #[serde(default)]
    pub last: bool,
}

impl RequestSpec {
    /// Creates a static request for the first `bytes` bytes of `file`, sent immediately after the previous response.
    pub const fn fixed(file: u32, bytes: u64) -> Self {
        Self {
            bytes,
            file,
            wait_ps: 0,
            content: Content::Static,
            pipelined: false,
            write: false,
            last: false,
        }
    }
}

/// Sizes of a workload's files by number, as a server's file cache needs them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct FileSet {
    sizes: Vec<u64>,
}

impl FileSet {
    /// Creates files numbered from 0, with their sizes in bytes.
    pub const fn new(sizes: Vec<u64>) -> Self {
        Self { sizes }
    }

    /// Returns the number of files.
    pub const fn len(&self) -> usize {
        self.sizes.len()
    }

    /// Returns whether there are no files.
    pub const fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    /// Returns the size of `file` in bytes.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn size(&self, file: u32) -> u64 {
        self.sizes[file as usize]
    }

    /// Returns all sizes in bytes, in order of file number.
    pub fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// Returns the sum of all sizes in bytes, which is the size of a cache without misses.
    pub fn footprint(&self) -> u64 {
        self.sizes.iter().sum()
    }
}

/// Event from which [`RequestSpec::wait_ps`] counts until a request is due (the terms are those of Schroeder, Wierman and Harchol-Balter,
/// *Open Versus Closed: A Cautionary Tale*, NSDI 2006).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Demand {
    /// A closed loop over the concurrent clients: each waits after its previous response, or before it opens its next connection. Without
    /// waits, demand is infinite.
    Closed,
    /// Connections come whether earlier ones are done or not (like `httperf --rate`): the first request of each is due after that of the
    /// previous connection. The others wait for the previous response.
    PartlyOpen,
    /// Requests come whether earlier ones are done or not: the first request of a connection is due after that of the previous connection,
    /// each further one after the previous request of its connection was due.
    Open,
}

/// Limits on the bit rate of one client, counted over content bytes.
///
/// If clients read data as it arrives, the rule is: a client that began to wait for a response of `B` content bytes at time `t` (when it
/// sent the request) sends its next request no sooner than `t + B * 8 / max_bps`, on this connection or on its next one, pipelining or not.
/// If clients read in pieces, each piece takes its time, and the next request follows the last piece: a full window holds up a long
/// response. A client that is slower than `min_bps` over a run does not conform; that is reported, not enforced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Throttle {
    /// Slowest conforming rate in bits per second.
    pub min_bps: u64,
    /// Fastest allowed rate in bits per second.
    #[schemars(range(min = 1))]
    pub max_bps: u64,
    /// Number of bytes that a client reads at a time; 0 if it reads data as it arrives.
    pub read_bytes: u32,
}

/// The limits of SPECweb99, whose clients read a segment at a time (handoff policies paper, section 4.2; SPECweb99's white paper, 4.2).
impl Default for Throttle {
    fn default() -> Self {
        Self {
            min_bps: 320_000,
            max_bps: 400_000,
            read_bytes: 1_460,
        }
    }
}

impl Throttle {
    /// Returns the time that `bytes` bytes take at the fastest allowed rate, nanoseconds.
    pub fn time_ns(&self, bytes: u64) -> u64 {
        let bits_ns = u128::from(bytes) * 8 * 1_000_000_000;
        u64::try_from(bits_ns / u128::from(self.max_bps.max(1))).unwrap_or(u64::MAX)
    }

    /// Returns whether `bytes` content bytes received in `elapsed_ns` meet the slowest conforming rate.
    pub fn conforms(&self, bytes: u64, elapsed_ns: u64) -> bool {
        u128::from(bytes) * 8 * 1_000_000_000 >= u128::from(self.min_bps) * u128::from(elapsed_ns)
    }
}

/// A source of connection scripts.
///
/// A client opens a connection, performs the requests of its script, closes the connection and asks for the next script. The supply never
/// ends. Scripts come in one global order that does not depend on which client asks, so that two server configurations see the same load.
pub trait Workload {
    /// Replaces the content of `script` with the requests of the next connection, at least one. Does not allocate once `script` has the
    /// capacity for the longest connection.
    fn next_connection(&mut self, script: &mut Vec<RequestSpec>);

    /// Returns the requested files.
    fn files(&self) -> &FileSet;

    /// Returns all requests of one pass over a log, of all replayers; empty for a load without passes.
    fn references(&self) -> &[RequestSpec] {
        &[]
    }

    /// Returns the number of connections on which this replayer replays its part of one pass over a log; 0 for a load without passes.
    fn connections_in_pass(&self) -> u64 {
        0
    }

    /// Returns the mean number of requests on a connection.
    fn requests_per_connection(&self) -> f64;

    /// Returns when requests are due.
    fn demand(&self) -> Demand {
        Demand::Closed
    }

    /// Returns the limits on each client's bit rate, or `None` if clients receive at any rate.
    fn throttle(&self) -> Option<Throttle> {
        None
    }
}

impl<W: Workload + ?Sized> Workload for Box<W> {
    fn next_connection(&mut self, script: &mut Vec<RequestSpec>) {
        (**self).next_connection(script);
    }

    fn files(&self) -> &FileSet {
        (**self).files()
    }

    fn references(&self) -> &[RequestSpec] {
        (**self).references()
    }

    fn connections_in_pass(&self) -> u64 {
        (**self).connections_in_pass()
    }

    fn requests_per_connection(&self) -> f64 {
        (**self).requests_per_connection()
    }

    fn demand(&self) -> Demand {
        (**self).demand()
    }

    fn throttle(&self) -> Option<Throttle> {
        (**self).throttle()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_their_time_at_the_fastest_rate() {
        let throttle = Throttle::default();
        // 50,000 bytes are 400,000 bits: one second.
        assert_eq!(throttle.time_ns(50_000), 1_000_000_000);
        assert!(throttle.conforms(40_000, 1_000_000_000));
        assert!(!throttle.conforms(39_999, 1_000_000_000));
    }

    #[test]
    fn a_script_entry_is_small() {
        assert!(size_of::<RequestSpec>() <= 24);
    }
}
