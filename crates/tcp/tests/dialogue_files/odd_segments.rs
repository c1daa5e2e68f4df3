//! Tests every combination of SYN, FIN, RST and ACK, with numbers inside, outside and across the edges of both windows, in every state,
//! against the answers of RFC 9293 3.10.7.

use crate::play::Player;
use baton_tcp::State;
use baton_wire::{Flags, SeqNr, Span};
use libtest_mimic::Trial;

/// A state, and the dialogue that leads to it. Numbers count from each side's SYN.
#[derive(Clone, Copy)]
struct Place {
    name: &'static str,
    text: &'static str,
    at: At,
    /// SND.UNA, SND.NXT, RCV.NXT and RCV.NXT + RCV.WND.
    una: i64,
    sent: i64,
    next: i64,
    edge: i64,
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
enum At {
    /// There is no connection, but a listener.
    Listen,
    /// There is neither a connection nor a listener.
    Closed,
    TimeWait,
    In(State),
}

const WINDOW: i64 = 10_000;

/// Largest window that a peer offers here.
const LARGEST: i64 = 65_535;

const PLACES: [Place; 14] = [
    place("closed", At::Closed, "plain\nlisten\nunlisten", [0, 0, 0]),
    place("listen", At::Listen, "plain\nlisten", [0, 0, 0]),
    place(
        "syn_sent",
        At::In(State::SynSent),
        "plain\nconnect\n> S 0:0(0)",
        [0, 1, 0],
    ),
    place(
        "syn_received",
        At::In(State::SynReceived),
        "plain\nlisten\n< S 0:0(0) <mss 1000>\n> S. 0:0(0) ack 1",
        [0, 1, 1],
    ),
    place(
        "syn_received_actively",
        At::In(State::SynReceived),
        "plain\nconnect\n> S 0:0(0)\n< S 0:0(0) <mss 1000>\n> S. 0:0(0) ack 1",
        [0, 1, 1],
    ),
    place(
        "established",
        At::In(State::Established),
        "plain\naccepted <mss 1000>\nwrite 100\n> P. 1:101(100) ack 1",
        [1, 101, 1],
    ),
    place(
        "established_behind_a_hole",
        At::In(State::Established),
        "plain\naccepted <mss 1000>\n< . 6:8(2) ack 1\n> . 1:1(0) ack 1",
        [1, 1, 1],
    ),
    Place {
        edge: 10_001,
        ..place(
            "established_at_a_closed_window",
            At::In(State::Established),
            "plain\naccepted <mss 1000>\n< . 1:10001(10000) ack 1\n> . 1:1(0) ack 10001 win 0",
            [1, 1, 10_001],
        )
    },
    place(
        "fin_wait_1",
        At::In(State::FinWait1),
        "plain\naccepted <mss 1000>\nshutdown\n> F. 1:1(0) ack 1",
        [1, 2, 1],
    ),
    place(
        "fin_wait_2",
        At::In(State::FinWait2),
        "plain\naccepted <mss 1000>\nshutdown\n> F. 1:1(0) ack 1\n< . 1:1(0) ack 2",
        [2, 2, 1],
    ),
    place(
        "close_wait",
        At::In(State::CloseWait),
        "plain\naccepted <mss 1000>\n< F. 1:1(0) ack 1\n> . 1:1(0) ack 2\nwrite 100\n> P. 1:101(100) ack 2",
        [1, 101, 2],
    ),
    place(
        "closing",
        At::In(State::Closing),
        "plain\naccepted <mss 1000>\nshutdown\n> F. 1:1(0) ack 1\n< F. 1:1(0) ack 1\n> . 2:2(0) ack 2",
        [1, 2, 2],
    ),
    place(
        "last_ack",
        At::In(State::LastAck),
        "plain\naccepted <mss 1000>\n< F. 1:1(0) ack 1\n> . 1:1(0) ack 2\nshutdown\n> F. 1:1(0) ack 2",
        [1, 2, 2],
    ),
    place(
        "time_wait",
        At::TimeWait,
        "plain\naccepted <mss 1000>\nshutdown\n> F. 1:1(0) ack 1\n< F. 1:1(0) ack 2\n> . 2:2(0) ack 2",
        [2, 2, 2],
    ),
];

const fn place(
    name: &'static str,
    at: At,
    text: &'static str,
    [una, sent, next]: [i64; 3],
) -> Place {
    let edge = next + WINDOW;
    Place {
        name,
        text,
        at,
        una,
        sent,
        next,
        edge,
    }
}

/// Timestamp of a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stamp {
    /// Timestamps are not in use.
    Unused,
    Old,
    Lacking,
}

