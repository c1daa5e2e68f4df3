//! Memory that the host needs for sockets on the adapter, and for responses from the adapter's data cache.

use crate::serving::Service;
use baton_bus::descriptor::{Action, Opcode, Outcome, Request, Response, Status};
use baton_bus::link::{LinkError, Violation};
use baton_bus::{Descriptor, HostLink};
use baton_host::adapter::{OsLayer, OsLayerConfig};
use baton_testkit::{allocations_of, in_use};
use baton_wire::{Endpoint, Symbolic, Time};
use std::net::{IpAddr, Ipv4Addr};

/// Files in the adapter's data cache.
const FILES: u32 = 16;
/// Number of idle connections.
const CONNECTIONS: u64 = 10_000;
/// Maximum number of bytes that an idle connection may take on the host in addition to its buffer.
const MOST_BYTES: u64 = 512;

#[test]
fn requests_cost_no_allocations_and_idle_connections_little_memory() {
    for connections in [1, 50] {
        requests_cost_no_allocations(Service::new(connections), connections);
        let mut cached = Service::with_cache(connections, FILES);
        (0..FILES).for_each(|_| cached.round());
        requests_cost_no_allocations(cached, connections);
    }
    let bytes = bytes_per_idle_connection();
    println!("an idle connection takes {bytes} bytes on the host, in addition to its buffer");
    assert!(
        (100..=MOST_BYTES).contains(&bytes),
        "an idle connection takes {bytes} bytes"
    );
}

fn requests_cost_no_allocations(mut service: Service, connections: u32) {
    // Let queues and tables reach their final size.
    (0..200).for_each(|_| service.round());
    let before = service.served();
    let allocations = allocations_of(|| (0..200).for_each(|_| service.round()));
    let served = service.served() - before;
    assert_eq!(served, 200 * u64::from(connections));
    assert_eq!(allocations, 0, "allocations for {served} requests");
    let stats = service.os.nic_cache_stats();
    assert!(stats.is_none_or(|stats| stats.inserts == u64::from(FILES) && stats.hits >= served));
}

/// Returns the host's memory for each connection that waits for data.
fn bytes_per_idle_connection() -> u64 {
    let mut link = Yes::default();
    link.responses.reserve(1000);
    let before = in_use();
    let mut os = OsLayer::new(OsLayerConfig::default()).expect("the parameters are valid");
    let listener = os.listen(Time::ZERO, endpoint(), 128);
    assert!(listener.is_ok());
    while os.stats().accepted < CONNECTIONS {
        let moved = os.pump(Time::ZERO, &mut link);
        assert_eq!(moved, Ok(true));
        while os.next_ready().is_some() {}
        while os.accept().is_some() {}
    }
    os.check();
    (in_use() - before) / CONNECTIONS
}

fn endpoint() -> Endpoint {
    Endpoint::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 80)
}

/// A link to an adapter on which connections arrive continuously, but no data.
#[derive(Default)]
struct Yes {
    responses: Vec<Descriptor>,
    lent: u64,
}

impl HostLink for Yes {
    type Data = Symbolic;

    fn put(&mut self, _now: Time, requests: &[Descriptor]) -> Result<usize, LinkError> {
        for request in requests {
            let request = Request::decode(request).map_err(Violation::from)?;
            let outcome = match request.action {
                Action::Socket => Outcome::Done(Opcode::Socket),
                Action::Bind(_) => Outcome::Done(Opcode::Bind),
                Action::Listen { .. } => Outcome::Done(Opcode::Listen),
                Action::Accept { .. } => Outcome::Accepted(endpoint()),
                _ => continue,
            };
            let response = Response {
                socket: request.socket,
                tag: request.tag,
                status: Status::Ok,
                outcome,
            };
            self.responses.push(response.encode());
        }
        Ok(requests.len())
    }

    fn get(&mut self, _now: Time, responses: &mut Vec<Descriptor>) -> Result<(), LinkError> {
        responses.append(&mut self.responses);
        Ok(())
    }

    fn buffer_bytes(&self) -> u32 {
        4096
    }

    fn free_buffers(&self) -> usize {
        20_000 - self.lent as usize
    }

    fn place(&mut self, data: Symbolic) -> Result<u64, Symbolic> {
        Err(data)
    }

    fn reserve(&mut self) -> Option<u64> {
        self.lent += 1;
        Some(self.lent)
    }

    fn take(&mut self, address: u64, len: u32) -> Result<Symbolic, Violation> {
        Err(Violation::Range { address, len })
    }

    fn free(&mut self, _address: u64) {
        self.lent -= 1;
    }
}
