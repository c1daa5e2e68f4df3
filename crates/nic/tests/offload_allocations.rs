//! In steady state a request served over the adapter's sockets costs no allocation. A binary of its own with one test, because it
//! counts what the whole process allocates.

#[path = "../../inet/tests/counting/mod.rs"]
mod counting;
mod serving;

use serving::Service;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

#[test]
fn requests_cost_no_allocations() {
    for connections in [1, 50] {
        let mut service = Service::new(connections);
        // Queues and tables find their size.
        for _ in 0..200 {
            service.round();
        }
        let (allocations, served) = (counting::allocations(), service.served);
        for _ in 0..200 {
            service.round();
        }
        let served = service.served - served;
        assert_eq!(served, 200 * u64::from(connections));
        let allocations = counting::allocations() - allocations;
        assert_eq!(allocations, 0, "allocations for {served} requests");
    }
}
