//! One connection, and its events until it is known whether the connection is chosen.

use super::Within;
use crate::writer::{Grain, Track, Value};
use baton_wire::{Endpoint, Flags, Header, SeqNr, Time};
use std::collections::VecDeque;
use std::io::Write;

/// Maximum number of events of a connection that are kept until it is known whether the connection is chosen.
const MOST_KEPT: usize = 256;

/// Direction of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Way {
    /// From the client to the server.
    In,
    /// From the server to the client.
    Out,
}

/// Names of segments: type, first transmission or retransmission, [`Way`].
const NAMES: [[[&str; 2]; 2]; 5] = [
    [["RST in", "RST out"], ["RST in", "RST out"]],
    [["SYN in", "SYN out"], ["SYN again in", "SYN again out"]],
    [["FIN in", "FIN out"], ["FIN again in", "FIN again out"]],
    [["data in", "data out"], ["data again in", "data again out"]],
    [["ACK in", "ACK out"], ["ACK in", "ACK out"]],
];

/// An event of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// The connection is at this place from now on.
    Lives(&'static str),
    /// The connection ends.
    Ends,
    /// A segment with `bytes` bytes from `seq` on, relative to the first, and its acknowledgment.
    Segment {
        name: &'static str,
        seq: u32,
        bytes: u32,
        ack: u32,
    },
    /// Another event, and its reason.
    Moment(&'static str, &'static str),
}

/// Data that one end has sent.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    first: SeqNr,
    /// Sequence number after the last byte.
    end: SeqNr,
    fin: bool,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) number: u64,
    /// Current place of the connection.
    pub(super) place: &'static str,
    /// Place of the connection before the kept events, and since when.
    lives: &'static str,
    since: Time,
    sent: [Sent; 2],
    pub(super) is_chosen: bool,
    pub(super) is_over: bool,
    /// The connection's track, once an event was written; the inner `None` says that there was no space for a track.
    pub(super) track: Option<Option<Track>>,
    /// Whether a span is open on the track.
    pub(super) is_open: bool,
    /// Whether the connection ended before any event was written.
    had_ended: bool,
    pub(super) kept: VecDeque<(Time, What)>,
}

impl Connection {
    /// Creates connection number `number`, opened by a segment from the client with sequence number `seq`. Its place is `home`.
    pub(super) fn new(
        (number, seq): (u64, SeqNr),
        now: Time,
        home: &'static str,
        is_chosen: bool,
    ) -> Self {
        let mut sent = [Sent::default(); 2];
        (sent[Way::In as usize].first, sent[Way::In as usize].end) = (seq, seq);
        Self {
            number,
            place: home,
            lives: home,
            since: now,
            sent,
            is_chosen,
            is_over: false,
            track: None,
            is_open: false,
            had_ended: false,
            kept: VecDeque::new(),
        }
    }

    /// Returns whether `seq` is the client's initial sequence number.
    pub(super) fn begins_with(&self, seq: SeqNr) -> bool {
        self.sent[Way::In as usize].first == seq
    }

    /// Reports whether both ends have sent a FIN.
    pub(super) fn has_both_ends(&self) -> bool {
        self.sent.iter().all(|sent| sent.fin)
    }

    /// Returns the event for a segment, and whether the segment is a retransmission.
    pub(super) fn take(&mut self, way: Way, header: &Header, bytes: u32) -> (What, bool) {
        let flags = header.flags;
        let (syn, fin) = (flags.contains(Flags::SYN), flags.contains(Flags::FIN));
        let other = self.sent[1 - way as usize];
        let sent = &mut self.sent[way as usize];
        let length = bytes + u32::from(syn) + u32::from(fin);
        let end = header.seq + length;
        let is_first = way == Way::Out && syn && sent.end == sent.first;
        if is_first {
            (sent.first, sent.end) = (header.seq, header.seq);
        }
        let again = length > 0 && end.at_or_before(sent.end);
        sent.end = sent.end.latest(end);
        sent.fin |= fin;
        let kind = match () {
            () if flags.contains(Flags::RST) => 0,
            () if syn => 1,
            () if fin => 2,
            () if bytes > 0 => 3,
            () => 4,
        };
        let what = What::Segment {
            name: NAMES[kind][usize::from(again)][way as usize],
            seq: header.seq.saturating_since(sent.first),
            bytes,
            ack: match flags.contains(Flags::ACK) {
                true => header.ack.saturating_since(other.first),
                false => 0,
            },
        };
        (what, again)
    }

    /// Keeps an event that may be written later. Only the latest are kept.
    pub(super) fn keep(&mut self, at: Time, what: What) {
        if self.kept.len() == MOST_KEPT
            && let Some((at, what)) = self.kept.pop_front()
        {
            self.pass(at, what);
        }
        self.kept.push_back((at, what));
    }

    /// Updates the state for an event that is not written.
    pub(super) fn pass(&mut self, at: Time, what: What) {
        match what {
            What::Lives(place) => (self.lives, self.since) = (place, at),
            What::Ends => self.had_ended = true,
            What::Segment { .. } | What::Moment(..) => {}
        }
    }

    pub(super) fn write<W: Write>(
        &mut self,
        to: &mut Within<'_, W>,
        process: Track,
        client: Endpoint,
        at: Time,
        what: What,
    ) {
        let Some(from) = to.window.includes(at) else {
            return self.pass(at, what);
        };
        let (number, lives, since) = (self.number, self.lives, self.since.max(from));
        let (is_first, had_ended) = (self.track.is_none(), self.had_ended);
        let track = *self.track.get_or_insert_with(|| {
            let admitted = to.writer.admits(Grain::Connection, at);
            admitted.then(|| {
                let name = format!("connection {number} of {}:{}", client.addr, client.port);
                let track = to.writer.row(process, &name);
                if !had_ended {
                    to.writer.begin(track, since, lives, &[]);
                }
                track
            })
        });
        let Some(track) = track else {
            return;
        };
        self.is_open |= is_first && !had_ended;
        if matches!(what, What::Ends | What::Lives(_)) && self.is_open {
            to.writer.end(track, at);
            self.is_open = false;
        }
        if matches!(what, What::Ends) || !to.writer.admits(Grain::Connection, at) {
            return;
        }
        match what {
            What::Lives(place) => {
                to.writer.begin(track, at, place, &[]);
                self.is_open = true;
            }
            What::Ends => {}
            What::Segment {
                name,
                seq,
                bytes,
                ack,
            } => {
                let number = |value: u32| Value::Number(value.into());
                let about = [
                    ("seq", number(seq)),
                    ("bytes", number(bytes)),
                    ("ack", number(ack)),
                ];
                to.writer.moment(track, at, name, &about);
            }
            What::Moment(name, why) => {
                let about = [("why", Value::Words(why))];
                to.writer.moment(track, at, name, &about);
            }
        }
    }
}
