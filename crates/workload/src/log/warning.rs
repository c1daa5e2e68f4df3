//! Warnings about logs whose results are doubtful.

use super::text::excerpt;
use super::{Log, SkipReason};

/// A client with this share of the requests is probably a proxy.
const PROXY_SHARE: f64 = 0.9;
/// With fewer requests, one client may well have made most of them.
const PROXY_REQUESTS: usize = 20;
/// Largest share of skipped or doubtful lines without a warning.
const SKIPPED_SHARE: f64 = 0.01;
/// Largest share of connections without a request, which nearly every log has, without a warning.
const NO_REQUEST_SHARE: f64 = 0.1;

impl Log {
    /// Returns the client with the most requests, and their number; `None` if there are no clients.
    pub fn busiest_client(&self) -> Option<(u32, u64)> {
        let mut counts = vec![0u64; self.clients.len()];
        for request in &self.requests {
            counts[request.client as usize] += 1;
        }
        (0..).zip(counts).max_by_key(|&(_, count)| count)
    }

    /// Returns what users of the log must know, in sentences.
    pub fn warnings(&self) -> Vec<String> {
        let doubts = [
            self.behind_a_proxy(),
            self.perhaps_forwarded(),
            self.other_formats(),
            self.without_requests(),
            self.much_skipped(),
        ];
        doubts.into_iter().flatten().collect()
    }

    /// Returns why the clients of the log cannot be identified: a proxy seems to be the only one, or most requests have two addresses either of
    /// which may be the client's.
    pub fn unknown_clients(&self) -> Option<String> {
        let in_most = 2 * self.perhaps_forwarded > self.requests.len() as u64;
        self.behind_a_proxy()
            .or_else(|| self.perhaps_forwarded().filter(|_| in_most))
    }

    /// Warns if a proxy or a load balancer in front of the server seems to be its only client.
    fn behind_a_proxy(&self) -> Option<String> {
        let (client, requests) = self.busiest_client()?;
        let share = requests as f64 / self.requests.len() as f64;
        if self.requests.len() < PROXY_REQUESTS || share < PROXY_SHARE {
            return None;
        }
        Some(format!(
            "one client, {}, has {:.1} % of the requests, so that it is probably a proxy or a load balancer. Requests of one client share \
             connections, so there are fewer and far longer connections than those of the users. Results on persistence, handoff and caches \
             hold only for the proxy's connections. Use the log of the proxy, or log X-Forwarded-For, which is then taken as the client",
            excerpt(self.clients.get(client)),
            100.0 * share
        ))
    }

    fn perhaps_forwarded(&self) -> Option<String> {
        let share = self.perhaps_forwarded as f64 / self.requests.len().max(1) as f64;
        (share > SKIPPED_SHARE).then(|| {
            format!(
                "{} of {} requests have another address, behind the user agent, in front of the client or among captured headers, which may be \
                 X-Forwarded-For or not; it is ignored. If it is the client, name it in --format, as `%{{X-Forwarded-For}}i`",
                self.perhaps_forwarded,
                self.requests.len()
            )
        })
    }

    fn other_formats(&self) -> Option<String> {
        (self.other_formats > 0).then(|| {
            format!(
                "{} of {} requests are in lines of other formats than {}",
                self.other_formats,
                self.requests.len(),
                self.format
            )
        })
    }

    fn without_requests(&self) -> Option<String> {
        let found = self.skipped.count(SkipReason::NoRequest);
        let share = found as f64 / self.skipped.lines().max(1) as f64;
        (share > NO_REQUEST_SHARE).then(|| {
            format!(
                "{found} of {} lines are left out: connections without a request, as in `\"-\" 408`, which health checks and browsers open",
                self.skipped.lines()
            )
        })
    }

    fn much_skipped(&self) -> Option<String> {
        let share = self.skipped.share();
        (share > SKIPPED_SHARE).then(|| {
            format!(
                "{:.1} % of the log is left out: {}",
                100.0 * share,
                self.skipped
            )
        })
    }
}
