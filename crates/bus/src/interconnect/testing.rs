//! Drives an interconnect in tests.

use baton_wire::Time;

use super::{DeviceId, Done, Interconnect, Operation, Transfer};
use crate::{BytesByCategory, Category};

/// Returns a transfer of `bytes` of content.
pub(super) fn transfer(device: u8, operation: Operation, bytes: u64, tag: u64) -> Transfer {
    Transfer {
        device: DeviceId(device),
        operation,
        bytes: BytesByCategory::of(Category::Content, bytes),
        tag,
        reported: true,
    }
}

/// Drives `bus` until nothing is in progress. Returns the completed transfers.
pub(super) fn run(bus: &mut dyn Interconnect) -> Vec<Done> {
    let mut all = Vec::new();
    while let Some(at) = bus.poll_timeout() {
        bus.handle_timeout(at);
        while let Some(done) = bus.poll_done() {
            assert_eq!(
                done.at,
                at,
                "no transfer is done before the bound {} {}",
                at.as_ps() - done.at.as_ps(),
                &format!("{bus:?}")[..600]
            );
            all.push(done);
        }
        assert!(
            bus.poll_timeout().is_none_or(|next| next > at),
            "time stands still at {at:?}"
        );
    }
    all
}

/// Keeps `under_way` transfers in progress on `bus` until `count` have completed. Returns the time of the last. `next` returns the n-th
/// transfer.
pub(super) fn closed_loop(
    bus: &mut dyn Interconnect,
    under_way: u64,
    count: u64,
    mut next: impl FnMut(u64) -> Transfer,
) -> Time {
    for tag in 0..under_way {
        bus.submit(Time::ZERO, next(tag));
    }
    let (mut submitted, mut done) = (under_way, 0);
    let mut last = Time::ZERO;
    while let Some(at) = bus.poll_timeout() {
        bus.handle_timeout(at);
        while bus.poll_done().is_some() {
            done += 1;
            last = at;
            if submitted < count {
                bus.submit(at, next(submitted));
                submitted += 1;
            }
        }
    }
    assert_eq!(done, count);
    last
}
