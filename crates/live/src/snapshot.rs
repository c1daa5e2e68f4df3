//! The state of an engine, for people and programs.

use crate::adapter::ApplicationRow;
use crate::control::{Asker, ControlStats};
use crate::engine::Engine;
use crate::port::Port;
use baton_host::layer::SocketLayer;
use baton_inet::{Host, Neighbour};
use baton_sockets::kernel::PlaceRow;
use baton_tcp::{ConnId, Info, Limit, Stack};
use baton_wire::{Endpoint, Span, Time};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// Everything that `baton live stat` shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Number of the process.
    pub pid: u32,
    /// Time since the process was started, ms.
    pub uptime_ms: u64,
    /// Name of the interface.
    pub interface: String,
    /// The engine's Ethernet address; empty where there is no interface.
    pub mac: String,
    /// MTU of the link, bytes; 0 where there is no link.
    pub mtu: u16,
    /// Connections, except those in TIME-WAIT.
    pub connections: Vec<ConnectionRow>,
    /// Number of connections in TIME-WAIT.
    pub time_wait: u64,
    /// Listeners.
    pub listeners: Vec<ListenerRow>,
    /// Neighbours on the link.
    pub neighbours: Vec<NeighbourRow>,
    /// Applications of an adapter; empty for other processes.
    #[serde(default)]
    pub applications: Vec<ApplicationRow>,
    /// Where each connection is located, for a host with an adapter.
    #[serde(default)]
    pub places: Vec<PlaceRow>,
    /// Counters of all layers by name; a name starts with its layer.
    pub counters: BTreeMap<String, u64>,
}

/// A connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConnectionRow {
    /// Local endpoint.
    pub local: Endpoint,
    /// Remote endpoint.
    pub remote: Endpoint,
    /// Bytes received and not yet read by the application.
    pub receive_queue: u64,
    /// Bytes written by the application and not yet acknowledged.
    pub send_queue: u64,
    /// Name of the congestion control algorithm.
    pub congestion: String,
    /// Number of the application that owns the connection, on an adapter.
    #[serde(default)]
    pub application: Option<u32>,
    /// State and counters of the connection.
    pub info: Info,
}

/// A connection with data to send counts as stalled if it has received nothing for this long.
const LONGEST_SILENCE: Span = Span::from_secs(5);

impl ConnectionRow {
    /// Returns whether the connection has data to send but makes no progress: retransmissions failed, probes are not answered, or for five
    /// seconds the peer's window has been closed or nothing has arrived from the peer.
    pub fn is_stalled(&self) -> bool {
        let info = &self.info;
        let is_closed = info.limited_by == Some(Limit::PeerWindow);
        let is_silent = info.last_ack_received >= LONGEST_SILENCE
            || is_closed && info.last_data_sent >= LONGEST_SILENCE;
        self.send_queue > 0 && (info.retransmits > 1 || info.probes > 1 || is_silent)
    }
}

/// A listener.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListenerRow {
    /// Local endpoint.
    pub local: Endpoint,
    /// Connections that wait to be accepted.
    pub accept_queue: u64,
}

/// A neighbour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NeighbourRow {
    /// Internet address.
    pub addr: String,
    /// Ethernet address, if known.
    pub mac: Option<String>,
    /// State, as in RFC 4861 7.3.2.
    pub state: String,
    /// Number of packets that wait for the neighbour's Ethernet address.
    pub waiting: u64,
}

/// A source of counters for a snapshot.
pub trait SnapshotSource {
    /// Adds the counters of this source.
    fn add_counters(&self, counters: &mut BTreeMap<String, u64>);

    /// Returns the applications of an adapter.
    fn applications(&self, _now: Time) -> Vec<ApplicationRow> {
        Vec::new()
    }

    /// Returns where each connection of a host with an adapter is located.
    fn places(&self, _now: Time) -> Vec<PlaceRow> {
        Vec::new()
    }

    /// Returns the number of the application that owns a connection of an adapter.
    fn application_of(&self, _conn: ConnId) -> Option<u32> {
        None
    }
}

