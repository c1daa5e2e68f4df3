//! What about a log makes its results doubtful.

use super::Log;
use super::text::excerpt;

/// A client of this share of the requests is more than a client.
const PROXY_SHARE: f64 = 0.9;
/// Of fewer requests, one client may well have made most.
const PROXY_REQUESTS: usize = 20;
/// This share of lines that are skipped is no matter.
const SKIPPED_SHARE: f64 = 0.01;

impl Log {
    /// The client with the most requests, and how many; `None` if there are no requests.
    pub fn busiest_client(&self) -> Option<(u32, u64)> {
        let mut counts = vec![0u64; self.clients.len()];
        for request in &self.requests {
            counts[request.client as usize] += 1;
        }
        (0..).zip(counts).max_by_key(|&(_, count)| count)
    }

    /// What whoever uses the log must know, in sentences.
    pub fn warnings(&self) -> Vec<String> {
        self.behind_a_proxy()
            .into_iter()
            .chain(self.much_skipped())
            .collect()
    }

    /// A proxy or a load balancer in front of the server is its only client.
    fn behind_a_proxy(&self) -> Option<String> {
        let (client, requests) = self.busiest_client()?;
        let share = requests as f64 / self.requests.len() as f64;
        if self.requests.len() < PROXY_REQUESTS || share < PROXY_SHARE {
            return None;
        }
        Some(format!(
            "one client, {}, has {:.1} % of the requests: a proxy or a load balancer, it seems. Requests of one client share connections, so \
             connections here are fewer and far longer than users' own. What results say of persistence, of handoff and of caches holds for \
             the proxy's connections only. Use the log of the proxy, or have X-Forwarded-For logged, which is then taken for the client",
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
