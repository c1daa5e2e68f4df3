//! Two hosts on a link: they find each other, lose each other, and learn of what is wrong on the way.

mod common;

use baton_inet::{InterfaceConfig, NeighbourState, Route, SendRefusal};
use baton_tcp::{CloseReason, Config, Event, PathError};
use baton_wire::{Endpoint, Span};
use bytes::Bytes;
use common::{Link, MACS, V4, V6, interface};

#[test]
fn bytes_go_both_ways_once_neighbours_know_each_other() {
    for networks in [V4, V6] {
        let mut link = Link::between(networks);
        let conn = link.connect();
        assert!(link.run(1, Link::connected));
        // One request and its answer were enough for both: who asks tells where it is.
        let stats = [0, 1].map(|side| link.hosts[side].interface().stats().clone());
        assert_eq!(
            (stats[0].solicitations_sent, stats[1].solicitations_sent),
            (1, 0)
        );
        assert_eq!(
            (stats[0].advertisements_sent, stats[1].advertisements_sent),
            (0, 1)
        );
        assert_eq!(stats[0].segments_waited, 1);
        link.write(0, conn, b"there");
        assert!(link.run(1, |link| link.received[1] == b"there"));
        let accepted = link.events[1][0].0;
        link.write(1, accepted, b"and back");
        assert!(link.run(1, |link| link.received[0] == b"and back"));
        for side in [0, 1] {
            let neighbours: Vec<_> = link.hosts[side].interface().neighbours().collect();
            assert_eq!(neighbours.len(), 1);
            assert_eq!(neighbours[0].mac, Some(MACS[1 - side]));
            // The acknowledgment of the data confirmed it.
            assert_eq!(neighbours[0].state, NeighbourState::Reachable);
        }
    }
}