impl Snapshot {
    /// Takes a snapshot of `engine` and `source`.
    pub fn take<T: Port>(engine: &Engine<T>, source: &impl SnapshotSource) -> Self {
        let (now, host) = (engine.now(), engine.host());
        let link = engine.port().link();
        let mut counters = Self::counters(engine, source);
        let stack = host.stack();
        let connections = connections(now, stack, source);
        let stalled = connections.iter().filter(|row| row.is_stalled()).count();
        counters.insert("tcp.stalled".to_owned(), stalled as u64);
        Self {
            pid: std::process::id(),
            uptime_ms: now.as_ms(),
            interface: link.name.clone(),
            mac: mac_text(link.mac),
            mtu: link.mtu,
            connections,
            time_wait: stack.time_waits(now).count() as u64,
            listeners: listeners(stack),
            neighbours: host.interface().neighbours().map(neighbour).collect(),
            applications: source.applications(now),
            places: source.places(now),
            counters,
        }
    }

    /// Returns the counters of `engine` and `source` alone.
    pub fn counters<T: Port>(
        engine: &Engine<T>,
        source: &impl SnapshotSource,
    ) -> BTreeMap<String, u64> {
        let mut counters = BTreeMap::new();
        engine.counters(&mut |name: &str, value| {
            counters.insert(name.to_owned(), value);
        });
        add_host_counters(engine.host(), &mut counters);
        source.add_counters(&mut counters);
        counters
    }

    /// Takes a snapshot of a process whose TCP runs elsewhere, behind sockets called `name`: it has no interface of its own.
    pub fn of_sockets(now: Time, name: String, source: &impl SnapshotSource) -> Self {
        let mut counters = BTreeMap::new();
        source.add_counters(&mut counters);
        Self {
            pid: std::process::id(),
            uptime_ms: now.as_ms(),
            interface: name,
            mac: String::new(),
            mtu: 0,
            connections: Vec::new(),
            time_wait: 0,
            listeners: Vec::new(),
            neighbours: Vec::new(),
            applications: source.applications(now),
            places: source.places(now),
            counters,
        }
    }

    /// Joins the snapshots of two engines of one adapter.
    #[must_use]
    pub fn joined(mut self, other: Self) -> Self {
        self.connections.extend(other.connections);
        self.time_wait += other.time_wait;
        for row in other.listeners {
            match (self.listeners.iter_mut()).find(|known| known.local == row.local) {
                Some(known) => known.accept_queue += row.accept_queue,
                None => self.listeners.push(row),
            }
        }
        for row in other.neighbours {
            if !self.neighbours.iter().any(|known| known.addr == row.addr) {
                self.neighbours.push(row);
            }
        }
        self.applications.extend(other.applications);
        self.places.extend(other.places);
        for (name, value) in other.counters {
            let sum = self.counters.entry(name).or_default();
            *sum += value;
        }
        self
    }

    /// Adds how often a limit of the control socket took effect.
    #[must_use]
    pub fn with_control(mut self, stats: ControlStats) -> Self {
        let ControlStats { refused, late } = stats;
        for (name, value) in [("control.refused", refused), ("control.late", late)] {
            self.counters.insert(name.to_owned(), value);
        }
        self
    }

    /// Returns the part of the snapshot that `asker` may see: only operators see connections and applications of other users.
    #[must_use]
    pub fn seen_by(mut self, asker: Asker) -> Self {
        if !asker.is_operator {
            self.applications.retain(|row| row.uid == Some(asker.uid));
            let own = &self.applications;
            let is_own = |number| own.iter().any(|row| row.number == number);
            self.connections
                .retain(|row| row.application.is_some_and(is_own));
        }
        self
    }

    /// Returns the line that is sent over the control socket.
    pub fn to_line(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec(self).unwrap_or_default();
        text.push(b'\n');
        text
    }
}

