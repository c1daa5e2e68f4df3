//! In steady state a request served over the adapter's sockets costs no allocation.

use crate::serving::Service;
use baton_testkit::allocations_of;

#[test]
fn requests_cost_no_allocations() {
    for connections in [1, 50] {
        let mut service = Service::new(connections);
        // Queues and tables find their size.
        (0..200).for_each(|_| service.round());
        let before = service.served;
        let allocations = allocations_of(|| (0..200).for_each(|_| service.round()));
        let served = service.served - before;
        assert_eq!(served, 200 * u64::from(connections));
        assert_eq!(allocations, 0, "allocations for {served} requests");
    }
}
