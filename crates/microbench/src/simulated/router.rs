//! A router with two NICs, each of which is connected to a client by its own switch.

use super::SimulationError;
use super::application::{Application, Datagrams, IpRouter, Sending, What, hashes};
use super::counts::Counts;
use super::event::NicId;
use super::machine::Parts;
use super::world::{Link, World};
use crate::applications::{Drivers, Machines, RouterTraffic, RouterTrial};
use crate::port::{Machine, Place};
use baton_inet::Router;
use baton_wire::{Span, Time};
use std::sync::Arc;

const ROUTER: u8 = 0;

/// Lets two clients replay `traffic` through a router at `rate` packets per second in total, and counts for a time after a warm-up.
///
/// # Errors
/// A profile describes something that cannot be simulated.
pub fn route(
    machines: &Machines<'_>,
    drivers: Drivers,
    traffic: &RouterTraffic,
    rate: f64,
    [warm_up, duration]: [Span; 2],
) -> Result<RouterTrial, SimulationError> {
    let mut world = world(machines, drivers, traffic, rate)?;
    let start = Time::ZERO + warm_up;
    let end = start + duration;
    world.run(start);
    world.machines[usize::from(ROUTER)].restart_counts(start);
    let before = world.counts(start);
    world.run(end);
    let after = world.counts(end);
    let of_all = Counts::sum(&after) - Counts::sum(&before);
    let of_router = after[usize::from(ROUTER)] - before[usize::from(ROUTER)];
    let mut losses = of_all.lost_before_wire;
    losses.add_all(&of_all.lost_after_wire);
    // Packets that a client had no time to send. The client's processor may lag slightly without that being a loss.
    let late = of_all.offered.saturating_sub(of_all.tried);
    if late > super::TOLERANCE {
        losses.add(Place::Sender, late);
    }
    let to_clients = of_all.delivered - of_router.delivered;
    Ok(RouterTrial {
        rate,
        seconds: duration.as_secs_f64(),
        offered: of_all.offered,
        forwarded: to_clients.saturating_sub(of_router.own),
        refused: of_router.refused,
        losses,
        too_many: of_router.too_many,
        interrupts: of_router.interrupts,
        uses: world.machines[usize::from(ROUTER)].uses(Machine::UnderTest, end),
    })
}

