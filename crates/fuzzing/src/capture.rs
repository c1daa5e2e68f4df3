//! Packet captures, compressed or not.

use baton_workload::capture::CaptureAnalysis;
use std::path::Path;

/// Reads the input as a packet capture.
pub fn capture(data: &[u8]) {
    if let Ok(found) = CaptureAnalysis::from_reader(Path::new("input"), data) {
        let packets = found.packets;
        assert_eq!(
            packets.all,
            packets.tcp
                + packets.other_ip
                + packets.fragments
                + packets.headers_cut
                + packets.not_ip,
            "each packet is counted once"
        );
        let connections = found.connections;
        assert!(connections.all > 0, "a capture without TCP is an error");
        assert!(connections.whole <= connections.all && connections.all <= packets.tcp);
        assert_eq!(found.lifetime_ms.count, connections.whole);
        assert_eq!(
            found.lifetime_ms.count + found.at_least_ms.count,
            connections.all
        );
    }
}
