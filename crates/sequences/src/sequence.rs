//! Sequences of calls, as data and as text.

use baton_testkit::Random;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// The kinds of calls: name, relative frequency, and the exclusive upper limit of each operand. `play.rs` defines the operands.
pub const KINDS: &[(&str, u32, &[u32])] = &[
    ("recv", 12, &[SLOTS, SIZES, RECEIVE_FLAGS]),
    ("recvmsg", 5, &[SLOTS, SIZES, RECEIVE_FLAGS, 5]),
    ("read", 3, &[SLOTS, SIZES]),
    ("readv", 2, &[SLOTS, SIZES, 5]),
    ("send", 10, &[SLOTS, SIZES, SEND_FLAGS]),
    ("sendmsg", 4, &[SLOTS, SIZES, SEND_FLAGS, 5]),
    ("write", 3, &[SLOTS, SIZES]),
    ("writev", 2, &[SLOTS, SIZES, 5]),
    ("sendto", 1, &[SLOTS, SIZES]),
    ("fill", 1, &[SLOTS]),
    ("sendfile", 1, &[SLOTS, SIZES]),
    ("splice", 1, &[SLOTS, 2]),
    ("bad", 6, &[SLOTS, 34]),
    ("shutdown", 4, &[SLOTS, 4]),
    ("close", 3, &[SLOTS]),
    ("dup", 3, &[SLOTS, 4]),
    ("flags", 4, &[SLOTS, 5]),
    ("owner", 2, &[SLOTS, 8]),
    ("ioctl", 4, &[SLOTS, 8]),
    ("getsockopt", 8, &[SLOTS, OPTIONS, 5]),
    ("setsockopt", 8, &[SLOTS, OPTIONS, 3, 3]),
    ("names", 2, &[SLOTS, 2, 5]),
    ("linger", 2, &[SLOTS, 3]),
    ("wrong", 2, &[SLOTS, 6]),
    ("poll", 6, &[SLOTS, 6]),
    ("select", 3, &[SLOTS]),
    ("epoll", 4, &[2]),
    ("add", 8, &[SETS, SLOTS, 9]),
    ("modify", 4, &[SETS, SLOTS, 9]),
    ("remove", 2, &[SETS, SLOTS]),
    ("wait", 9, &[SETS, 3]),
    ("nest", 2, &[SETS, SETS, 3]),
    ("pollset", 2, &[SETS]),
    ("fork", 2, &[SLOTS, 4]),
    ("exec", 2, &[SLOTS, 4]),
    ("thread", 3, &[SLOTS, 4, 2]),
    ("restart", 1, &[SLOTS, 2]),
    ("peersend", 16, &[2, SIZES]),
    ("peerread", 4, &[2]),
    ("peershut", 3, &[2]),
    ("peerclose", 2, &[2]),
    ("peerreset", 3, &[2]),
    ("later", 5, &[2, 4]),
    ("move", 12, &[2]),
];

const SLOTS: u32 = 4;
const SETS: u32 = 3;
const SIZES: u32 = 8;
const RECEIVE_FLAGS: u32 = 12;
const SEND_FLAGS: u32 = 7;
/// Number of options in `play::OPTIONS`.
pub const OPTIONS: u32 = 77;
/// Limits of the operands of `open`: who opens the connections, IPv4 or IPv6, blocking or not, how many connections, and whether they stay
/// (0) or move before each call, where the sequence waits for the move (1) or does not (2).
const OPEN: &[u32] = &[2, 2, 2, 2, 3];
const MOST_CALLS: u32 = 24;

/// A call and its operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// One of [`KINDS`], or `open`.
    pub name: &'static str,
    /// Operands, as many as its kind has.
    pub operands: Vec<u32>,
}

/// Calls, the first of which opens the connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence(pub Vec<Call>);

impl Sequence {
    /// Returns the sequence of a seed.
    pub fn of_seed(seed: u64) -> Self {
        // Neighbouring seeds draw the same numbers, shifted by one.
        let mut random = Random::new(Random::new(seed).draw());
        Self::drawn(|limit| random.below(u64::from(limit)) as u32)
    }