/// A segment that arrives.
#[derive(Clone, Copy, Debug)]
struct Odd {
    flags: Flags,
    seq: i64,
    len: i64,
    ack: i64,
    stamp: Stamp,
}

impl Odd {
    fn has(self, flags: Flags) -> bool {
        self.flags.contains(flags)
    }

    /// Returns the sequence number of the first byte of data.
    fn first(self) -> i64 {
        self.seq + i64::from(self.has(Flags::SYN))
    }

    /// Returns SEG.SEQ + SEG.LEN.
    fn end(self) -> i64 {
        self.first() + self.len + i64::from(self.has(Flags::FIN))
    }

    fn text(self) -> String {
        let mut letters = String::new();
        for (flag, letter) in [(Flags::SYN, 'S'), (Flags::FIN, 'F'), (Flags::RST, 'R')] {
            letters.extend(self.has(flag).then_some(letter));
        }
        letters.extend(self.has(Flags::ACK).then_some('.'));
        if letters.is_empty() {
            letters.push('-');
        }
        let Self { seq, len, ack, .. } = self;
        let acks = match self.has(Flags::ACK) {
            true => format!(" ack {ack}"),
            false => String::new(),
        };
        let stamp = match self.stamp {
            Stamp::Unused => "",
            Stamp::Old => " <TS val 999 ecr 0>",
            Stamp::Lacking => " <noTS>",
        };
        format!("{letters} {seq}:{}({len}){acks}{stamp}", seq + len)
    }
}

/// The segment that is sent in response, if any, and the resulting state of the connection.
#[derive(Debug, PartialEq)]
struct Outcome {
    sent: Option<Sent>,
    at: At,
}

/// Flags, sequence number and acknowledgment number, where they are significant.
type Sent = (Flags, i64, i64);

const ACK: Flags = Flags::ACK;
const SYN: Flags = Flags::SYN;
const FIN: Flags = Flags::FIN;
const RST: Flags = Flags::RST;

/// Returns the response if there is no connection (RFC 9293 3.10.7.1).
fn refusal(odd: Odd) -> Option<Sent> {
    match (odd.has(RST), odd.has(ACK)) {
        (true, _) => None,
        (false, true) => Some((RST, odd.ack, 0)),
        (false, false) => Some((RST | ACK, 0, odd.end())),
    }
}

/// Returns the response of a listener (RFC 9293 3.10.7.2). Data of a SYN is not acknowledged, so that the peer retransmits it.
fn at_listener(odd: Odd) -> (Option<Sent>, At) {
    match (odd.has(RST), odd.has(ACK), odd.has(SYN)) {
        (false, true, _) => (refusal(odd), At::Listen),
        (false, false, true) => (
            Some((SYN | ACK, 0, odd.seq + 1)),
            At::In(State::SynReceived),
        ),
        _ => (None, At::Listen),
    }
}

/// Returns the response in SYN-SENT (RFC 9293 3.10.7.3, with RFC 5961 3.2: a reset needs an acceptable ACK).
fn in_syn_sent(place: Place, odd: Odd) -> (Option<Sent>, At) {
    let acceptable = odd.has(ACK) && odd.ack > place.una && odd.ack <= place.sent;
    if odd.has(ACK) && !acceptable {
        return (refusal(odd), place.at);
    }
    if odd.has(RST) {
        return match acceptable {
            true => (None, At::Listen),
            false => (None, place.at),
        };
    }
    if !odd.has(SYN) {
        return (None, place.at);
    }
    let text_end = odd.first() + odd.len;
    if !acceptable {
        // The FIN is not acknowledged, so that the peer retransmits it.
        return (Some((SYN | ACK, 0, text_end)), At::In(State::SynReceived));
    }
    let state = match odd.has(FIN) {
        true => State::CloseWait,
        false => State::Established,
    };
    (Some((ACK, 1, odd.end())), At::In(state))
}

/// Returns the response in TIME-WAIT (RFC 9293 3.10.7.4, with RFC 1122 4.2.2.13 and RFC 6191). A reset is ignored (RFC 1337 3). A SYN with a
/// FIN does not open a connection, since the FIN would end it.
fn in_time_wait(place: Place, odd: Odd) -> (Option<Sent>, At) {
    let answer = Some((ACK, place.sent, place.next));
    let next = odd.seq == place.next;
    if odd.has(RST) {
        return (None, place.at);
    }
    if odd.has(SYN) && !odd.has(ACK) && !odd.has(FIN) && odd.seq > place.next {
        return at_listener(odd);
    }
    if odd.has(SYN) {
        return (answer, place.at);
    }
    // Only a repeated FIN is expected. An empty segment in order needs no answer.
    match next && (!odd.has(ACK) || odd.end() == odd.seq) {
        true => (None, place.at),
        false => (answer, place.at),
    }
}

