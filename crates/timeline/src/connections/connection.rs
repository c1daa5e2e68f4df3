//! One connection, and what is kept of it until it is known whether it is chosen.

use super::Within;
use crate::writer::{Grain, Track, Value};
use baton_wire::{Endpoint, Flags, Header, SeqNr, Time};
use std::collections::VecDeque;
use std::io::Write;

/// Events of a connection that are kept at most until it is known whether it is chosen.
const MOST_KEPT: usize = 256;

/// Which way a segment goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Way {
    /// From the client to the server.
    In,
    /// From the server to the client.
    Out,
}

/// Names of segments: what they are, sent for the first time or again, by [`Way`].
const NAMES: [[[&str; 2]; 2]; 5] = [
    [["RST in", "RST out"], ["RST in", "RST out"]],
    [["SYN in", "SYN out"], ["SYN again in", "SYN again out"]],
    [["FIN in", "FIN out"], ["FIN again in", "FIN again out"]],
    [["data in", "data out"], ["data again in", "data again out"]],
    [["ACK in", "ACK out"], ["ACK in", "ACK out"]],
];

/// Something that happened to a connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// It lives there from now on.
    Lives(&'static str),
    /// It is over.
    Ends,
    /// A segment of so many bytes from there on, in relation to the first; and what it acknowledges.
    Segment {
        name: &'static str,
        seq: u32,
        bytes: u32,
        ack: u32,
    },
    /// Something else, and why.
    Moment(&'static str, &'static str),
}

/// What one end has sent.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    first: SeqNr,
    /// Behind the last.
    end: SeqNr,
    fin: bool,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) number: u64,
    /// Where it lives now.
    pub(super) place: &'static str,
    /// Where it lived, and since when, before what is kept.
    lives: &'static str,
    since: Time,
    sent: [Sent; 2],
    pub(super) is_chosen: bool,
    pub(super) is_over: bool,
    /// Once something was written. A track that found no room is none.
    pub(super) track: Option<Option<Track>>,
    /// A span is open on it.
    pub(super) is_open: bool,
    /// It ended before anything was written.
    had_ended: bool,
    pub(super) kept: VecDeque<(Time, What)>,
}

impl Connection {
    /// The so manyth that was opened, by a segment of the client with that sequence number; it lives there.
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

    /// Whether the client's numbers begin with this one.
    pub(super) fn begins_with(&self, seq: SeqNr) -> bool {
        self.sent[Way::In as usize].first == seq
    }

    /// Whether both ends have said that they are done.
    pub(super) fn has_both_ends(&self) -> bool {
        self.sent.iter().all(|sent| sent.fin)
    }

    /// What a segment is, and whether it was sent before.
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

    /// Keeps what may be written later: the latest.
    pub(super) fn keep(&mut self, at: Time, what: What) {
        if self.kept.len() == MOST_KEPT
            && let Some((at, what)) = self.kept.pop_front()
        {
            self.pass(at, what);
        }
        self.kept.push_back((at, what));
    }

    /// Something was not written.
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
