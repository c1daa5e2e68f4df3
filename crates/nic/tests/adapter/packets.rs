//! Packets of the host's own stack in random parts.

use crate::caching::{CACHE_BYTES, start};
use crate::world::*;
use baton_bus::HostLink;
use baton_bus::descriptor::{Action, Buffer, Outcome};
use baton_testkit::{Random, for_each_seed};
use baton_wire::{Endpoint, Payload, Symbolic};
use std::collections::VecDeque;

/// Number of the packet socket.
const PACKETS: u32 = 7;

fn with_packets() -> World {
    let mut world = World::with(|config| {
        config.cache_bytes = CACHE_BYTES;
        config.most_inserts = 4;
        config.most_packets = 16;
    });
    start(&mut world, 0);
    world.post(0, PACKETS, Action::PacketSocket);
    world.ask(0, PACKETS, Action::Bind(Endpoint::new(ADAPTER, 0)));
    world.answers(0);
    world
}

fn post_cached(world: &mut World, offset: u32, len: u32, more: bool) -> u32 {
    world.post(0, PACKETS, Action::SendCached { offset, len, more })
}

/// Takes the packets that the adapter sends to the wire.
fn packets(world: &mut World) -> Vec<Vec<Symbolic>> {
    let packets = std::iter::from_fn(|| world.adapter.poll_packet());
    let parts = packets.map(|packet| {
        assert!(packet.to_wire);
        packet.parts.into_vec()
    });
    parts.collect()
}

/// A host's record of requests in progress, and of buffers in use.
#[derive(Default)]
struct Account {
    /// SENDs in progress: tag, and buffer if there is one.
    sends: VecDeque<(u32, Option<u64>)>,
}

impl Account {
    /// Handles answers. A cumulative answer frees the buffers of all earlier SENDs, too.
    fn settle(&mut self, world: &mut World) {
        for response in world.answers(0) {
            let Outcome::Sent { cumulative, .. } = response.outcome else {
                continue;
            };
            let place = self.sends.iter().position(|&(tag, _)| tag == response.tag);
            let place = place.expect("the request was sent, and not answered before");
            let first = if cumulative { 0 } else { place };
            for (_, address) in self.sends.drain(first..=place) {
                if let Some(address) = address {
                    world.apps[0].link.free(address);
                }
            }
        }
    }
}

/// Posts a packet whose first part is in memory, and whose other parts are in memory, in the cache, or outside it. Returns the parts that are
/// expected to be sent, or `None` if the packet must be refused.
fn post_random(
    world: &mut World,
    account: &mut Account,
    random: &mut Random,
    cached: (u32, Symbolic),
) -> Option<Vec<Symbolic>> {
    let (at, block) = cached;
    let count = 1 + random.below(4);
    let mut packet = Some(Vec::new());
    for index in 0..count {
        let more = index + 1 < count;
        let part = match random.below(8) {
            place if place < 4 || index == 0 => {
                let part = data(50_000 * random.below(9), 40 + random.below(50) as u32);
                let address = world.apps[0].link.place(part).expect("a buffer is free");
                let data = Buffer::Memory {
                    address,
                    len: part.len,
                };
                let tag = world.post(0, PACKETS, Action::send(data, more));
                account.sends.push_back((tag, Some(address)));
                Some(part)
            }
            7 => {
                let tag = post_cached(world, CACHE_BYTES, 1, more);
                account.sends.push_back((tag, None));
                None
            }
            _ => {
                let len = 1 + random.below(u64::from(block.len)) as u32;
                let tag = post_cached(world, at, len, more);
                account.sends.push_back((tag, None));
                Some(block.slice(0, len as usize))
            }
        };
        match part {
            Some(part) => packet.as_mut().into_iter().for_each(|all| all.push(part)),
            None => packet = None,
        }
    }
    packet
}

#[test]
fn packets_are_sent_whole_and_in_order_or_not_at_all() {
    for_each_seed(200, |seed| {
        let mut random = Random::new(seed);
        let mut world = with_packets();
        world.apps[0].faults.delay_dma(random.below(4) as u32);
        let (mut expected, mut sent) = (Vec::new(), Vec::new());
        let mut account = Account::default();
        for round in 0..40 {
            let at = 512 * random.below(4) as u32;
            let block = data(100_000 * random.below(50), 512 + random.below(3000) as u32);
            let address = world.apps[0].link.place(block).expect("a buffer is free");
            let insert = Action::CacheInsert {
                address,
                len: block.len,
                offset: at,
            };
            world.post(0, PACKETS, insert);
            let cached = (at, block);
            expected.extend(post_random(&mut world, &mut account, &mut random, cached));
            for _ in 0..random.below(8) {
                world.turn();
            }
            sent.extend(packets(&mut world));
            // Keep the number of INSERTs and SENDs in progress within its limit.
            if round % 4 == 3 || random.below(3) == 0 {
                world.run();
            }
            account.settle(&mut world);
        }
        world.run();
        account.settle(&mut world);
        sent.extend(packets(&mut world));
        assert_eq!(sent, expected);
        assert!(account.sends.is_empty(), "each request is answered");
    });
}
