//! Queues, limits and order of work, with packets that are nobody's and commands that are for nobody: no TCP needed.

use crate::common::{host_packet, stray};
use baton_bus::handoff::{Command, Handle, ToHost, ToNic};
use baton_nic::{Config, Drop, Firmware, Meter, Scheduler, Task, Work};
use baton_wire::{Symbolic, Time};

fn firmware(config: Config) -> Firmware<Symbolic> {
    Firmware::new(config, baton_tcp::Config::default(), 1)
}

fn command(n: u32) -> ToNic<Symbolic> {
    ToNic::Command(Command::PostReceive {
        handle: Handle(n),
        len: 1,
    })
}

#[derive(Default)]
struct Tasks(Vec<Task>);

impl Meter for Tasks {
    fn run(&mut self, task: Task) {
        self.0.push(task);
    }
}

/// Does all work and takes all outputs.
fn drain(nic: &mut Firmware<Symbolic>) -> (Vec<Work>, Vec<Task>) {
    let mut work = Vec::new();
    let mut tasks = Tasks::default();
    while let Some(done) = nic.poll_work(Time::ZERO, &mut tasks) {
        work.push(done);
        while nic.poll_frame().is_some() {}
        while nic.poll_upcall().is_some() {}
        nic.check();
    }
    assert!(!nic.has_work());
    (work, tasks.0)
}

/// Two commands, with a received packet and a packet to send between them.
fn mixed(scheduler: Scheduler) -> Vec<Work> {
    let mut nic = firmware(Config {
        scheduler,
        ..Config::default()
    });
    nic.handle_descriptor(Time::ZERO, command(0)).expect("room");
    nic.handle_frame(Time::ZERO, stray(0, 100)).expect("room");
    nic.handle_descriptor(Time::ZERO, host_packet(0))
        .expect("room");
    nic.handle_descriptor(Time::ZERO, command(1)).expect("room");
    assert!(nic.has_work());
    drain(&mut nic).0
}

#[test]
fn fcfs_is_in_order_of_arrival() {
    use Work::{HostReceive, HostSend, Lookup};
    assert_eq!(
        mixed(Scheduler::Fcfs),
        [Work::Command, Lookup, HostReceive, HostSend, Work::Command]
    );
}

#[test]
fn host_first_lets_host_packets_pass_commands() {
    use Work::{HostReceive, HostSend, Lookup};
    assert_eq!(
        mixed(Scheduler::HostFirst),
        [Lookup, HostReceive, HostSend, Work::Command, Work::Command]
    );
}

#[test]
fn lookup_goes_first_only_where_it_must() {
    use Work::{HostReceive, HostSend, Lookup};
    let order = |scheduler| {
        let mut nic = firmware(Config {
            scheduler,
            ..Config::default()
        });
        nic.handle_descriptor(Time::ZERO, host_packet(0))
            .expect("room");
        nic.handle_frame(Time::ZERO, stray(0, 0)).expect("room");
        nic.handle_frame(Time::ZERO, stray(1, 0)).expect("room");
        drain(&mut nic).0
    };
    assert_eq!(
        order(Scheduler::HostFirst),
        [Lookup, Lookup, HostSend, HostReceive, HostReceive]
    );
    assert_eq!(
        order(Scheduler::Fcfs),
        [HostSend, Lookup, HostReceive, Lookup, HostReceive]
    );
}

#[test]
fn the_meter_hears_every_task() {
    let mut nic = firmware(Config::default());
    nic.handle_frame(Time::ZERO, stray(0, 0)).expect("room");
    nic.handle_descriptor(Time::ZERO, host_packet(0))
        .expect("room");
    nic.handle_descriptor(Time::ZERO, command(0)).expect("room");
    let (_, tasks) = drain(&mut nic);
    assert_eq!(
        tasks,
        [
            Task::Lookup,
            Task::HostReceive,
            Task::HostSend,
            Task::Command
        ]
    );
    for task in tasks {
        assert_eq!(nic.stats().task(task), 1);
    }
    assert_eq!(nic.stats().ignored.no_connection, 1);
}

#[test]
fn arrivals_are_finite() {
    let mut nic = firmware(Config {
        arrival_queue_packets: 2,
        ..Config::default()
    });
    for n in 0..2 {
        nic.handle_frame(Time::ZERO, stray(n, 0)).expect("room");
    }
    assert_eq!(
        nic.handle_frame(Time::ZERO, stray(2, 0)),
        Err(Drop::ArrivalQueue)
    );
    nic.check();
    assert_eq!(nic.stats().dropped.arrival_queue, 1);
    assert_eq!(nic.stats().dropped.total(), 1);
    drain(&mut nic);
    assert_eq!(nic.handle_frame(Time::ZERO, stray(2, 0)), Ok(()));
}

