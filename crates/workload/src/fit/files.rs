//! Grouping of a log's files into classes of similar popularity, with their sizes.

use crate::analyse::{ratio, zipf_exponent};
use crate::generate::{Distribution, FileClass, Files, Step};
use crate::log::Request;
use std::cmp::Reverse;

/// Ends of the steps of a class's sizes, as shares of its files in order of size. Steps are finer for large files, which carry most of the
/// bytes.
const STEP_ENDS: [f64; 12] = [
    0.05, 0.15, 0.3, 0.45, 0.6, 0.7, 0.8, 0.88, 0.94, 0.975, 0.99, 1.0,
];

/// Requests for a file.
#[derive(Clone, Copy, Default)]
struct Used {
    requests: u64,
    /// Number of responses with content.
    full: u64,
    bytes: u64,
}

impl Used {
    /// Returns the mean size of the responses with content. The largest would give too much weight to a few aborted or changed responses.
    fn size(&self) -> u64 {
        self.bytes.checked_div(self.full).unwrap_or(0)
    }
}

/// The files of a log that were requested, the most popular first.
pub(super) struct Usage {
    files: Vec<Used>,
}

impl Usage {
    /// Collects the usage of files, whose numbers are below `files`, from some requests.
    pub(super) fn of<'a>(requests: impl Iterator<Item = &'a Request>, files: usize) -> Self {
        let mut all = vec![Used::default(); files];
        for request in requests {
            let used = &mut all[request.file as usize];
            used.requests += 1;
            used.full += u64::from(request.bytes > 0);
            used.bytes += request.bytes;
        }
        all.retain(|used| used.requests > 0);
        all.sort_by_key(|used| Reverse(used.requests));
        Self { files: all }
    }

    pub(super) fn zipf_exponent(&self) -> f64 {
        let counts: Vec<u64> = self.files.iter().map(|used| used.requests).collect();
        zipf_exponent(&counts)
    }

    /// Divides the files into classes by popularity. The first ranks are classes of their own; each later class has at most a third as many
    /// files as all classes before it, unless more files are equally popular. A class ends early where the popularity falls by a third.
    pub(super) fn classes(&self) -> Files {
        let mut classes = Vec::new();
        let mut rest = self.files.as_slice();
        while let Some(most) = rest.first() {
            let rank = self.files.len() - rest.len();
            let longest = (rank / 3).clamp(1, rest.len());
            let similar = rest.partition_point(|used| 3 * used.requests > 2 * most.requests);
            let equal = rest.partition_point(|used| used.requests == most.requests);
            let (class, after) = rest.split_at(longest.min(similar).max(equal));
            classes.push(file_class(class));
            rest = after;
        }
        Files::Classes(classes)
    }
}

fn file_class(files: &[Used]) -> FileClass {
    let requests: u64 = files.iter().map(|used| used.requests).sum();
    // Files that never sent content have size 0; the share is computed from the others.
    let with_content = || files.iter().filter(|used| used.bytes > 0);
    let asked: u64 = with_content().map(|used| used.requests).sum();
    let full: u64 = with_content().map(|used| used.full).sum();
    FileClass {
        count: u32::try_from(files.len()).unwrap_or(u32::MAX),
        requests: requests as f64,
        not_modified: ratio(asked - full, asked),
        size: sizes(files, ratio(full * requests, asked)),
    }
}

/// Returns the sizes of a class in steps. The size of each step is chosen such that its files, at the mean popularity of the class, send as
/// many bytes as in the log. `full` is the number of responses with content that the class would have if all its files had content.
fn sizes(files: &[Used], full: f64) -> Distribution {
    let mut files = files.to_vec();
    files.sort_unstable_by_key(Used::size);
    let mut start = 0;
    let mut steps = Vec::new();
    for end in STEP_ENDS {
        let end = libm::round(end * files.len() as f64) as usize;
        if end > start {
            let bytes: u64 = files[start..end].iter().map(|used| used.bytes).sum();
            let share = ratio((end - start) as u64, files.len() as u64);
            let value = if full > 0.0 {
                bytes as f64 / (full * share)
            } else {
                0.0
            };
            steps.push(Step { share, value });
            start = end;
        }
    }
    Distribution::Steps(steps)
}
