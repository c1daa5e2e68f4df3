use super::*;
use crate::config::Scheduler;
use baton_bus::descriptor::{Action, Buffer, Request, write_inline};

const FIRST: SessionId = SessionId(0);
const SECOND: SessionId = SessionId(1);

fn dispatch(scheduler: Scheduler) -> Dispatch<char> {
    let config = Config {
        scheduler,
        arrival_queue_packets: 2,
        receive_queue_packets: 1,
        ..Config::default()
    };
    let mut dispatch = Dispatch::new(&config);
    dispatch.attach(FIRST);
    dispatch
}

/// Queues a request of the first application.
fn ask(dispatch: &mut Dispatch<char>, entry: &[Descriptor], of_host: bool) {
    ask_of(dispatch, FIRST, entry, of_host);
}

fn ask_of(dispatch: &mut Dispatch<char>, of: SessionId, entry: &[Descriptor], of_host: bool) {
    let stamp = dispatch.next_stamp.take();
    let requests = dispatch.requests_of(of).unwrap();
    requests.push(stamp, Time::ZERO, entry, of_host);
}

/// Encodes a request of one descriptor.
fn entry(action: Action) -> Vec<Descriptor> {
    let (socket, tag) = (0, 0);
    let request = Request {
        socket,
        tag,
        action,
    };
    vec![request.encode()]
}

/// Returns the readiness of an application with no completed transfer, whose requests can be answered if `can_answer`.
fn answerable(can_answer: bool) -> impl Fn(SessionId) -> Ready {
    move |_| Ready {
        requests: if can_answer { usize::MAX } else { 0 },
        is_over: false,
    }
}

/// Encodes a SEND with its inline data, if any.
fn send(inline_bytes: u16) -> Vec<Descriptor> {
    let data = match inline_bytes {
        0 => Buffer::Memory { address: 0, len: 1 },
        len => Buffer::Inline { len },
    };
    let action = Action::send(data, false);
    let (socket, tag) = (1, 0);
    let mut head = Request {
        socket,
        tag,
        action,
    }
    .encode();
    let mut tail = Vec::new();
    if inline_bytes > 0 {
        write_inline(&mut head, &vec![7; inline_bytes.into()], &mut tail);
    }
    std::iter::once(head).chain(tail).collect()
}

/// Returns all pending pieces of work. Packets with lower-case letters belong to the host.
fn pieces(dispatch: &mut Dispatch<char>, can_answer: bool) -> Vec<Piece<char>> {
    let mut all = Vec::new();
    while let Some(piece) = dispatch.next_piece(answerable(can_answer), true) {
        dispatch.check();
        if let Piece::Lookup(frame) = piece {
            // Drops are counted.
            dispatch.sort(frame, frame.is_uppercase()).ok();
        }
        all.push(piece);
    }
    all
}

#[test]
fn host_packets_and_commands_wait_in_separate_queues() {
    use Piece::*;
    for (scheduler, expected) in [
        (
            Scheduler::HostFirst,
            [
                Lookup('A'),
                Lookup('b'),
                HostRequest,
                HostReceive('b'),
                Request(4),
                Request(1),
                Receive('A'),
            ],
        ),
        (
            Scheduler::Fcfs,
            [
                Request(4),
                Request(1),
                Lookup('A'),
                Receive('A'),
                HostRequest,
                Lookup('b'),
                HostReceive('b'),
            ],
        ),
    ] {
        let mut dispatch = dispatch(scheduler);
        ask(&mut dispatch, &send(100), false);
        ask(&mut dispatch, &send(0), false);
        dispatch.handle_frame('A').unwrap();
        ask(&mut dispatch, &send(0), true);
        dispatch.handle_frame('b').unwrap();
        assert_eq!(dispatch.handle_frame('c'), Err(Drop::ArrivalQueue));
        assert_eq!(pieces(&mut dispatch, true), expected);
        assert_eq!(dispatch.drops().arrival_queue, 1);
    }
}

#[test]
fn a_full_receive_queue_drops_and_counts() {
    let mut dispatch = dispatch(Scheduler::HostFirst);
    for frame in ['A', 'B'] {
        dispatch.handle_frame(frame).unwrap();
    }
    assert_eq!(pieces(&mut dispatch, true).len(), 3);
    let drops = dispatch.drops();
    let all: u64 = drops.iter().map(|(_, count)| count).sum();
    assert_eq!((drops.nic_receive_queue, all), (1, 1));
}

#[test]
fn requests_wait_until_they_can_be_answered() {
    let mut dispatch = dispatch(Scheduler::Fcfs);
    ask(&mut dispatch, &send(0), true);
    ask(&mut dispatch, &send(0), false);
    assert_eq!(pieces(&mut dispatch, false), []);
    assert!(dispatch.has_work(answerable(true)) && !dispatch.has_work(answerable(false)));
    assert_eq!(pieces(&mut dispatch, true).len(), 2);
}