#[test]
fn received_packets_share_the_memory() {
    let mut nic = firmware(Config {
        memory_kib: 4,
        ..Config::default()
    });
    let mut entered = 0;
    while nic.handle_frame(Time::ZERO, stray(0, 1460)).is_ok() {
        entered += 1;
        nic.check();
    }
    assert_eq!(entered, 4096 / (1460 + 40 + 18));
    assert_eq!(nic.stats().dropped.memory, 1);
    drain(&mut nic);
    assert_eq!(nic.memory_free(), 4096);
}

/// Host first looks all arrivals up before it serves any, first come first served each in its turn: so the one can fill the
/// queue behind lookup, the other cannot.
#[test]
fn the_receive_queue_is_finite() {
    for (scheduler, dropped) in [(Scheduler::Fcfs, 0), (Scheduler::HostFirst, 2)] {
        let mut nic = firmware(Config {
            scheduler,
            receive_queue_packets: 3,
            ..Config::default()
        });
        for n in 0..5 {
            nic.handle_frame(Time::ZERO, stray(n, 0)).expect("room");
        }
        let (work, _) = drain(&mut nic);
        let count = |kind| work.iter().filter(|&&work| work == kind).count() as u64;
        assert_eq!(count(Work::Lookup), 5);
        assert_eq!(count(Work::HostReceive), 5 - dropped);
        assert_eq!(nic.stats().dropped.host_receive_queue, dropped);
        assert_eq!(nic.memory_free(), 32 << 20);
    }
}

#[test]
fn qlen_is_the_queue_that_fills() {
    for scheduler in [Scheduler::Fcfs, Scheduler::HostFirst] {
        let mut nic = firmware(Config {
            scheduler,
            ..Config::default()
        });
        for n in 0..5 {
            nic.handle_frame(Time::ZERO, stray(n, 0)).expect("room");
        }
        let arrivals_count = scheduler == Scheduler::Fcfs;
        assert_eq!(nic.qlen(), if arrivals_count { 5 } else { 0 });
    }
}

#[test]
fn full_descriptor_queues_give_back() {
    let mut nic = firmware(Config {
        descriptor_queue_entries: 1,
        ..Config::default()
    });
    nic.handle_descriptor(Time::ZERO, host_packet(0))
        .expect("room");
    nic.handle_descriptor(Time::ZERO, command(0))
        .expect("a queue of its own");
    assert_eq!(
        nic.handle_descriptor(Time::ZERO, host_packet(1)),
        Err(host_packet(1))
    );
    assert_eq!(
        nic.handle_descriptor(Time::ZERO, command(1)),
        Err(command(1))
    );
    assert_eq!(nic.stats().descriptors_given_back, 2);
    let lengths = nic.queue_lengths();
    assert_eq!((lengths.host_send, lengths.commands), (1, 1));
}

#[test]
fn delays_are_measured_from_arrival() {
    let mut nic = firmware(Config::default());
    nic.handle_frame(Time::from_ps(10), stray(0, 0))
        .expect("room");
    nic.handle_descriptor(Time::from_ps(20), host_packet(0))
        .expect("room");
    let mut tasks = Tasks::default();
    assert_eq!(
        nic.poll_work(Time::from_ps(30), &mut tasks),
        Some(Work::Lookup)
    );
    assert_eq!(
        nic.poll_work(Time::from_ps(30), &mut tasks),
        Some(Work::HostReceive)
    );
    assert_eq!(
        nic.poll_upcall().map(|upcall| upcall.host_since),
        Some(Some(Time::from_ps(10)))
    );
    assert_eq!(
        nic.poll_work(Time::from_ps(30), &mut tasks),
        Some(Work::HostSend)
    );
    assert_eq!(
        nic.poll_frame().map(|frame| frame.host_since),
        Some(Some(Time::from_ps(20)))
    );
}

#[test]
fn sent_packets_are_reported_in_batches() {
    let mut nic = firmware(Config::default());
    for n in 0..20 {
        nic.handle_descriptor(Time::ZERO, host_packet(n))
            .expect("room");
    }
    let mut reports = Vec::new();
    while nic.poll_work(Time::ZERO, &mut baton_nic::NoMeter).is_some() {
        while nic.poll_frame().is_some() {}
        while let Some(upcall) = nic.poll_upcall() {
            reports.push(upcall.item);
        }
    }
    assert_eq!(reports, [ToHost::Sent(16), ToHost::Sent(4)]);
}
