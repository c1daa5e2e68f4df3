//! Several runs side by side.

use crate::number::{estimated, estimated_percent};
use crate::table::{Column, Table};
use baton_stats::Estimate;

/// One run in brief, or the same with several seeds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunRow {
    /// What the run is called.
    pub name: String,
    /// Whether it was long enough to say so.
    pub is_steady: bool,
    /// Completed responses per second of simulated time.
    pub request_rate: Estimate,
    /// Content received by clients, Mb/s.
    pub content_mbps: Estimate,
    /// Mean response time, ms.
    pub mean_ms: Estimate,
    /// 99th percentile of the response time, ms.
    pub p99_ms: Estimate,
    /// Host idle, per cent.
    pub host_idle_percent: Estimate,
    /// NIC processor idle, per cent.
    pub nic_idle_percent: Estimate,
    /// Median time of a sent host packet on the NIC, us.
    pub send_delay_us: Estimate,
    /// Median time of a received host packet on the NIC, us.
    pub receive_delay_us: Estimate,
    /// Share of packets that belong to offloaded connections, per cent.
    pub offloaded_percent: Estimate,
    /// Frames dropped at the server's NIC.
    pub drops: Estimate,
}

impl RunRow {
    /// The same run with several seeds: means over these, with their intervals. One stays as it is.
    pub fn over_seeds(rows: &[Self]) -> Option<Self> {
        let [first, _, ..] = rows else {
            return rows.first().cloned();
        };
        let over = |value: fn(&Self) -> Estimate| {
            let means: Vec<f64> = rows.iter().map(|row| value(row).mean).collect();
            Estimate::of_independent(&means).unwrap_or_default()
        };
        Some(Self {
            name: first.name.clone(),
            is_steady: rows.iter().all(|row| row.is_steady),
            request_rate: over(|row| row.request_rate),
            content_mbps: over(|row| row.content_mbps),
            mean_ms: over(|row| row.mean_ms),
            p99_ms: over(|row| row.p99_ms),
            host_idle_percent: over(|row| row.host_idle_percent),
            nic_idle_percent: over(|row| row.nic_idle_percent),
            send_delay_us: over(|row| row.send_delay_us),
            receive_delay_us: over(|row| row.receive_delay_us),
            offloaded_percent: over(|row| row.offloaded_percent),
            drops: over(|row| row.drops),
        })
    }
}

/// What the short heads stand for.
const LEGEND: &str = "±: 95 % interval; ms: response time; send, receive: median time of a host packet on the NIC; \
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
            row.name.clone() + if row.is_steady { "" } else { " *" },
            estimated(row.request_rate),
            estimated(row.content_mbps),
            estimated(row.mean_ms),
            estimated(row.p99_ms),
            estimated_percent(row.host_idle_percent),
            estimated_percent(row.nic_idle_percent),
            estimated(row.send_delay_us),
            estimated(row.receive_delay_us),
            estimated_percent(row.offloaded_percent),
            estimated(row.drops),
        ]);
    }
    table.render() + LEGEND
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_seeds_make_one_row() {
        let row = |rate: f64| RunRow {
            request_rate: Estimate::of_one(rate),
            is_steady: rate < 11.0,
            ..RunRow::default()
        };
        let rows = [9.0, 10.0, 11.0].map(row);
        let all = RunRow::over_seeds(&rows).unwrap();
        assert_eq!(all.request_rate.mean, 10.0);
        assert!(all.request_rate.half_width > Some(2.0) && !all.is_steady);
        assert_eq!(RunRow::over_seeds(&rows[..1]), Some(row(9.0)));
        assert_eq!(RunRow::over_seeds(&[]), None);
    }

    #[test]
    fn one_line_per_run_after_the_header() {
        let row = RunRow {
            name: "W-0-N-N-FCFS-400".into(),
            request_rate: Estimate {
                mean: 23_031.2,
                half_width: Some(129.0),
            },
            ..RunRow::default()
        };
        let text = runs_table(&[row.clone(), row]);
        assert_eq!(text.lines().count(), 6, "{text}");
        assert_eq!(text.matches("23,031 ±0.6 %").count(), 2, "{text}");
        assert!(text.contains("400 *"), "{text}");
    }
}