/// Returns the response in all other states (RFC 9293 3.10.7.4, with RFC 5961).
fn in_connection(place: Place, odd: Odd, state: State) -> (Option<Sent>, At) {
    let Place { next, edge, at, .. } = place;
    let passive = place.name == "syn_received";
    let acknowledges = |next| Some((ACK, place.sent, next));
    let (mut odd, mut answers) = (odd, false);
    if state == State::SynReceived && odd.has(SYN) && !odd.has(RST) && odd.seq == 0 {
        if passive || !odd.has(ACK) {
            return (Some((SYN | ACK, 0, next)), at);
        }
        // A simultaneous open (RFC 9293, figure 7).
        odd.flags -= SYN;
        odd.seq += 1;
    }
    if odd.has(RST) {
        return match odd.seq {
            seq if seq == next && passive => (None, At::Listen),
            seq if seq == next => (None, At::Listen),
            seq if seq > next && seq < edge => (acknowledges(next), at),
            _ => (None, at),
        };
    }
    if odd.has(SYN) {
        return (acknowledges(next), at);
    }
    // RFC 7323 5.3 (R1) and 3.2.
    match odd.stamp {
        Stamp::Unused => {}
        Stamp::Old => return (acknowledges(next), at),
        Stamp::Lacking => return (None, at),
    }
    let (seq, end) = (odd.seq, odd.end());
    let is_bare = end == seq;
    let text_end = seq + odd.len;
    let acceptable = match (is_bare, edge - next) {
        // The acknowledgments of a peer that has filled the window have the sequence number of the window's edge.
        (true, _) => seq >= next && seq <= edge,
        // A closed window: no text is accepted, but everything else is (3.10.7.4, "special allowance"), including a FIN, which takes no
        // buffer space.
        (false, 0) => seq <= next && end > next,
        (false, _) => (seq >= next && seq < edge) || (end > next && seq < next),
    };
    let takes_fin_at_edge = odd.len == 0 && seq == edge;
    if !acceptable && !takes_fin_at_edge {
        answers = true;
        // Once the connection is open, the ACK of an old segment without text counts: otherwise, two ends that missed each other's last
        // segment would never agree.
        if !(is_bare && seq < next) || state == State::SynReceived {
            return (acknowledges(next), at);
        }
    }
    if !odd.has(ACK) {
        return (acknowledges(next).filter(|_| answers), at);
    }
    if state == State::SynReceived {
        if odd.ack <= place.una || odd.ack > place.sent {
            return (Some((RST, odd.ack, 0)), at);
        }
    } else if odd.ack > place.sent || odd.ack < place.una - LARGEST {
        return (acknowledges(next), at);
    }
    let fin_acked = odd.ack == place.sent;
    let state = match state {
        State::SynReceived => State::Established,
        State::FinWait1 if fin_acked => State::FinWait2,
        State::Closing if fin_acked => {
            return (acknowledges(next).filter(|_| answers), At::TimeWait);
        }
        State::LastAck if fin_acked => return (None, At::Listen),
        other => other,
    };
    let receives = matches!(
        state,
        State::Established | State::FinWait1 | State::FinWait2
    );
    if !receives || is_bare || answers {
        // There is no text beyond the peer's FIN. A segment that crosses an edge of the window is answered.
        let crosses = !is_bare && (seq < next || text_end > edge);
        return (
            acknowledges(next).filter(|_| answers || crosses),
            At::In(state),
        );
    }
    let held = place.name == "established_behind_a_hole";
    let mut now = next;
    if seq <= next {
        now = next.max(text_end.min(edge));
        if held && (6..8).contains(&now) {
            now = 8;
        }
    }
    let fin = odd.has(FIN) && seq <= next && text_end >= next && text_end <= edge;
    let state = match (fin, state) {
        (false, state) => state,
        (true, State::Established) => State::CloseWait,
        (true, State::FinWait1) => State::Closing,
        (true, _) => return (acknowledges(text_end + 1), At::TimeWait),
    };
    let now = if fin { text_end + 1 } else { now };
    (acknowledges(now), At::In(state))
}

