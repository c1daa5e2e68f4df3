//! The interface between a load and the clients that apply it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Picoseconds in a second.
pub(crate) const SECOND_PS: u64 = 1_000_000_000_000;

/// Where the content of a response comes from; the dynamic kinds are those of SPECweb99 (its white paper, 4.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// The file, from the file cache by `sendfile`.
    #[default]
    Static,
    /// The server produces it of nothing; it is copied through the socket layer.
    Produced,
    /// A program in the server puts the file into a page, which is copied through the socket layer.
    Get,
    /// The same by a program that is started for the request.
    CgiGet,
    /// Like [`Content::Get`], with an advertisement that suits the client's cookie.
    AdRotation,
    /// What the client sent is entered in a log; the answer is like that to [`Content::Get`].
    Post,
}

/// One request of a connection script.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RequestSpec {
    /// Content bytes of the response (its body); 0 for a response without a body, such as status 304.
    /// At most the file's size, and what the program adds to it.
    pub bytes: u64,
    /// The file asked for, an index into the workload's [`FileSet`].
    pub file: u32,
    /// How long after what comes before it this request is due, picoseconds; [`Demand`] says what that is. Zero where `pipelined`.
    pub wait_ps: u64,
    /// Where the content comes from.
    #[serde(default)]
    pub content: Content,
    /// Sent together with the previous request of the connection, without waiting for that one's response.
    /// Never set on the first request of a connection.
    pub pipelined: bool,
    /// The client writes `bytes` of the file instead of reading them. Only servers of remote files take writes.
    #[serde(default)]
    pub write: bool,
}

impl RequestSpec {
    /// A static request for the first `bytes` bytes of `file`, sent at once after the previous response.
    pub const fn fixed(file: u32, bytes: u64) -> Self {
        Self {
            bytes,
            file,
            wait_ps: 0,
            content: Content::Static,
            pipelined: false,
            write: false,
        }
    }
}

/// The files a workload asks for: file number to size. What a server's file cache has to know.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct FileSet {
    sizes: Vec<u64>,
}

impl FileSet {
    /// Files numbered from 0, with their sizes in bytes.
    pub const fn new(sizes: Vec<u64>) -> Self {
        Self { sizes }
    }

    /// Number of files.
    pub const fn len(&self) -> usize {
        self.sizes.len()
    }

    /// True if there is no file.
    pub const fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    /// Size of `file` in bytes.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn size(&self, file: u32) -> u64 {
        self.sizes[file as usize]
    }

    /// All sizes in bytes, in order of file number.
    pub fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// Sum of all sizes in bytes: what a cache that misses nothing has to hold.
    pub fn footprint(&self) -> u64 {
        self.sizes.iter().sum()
    }
}

/// When the requests of a load are due: each [`RequestSpec::wait_ps`] after what comes before it (the terms are those of Schroeder,
/// Wierman and Harchol-Balter, *Open Versus Closed: A Cautionary Tale*, NSDI 2006).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Demand {
    /// A closed loop over the concurrent clients: each waits after its previous response, or before it opens its next connection. Without
    /// waits it is infinite demand.
    Closed,
    /// Connections come whether earlier ones are done or not (as `httperf --rate`): the first request of each is due after that of the
    /// connection before. The others wait for the previous response.
    PartlyOpen,
    /// Requests come whether earlier ones are done or not: the first request of a connection is due after that of the connection before, each
    /// further one after the previous request of its connection was due.
    Open,
}

/// Limits on the bit rate of one client, counted over content bytes.
///
/// The rule, where clients take what comes: one that began to wait for a response of `B` content bytes at time `t` (when it sent the request)
/// sends its next request no sooner than `t + B * 8 / max_bps`, on this connection or on its next one, pipelining or
/// not. Where they read in pieces, each piece takes its time, and the next request follows the last: a long response is held up by a full
/// window. A client that is slower than `min_bps` over a run does not conform; that is reported, not enforced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Throttle {
    /// Slowest conforming rate in bits per second.
    pub min_bps: u64,
    /// Fastest allowed rate in bits per second.
    #[schemars(range(min = 1))]
    pub max_bps: u64,
    /// What a client reads at a time, bytes; absent if it takes what comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub read_bytes: Option<u32>,
}

impl Throttle {
    /// The time that `bytes` bytes take at the fastest allowed rate, nanoseconds.
    pub fn time_ns(&self, bytes: u64) -> u64 {
        let bits_ns = u128::from(bytes) * 8 * 1_000_000_000;
        u64::try_from(bits_ns / u128::from(self.max_bps.max(1))).unwrap_or(u64::MAX)
    }

    /// True if `bytes` content bytes received in `elapsed_ns` meet the slowest conforming rate.
    pub fn conforms(&self, bytes: u64, elapsed_ns: u64) -> bool {
        u128::from(bytes) * 8 * 1_000_000_000 >= u128::from(self.min_bps) * u128::from(elapsed_ns)
    }
}

/// A source of connection scripts.
///
/// A client opens a connection, performs the requests of its script, closes the connection and asks for the next.
/// The supply never ends. Scripts come in one global order that does not depend on which client asks, so two server
/// configurations see the same load.
pub trait Workload {
    /// Replaces the content of `script` by the requests of the next connection, at least one.
    /// Allocates nothing once `script` is as long as the longest connection.
    fn next_connection(&mut self, script: &mut Vec<RequestSpec>);

    /// The files asked for.
    fn files(&self) -> &FileSet;

    /// All requests of one pass over a log, whoever replays them; none where a load has no end of its own.
    fn references(&self) -> &[RequestSpec] {
        &[]
    }

    /// Connections on which this replayer replays its part of one pass over a log; 0 where a load has no end of its own.
    fn connections_in_pass(&self) -> u64 {
        0
    }

    /// Requests of a connection in the mean.
    fn requests_per_connection(&self) -> f64;

    /// When requests are due.
    fn demand(&self) -> Demand {
        Demand::Closed
    }

    /// Limits on each client's bit rate, `None` if clients take what they get.
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
        let throttle = Throttle {
            min_bps: 320_000,
            max_bps: 400_000,
            read_bytes: None,
        };
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
