//! A custom scheduler for a live adapter with ports in memory: `cargo run --release -p baton-live --example live_scheduler`.

use baton_inet::{Host, InterfaceConfig};
use baton_live::adapter::{AdapterService, AdapterServiceConfig, Listeners};
use baton_live::port::{MemoryPort, memory_pair};
use baton_live::{Application, Clock, Engine};
use baton_nic::{Heads, Schedule, Scheduler, Source};
use baton_wire::{Endpoint, Flow, Span, Time};
use std::error::Error;

/// First come, first served, except that all waiting frames are looked up before any other work is done. Prints each choice.
#[derive(Debug)]
struct LookupFirst;

impl Schedule for LookupFirst {
    fn next(&self, heads: &Heads) -> Option<Source> {
        let lookup = heads.of(Source::Arrivals).map(|_| Source::Arrivals);
        let next = lookup.or_else(|| Scheduler::Fcfs.next(heads))?;
        println!("{next:?}");
        Some(next)
    }

    fn looks_up_first(&self) -> bool {
        true
    }
}

/// The host at the other end of the link.
struct Network;

impl Application for Network {
    fn handle(&mut self, _now: Time, _host: &mut Host) {}
}

fn engine(
    port: MemoryPort,
    mac: [u8; 6],
    address: &str,
) -> Result<Engine<MemoryPort>, Box<dyn Error>> {
    let interface = InterfaceConfig::new(mac, vec![address.parse()?]);
    let host = Host::new(interface, baton_tcp::Config::default(), 1)?;
    Ok(Engine::new(host, port, Clock::start()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let macs = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
    let (left, right) = memory_pair(macs, 1500);
    let mut adapter = engine(left, macs[0], "10.9.0.2/24")?;
    let mut network = engine(right, macs[1], "10.9.0.1/24")?;
    let config = AdapterServiceConfig::default();
    let socket = std::env::temp_dir().join(format!("scheduler-{}.sock", std::process::id()));
    let listeners = Listeners::open(&socket, None, config.limits)?;
    let mut service = AdapterService::new(config, Some(listeners), adapter.host_mut())?;
    service.set_schedule(Box::new(LookupFirst));

    // Three SYNs arrive at the same time, and the scheduler decides in which order the adapter works on them.
    for port in 1..=3 {
        let (local, remote) = (
            Endpoint::new([10, 9, 0, 1].into(), port),
            Endpoint::new([10, 9, 0, 2].into(), 80),
        );
        network
            .host_mut()
            .stack_mut()
            .connect(Time::ZERO, Flow { local, remote });
    }
    for ms in 0..4 {
        let now = Time::ZERO + Span::from_ms(ms);
        network.turn_at(now, &mut Network)?;
        println!("-- after {ms} ms:");
        adapter.turn_at(now, &mut service)?;
    }
    Ok(())
}
