//! X-Forwarded-For in logs whose format does not say where it is.

use super::Log;
use super::names::Names;
use super::parse::{Forwarded, address};
use std::net::IpAddr;

/// Number of values of a line that are considered.
const MOST_COLUMNS: usize = 4;
/// Stands for the value of a request that has none.
const NONE: u32 = u32::MAX;

/// What the requests so far show about X-Forwarded-For, if the format does not say which value it is.
#[derive(Default)]
pub(super) struct Clients {
    /// Number of requests whose format says that their client comes from X-Forwarded-For.
    certain: u64,
    /// Values that may be X-Forwarded-For.
    values: Names,
    /// For each place in a line, the value of each request, up to the last request that has one.
    columns: [Vec<u32>; MOST_COLUMNS],
}

impl Clients {
    /// Records the values of request `number`, counted from 0, that may be X-Forwarded-For.
    pub(super) fn note(&mut self, number: usize, forwarded: Forwarded<'_>) {
        match forwarded {
            Forwarded::No => {}
            Forwarded::Client => self.certain += 1,
            Forwarded::Perhaps(values) => {
                let values = values.split(|&c| c == b'|').zip(&mut self.columns);
                for (value, column) in values.filter(|(v, _)| address::forwarded(v).is_some()) {
                    column.resize(number, NONE);
                    column.push(self.values.insert(value));
                }
            }
        }
    }

    /// Replaces the clients of `log`, whose requests are in the order of the lines, by those of the values that behave like X-Forwarded-For.
    pub(super) fn settle(&self, log: &mut Log) {
        log.forwarded = self.certain;
        let seen = self
            .columns
            .iter()
            .map(|column| (column, self.seen(column, log)));
        let seen: Vec<_> = seen.filter(|(_, seen)| seen.lines > 0).collect();
        let forwarded = seen.iter().filter(|(_, seen)| seen.is_forwarded());
        if let Some((column, seen)) = forwarded.max_by_key(|(_, seen)| seen.addresses) {
            log.forwarded += seen.lines;
            self.replace(column, log);
        } else {
            let doubtful = seen.iter().filter(|(_, seen)| !seen.is_other());
            log.perhaps_forwarded = doubtful.map(|(_, seen)| seen.lines).max().unwrap_or(0);
        }
    }

    fn seen(&self, column: &[u32], log: &Log) -> Seen {
        let mut seen = Seen::default();
        let (mut values, mut addresses, mut peers) =
            (Names::default(), Names::default(), Names::default());
        for (request, &value) in log.requests.iter().zip(column) {
            if value == NONE {
                continue;
            }
            let text = self.values.get(value);
            let address = address::forwarded(text).unwrap_or(text);
            let peer = log.clients.get(request.client);
            seen.lines += 1;
            let has_port = text.split(|&c| c == b',').any(has_port);
            seen.with_port += u64::from(has_port);
            seen.lists += u64::from(!has_port && text.contains(&b','));
            match (is_private(peer), is_private(address)) {
                (false, true) => seen.inward += 1,
                (true, false) => seen.outward += 1,
                _ => {}
            }
            values.insert(text);
            addresses.insert(address);
            peers.insert(peer);
        }
        seen.values = values.len() as u64;
        seen.addresses = addresses.len() as u64;
        seen.peers = peers.len() as u64;
        seen
    }

    fn replace(&self, column: &[u32], log: &mut Log) {
        let mut clients = Names::default();
        let values = column.iter().copied().chain(std::iter::repeat(NONE));
        for (request, value) in log.requests.iter_mut().zip(values) {
            let client = match value {
                NONE => None,
                value => address::forwarded(self.values.get(value)),
            };
            let client = client.unwrap_or_else(|| log.clients.get(request.client));
            request.client = clients.insert(client);
        }
        log.clients = clients;
    }
}

/// Counts of the lines that have a value in a certain column.
#[derive(Default)]
struct Seen {
    lines: u64,
    /// The distinct values, the distinct first addresses in them, and the distinct peers.
    values: u64,
    addresses: u64,
    peers: u64,
    /// Number of lines with a port in the value.
    with_port: u64,
    /// Number of lines with several addresses, none with a port.
    lists: u64,
    /// Number of lines with a private address in the value and a public peer, and the reverse.
    inward: u64,
    outward: u64,
}

impl Seen {
    /// Returns whether the values are the clients of a proxy: there are more values than peers, or they are lists, or the peers are private and
    /// the values public.
    const fn is_forwarded(&self) -> bool {
        let shows = self.addresses > self.peers || 2 * self.outward > self.lines;
        self.lists > 0 && !self.has_ports_again() || shows && !self.is_other()
    }

    /// Returns whether the values are other addresses, such as those of servers behind a proxy: their ports occur again, there are fewer
    /// values than peers, or the values are private and the peers public.
    const fn is_other(&self) -> bool {
        self.has_ports_again() || self.addresses < self.peers || 2 * self.inward > self.lines
    }

    const fn has_ports_again(&self) -> bool {
        2 * self.with_port > self.lines && 2 * self.values <= self.lines
    }
}

fn has_port(value: &[u8]) -> bool {
    let value = value.trim_ascii();
    address::without_port(value) != value
}

/// Returns whether an address is private. Names count as public.
fn is_private(client: &[u8]) -> bool {
    let address = str::from_utf8(client)
        .ok()
        .and_then(|text| text.parse().ok());
    match address {
        Some(IpAddr::V4(ip)) => {
            let [a, b, ..] = ip.octets();
            ip.is_private() || ip.is_loopback() || ip.is_link_local() || a == 100 && b & 0xc0 == 64
        }
        Some(IpAddr::V6(ip)) => {
            ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local()
        }
        None => client == b"unix:",
    }
}
