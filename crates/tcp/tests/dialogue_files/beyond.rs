//! Tests that dialogues cannot express: how the engine is called, and what it returns besides segments and events.

use crate::play::Player;
use baton_tcp::{
    Config, ConnId, DecodeError, Event, Moved, Portable, RunLimit, Segment, Stack, State,
};
use baton_testkit::{endpoint, symbolic};
use baton_wire::{Flags, Flow, Payload, Pieces, Span, Symbolic, Time};

pub const ALL: &[(&str, fn())] = baton_testkit::tests![
    arriving_segments_are_summarised,
    acks_in_a_row_are_one_event,
    pieces_share_a_segment,
    bursts_are_pushed_where_asked_for,
    a_four_tuple_is_used_once,
    initial_sequence_numbers,
    slots_are_used_again,
    a_slot_is_free_after_an_export,
    the_window_grows,
    what_was_not_polled_moves,
    a_refused_state_is_given_back,
    linuxs_rules_move_as_bytes,
    what_a_path_carries_moves,
    merged_segments_report_a_repeated_part_once,
    time_wait_ends_by_a_syn,
    half_a_million_in_time_wait,
];

const ACCEPTED: &str = "plain\naccepted <mss 1000> win 60000";

/// A dialogue that leaves an accepted connection in TIME-WAIT, because this end closes first: SND.NXT is 2, RCV.NXT is 2.
const WAITING: &str = "plain
    accepted <mss 1000>
    close
    > F. 1:1(0) ack 1
    < F. 1:1(0) ack 2
    > . 2:2(0) ack 2";

fn events(stack: &mut Stack<Symbolic>) -> Vec<Event> {
    std::iter::from_fn(|| stack.poll_event())
        .map(|(_, event)| event)
        .collect()
}

/// Returns the data of the segments that the stack sends now.
fn sent(player: &mut Player) -> Vec<Pieces<Symbolic>> {
    let now = player.now;
    std::iter::from_fn(|| player.stack.poll_transmit(now))
        .map(|(_, segment)| segment.payload)
        .collect()
}

fn arriving_segments_are_summarised() {
    let mut player = Player::after("plain\nlisten");
    let syn = player.arrives("S 0:0(0) <mss 1000>");
    assert!(syn.syn && syn.conn.is_some());
    let mut player = Player::after(ACCEPTED);
    let id = player.id().expect("it is open");
    let written = player.stack.write(id, symbolic(1, 0, 1000));
    assert_eq!((written, sent(&mut player).len()), (Ok(1000), 1));
    let handled = player.arrives("P. 1:101(100) ack 1001");
    let told = (handled.syn, handled.data_len, handled.new_ack);
    assert_eq!(told, (false, 100, true));
    assert_eq!((handled.conn, handled.refused), (Some(id), None));
}

fn acks_in_a_row_are_one_event() {
    let mut player = Player::after(ACCEPTED);
    let id = player.id().expect("it is open");
    player
        .stack
        .write(id, symbolic(1, 0, 3000))
        .expect("it is open");
    sent(&mut player);
    player.arrives(". 1:1(0) ack 1001");
    player.arrives(". 1:1(0) ack 2001");
    assert_eq!(events(&mut player.stack), [Event::Acknowledged(2000)]);
}

fn pieces_share_a_segment() {
    let mut player = Player::after(&format!("{ACCEPTED}\ncork on"));
    let id = player.id().expect("it is open");
    let (header, content) = (symbolic(1, 0, 300), symbolic(55, 4096, 1000));
    player.stack.write(id, header).expect("it is open");
    player.stack.write(id, content).expect("it is open");
    player.stack.set_cork(id, false);
    let sent = sent(&mut player);
    assert_eq!(sent[0].as_slice(), [header, symbolic(55, 4096, 700)]);
    assert_eq!(sent[1].as_slice(), [symbolic(55, 4796, 300)]);
}

/// By RFC 9293 3.9.1.2, a segment in the middle of a write has no PSH, but Linux sets it.
fn bursts_are_pushed_where_asked_for() {
    for asked in [false, true] {
        let limit = RunLimit {
            segments: 3,
            packet_len: 1500,
        };
        let opened = "accepted <mss 1000,sackOK> win 60000";
        let mut player = Player::after(&format!(
            "config linux = {{ push_bursts = {asked} }}\n{opened}"
        ));
        let (now, id) = (player.now, player.id().expect("it is open"));
        player
            .stack
            .write(id, symbolic(1, 0, 4000))
            .expect("it is open");
        let run = player.stack.poll_run(now, limit).expect("data");
        assert_eq!((run.segments, run.pushes), (3, asked));
        let rest = player.stack.poll_run(now, limit).expect("the rest");
        assert!(rest.first.header.flags.contains(Flags::PSH));
    }
}