/// Creates the world in its initial state: machine 0 is the router, and machine n + 1 is behind its n-th NIC.
fn world(
    machines: &Machines<'_>,
    drivers: Drivers,
    traffic: &RouterTraffic,
    rate: f64,
) -> Result<World, SimulationError> {
    let mut router = Router::new(traffic.interfaces()).expect("the router's addresses are valid");
    for (interface, mut greeting) in traffic.greetings().into_iter().enumerate() {
        router.handle_frame(Time::ZERO, interface, &mut greeting);
        // Discard the answer.
        while router.poll_frame(Time::ZERO, interface, &mut Vec::new()) {}
    }
    let routes = traffic.routes() as u32;
    let mut all = vec![Parts {
        nics: vec![machines.nic; 2],
        adapter: None,
        host: machines.host,
        drivers,
        applications: vec![Application::Router(Box::new(IpRouter::new(
            router,
            machines.host.driver.route,
            routes,
        )))],
    }];
    for (frames, share) in traffic.frames().iter().zip(traffic.shares()) {
        let sending = Sending {
            what: What::Frames(Arc::clone(frames)),
            to: ROUTER,
            hashes: hashes([0; 2], 1),
            rate: rate * share,
            burst: 1,
            phase: 0.0,
            most: if frames.is_empty() { 0 } else { u64::MAX },
        };
        all.push(Parts {
            nics: vec![machines.client_nic],
            adapter: None,
            host: machines.client_host,
            drivers: Drivers::Interrupt,
            applications: vec![Application::Datagrams(Datagrams::sending(sending))],
        });
    }
    let link = |nic| {
        let of = |machine, nic| NicId { machine, nic };
        Link::Switch(vec![of(ROUTER, nic), of(nic + 1, 0)])
    };
    World::new(machines.link_rate(), all, vec![link(0), link(1)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_sim::config::NicHardware;
    use baton_workload::packets::StandIn;
    use smoltcp::phy::ChecksumCapabilities;
    use smoltcp::wire::{EthernetFrame, Icmpv4Message, Icmpv4Packet, Ipv4Packet, Ipv4Repr};
    use std::collections::BTreeMap;

    /// Forwards traffic for a while, and returns the world and the frames that each client received.
    fn forward(traffic: &RouterTraffic, rate: f64) -> (World, [Vec<Vec<u8>>; 2]) {
        let (nic, host) = (NicHardware::default(), crate::profile::host("athlon-2600"));
        let machines = Machines {
            nic: &nic,
            host: &host,
            client_nic: &nic,
            client_host: &host,
        };
        let mut world = world(&machines, Drivers::Interrupt, traffic, rate).expect("it works");
        world.run(Time::ZERO + Span::from_ms(40));
        let got =
            [1, 2].map(
                |client: usize| match &mut world.machines[client].cores[0].application {
                    Application::Datagrams(client) => std::mem::take(&mut client.taken),
                    _ => unreachable!("a client"),
                },
            );
        (world, got)
    }

    #[test]
    fn an_independent_parser_reads_the_forwarded_packets() {
        let trace = StandIn::Aix.generate(9, 1_000);
        let traffic = RouterTraffic::of(&trace);
        let (_, got) = forward(&traffic, 100e3);
        // Clients begin with their first frame and send in order.
        for (receiver, frames) in got.iter().enumerate() {
            let sender = 1 - receiver;
            assert!(frames.len() > 1_500, "{}", frames.len());
            let all = &traffic.frames()[sender];
            for (number, frame) in frames.iter().enumerate() {
                let sent = &all[number % all.len()];
                assert_eq!(frame.len(), sent.len());
                let ethernet = EthernetFrame::new_checked(&frame[..]).expect("a frame");
                assert_eq!(ethernet.src_addr().0, [2, 0, 0, 0, 1, receiver as u8]);
                assert_eq!(ethernet.dst_addr().0, [2, 0, 0, 0, 2, receiver as u8]);
                let ip = Ipv4Packet::new_checked(ethernet.payload()).expect("a packet");
                Ipv4Repr::parse(&ip, &ChecksumCapabilities::default())
                    .expect("its checksum is right");
                let before = Ipv4Packet::new_checked(&sent[14..]).expect("a packet");
                assert_eq!(ip.hop_limit(), before.hop_limit() - 1);
                assert_eq!(ip.dst_addr(), before.dst_addr());
                assert_eq!(ip.total_len(), before.total_len());
            }
        }
    }

    #[test]
    fn the_sender_of_an_undeliverable_packet_receives_an_icmp_error() {
        let mut trace = StandIn::Adv.generate(9, 200);
        for packet in &mut trace.packets {
            packet.ttl = 1;
        }
        let traffic = RouterTraffic::of(&trace);
        let senders: BTreeMap<_, _> = trace.packets.iter().map(|one| (one.src, ())).collect();
        let (_, got) = forward(&traffic, 10e3);
        let errors: Vec<_> = got.iter().flatten().collect();
        // The router may send a hundred errors per second, and bursts of a hundred.
        assert!((10..=204).contains(&errors.len()), "{}", errors.len());
        for frame in errors {
            let ethernet = EthernetFrame::new_checked(&frame[..]).expect("a frame");
            let ip = Ipv4Packet::new_checked(ethernet.payload()).expect("a packet");
            assert!(senders.contains_key(&ip.dst_addr()), "{}", ip.dst_addr());
            let icmp = Icmpv4Packet::new_checked(ip.payload()).expect("a message");
            assert_eq!(icmp.msg_type(), Icmpv4Message::TimeExceeded);
            assert!(icmp.verify_checksum());
        }
    }

    #[test]
    fn an_overloaded_router_holds_a_bounded_number_of_packets() {
        let traffic = RouterTraffic::of(&StandIn::Nlanr.generate(9, 1_000));
        // More than the router can forward.
        let (world, got) = forward(&traffic, 700e3);
        assert!(got.iter().all(|frames| !frames.is_empty()));
        let counts = Counts::sum(&world.counts(Time::ZERO + Span::from_ms(40)));
        let lost = counts.lost_before_wire.total() + counts.lost_after_wire.total();
        let ended = lost + counts.too_many + got.iter().map(Vec::len).sum::<usize>() as u64;
        let under_way = counts.tried - ended;
        assert!(
            under_way < 6_000,
            "queues and rings hold no more: {under_way}"
        );
    }
}
