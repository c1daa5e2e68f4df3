//! Baton beside smoltcp: two hosts each, joined by Ethernet frames in memory, checksums made and verified on both sides.
//!
//! Runs of the two take turns, so that a busy machine disturbs both alike, and each figure is the median of its runs. One
//! core; the time is that of both ends together.
//!
//! Both engines have their own defaults but for the buffers, and both are compiled as one program with this. What that comes
//! to:
//!
//! - Frames of at most 1514 bytes; Baton's data segments hold 1448 bytes, because each carries timestamps, smoltcp's 1460.
//! - Frames are handed over in memory, without a copy, by both, and all that one end may send goes over before the other runs:
//!   one acknowledgment answers many segments. Baton takes them in as a batch, and merges segments that follow each other. An application writes its answer as soon as it has the whole question, and the
//!   answer goes before time passes; two frames are sent for each request, by both.
//! - Baton tells which connections have something to read; smoltcp's sockets are asked one by one, by the application and by
//!   smoltcp itself, which is what most of the figure with many connections shows.
//! - What applications write is constant. smoltcp copies it into its buffer, Baton refers to it (`Bytes::from_static`, which
//!   counts no references).
//! - smoltcp copies data three times: from the application to its buffer, into the frame, out of the frame to its buffer. Baton
//!   does once: into the frame. Applications look at data where it lies, with both.
//! - Both make and verify the checksums of IP and TCP headers and data in software, Baton in the longest registers that the
//!   processor has, smoltcp in those that its compiler takes for granted.
//! - Baton controls congestion (CUBIC), notices losses by time and measures round trips of all segments; smoltcp's congestion
//!   control is off, as its defaults have it.

mod baton;
mod smol;

use std::time::Instant;

/// Runs of each engine for one figure.
const RUNS: usize = 7;

/// Bytes of a request.
pub const REQUEST_LEN: usize = 128;

/// Bytes of a response.
pub const RESPONSE_LEN: usize = 1024;

/// Bytes of the largest frame, without check sequence.
pub const FRAME_LEN: usize = 1514;

/// Two hosts with connections between them, and the applications on top.
pub trait Pair {
    /// Both ends' buffers hold `buffer_len` bytes each way for each of `connections`, which are established.
    fn new(connections: usize, buffer_len: usize) -> Self;

    /// The client sends this many bytes by its first connection, and the server reads them.
    fn bulk(&mut self, len: u64);

    /// Requests go out on every connection, and each response is followed by the next request, until so many are answered.
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
    /// Bytes or requests of one run.
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

    /// Seconds of one run, the pair's making not counted; one untimed run of a tenth comes before it.
    fn run<P: Pair>(&self) -> f64 {
        let mut pair = P::new(self.connections, self.buffer_len);
        self.work(&mut pair, self.amount / 10);
        let start = Instant::now();
        self.work(&mut pair, self.amount);
        start.elapsed().as_secs_f64()
    }

    /// Gbit/s, or thousands of requests per second.
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
    // For a profiler: the name of a figure makes Baton alone, or smoltcp if a third argument says so, do its work, so many
    // times (50).
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