fn expected(place: Place, odd: Odd) -> Outcome {
    let (sent, at) = match place.at {
        At::Closed => (refusal(odd), At::Closed),
        At::Listen => at_listener(odd),
        At::TimeWait => in_time_wait(place, odd),
        At::In(State::SynSent) => in_syn_sent(place, odd),
        At::In(state) => in_connection(place, odd, state),
    };
    Outcome { sent, at }
}

/// Returns the distance of a number from the first of its side.
fn relative(number: SeqNr, first: SeqNr) -> i64 {
    i64::from(number.0.wrapping_sub(first.0) as i32)
}

/// Returns what the engine does within 50 ms, by which time it has acknowledged everything.
fn outcome(place: Place, odd: Odd) -> Outcome {
    let text = match odd.stamp {
        Stamp::Unused => place.text.into(),
        _ => place
            .text
            .replace("plain\n", "plain\nconfig timestamps = true\n")
            .replace("mss 1000", "mss 1000,TS val 1000 ecr 0"),
    };
    let mut player = Player::after(&text);
    let flow = player.flow();
    let first = player.segment(". 0:0(0) ack 0").header;
    player.arrives(&odd.text());
    player.stack.check();
    let until = player.now + Span::from_ms(50);
    let mut sent = None;
    loop {
        while let Some((_, segment)) = player.stack.poll_transmit(player.now) {
            let header = segment.header;
            let flags = header.flags - Flags::PSH;
            let seq = match flags.intersects(SYN) || flags == RST | ACK {
                true => 0,
                false => relative(header.seq, first.ack),
            };
            let ack = match flags.contains(ACK) {
                true => relative(header.ack, first.seq),
                false => 0,
            };
            assert_eq!(
                sent,
                None,
                "{}: {}: more than one response",
                place.name,
                odd.text()
            );
            sent = Some((flags, seq, ack));
        }
        let Some(at) = player.stack.poll_timeout().filter(|&at| at <= until) else {
            break;
        };
        player.now = player.now.max(at);
        player.stack.handle_timeouts(player.now);
    }
    player.stack.check();
    let at = match player.stack.find(&flow) {
        Some(id) => At::In(player.stack.state(id)),
        None if player.stack.in_time_wait(player.now, &flow) => At::TimeWait,
        None if place.at == At::Closed => At::Closed,
        None => At::Listen,
    };
    Outcome { sent, at }
}

/// Returns all odd segments for a place.
fn segments(place: Place, stamp: Stamp) -> Vec<Odd> {
    let Place {
        una,
        sent,
        next,
        edge,
        ..
    } = place;
    let mut all = Vec::new();
    for combination in 0..16 {
        let mut flags = Flags::empty();
        for (bit, flag) in [SYN, FIN, RST, ACK].into_iter().enumerate() {
            flags.set(flag, combination & (1 << bit) != 0);
        }
        let mut seqs = vec![0, next - 5, next - 1, next, next + 1, next + 5];
        seqs.extend([edge - 5, edge - 1, edge, edge + 1, edge + 100_000]);
        seqs.sort_unstable();
        seqs.dedup();
        let mut acks = vec![
            una - LARGEST - 1,
            una - LARGEST,
            una - 1,
            una,
            sent,
            sent + 1,
        ];
        acks.push(sent + 100_000);
        acks.sort_unstable();
        acks.dedup();
        acks.truncate(if flags.contains(ACK) { acks.len() } else { 1 });
        for &seq in &seqs {
            for len in [0, 1, 5, 7] {
                let odds = acks.iter().map(|&ack| Odd {
                    flags,
                    seq,
                    len,
                    ack,
                    stamp,
                });
                all.extend(odds);
            }
        }
    }
    all
}

/// Returns one test for each state.
pub fn trials() -> impl Iterator<Item = Trial> {
    PLACES.into_iter().map(|place| {
        Trial::test(format!("odd_segments/{}", place.name), move || {
            let is_open = matches!(place.at, At::In(state) if state != State::SynSent);
            let stamps = match is_open {
                true => &[Stamp::Unused, Stamp::Old, Stamp::Lacking][..],
                false => &[Stamp::Unused],
            };
            let wrong: Vec<String> = stamps
                .iter()
                .flat_map(|&stamp| segments(place, stamp))
                .filter_map(|odd| {
                    let (expected, got) = (expected(place, odd), outcome(place, odd));
                    let text = odd.text();
                    (expected != got)
                        .then(|| format!("< {text}: expected {expected:?}, got {got:?}"))
                })
                .collect();
            match wrong.len() {
                0 => Ok(()),
                count => Err(format!("{count} wrong:\n{}", wrong.join("\n")).into()),
            }
        })
    })
}