fn a_four_tuple_is_used_once() {
    let mut player = Player::after("plain\nconnect\n> S 0:0(0)");
    let (now, flow) = (player.now, player.flow());
    assert_eq!(player.stack.connect(now, flow), None);
    assert_eq!(player.stack.find(&flow), player.id().ok());
    assert_eq!(player.stack.len(), 1);
    let mut player = Player::after(WAITING);
    let (now, flow) = (player.now, player.flow());
    assert_eq!(player.stack.connect(now, flow), None);
    let later = now + Span::from_secs(60);
    assert!(player.stack.connect(later, flow).is_some());
}

/// The initial sequence number depends on time, four-tuple and secret (RFC 6528 3).
fn initial_sequence_numbers() {
    let isn = |secret: u64, port: u16, now: Time| {
        let mut stack: Stack<Symbolic> = Stack::new(Config::default(), secret);
        let (local, remote) = (endpoint(1, port), endpoint(2, 80));
        stack.connect(now, Flow { local, remote });
        stack.poll_transmit(now).expect("a SYN").1.header.seq
    };
    let start = Time::ZERO;
    assert_eq!(isn(1, 5000, start), isn(1, 5000, start));
    assert_ne!(isn(1, 5000, start), isn(2, 5000, start));
    assert_ne!(isn(1, 5000, start), isn(1, 5001, start));
    // The number grows by one every four microseconds.
    let later = isn(1, 5000, start + Span::from_us(400));
    assert_eq!(later - isn(1, 5000, start), 100);
}

/// The last freed slot is reused first.
fn slots_are_used_again() {
    let opened = |peer| format!("\npeer {peer}\naccepted <mss 1000>");
    let mut player = Player::after(&["plain", &opened(0), &opened(1), &opened(2)].concat());
    let ids = player.ids();
    for peer in [0, 2, 1] {
        player.goes_on(&format!("peer {peer}\nabort\n> R. 1:1(0) ack 1"));
    }
    let again = [11, 12, 13].map(|peer| {
        player.goes_on(&format!("peer {peer}"));
        player.arrives("S 0:0(0)").conn
    });
    assert_eq!(again, [ids[1], ids[2], ids[0]].map(Some));
}

fn a_slot_is_free_after_an_export() {
    let mut player = Player::after(ACCEPTED);
    let id = player.id().expect("it is open");
    player.arrives("P. 1:101(100) ack 1");
    player.stack.export(player.now, id);
    assert_eq!((player.stack.len(), player.stack.poll_event()), (0, None));
    player.goes_on("peer 1");
    assert_eq!(player.arrives("S 0:0(0)").conn, Some(ConnId(id.0)));
    // Pending segments of the slot's previous connection are gone.
    assert_eq!(sent(&mut player).len(), 1);
}

/// Acknowledges everything in flight, segment by segment; returns how many segments follow.
fn round(player: &mut Player, acked: &mut u32, in_flight: usize) -> usize {
    let mut follow = 0;
    for _ in 0..in_flight {
        *acked += 1000;
        player.arrives(&format!(". 1:1(0) ack {acked} win 60000"));
        follow += sent(player).len();
    }
    follow
}

/// Returns the number of segments in flight after each round trip, starting with `first`.
fn rounds(player: &mut Player, acked: &mut u32, first: usize, count: usize) -> Vec<usize> {
    let mut rounds = vec![first];
    for last in 0..count {
        let next = round(player, acked, rounds[last]);
        rounds.push(next);
    }
    rounds
}

/// Slow start and congestion avoidance (RFC 5681 3.1, RFC 3465).
fn the_window_grows() {
    let text = "plain\nclassic\nconfig initial_window_segments = 2\nconfig send_buffer = 1048576";
    let mut player = Player::after(&format!("{text}\naccepted <mss 1000> win 60000"));
    let id = player.id().expect("it is open");
    player
        .stack
        .write(id, symbolic(1, 0, 1_000_000))
        .expect("it is open");
    let (first, mut acked) = (sent(&mut player).len(), 1);
    let slow_start = rounds(&mut player, &mut acked, first, 3);
    assert_eq!(slow_start, [2, 4, 8, 16]);
    for _ in 0..3 {
        player.arrives(&format!(". 1:1(0) ack {acked} win 60000"));
    }
    assert_eq!(
        sent(&mut player).len(),
        1,
        "the lost segment is retransmitted"
    );
    acked += 16_000;
    player.arrives(&format!(". 1:1(0) ack {acked} win 60000"));
    // ssthresh is 8, but nothing is in flight: the window starts at two, doubles each round trip up to 8, and then grows by one each round trip.
    let first = sent(&mut player).len();
    let climbs = rounds(&mut player, &mut acked, first, 6);
    assert_eq!(climbs, [2, 4, 8, 9, 10, 11, 12]);
}

