//! Counters under Linux's names (/proc/net/netstat, nstat(8)), for scripts that check them.

use baton_tcp::{Refusal, Stats};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Returns one of the engine's counters.
type Total = fn(&Stats) -> u64;

/// Name and source of each counter.
const NAMES: &[(&str, Total)] = &[
    ("TcpInSegs", |s| s.segments_received),
    ("TcpOutSegs", |s| s.segments_sent),
    ("TcpRetransSegs", |s| s.retransmissions),
    ("TcpOutRsts", |s| s.resets_sent),
    ("TcpExtOutOfWindowIcmps", |s| s.path_errors_refused),
    ("TcpExtSyncookiesSent", |s| s.syn_cookies_sent),
    ("TcpExtSyncookiesRecv", |s| s.syn_cookies_accepted),
    ("TcpExtSyncookiesFailed", |s| s.syn_cookies_refused),
    ("TcpExtPAWSEstab", |s| s.refused.get(Refusal::Paws)),
    ("TcpExtListenOverflows", |s| {
        s.refused.get(Refusal::AcceptQueueFull)
    }),
    ("TcpExtTCPTimeouts", |s| s.timeouts),
    ("TcpExtTCPLossProbes", |s| s.tail_probes),
    ("TcpExtTCPDSACKRecv", |s| s.duplicate_reports),
    ("TcpExtTCPChallengeACK", |s| s.challenge_acks),
    ("TcpExtTCPFastOpenActive", |s| s.fast_open_data_acknowledged),
    ("TcpExtTCPFastOpenPassive", |s| s.fast_open_accepted),
    ("TcpExtTCPFastOpenPassiveFail", |s| {
        s.fast_open_cookies_refused
    }),
    ("TcpExtTCPFastOpenListenOverflow", |s| s.fast_open_overflows),
    ("TcpExtTCPFastOpenCookieReqd", |s| s.fast_open_cookies_sent),
    ("TcpExtTCPMTUPSuccess", |s| s.mtu_probes_arrived),
    ("TcpExtTCPMTUPFail", |s| s.mtu_probes_lost),
];

/// The file to which counters are written.
#[derive(Debug)]
pub(crate) struct Counters {
    path: PathBuf,
    written: Option<String>,
}

impl Counters {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            written: None,
        }
    }

    /// Writes a line `NAME TOTAL` for each counter, if any changed. Reports a failure to write on standard error.
    pub(crate) fn write(&mut self, stats: &Stats) {
        let text = text_of(stats);
        if self.written.as_ref() == Some(&text) {
            return;
        }
        if let Err(error) = std::fs::write(&self.path, &text) {
            eprintln!("baton_packetdrill: {}: {error}", self.path.display());
        }
        self.written = Some(text);
    }
}

fn text_of(stats: &Stats) -> String {
    NAMES.iter().fold(String::new(), |mut text, (name, total)| {
        let _ = writeln!(text, "{name} {}", total(stats));
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_written_to_the_file_by_name() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let path = place.path().join("counters");
        let mut counters = Counters::new(&path);
        let mut stats = Stats::default();
        counters.write(&stats);
        stats.path_errors_refused = 3;
        counters.write(&stats);
        let text = std::fs::read_to_string(&path).expect("it was written");
        let line = text.lines().find(|line| line.contains("OutOfWindowIcmps"));
        assert_eq!(line, Some("TcpExtOutOfWindowIcmps 3"));
    }
}