fn connections(
    now: Time,
    stack: &Stack<Bytes>,
    source: &impl SnapshotSource,
) -> Vec<ConnectionRow> {
    let row = |id| {
        let flow = stack.flow(id);
        ConnectionRow {
            local: flow.local,
            remote: flow.remote,
            receive_queue: stack.readable_len(id) as u64,
            send_queue: stack.unacknowledged(id) as u64,
            congestion: snake_case(stack.config_of(id).congestion),
            application: source.application_of(id),
            info: stack.info(now, id),
        }
    };
    stack.connections().map(row).collect()
}

fn listeners(stack: &Stack<Bytes>) -> Vec<ListenerRow> {
    let row = |id| ListenerRow {
        local: stack.listening_at(id),
        accept_queue: stack.accept_queue_len(id) as u64,
    };
    stack.listeners().map(row).collect()
}

fn neighbour(neighbour: Neighbour) -> NeighbourRow {
    NeighbourRow {
        addr: neighbour.addr.to_string(),
        mac: neighbour.mac.map(mac_text),
        state: snake_case(neighbour.state),
        waiting: neighbour.waiting as u64,
    }
}

/// Adds the counters of a host's IP layer and TCP.
pub(crate) fn add_host_counters(host: &Host, counters: &mut BTreeMap<String, u64>) {
    let inet = host.interface().stats();
    let mut add = |layer: &str, name: &str, value| {
        counters.insert(format!("{layer}.{name}"), value);
    };
    for (name, value) in [
        ("frames_received", inet.frames_received),
        ("bytes_received", inet.bytes_received),
        ("frames_sent", inet.frames_sent),
        ("bytes_sent", inet.bytes_sent),
        ("segments_received", inet.segments_received),
        ("segments_waited", inet.segments_waited),
        ("echoes_answered", inet.echoes_answered),
        ("icmp_errors_sent", inet.icmp_errors_sent),
        ("icmp_errors_limited", inet.icmp_errors_limited),
        ("path_errors", inet.path_errors),
        ("solicitations_sent", inet.solicitations_sent),
        ("advertisements_sent", inet.advertisements_sent),
        ("neighbours_failed", inet.neighbours_failed),
        ("neighbours_evicted", inet.neighbours_evicted),
        ("waiting_dropped", inet.waiting_dropped),
        ("waiting_failed", inet.waiting_failed),
        ("outbox_dropped", inet.outbox_dropped),
    ] {
        add("inet", name, value);
    }
    for &reason in baton_inet::Refusal::ALL {
        add(
            "inet.refused",
            &snake_case(reason),
            inet.refused.get(reason),
        );
    }
    for &reason in baton_inet::SendRefusal::ALL {
        let count = inet.send_refused.get(reason);
        add("inet.send_refused", &snake_case(reason), count);
    }
    let drops = host.packet_drops();
    for (name, count) in [
        ("host_receive_queue", drops.host_receive_queue),
        ("host_send_queue", drops.host_send_queue),
        ("no_connection", drops.no_connection),
    ] {
        add("inet.passing_dropped", name, count);
    }
    let tcp = host.stack().stats();
    add_fields("tcp", tcp, counters);
    if let Some(memory) = host.stack().memory() {
        for (name, bytes) in [
            ("limit", memory.limit),
            ("held", memory.held),
            ("largest_user", memory.largest_user),
        ] {
            counters.insert(format!("tcp.memory.{name}"), bytes);
        }
    }
    for reason in baton_tcp::Refusal::ALL {
        let name = format!("tcp.refused.{}", snake_case(reason));
        counters.insert(name, tcp.refused.get(reason));
    }
}

/// Adds the numeric fields of a structure, with the name of its layer in front.
pub(crate) fn add_fields(
    layer: &str,
    stats: &impl Serialize,
    counters: &mut BTreeMap<String, u64>,
) {
    let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(stats) else {
        debug_assert!(false, "totals are structures");
        return;
    };
    for (name, value) in fields {
        if let Some(value) = value.as_u64() {
            counters.insert(format!("{layer}.{name}"), value);
        }
    }
}

