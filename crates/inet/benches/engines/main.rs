//! Compares Baton with smoltcp. Each engine runs two hosts, which exchange Ethernet frames in memory, and compute and verify checksums on both
//! sides.
//!
//! Runs of the two engines alternate, so that other load on the machine affects both alike, and each figure is the median of its runs. A run
//! uses one core, and its time is that of both ends together.
//!
//! Both engines use their own defaults except for the sizes of buffers, and both are compiled together with this program. In detail:
//!
//! - Frames have at most 1514 bytes. Baton's data segments hold 1448 bytes, because each carries timestamps; smoltcp's hold 1460.
//! - With both engines, frames move in memory without a copy, and one end sends everything that it may send before the other end runs, so
//!   that one acknowledgment covers many segments. Baton receives the frames as a batch, and merges consecutive segments. An application
//!   writes its response as soon as it has the whole request, and the response is sent before time passes. Both engines send two frames
//!   for each request.
//! - Baton reports which connections have data to read. smoltcp's sockets are checked one by one, by the application and by smoltcp itself,
//!   which is most of what the figure with many connections shows.
//! - Applications write constant data. smoltcp copies it into its buffer; Baton refers to it (`Bytes::from_static`, which counts no
//!   references).
//! - smoltcp copies data three times: from the application into its buffer, into the frame, and out of the frame into its buffer. Baton
//!   copies data once, into the frame. With both, applications look at received data in place.
//! - Both compute and verify the checksums of IP and TCP headers and data in software: Baton in the widest registers that the processor has,
//!   smoltcp in those that the compiler assumes by default.
//! - Baton controls congestion (CUBIC), detects losses by time and measures the round trips of all segments. smoltcp's congestion control is
//!   off, which is its default.

mod baton;
mod smol;

use std::time::Instant;

/// Number of runs of each engine for one figure.
const RUNS: usize = 7;

/// Length of a request in bytes.
pub const REQUEST_LEN: usize = 128;

/// Length of a response in bytes.
pub const RESPONSE_LEN: usize = 1024;

/// Length of the largest frame in bytes, without the frame check sequence.
pub const FRAME_LEN: usize = 1514;

/// Two hosts with connections between them, and their applications.
pub trait Pair {
    /// Establishes `connections` connections, each with send and receive buffers of `buffer_len` bytes at both ends.
    fn new(connections: usize, buffer_len: usize) -> Self;

    /// Sends `len` bytes from the client to the server on the first connection.
    fn bulk(&mut self, len: u64);

    /// Sends requests on every connection, each after the response to the previous one, until `count` requests are answered.
    fn requests(&mut self, count: u64);
}

/// What the applications do.
#[derive(Clone, Copy)]
enum Load {
    Bulk,
    Requests,
}

/// One line of the table.
struct Figure {
    what: String,
    load: Load,
    connections: usize,
    buffer_len: usize,
    /// Number of bytes or requests in one run.
    amount: u64,
}

impl Figure {
    fn bulk(name: &str, buffer_len: usize) -> Self {
        Self {
            what: format!("bulk, buffers of {name}"),
            load: Load::Bulk,
            connections: 1,
            buffer_len,
            amount: 128 << 20,
        }
    }

    fn requests(connections: usize) -> Self {
        Self {
            what: format!("requests, {connections} connections"),
            load: Load::Requests,
            connections,
            buffer_len: 64 << 10,
            amount: 100_000,
        }
    }

    fn work<P: Pair>(&self, pair: &mut P, amount: u64) {
        match self.load {
            Load::Bulk => pair.bulk(amount),
            Load::Requests => pair.requests(amount),
        }
    }

    /// Returns the duration of one run in seconds, without the time for creating the pair and for a first run with a tenth of the amount.
    fn run<P: Pair>(&self) -> f64 {
        let mut pair = P::new(self.connections, self.buffer_len);
        self.work(&mut pair, self.amount / 10);
        let start = Instant::now();
        self.work(&mut pair, self.amount);
        start.elapsed().as_secs_f64()
    }

    /// Returns the rate in Gbit/s or in thousands of requests per second.
    fn rate(&self, times: Vec<f64>) -> f64 {
        let per_second = self.amount as f64 / median(times);
        match self.load {
            Load::Bulk => per_second * 8e-9,
            Load::Requests => per_second * 1e-3,
        }
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let figures = [
        Figure::bulk("64 KiB", 64 << 10),
        Figure::bulk("1 MiB", 1 << 20),
        Figure::requests(1),
        Figure::requests(100),
    ];
    // For a profiler: the first argument is the name of a figure, the second one the number of its runs (50 by default). They are runs of
    // Baton, or of smoltcp if that is the third argument.
    let mut arguments = std::env::args().skip(1);
    if let Some(name) = arguments.next().filter(|name| !name.starts_with('-')) {
        let runs = arguments
            .next()
            .map_or(50, |runs| runs.parse().expect("a number of runs"));
        let other = arguments.next().is_some_and(|engine| engine == "smoltcp");
        let named = figures
            .iter()
            .filter(|figure| figure.what.starts_with(&name));
        for figure in named {
            for _ in 0..runs {
                match other {
                    true => figure.run::<smol::Hosts>(),
                    false => figure.run::<baton::Hosts>(),
                };
            }
        }
        return;
    }
    println!(
        "{:<26} {:>9} {:>9} {:<9} {:>6}",
        "", "baton", "smoltcp", "", "ratio"
    );
    for figure in figures {
        let mut times = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            times.0.push(figure.run::<baton::Hosts>());
            times.1.push(figure.run::<smol::Hosts>());
        }
        let (baton, smoltcp) = (figure.rate(times.0), figure.rate(times.1));
        let unit = match figure.load {
            Load::Bulk => "Gbit/s",
            Load::Requests => "1000/s",
        };
        let ratio = baton / smoltcp;
        println!(
            "{:<26} {baton:>9.2} {smoltcp:>9.2} {unit:<9} {ratio:>6.2}",
            figure.what
        );
    }
}
