//! A router that receives the same frames.

use super::{MAC, MOST_OUTPUT};
use baton_inet::{InterfaceConfig, Route, Router, Verdict};
use baton_wire::Time;
use std::net::IpAddr;

/// MAC address of the interface through which packets leave.
const BEYOND: [u8; 6] = [2, 0, 0, 0, 1, 2];
/// Offset of the IP packet in an Ethernet frame.
const PACKET: usize = 14;

/// Creates a router. The interface that receives frames has the host's addresses; all other addresses are behind a gateway on a link with
/// a smaller MTU.
pub(super) fn router(verify_checksums: bool) -> Router {
    let interface = |mac, addresses: [&str; 2]| InterfaceConfig {
        verify_checksums,
        ..InterfaceConfig::new(
            mac,
            addresses
                .map(|cidr| cidr.parse().expect("a network"))
                .to_vec(),
        )
    };
    let mut beyond = interface(BEYOND, ["10.0.1.1/24", "fd01::1/64"]);
    beyond.mtu = 1280;
    let gateways: [IpAddr; 2] =
        ["10.0.1.9", "fd01::9"].map(|addr| addr.parse().expect("an address"));
    beyond.routes = gateways.map(Route::default_by).to_vec();
    let near = interface(MAC, ["10.0.0.2/24", "fd00::2/64"]);
    Router::new(vec![near, beyond]).expect("the parameters are valid")
}

/// Passes a frame to the router, and checks that it lowers the hop limit of a forwarded packet by one and stops sending.
pub(super) fn route(router: &mut Router, now: Time, frame: &[u8]) {
    let mut passed = frame.to_vec();
    if let Verdict::Forward { interface, len } = router.handle_frame(now, 0, &mut passed) {
        assert!(
            len <= passed.len() && passed[6..12] == router.interfaces()[interface].config().mac
        );
        let hops = PACKET + if passed[PACKET] >> 4 == 4 { 8 } else { 7 };
        assert_eq!(passed[hops] + 1, frame[hops]);
        assert_eq!(passed[len..], frame[len..]);
    }
    settle(router, now);
}

/// Sends the router's own frames.
pub(super) fn settle(router: &mut Router, now: Time) {
    for at in 0..router.interfaces().len() {
        let mut sent = Vec::new();
        for count in 0.. {
            sent.clear();
            if !router.poll_frame(now, at, &mut sent) {
                break;
            }
            assert!(
                count < MOST_OUTPUT && sent.len() > PACKET,
                "the router must stop sending"
            );
        }
    }
    router.check();
}
