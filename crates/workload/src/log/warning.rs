//! Warnings about logs whose results are doubtful.

use super::Log;
use super::text::excerpt;

/// A client with this share of the requests is probably a proxy.
const PROXY_SHARE: f64 = 0.9;
/// With fewer requests, one client may well have made most of them.
const PROXY_REQUESTS: usize = 20;
/// A share of skipped lines up to this is not worth a warning.
const SKIPPED_SHARE: f64 = 0.01;

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
        self.behind_a_proxy()
            .into_iter()
            .chain(self.much_skipped())
            .collect()
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
