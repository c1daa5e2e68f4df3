//! Popularity and sizes of a log's files as classes.

use crate::analyse::{ratio, zipf_exponent};
use crate::generate::{Distribution, FileClass, Files, Step};
use crate::log::Request;
use std::cmp::Reverse;

/// Ends of the steps of a class's sizes, as shares of its files in order of size: fine where the large files are,
/// which carry most of the bytes.
const STEP_ENDS: [f64; 12] = [
    0.05, 0.15, 0.3, 0.45, 0.6, 0.7, 0.8, 0.88, 0.94, 0.975, 0.99, 1.0,
];

/// How a file was used.
#[derive(Clone, Copy, Default)]
struct Used {
    requests: u64,
    /// Responses with content.
    full: u64,
    bytes: u64,
}

impl Used {
    /// Mean content of the responses that had any. Not the largest: a few aborted or changed ones should count for
    /// as much as they sent.
    fn size(&self) -> u64 {
        self.bytes.checked_div(self.full).unwrap_or(0)
    }
}

/// The files of a log that were requested, the most popular first.
pub(super) struct Usage {
    files: Vec<Used>,
}

impl Usage {
    /// The use of files, numbered below `files`, by some requests.
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

    /// Classes of files by popularity: ranks 1, 2, 3, then each class a third larger than all before it need. A class
    /// ends early where the popularity changes by more than half.
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
    // Files that never sent anything have size 0; the share is of the others.
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

/// The sizes of a class in steps. Each step is as large as makes it send, at the popularity that all files of the
/// class share, what it sent in the log; `full` is the number of responses with content that the class had, if all its
/// files have some.
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
