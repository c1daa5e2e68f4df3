//! Access logs, compressed or not.

use baton_workload::Log;
use baton_workload::log::Format;
use std::path::Path;

/// Reads the input as a log: in the format that the first byte names, or in the one that its lines fit.
pub fn access_log(data: &[u8]) {
    let Some((&choice, text)) = data.split_first() else {
        return;
    };
    let format = Format::ALL.get(usize::from(choice)).copied();
    if let Ok(log) = Log::from_reader(Path::new("input"), text, format) {
        assert!(
            !log.requests.is_empty(),
            "a log without a request is an error"
        );
        let sum: u64 = log.skipped.reasons().map(|(_, count)| count).sum();
        assert_eq!(
            sum,
            log.skipped.total(),
            "each skipped line is counted by its reason"
        );
    }
}
