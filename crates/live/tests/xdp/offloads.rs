//! Connections that move while the kernels at both ends use offloads: checksums, segmentation, receive coalescing, VLAN tags.

use crate::application::with_application_to;
use crate::guest::on_tap;
use crate::moving::{moves, opened};
use crate::peers::with_far_end;
use crate::wire::{FAR, NEAR, on_veth, run};
use baton_live::xdp::Mode;
use baton_sockets::Adapter;
use baton_testkit::Pattern;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::thread;

pub const ALL: &[(&str, fn())] = baton_testkit::tests![
    connections_move_with_any_offloads_and_mtus,
    connections_of_a_virtual_machine_move,
];

pub const MATRIX: &[(&str, fn())] =
    baton_testkit::tests![connections_move_in_the_whole_matrix_of_offloads];

/// Environment variable that, if set, runs the whole matrix, which takes half an hour.
pub const VARIABLE: &str = "BATON_ALL_OFFLOADS";

/// Features that `ethtool -K` can switch.
const FEATURES: [&str; 5] = ["tx", "tso", "gro", "gso", "rxvlan"];
const ALL_ON: usize = (1 << FEATURES.len()) - 1;
const TX_OFF: usize = ALL_ON & !1;
const MTUS: [u16; 3] = [1500, 1280, 9000];
const SIZES: [usize; 3] = [20_000, 100_000, 1_000_000];

/// One end of the veth pair: the enabled features, as a bit for each of [`FEATURES`], and the MTU.
#[derive(Clone, Copy, Debug)]
struct End {
    features: usize,
    mtu: u16,
}

impl End {
    fn prepare(self, name: &str) {
        run("ip", &["link", "set", name, "mtu", &self.mtu.to_string()]);
        // Switches each feature separately and ignores errors, because a feature may depend on another one that is off.
        for (bit, feature) in FEATURES.iter().enumerate() {
            let state = if self.features >> bit & 1 == 1 {
                "on"
            } else {
                "off"
            };
            let switched = Command::new("ethtool")
                .args(["-K", name, feature, state])
                .output();
            switched.expect("ethtool is installed");
        }
    }
}

/// Sends and receives transfers of all sizes over a connection that moves at each write of the near end.
fn exchange(adapter: &Adapter, listener: &TcpListener) {
    let (mut near, mut far) = opened(adapter, listener);
    for bytes in SIZES {
        let sent = Pattern::new(0).bytes(bytes);
        let mut arrived = vec![0; bytes];
        thread::scope(|scope| {
            scope.spawn(|| near.write_all(&sent).expect("the connection is open"));
            far.read_exact(&mut arrived).expect("the data arrives");
        });
        assert!(
            arrived == sent,
            "{bytes} bytes to the peer arrive unchanged"
        );
        arrived.fill(0);
        thread::scope(|scope| {
            scope.spawn(|| far.write_all(&sent).expect("the connection is open"));
            near.read_exact(&mut arrived).expect("the data arrives");
        });
        assert!(
            arrived == sent,
            "{bytes} bytes from the peer arrive unchanged"
        );
    }
}

/// Checks connections over IPv4 and IPv6 on a new veth pair.
fn check(mode: Mode, near: End, far: End) {
    on_veth(1, || check_here(mode, near, far));
}

/// Checks connections on an existing link.
fn check_here(mode: Mode, near: End, far: End) {
    println!("{mode}, near {near:?}, far {far:?}");
    let prepare = |name: &str| match name {
        NEAR => near.prepare(NEAR),
        _ => far.prepare(FAR),
    };
    with_far_end(&prepare, |listeners, _| {
        with_application_to(&listeners, Some(mode), |adapter, listeners, _| {
            for listener in listeners {
                exchange(adapter, listener);
            }
            let (there, _, bad) = moves(adapter);
            assert!(there >= 2, "connections move to the adapter: {there} moves");
            assert_eq!(bad, 0);
        });
    });
}

/// The virtual machine sends frames that are neither segmented nor have checksums.
fn connections_of_a_virtual_machine_move() {
    for mode in [Mode::Native, Mode::Generic] {
        for (features, mtu) in [(ALL_ON, 1500), (TX_OFF, 1500), (ALL_ON, 1280)] {
            let end = End { features, mtu };
            on_tap(mtu, || check_here(mode, end, end));
        }
    }
}

/// Tests Linux's defaults, single features off at either end, large MTUs, and different MTUs.
fn connections_move_with_any_offloads_and_mtus() {
    let all = |mtu| End {
        features: ALL_ON,
        mtu,
    };
    let only = |features| End {
        features,
        mtu: 1500,
    };
    for mode in [Mode::Native, Mode::Generic] {
        for (near, far) in [
            (all(1500), all(1500)),
            (only(TX_OFF), all(1500)),
            (only(0), all(1500)),
            (all(1500), only(TX_OFF)),
            (all(1500), only(ALL_ON & !2)),
            (all(9000), all(9000)),
            (only(0), all(9000)),
            (all(9000), all(1280)),
            (all(1280), all(9000)),
        ] {
            check(mode, near, far);
        }
    }
}

/// Tests each set of features at one end, with all and with none of them at the other end, and with each pair of MTUs.
fn connections_move_in_the_whole_matrix_of_offloads() {
    let pairs = || MTUS.into_iter().flat_map(|mtu| MTUS.map(|far| (mtu, far)));
    for features in (0..=ALL_ON).rev() {
        for (mtu, far_mtu) in pairs() {
            for (mode, others) in [Mode::Native, Mode::Generic]
                .into_iter()
                .flat_map(|mode| [(mode, 0), (mode, ALL_ON)])
            {
                let end = |features, mtu| End { features, mtu };
                check(mode, end(others, mtu), end(features, far_mtu));
                check(mode, end(features, mtu), end(others, far_mtu));
            }
        }
    }
}