fn what_was_not_polled_moves() {
    let mut player = Player::after(&format!("{ACCEPTED}\nwrite 500\n> P. 1:501(500) ack 1"));
    let id = player.id().expect("it is open");
    player.arrives("FP. 1:101(100) ack 501");
    let now = player.now;
    let state = player.stack.export(now, id);
    assert_eq!((state.state, state.unread()), (State::CloseWait, 100));
    let mut other = Stack::new(Config::default(), 4711);
    other
        .import(now, state)
        .expect("the stack does not have it yet");
    let told = [Event::Acknowledged(500), Event::Readable, Event::PeerClosed];
    assert_eq!(events(&mut other), told);
    let (_, ack) = other.poll_transmit(now).expect("an ACK");
    assert_eq!(
        ack.header.ack,
        player.segment("F. 102:102(0) ack 1").header.seq
    );
}

/// A state in which these rules are off has the same length as before the rules existed.
fn linuxs_rules_move_as_bytes() {
    let state_with = |rules: &str| {
        let mut player = Player::after(&format!("{rules}\n{ACCEPTED}"));
        let id = player.id().expect("it is open");
        player.stack.export(player.now, id)
    };
    let (without, with, probing) = (
        state_with(""),
        state_with("config linux = { push_bursts = true }"),
        state_with("config mtu_probing = { when = \"always\" }"),
    );
    let read = |bytes: &[u8]| Portable::<Symbolic>::from_bytes(bytes);
    for state in [&without, &with, &probing] {
        assert_eq!(read(&state.to_bytes()), Ok(state.clone()));
    }
    assert!(with.to_bytes().len() > without.to_bytes().len());
    let (mut cut, mut longer) = (with.to_bytes(), with.to_bytes());
    cut.pop();
    longer.push(0);
    assert!(matches!(read(&cut), Err(DecodeError::Malformed(_))));
    assert_eq!(read(&longer), Err(DecodeError::Trailing(1)));
    // The state also moves between host and adapter.
    for state in [with, probing] {
        let moved = Moved {
            unsent: vec![symbolic(1, 0, 10)],
            ..Moved::new(state)
        };
        assert_eq!(Moved::from_bytes(&moved.to_bytes()), Ok(moved));
    }
}

/// A path MTU that a connection has learned becomes known to the stack that it moves to, but only at the first move: otherwise, every
/// move would refresh an aging entry. The path MTU that a stack already knows applies to connections that arrive.
fn what_a_path_carries_moves() {
    let opened = "accepted <mss 1460> win 60000\nwrite 1460\n> P. 1:1461(1460) ack 1";
    let told = "icmp fragmentation-needed mtu 1200 seq 1\n> . 1:1161(1160) ack 1\n> P. 1161:1461(300) ack 1";
    let mut player = Player::after(&format!(
        "plain\nconfig mss = 1460\n{opened}\n{told}\npeer 1"
    ));
    let (now, other_flow) = (player.now, player.flow());
    let path_of = |stack: &mut Stack<Symbolic>, now, flow: Flow| {
        let id = stack.connect(now, flow).expect("a free four-tuple");
        let mtu = stack.info(now, id).path_mtu;
        stack.export(now, id);
        mtu
    };
    let id = player.ids()[0];
    let state = player.stack.export(now, id);
    let mut other = Stack::new(Config::default(), 4711);
    assert_eq!(path_of(&mut other, now, other_flow), 1500);
    let id = other
        .import(now, state)
        .expect("the stack does not have it yet");
    assert_eq!(path_of(&mut other, now, other_flow), 1200);
    let state = other.export(now, id);
    let mut third = Stack::new(Config::default(), 4712);
    let id = third
        .import(now, state)
        .expect("the stack does not have it yet");
    assert_eq!(third.info(now, id).path_mtu, 1200);
    assert_eq!(path_of(&mut third, now, other_flow), 1500);

    let id = third.connect(now, other_flow).expect("a free four-tuple");
    let state = third.export(now, id);
    let id = other
        .import(now, state)
        .expect("the stack does not have it yet");
    assert_eq!(other.info(now, id).path_mtu, 1200);
}

/// Only the first repeated part is reported, which may consist of several pieces (RFC 2883 4.2.2).
fn merged_segments_report_a_repeated_part_once() {
    let held = "< . 201:401(200) ack 1\n> . 1:1(0) ack 1\n< . 501:601(100) ack 1\n> . 1:1(0) ack 1";
    let mut player = Player::after(&format!(
        "plain\nconfig sack = true\naccepted <mss 1000,sackOK>\n{held}"
    ));
    let mut segment = player.segment(". 1:601(600) ack 1");
    let first = segment.header.seq;
    let whole = segment.payload[0];
    segment.payload = (0..6).map(|part| whole.slice(100 * part, 100)).collect();
    player.stack.handle_merged(player.now, &mut segment);
    let (_, ack) = player.stack.poll_transmit(player.now).expect("an ACK");
    assert_eq!(ack.header.ack, first + 600);
    let [report] = ack.header.options.sack[..] else {
        panic!("expected one block, got {:?}", ack.header.options.sack);
    };
    assert_eq!((report.start, report.end), (first + 200, first + 400));
}

