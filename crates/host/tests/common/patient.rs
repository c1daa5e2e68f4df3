//! A TCP configuration that survives any sequence of losses.

use baton_tcp::{Config, SynCookies};

/// Returns a configuration with which TCP does not give up because of losses.
pub fn patient() -> Config {
    Config {
        syn_retries: 30,
        data_retries: 60,
        rto_max_ms: 4000,
        msl_ms: 60_000,
        // A cookie does not survive the loss of the first data after it (RFC 4987 3.6).
        syn_cookies: SynCookies::Off,
        ..Config::default()
    }
}
