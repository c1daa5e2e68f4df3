//! The interface between a load and the clients that apply it.

use serde::{Deserialize, Serialize};

/// One request of a connection script.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RequestSpec {
    /// Content bytes of the response (its body); 0 for a response without a body, such as status 304.
    /// At most the file's size unless `dynamic`.
    pub bytes: u64,
    /// The file asked for, an index into the workload's [`FileSet`].
    pub file: u32,
    /// Microseconds the client waits after the end of the previous response on this connection (after connection
    /// establishment, for the first request) before it sends this one. Zero where `pipelined`.
    pub think_us: u32,
    /// Produced by a program and copied through the socket layer, instead of `sendfile` from the file cache.
    pub dynamic: bool,
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
            think_us: 0,
            dynamic: false,
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

/// When a client opens its next connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Demand {
    /// Infinite demand: as soon as the previous one is done (a closed loop over the concurrent clients).
    Infinite,
    /// All clients together open this many connections a second, evenly spaced, whether earlier ones are done or not
    /// (an open loop, as `httperf --rate`).
    Rate {
        /// Connections a second.
        connections_per_s: u32,
    },
}

impl Demand {
    /// Picoseconds between two connections of an open loop, `None` for infinite demand.
    pub fn interval_ps(self) -> Option<u64> {
        match self {
            Self::Infinite => None,
            Self::Rate { connections_per_s } => {
                Some(1_000_000_000_000 / u64::from(connections_per_s.max(1)))
            }
        }
    }
}

/// Limits on the bit rate of one client, counted over content bytes.
///
/// The rule: a client that began to wait for a response of `B` content bytes at time `t` (when it sent the request)
/// sends its next request no sooner than `t + B * 8 / max_bps`, on this connection or on its next one, pipelining or
/// not. A client that is slower than `min_bps` over a run does not conform; that is reported, not enforced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Throttle {
    /// Slowest conforming rate in bits per second.
    pub min_bps: u64,
    /// Fastest allowed rate in bits per second.
    pub max_bps: u64,
}

impl Throttle {
    /// Shortest allowed time from a request to the next, in nanoseconds, for a response of `bytes` content bytes.
    pub fn request_spacing_ns(&self, bytes: u64) -> u64 {
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

    /// When connections are opened.
    fn demand(&self) -> Demand {
        Demand::Infinite
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
    fn throttle_spaces_requests_by_the_fastest_rate() {
        let throttle = Throttle {
            min_bps: 320_000,
            max_bps: 400_000,
        };
        // 50,000 bytes are 400,000 bits: one second.
        assert_eq!(throttle.request_spacing_ns(50_000), 1_000_000_000);
        assert!(throttle.conforms(40_000, 1_000_000_000));
        assert!(!throttle.conforms(39_999, 1_000_000_000));
    }

    #[test]
    fn an_open_loop_has_an_interval() {
        assert_eq!(
            Demand::Rate {
                connections_per_s: 1000
            }
            .interval_ps(),
            Some(1_000_000_000)
        );
        assert_eq!(Demand::Infinite.interval_ps(), None);
    }

    #[test]
    fn a_script_entry_is_small() {
        assert!(size_of::<RequestSpec>() <= 24);
    }
}
