//! Several runs side by side.

use crate::number::{grouped, percent, significant};
use crate::table::{Column, Table};

/// One run in brief.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunRow {
    /// What the run is called.
    pub name: String,
    /// Completed responses per second of simulated time.
    pub request_rate: f64,
    /// Content received by clients, Mb/s.
    pub content_mbps: f64,
    /// Mean response time, ms.
    pub mean_ms: f64,
    /// 99th percentile of the response time, ms.
    pub p99_ms: f64,
    /// Host idle, per cent.
    pub host_idle_percent: f64,
    /// NIC processor idle, per cent.
    pub nic_idle_percent: f64,
    /// Median time of a sent host packet on the NIC, us.
    pub send_delay_us: f64,
    /// Median time of a received host packet on the NIC, us.
    pub receive_delay_us: f64,
    /// Share of packets that belong to offloaded connections, per cent.
    pub offloaded_percent: f64,
    /// Frames dropped at the server's NIC.
    pub drops: u64,
}

/// What the short heads stand for.
const LEGEND: &str = "ms: response time; send, receive: median time of a host packet on the NIC; \
                      offloaded: share of packets; drops: frames lost at the NIC\n";

/// What clients, host and NIC saw in each run.
pub fn runs_table(rows: &[RunRow]) -> String {
    let mut table = Table::new(vec![
        Column::words("run"),
        Column::numbers("requests/s"),
        Column::numbers("Mb/s"),
        Column::numbers("mean\nms"),
        Column::numbers("p99\nms"),
        Column::numbers("host\nidle"),
        Column::numbers("NIC\nidle"),
        Column::numbers("send\nus"),
        Column::numbers("receive\nus"),
        Column::numbers("off-\nloaded"),
        Column::numbers("drops"),
    ]);
    for row in rows {
        table.row(vec![
            row.name.clone(),
            grouped(row.request_rate.round() as u64),
            significant(row.content_mbps),
            significant(row.mean_ms),
            significant(row.p99_ms),
            percent(row.host_idle_percent),
            percent(row.nic_idle_percent),
            significant(row.send_delay_us),
            significant(row.receive_delay_us),
            percent(row.offloaded_percent),
            grouped(row.drops),
        ]);
    }
    table.render() + LEGEND
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_per_run_after_the_header() {
        let row = RunRow {
            name: "W-0-N-N-FCFS-400".into(),
            request_rate: 23_031.2,
            ..RunRow::default()
        };
        let text = runs_table(&[row.clone(), row]);
        assert_eq!(text.lines().count(), 6, "{text}");
        assert_eq!(text.matches("23,031").count(), 2, "{text}");
    }
}
