//! Parameters of an engine.

use serde::{Deserialize, Serialize};

/// Congestion control algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Congestion {
    /// RFC 5681 with RFC 6582 recovery.
    NewReno,
}

/// Parameters that all connections of one stack share. Defaults are today's usual ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Largest segment this end can receive, bytes of data (RFC 9293 3.7.1).
    pub mss: u16,
    /// Send buffer, bytes.
    pub send_buffer: u32,
    /// Receive buffer, bytes; the most that is ever advertised.
    pub receive_buffer: u32,
    /// Offer window scaling (RFC 7323 2).
    pub window_scaling: bool,
    /// Offer timestamps (RFC 7323 3).
    pub timestamps: bool,
    /// Offer SACK (RFC 2018).
    pub sack: bool,
    /// Initial congestion window, segments (RFC 6928 gives 10, RFC 2581 up to 2).
    pub initial_window_segments: u32,
    /// Congestion control.
    pub congestion: Congestion,
    /// Retransmission timeout before the first measurement, ms (RFC 6298 2.1 gives 1000, RFC 2988 gave 3000).
    pub rto_initial_ms: u32,
    /// Least retransmission timeout, ms (RFC 6298 2.4).
    pub rto_min_ms: u32,
    /// Largest retransmission timeout, ms (RFC 6298 2.5).
    pub rto_max_ms: u32,
    /// Longest delay of an acknowledgment, ms (RFC 9293 3.8.6.3: under 500).
    pub delayed_ack_ms: u32,
    /// Acknowledge at least every so many full segments.
    pub ack_every_segments: u32,
    /// Nagle's algorithm on new connections (RFC 9293 3.7.4).
    pub nagle: bool,
    /// Retransmissions of a SYN before giving up.
    pub syn_retries: u32,
    /// Retransmissions of data before giving up (RFC 9293 3.8.3, R2).
    pub data_retries: u32,
    /// Maximum segment lifetime, ms; TIME-WAIT lasts twice as long (RFC 9293 3.6.1).
    pub msl_ms: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mss: 1460,
            send_buffer: 256 * 1024,
            receive_buffer: 256 * 1024,
            window_scaling: true,
            timestamps: true,
            sack: true,
            initial_window_segments: 10,
            congestion: Congestion::NewReno,
            rto_initial_ms: 1000,
            rto_min_ms: 200,
            rto_max_ms: 60_000,
            delayed_ack_ms: 40,
            ack_every_segments: 2,
            nagle: true,
            syn_retries: 6,
            data_retries: 15,
            msl_ms: 30_000,
        }
    }
}
