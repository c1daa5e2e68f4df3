//! TCP that gets over any bad luck.

use baton_tcp::{Config, SynCookies};

/// Nothing is given up for bad luck.
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