/// Adds the counters of a socket layer about handoffs to an adapter with this Soft_Limit.
pub(crate) fn add_handoffs(
    layer: &SocketLayer<Bytes>,
    soft_limit: Option<u32>,
    counters: &mut BTreeMap<String, u64>,
) {
    add_fields("handoff", layer.stats(), counters);
    for (why, count) in layer.stats().not_offloaded.iter() {
        counters.insert(format!("handoff.not_offloaded.{}", why.name()), count);
    }
    counters.insert("handoff.on_adapter".to_owned(), layer.on_adapters() as u64);
    let limit = soft_limit.unwrap_or_default();
    counters.insert("handoff.soft_limit".to_owned(), limit.into());
}

/// Converts the name of a variant to the name of its counter: `NoConnection` becomes `no_connection`.
pub(crate) fn snake_case(variant: impl Debug) -> String {
    let name = format!("{variant:?}");
    let mut text = String::with_capacity(name.len() + 4);
    for (index, letter) in name.chars().enumerate() {
        if letter.is_ascii_uppercase() && index > 0 {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_tcp::Config;
    use baton_wire::Flow;

    fn connection(application: Option<u32>) -> ConnectionRow {
        let end = |last, port| Endpoint::new([10, 0, 0, last].into(), port);
        let (local, remote) = (end(1, 5000), end(2, 80));
        let mut stack = Stack::<Bytes>::new(Config::default(), 1);
        let conn = stack.connect(Time::ZERO, Flow { local, remote });
        ConnectionRow {
            local,
            remote,
            receive_queue: 0,
            send_queue: 0,
            congestion: "cubic".to_owned(),
            application,
            info: stack.info(Time::ZERO, conn.expect("a free flow")),
        }
    }

    #[test]
    fn users_see_their_own_connections_and_operators_see_all() {
        let text = r#"{"pid":7,"uptime_ms":1,"interface":"eth0","mac":"","mtu":1500,"connections":[],"time_wait":0,
            "listeners":[],"neighbours":[],"counters":{}}"#;
        let application = |number, uid| ApplicationRow {
            number,
            pid: Some(number),
            uid,
            name: "web".to_owned(),
            link: "shared_memory".to_owned(),
            attached_ms: 0,
            sockets: 1,
            listeners: 0,
            connections: 1,
            bus: Default::default(),
        };
        let mut snapshot: Snapshot = serde_json::from_str(text).expect("a snapshot");
        // The last application is attached over TCP: its user is unknown.
        snapshot.applications = vec![
            application(0, Some(33)),
            application(1, Some(1000)),
            application(2, None),
        ];
        let owners = [Some(0), Some(1), Some(2), None];
        snapshot.connections = owners.map(connection).into();
        let seen = |uid, is_operator| {
            let seen = snapshot.clone().seen_by(Asker { uid, is_operator });
            let rows = seen.connections.iter().map(|row| row.application);
            (seen.applications.len(), rows.collect::<Vec<_>>())
        };
        assert_eq!(seen(1000, false), (1, vec![Some(1)]));
        assert_eq!(seen(65_534, false), (0, vec![]));
        assert_eq!(seen(1000, true), (3, owners.to_vec()));
    }

    #[test]
    fn a_connection_with_nothing_to_send_is_not_stalled() {
        let mut row = connection(None);
        row.info.retransmits = 3;
        assert!(!row.is_stalled());
        row.send_queue = 1;
        assert!(row.is_stalled(), "it was sent again in vain");
        row.info.retransmits = 1;
        assert!(!row.is_stalled(), "once may be");
        row.info.last_ack_received = LONGEST_SILENCE;
        assert!(row.is_stalled(), "nothing came");
        row.info.last_ack_received = Span::ZERO;
        row.info.last_data_sent = LONGEST_SILENCE;
        assert!(!row.is_stalled());
        row.info.limited_by = Some(Limit::PeerWindow);
        assert!(row.is_stalled(), "the peer does not read");
    }
}