    /// Decodes a sequence from a fuzzer's bytes. Missing bytes count as zero.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let mut bytes = bytes.iter();
        // No limit is above 256.
        Self::drawn(|limit| bytes.next().map_or(0, |&byte| u32::from(byte) % limit))
    }

    /// Draws a sequence; `below` returns a number below its argument.
    fn drawn(mut below: impl FnMut(u32) -> u32) -> Self {
        let mut calls = vec![Call::drawn("open", OPEN, &mut below)];
        let count = 3 + below(MOST_CALLS - 3);
        let total = KINDS.iter().map(|kind| kind.1).sum();
        for _ in 0..count {
            let mut at = below(total);
            let kind = KINDS.iter().find(|kind| {
                let is_here = at < kind.1;
                at = at.saturating_sub(kind.1);
                is_here
            });
            let (name, _, limits) = kind.expect("shares make the total");
            calls.push(Call::drawn(name, limits, &mut below));
        }
        Self(calls)
    }

    /// Returns shorter sequences and sequences with smaller operands, the shortest first.
    pub fn smaller(&self) -> Vec<Self> {
        let mut found = Vec::new();
        let count = self.0.len();
        for size in [count / 2, count / 4, 1] {
            if size == 0 || size > 1 && size * 4 < count {
                continue;
            }
            for at in (1..count).step_by(size) {
                let mut calls = self.0.clone();
                calls.drain(at..(at + size).min(count));
                found.push(Self(calls));
            }
        }
        for (at, call) in self.0.iter().enumerate() {
            for (place, &operand) in call.operands.iter().enumerate() {
                if operand > 0 {
                    let mut calls = self.0.clone();
                    calls[at].operands[place] = 0;
                    found.push(Self(calls));
                }
            }
        }
        found.dedup();
        found
    }
}

impl Call {
    fn drawn(name: &'static str, limits: &[u32], below: &mut impl FnMut(u32) -> u32) -> Self {
        let operands = limits.iter().map(|&limit| below(limit)).collect();
        Self { name, operands }
    }
}

impl Display for Sequence {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        for (at, call) in self.0.iter().enumerate() {
            out.write_str(if at > 0 { "; " } else { "" })?;
            out.write_str(call.name)?;
            for operand in &call.operands {
                write!(out, " {operand}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for Sequence {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let calls: Vec<Call> = text.split(';').map(call).collect::<Result<_, _>>()?;
        let opens = calls.iter().map(|call| call.name == "open");
        match opens.enumerate().all(|(at, opens)| opens == (at == 0)) {
            true => Ok(Self(calls)),
            false => Err(format!(
                "`{text}`: expected `open` at the beginning, and nowhere else"
            )),
        }
    }
}

fn call(text: &str) -> Result<Call, String> {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default();
    let (name, limits) = match KINDS.iter().find(|kind| kind.0 == name) {
        Some(&(name, _, limits)) => (name, limits),
        None if name == "open" => ("open", OPEN),
        None => return Err(format!("`{}`: expected a call", text.trim())),
    };
    let operands: Result<Vec<u32>, _> = words.map(str::parse).collect();
    let operands = operands.map_err(|error| format!("`{}`: {error}", text.trim()))?;
    let fits = operands.len() == limits.len()
        && operands
            .iter()
            .zip(limits)
            .all(|(operand, limit)| operand < limit);
    match fits {
        true => Ok(Call { name, operands }),
        false => Err(format!(
            "`{}`: expected operands below {limits:?}",
            text.trim()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_round_trip_as_text() {
        for seed in 0..200 {
            let sequence = Sequence::of_seed(seed);
            assert_eq!(sequence.to_string().parse(), Ok(sequence));
        }
    }

    #[test]
    fn bytes_can_produce_every_kind_of_call() {
        let total: u32 = KINDS.iter().map(|kind| kind.1).sum();
        assert!(
            total <= 256
                && KINDS
                    .iter()
                    .flat_map(|kind| kind.2)
                    .all(|&limit| limit <= 256)
        );
        let drawn = |at: u8| Sequence::of_bytes(&[0, 0, 0, 0, 0, 0, at]).0[1].name;
        let mut at = 0;
        for &(name, share, _) in KINDS {
            assert_eq!(drawn(at as u8), name);
            at += share;
        }
        let empty = Sequence::of_bytes(&[]);
        assert_eq!(
            empty.to_string(),
            "open 0 0 0 0 0; recv 0 0 0; recv 0 0 0; recv 0 0 0"
        );
    }

    #[test]
    fn invalid_sequences_are_refused_with_a_reason() {
        for wrong in [
            "",
            "recv 0 0 0",
            "open 0 0 0 0 0; open 0 0 0 0 0",
            "open 0 0 0 0 9",
            "open 0 0 0 0 0; fly",
            "open 0 0 0 0 0; close",
        ] {
            assert!(wrong.parse::<Sequence>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn smaller_sequences_are_smaller() {
        let sequence = Sequence::of_seed(1);
        let sum = |sequence: &Sequence| -> u32 {
            sequence
                .0
                .iter()
                .map(|call| 1 + call.operands.iter().sum::<u32>())
                .sum()
        };
        assert!(
            sequence
                .smaller()
                .iter()
                .all(|smaller| sum(smaller) < sum(&sequence))
        );
    }
}