fn a_refused_state_is_given_back() {
    let mut player = Player::after(&format!("{ACCEPTED}\nwrite 500\n> P. 1:501(500) ack 1"));
    let (now, id) = (player.now, player.id().expect("it is open"));
    let state = player.stack.export(now, id);
    assert_eq!((state.unacknowledged(), state.unread()), (500, 0));
    let stack = &mut player.stack;
    let refused = |stack: &mut Stack<Symbolic>, state: &Portable<Symbolic>, why: &str| {
        let given_back = stack.import(now, state.clone()).expect_err(why);
        assert_eq!(*given_back, *state);
    };
    let mut newer = state.clone();
    newer.version += 2;
    refused(stack, &newer, "another format");
    let mut broken = state.clone();
    broken.send_buffer.clear();
    refused(stack, &broken, "more was sent than was written");
    let id = stack
        .import(now, state.clone())
        .expect("the state is valid");
    refused(stack, &state, "the stack already has it");
    assert_eq!(player.stack.find(&player.flow()), Some(id));
    player.stack.check();
}

/// A stack whose listeners are in another stack can recognize a SYN that reopens a connection. If the stack itself accepts such a connection,
/// it chooses an initial sequence number beyond the old numbers.
fn time_wait_ends_by_a_syn() {
    let mut player = Player::after(WAITING);
    let (now, flow) = (player.now, player.flow());
    for no in ["S 1:1(0)", "S. 3:3(0) ack 2", "R 3:3(0)", ". 2:2(0) ack 2"] {
        let segment = player.segment(no);
        assert!(!player.stack.reopens_time_wait(now, &segment), "{no}");
    }
    let syn = player.segment("S 3:3(0)");
    assert!(player.stack.reopens_time_wait(now, &syn));
    assert!(!player.stack.in_time_wait(now, &flow));
    assert!(!player.stack.reopens_time_wait(now, &syn));
    assert_eq!(player.stack.poll_transmit(now), None);

    let mut player = Player::after(WAITING);
    let old = player.segment(". 2:2(0) ack 2").header.ack;
    // To ask whose the segment is changes nothing.
    assert!(player.stack.has_connection_of(now, &syn));
    assert!(player.stack.claims(now, &syn));
    assert!(player.stack.in_time_wait(now, &flow));
    player.arrives("S 3:3(0)");
    let (_, answer) = player.stack.poll_transmit(now).expect("an answer");
    assert!(answer.header.seq.after(old));
}

/// Connections in TIME-WAIT cost very little, and later ones replace those that have expired.
fn half_a_million_in_time_wait() {
    let mut player = Player::after("plain\nlisten backlog 10");
    let listener = player.listener().expect("it listens");
    let segments = ["S 0:0(0)", ". 1:1(0) ack 1", "F. 1:1(0) ack 2"];
    let [syn, ack, fin] = segments.map(|text| player.segment(text));
    let (stack, mut now) = (&mut player.stack, player.now);
    let wait = |stack: &mut Stack<Symbolic>, now: Time, number: u32| {
        let src = endpoint((number >> 16) as u8, number as u16);
        stack.handle_segment(now, Segment { src, ..syn.clone() });
        let (_, answer) = stack.poll_transmit(now).expect("an answer");
        let next = |of: &Segment<Symbolic>, distance| {
            let mut segment = Segment { src, ..of.clone() };
            segment.header.ack = answer.header.seq + distance;
            segment
        };
        stack.handle_segment(now, next(&ack, 1));
        let id = stack.accept(listener).expect("a connection is pending");
        stack.close(id);
        stack.poll_transmit(now).expect("a FIN");
        stack.handle_segment(now, next(&fin, 2));
        stack.poll_transmit(now).expect("an ACK");
        for event in events(stack) {
            assert!(matches!(event, Event::Acceptable(_) | Event::Closed(_)));
        }
    };
    for number in 0..500_000 {
        wait(stack, now, number);
        now += Span::from_us(100);
    }
    stack.check();
    assert_eq!((stack.len(), stack.time_wait_len()), (0, 500_000));
    let later = now + Span::from_secs(60);
    for number in 500_000..501_000 {
        wait(stack, later, number);
    }
    stack.check();
    assert!(stack.time_wait_len() < 500_000);
}
