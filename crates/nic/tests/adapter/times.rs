//! Timestamps of bytes (SO_TIMESTAMPING).

use crate::world::*;
use baton_bus::HostLink;
use baton_bus::descriptor::{Action, Buffer, Moment, Opcode, Outcome, SocketOption, Status, Times};
use baton_tcp::ConnId;
use baton_wire::{Span, Stage, Stages, Time};

const EPOCH_NS: u64 = 5_000_000_000;

/// Creates a world with a connection, socket 2, and an adapter whose clock the application shares.
fn connected() -> (World, ConnId) {
    let mut world = World::new();
    let session = world.apps[0].session.expect("it is attached");
    world.adapter.set_epoch(session, EPOCH_NS);
    world.listen(0, 1, 80);
    let peer = world.connection(0, 1, 2, 80);
    // Data does not wait for acknowledgments (Nagle).
    let (option, value) = (SocketOption::NoDelay, 1);
    world.ask(0, 2, Action::SetOption { option, value });
    world.answers(0);
    (world, peer)
}

fn set(world: &mut World, times: Times) -> Status {
    let (option, value) = (SocketOption::Times, times.bits());
    world.ask(0, 2, Action::SetOption { option, value });
    let [answer] = world.answers(0)[..] else {
        panic!("expected one answer");
    };
    assert_eq!(answer.outcome, Outcome::Done(Opcode::SetOption));
    answer.status
}

/// Posts a SEND of `len` bytes that requests times of its last byte.
fn post_timed(world: &mut World, at: u64, len: u32, times: Stages) {
    let link = &mut world.apps[0].link;
    let address = link.place(data(at, len)).expect("a buffer is free");
    let data = Buffer::Memory { address, len };
    world.post(
        0,
        2,
        Action::Send {
            data,
            more: false,
            times,
        },
    );
}

/// Returns the reported times in order, and drops all other responses.
fn told(world: &mut World) -> Vec<(Moment, u64)> {
    let answers = world.answers(0).into_iter();
    let times = answers.filter_map(|answer| match answer.outcome {
        Outcome::Time { what, at_ns } => Some((what, at_ns)),
        _ => None,
    });
    times.collect()
}

fn ns(at: Time) -> u64 {
    EPOCH_NS + at.as_ps() / 1000
}

fn reached(stage: Stage, byte: u32, at: Time) -> (Moment, u64) {
    (Moment::Reached { stage, byte }, ns(at))
}

#[test]
fn bytes_are_counted_and_each_stage_is_reported_when_reached() {
    let (mut world, _) = connected();
    world.is_cut = true;
    world.post_send(0, 2, data(0, 100));
    world.run();
    world.answers(0);
    assert_eq!(set(&mut world, Times::FROM_UNACKNOWLEDGED), Status::Ok);
    let sent_at = world.now;
    post_timed(&mut world, 100, 1000, Stages::all());
    // This SEND requests no times; the next one requests the time of one stage.
    world.post_send(0, 2, data(1100, 10));
    post_timed(&mut world, 1110, 10, Stages::ACKNOWLEDGED);
    world.run();
    let first = [Stage::Scheduled, Stage::Sent].map(|stage| reached(stage, 1099, sent_at));
    assert_eq!(told(&mut world), first, "the data is not acknowledged yet");
    world.is_cut = false;
    world.wait(Span::from_secs(3));
    let acknowledged = told(&mut world);
    let what: Vec<_> = acknowledged.iter().map(|&(what, _)| what).collect();
    let stage = Stage::Acknowledged;
    let expected = [1099, 1119].map(|byte| Moment::Reached { stage, byte });
    assert_eq!(what, expected);
    assert!(
        acknowledged
            .iter()
            .all(|&(_, at)| at > ns(sent_at) && at <= ns(world.now))
    );
    assert_eq!(set(&mut world, Times::FROM_NEXT), Status::Ok);
    let now = world.now;
    post_timed(&mut world, 1120, 10, Stages::SENT);
    world.run();
    assert_eq!(told(&mut world), [reached(Stage::Sent, 9, now)]);
    assert_eq!(world.adapter.stats().times_told, 5);
}

#[test]
fn the_time_of_arrival_goes_before_the_data() {
    let (mut world, peer) = connected();
    assert_eq!(set(&mut world, Times::RECEIVED), Status::Ok);
    // The data arrives before a RECV is posted.
    let arrived_at = world.now;
    world.peer_sends(peer, data(0, 3000));
    world.wait(Span::from_ms(5));
    let (tag, _) = world.post_receive(0, 2, 4096);
    world.run();
    let answers = world.answers(0);
    assert_eq!(answers.len(), 2, "{answers:?}");
    let (what, at_ns) = (Moment::Arrived, ns(arrived_at));
    assert_eq!(answers[0].outcome, Outcome::Time { what, at_ns });
    assert_eq!(answers[1].tag, tag);
    world.take(0, answers[1].outcome);
    assert_eq!(set(&mut world, Times::empty()), Status::Ok);
    world.post_receive(0, 2, 4096);
    world.peer_sends(peer, data(3000, 3000));
    assert_eq!(told(&mut world), []);
}

#[test]
fn without_a_shared_clock_times_are_refused_with_a_reason() {
    let mut world = World::new();
    world.listen(0, 1, 80);
    world.connection(0, 1, 2, 80);
    assert_eq!(set(&mut world, Times::RECEIVED), Status::NoClock);
    // A SEND that requests times nevertheless is refused.
    post_timed(&mut world, 0, 10, Stages::SENT);
    world.run();
    let statuses: Vec<_> = world.answers(0).iter().map(|one| one.status).collect();
    assert_eq!(statuses, [Status::WrongState]);
}

#[test]
fn unknown_times_are_refused() {
    let (mut world, _) = connected();
    let times = Times::from_bits_retain(1 << 3);
    assert_eq!(set(&mut world, times), Status::BadValue);
    let (option, value) = (SocketOption::Times, 0);
    world.ask(0, 1, Action::SetOption { option, value });
    let statuses: Vec<_> = world.answers(0).iter().map(|one| one.status).collect();
    assert_eq!(statuses, [Status::WrongState], "a listener has no times");
}