#[test]
fn output_has_the_arrival_time_of_its_cause() {
    let mut dispatch = dispatch(Scheduler::Fcfs);
    dispatch.handle_frame('A').unwrap();
    dispatch.handle_timers();
    assert_eq!(
        dispatch.next_piece(answerable(true), true),
        Some(Piece::Lookup('A'))
    );
    dispatch.sort('A', true).unwrap();
    assert_eq!(
        dispatch.next_piece(answerable(true), true),
        Some(Piece::Receive('A'))
    );
    dispatch.handle_output();
    assert_eq!(
        dispatch.next_piece(answerable(true), true),
        Some(Piece::Transmit)
    );
    assert_eq!(
        dispatch.next_piece(answerable(true), false),
        Some(Piece::Timers)
    );
    assert_eq!(dispatch.next_piece(answerable(true), true), None);
}

#[test]
fn cache_commands_are_recognised_and_keep_their_place() {
    let mut dispatch = dispatch(Scheduler::HostFirst);
    let insert = Request {
        socket: 0,
        tag: 0,
        action: Action::CacheInsert {
            address: 0,
            len: 512,
            offset: 0,
        },
    };
    for entry in [vec![insert.encode()], send(0), vec![insert.encode()]] {
        ask(&mut dispatch, &entry, false);
    }
    let expected = [Piece::CacheCommand, Piece::Request(1), Piece::CacheCommand];
    assert_eq!(pieces(&mut dispatch, true), expected);
}

/// The contents of the cache depend on the order of requests: for cache commands, neither queue overtakes the other, whatever the scheduler
/// prefers.
#[test]
fn cache_commands_and_packets_from_the_cache_keep_their_order() {
    let insert = Action::CacheInsert {
        address: 0,
        len: 512,
        offset: 0,
    };
    let cached = Action::SendCached {
        offset: 0,
        len: 100,
        more: false,
    };
    let mut dispatch = dispatch(Scheduler::HostFirst);
    for (entry, of_host) in [
        (send(0), false),
        (entry(insert), false),
        (entry(cached), true),
        (entry(insert), false),
        (send(0), true),
    ] {
        ask(&mut dispatch, &entry, of_host);
    }
    let expected = [
        Piece::Request(1),
        Piece::CacheCommand,
        Piece::HostRequest,
        Piece::HostRequest,
        Piece::CacheCommand,
    ];
    assert_eq!(pieces(&mut dispatch, true), expected);
}

/// Returns the number of requests in each piece of work about packets of the host, if at most `requests` can be answered.
fn packets(dispatch: &mut Dispatch<char>, requests: usize) -> Vec<usize> {
    let ready = |_| Ready {
        requests,
        is_over: false,
    };
    let mut all = Vec::new();
    while let Some(piece) = dispatch.next_piece(ready, true) {
        dispatch.check();
        all.extend((piece == Piece::HostRequest).then_some(dispatch.entry.len()));
    }
    all
}

#[test]
fn the_parts_of_a_packet_are_served_together_where_possible() {
    let (address, offset, len) = (0, 0, 100);
    let part = |more| {
        let data = Buffer::Memory { address, len };
        entry(Action::send(data, more))
    };
    let cached = entry(Action::SendCached {
        offset,
        len,
        more: false,
    });
    let insert = entry(Action::CacheInsert {
        address,
        len: 512,
        offset,
    });
    let mut dispatch = dispatch(Scheduler::HostFirst);
    for (most, expected) in [(9, vec![3, 1]), (2, vec![2, 1, 1])] {
        for more in [true, true, false, false] {
            ask(&mut dispatch, &part(more), true);
        }
        assert_eq!(packets(&mut dispatch, most), expected);
    }
    // A SEND from the cache waits until earlier INSERTs have been executed.
    ask(&mut dispatch, &part(true), true);
    ask(&mut dispatch, &part(true), true);
    ask(&mut dispatch, &insert, false);
    ask(&mut dispatch, &cached, true);
    assert_eq!(packets(&mut dispatch, 9), [2, 1]);
}

/// Requests are served in order of arrival; an application that does not read its answers delays only itself.
#[test]
fn two_applications_take_turns() {
    let mut dispatch = dispatch(Scheduler::HostFirst);
    dispatch.attach(SECOND);
    for _ in 0..2 {
        ask_of(&mut dispatch, FIRST, &send(0), false);
        ask_of(&mut dispatch, SECOND, &send(100), false);
    }
    ask_of(&mut dispatch, SECOND, &send(0), true);
    assert_eq!(dispatch.queue_lengths().commands, 4);
    let turns = |dispatch: &mut Dispatch<char>, patient: SessionId, most: usize| {
        let ready = |session| Ready {
            requests: if session == patient { 0 } else { 9 },
            is_over: false,
        };
        let turns = std::iter::from_fn(|| {
            let piece = dispatch.next_piece(ready, true)?;
            dispatch.check();
            Some((dispatch.session(), piece))
        });
        turns.take(most).collect::<Vec<_>>()
    };
    let nobody = SessionId(9);
    assert_eq!(
        turns(&mut dispatch, nobody, 2),
        [(SECOND, Piece::HostRequest), (FIRST, Piece::Request(1))]
    );
    assert_eq!(
        turns(&mut dispatch, SECOND, 9),
        [(FIRST, Piece::Request(1))]
    );
    ask_of(&mut dispatch, FIRST, &send(0), false);
    assert_eq!(
        turns(&mut dispatch, nobody, 1),
        [(SECOND, Piece::Request(4))]
    );
    dispatch.detach(SECOND);
    assert_eq!(
        turns(&mut dispatch, nobody, 9),
        [(FIRST, Piece::Request(1))]
    );
}
