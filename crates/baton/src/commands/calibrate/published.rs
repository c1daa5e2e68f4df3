//! Table 1 of the handoff-policies paper, as far as `handoff-2006` is fitted to it.

use crate::commands::reproduce::{Row, Shown};
use baton_report::Scale;
use baton_sim::results::Results;

/// A row of the table.
pub struct Published {
    pub config: &'static str,
    pub request_rate: f64,
    pub host_idle_percent: f64,
    pub nic_idle_percent: f64,
    pub send_delay_us: f64,
    pub receive_delay_us: f64,
    /// Section 5 of the paper gives this for the first row only.
    pub network_stack_percent: Option<f64>,
    /// Mean response time, from the same section: of the first and the third row.
    pub response_ms: Option<f64>,
}

/// The table.
pub const PUBLISHED: [Published; 4] = [
    Published {
        config: "W-0-N-N-FCFS-400",
        request_rate: 23_031.0,
        host_idle_percent: 0.0,
        nic_idle_percent: 62.0,
        send_delay_us: 2.0,
        receive_delay_us: 2.0,
        network_stack_percent: Some(57.0),
        response_ms: Some(61.0),
    },
    Published {
        config: "W-256-N-N-FCFS-400",
        request_rate: 23_935.0,
        host_idle_percent: 0.0,
        nic_idle_percent: 49.0,
        send_delay_us: 3.0,
        receive_delay_us: 3.0,
        network_stack_percent: None,
        response_ms: None,
    },
    Published {
        config: "W-1024-N-N-FCFS-400",
        request_rate: 16_121.0,
        host_idle_percent: 62.0,
        nic_idle_percent: 3.0,
        send_delay_us: 679.0,
        receive_delay_us: 301.0,
        network_stack_percent: None,
        response_ms: Some(99.0),
    },
    Published {
        config: "W-1024-P-N-FCFS-400",
        request_rate: 26_663.0,
        host_idle_percent: 0.0,
        nic_idle_percent: 5.0,
        send_delay_us: 10.0,
        receive_delay_us: 6.0,
        network_stack_percent: None,
        response_ms: None,
    },
];

/// The numbers of one row, published beside simulated.
pub fn rows_of(result: &Results, published: &Published) -> [Row; 7] {
    let row = |metric, name, scale, published, simulated| Row {
        config: result.experiment.name.clone(),
        metric,
        published,
        simulated,
        shown: Shown { name, scale },
    };
    let Results {
        clients, host, nic, ..
    } = result;
    let Published {
        host_idle_percent,
        nic_idle_percent,
        network_stack_percent,
        ..
    } = *published;
    let rate = Some(published.request_rate);
    let (send, receive) = (
        Some(published.send_delay_us),
        Some(published.receive_delay_us),
    );
    [
        row(
            "request_rate",
            "requests/s",
            Scale::Relative,
            rate,
            clients.request_rate,
        ),
        row(
            "host_idle_percent",
            "host idle, %",
            Scale::Points,
            Some(host_idle_percent),
            host.idle_percent,
        ),
        row(
            "nic_idle_percent",
            "NIC idle, %",
            Scale::Points,
            Some(nic_idle_percent),
            nic.idle_percent,
        ),
        row(
            "send_delay_median_us",
            "host packet sent, median us on the NIC",
            Scale::Factor,
            send,
            nic.send_delay_us.p50.unwrap_or(f64::NAN),
        ),
        row(
            "receive_delay_median_us",
            "host packet received, median us on the NIC",
            Scale::Factor,
            receive,
            nic.receive_delay_us.p50.unwrap_or(f64::NAN),
        ),
        row(
            "network_stack_percent",
            "network stack, % of host cycles",
            Scale::Points,
            network_stack_percent,
            host.network_stack_percent,
        ),
        row(
            "response_mean_ms",
            "mean response time, ms",
            Scale::Relative,
            published.response_ms,
            clients.response_ms.mean.unwrap_or(f64::NAN),
        ),
    ]
}
