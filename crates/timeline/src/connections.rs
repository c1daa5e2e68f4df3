//! A track for each chosen connection: where it lives, its segments, what was lost.

use crate::sampling::Connections;
use crate::window::Window;
use crate::writer::{Grain, Track, Value, Writer};
use baton_wire::{Endpoint, Flags, Header, SeqNr, Time};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::io::Write;

/// Connections that are over and are still known at most: segments may come late, or again.
const MOST_OVER: usize = 4096;
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
enum What {
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
struct Connection {
    number: u64,
    /// Where it lives now.
    place: &'static str,
    /// Where it lived, and since when, before what is kept.
    lives: &'static str,
    since: Time,
    sent: [Sent; 2],
    is_chosen: bool,
    is_over: bool,
    /// Once something was written. A track that found no room is none.
    track: Option<Option<Track>>,
    /// A span is open on it.
    is_open: bool,
    /// It ended before anything was written.
    had_ended: bool,
    kept: VecDeque<(Time, What)>,
}

/// The tracks of all connections.
#[derive(Debug)]
pub struct ConnectionTracks {
    rule: Connections,
    process: Track,
    /// Where a connection lives at first.
    home: &'static str,
    /// Connections may have been opened elsewhere.
    midway: bool,
    connections: FxHashMap<Endpoint, Connection>,
    /// Those that are over, in this order, and some that were.
    over: VecDeque<(Endpoint, u64)>,
    opened: u64,
    /// Those that have a track.
    shown: u64,
}

impl ConnectionTracks {
    /// Of the connections that the rule chooses, as tracks of a process. At first they live at `home`.
    pub fn new(rule: Connections, process: Track, home: &'static str) -> Self {
        Self {
            rule,
            process,
            home,
            midway: false,
            connections: FxHashMap::default(),
            over: VecDeque::new(),
            opened: 0,
            shown: 0,
        }
    }

    /// A connection may be known by any segment from the client, not only by its SYN.
    pub fn know_midway(&mut self) {
        self.midway = true;
    }

    /// Connections that were opened, and those of them that have a track.
    pub fn counts(&self) -> (u64, u64) {
        (self.opened, self.shown)
    }

    /// A segment of the connection of a client passes; of so many bytes of data.
    pub fn segment<W: Write>(
        &mut self,
        to: &mut Within<'_, W>,
        client: Endpoint,
        way: Way,
        header: &Header,
        bytes: u32,
    ) {
        if self.rule == Connections::None {
            return;
        }
        let flags = header.flags;
        let opens = match flags.contains(Flags::SYN) {
            true => !self.is_known(client, header.seq),
            false => {
                let is_over = flags.intersects(Flags::RST | Flags::FIN);
                self.midway && !is_over && !self.connections.contains_key(&client)
            }
        };
        if way == Way::In && opens {
            self.open(to, client, header.seq);
        }
        let Some(connection) = self.connections.get_mut(&client) else {
            return;
        };
        let (what, again) = connection.take(way, header, bytes);
        let is_last = flags.contains(Flags::RST)
            || !flags.contains(Flags::FIN) && bytes == 0 && connection.sent.iter().all(|s| s.fin);
        let was_over = connection.is_over;
        connection.is_over |= is_last;
        let number = connection.number;
        self.tell(to, client, what, again && self.rule == Connections::Lossy);
        if is_last && !was_over {
            self.tell(to, client, What::Ends, false);
            self.over.push_back((client, number));
            self.forget(to);
        }
    }

    /// A segment of the connection of a client was lost, by this name.
    pub fn lost<W: Write>(&mut self, to: &mut Within<'_, W>, client: Endpoint, name: &'static str) {
        let what = What::Moment("lost", name);
        self.tell(to, client, what, self.rule == Connections::Lossy);
    }

    /// The connection of a client lives somewhere else from now on.
    pub fn lives<W: Write>(
        &mut self,
        to: &mut Within<'_, W>,
        client: Endpoint,
        place: &'static str,
    ) {
        if let Some(connection) = self.connections.get_mut(&client) {
            connection.place = place;
        }
        let moved = self.rule == Connections::Moved;
        self.tell(to, client, What::Lives(place), moved);
    }

    /// The connection of a client was to move, and does not, for this reason.
    pub fn refused<W: Write>(
        &mut self,
        to: &mut Within<'_, W>,
        client: Endpoint,
        why: &'static str,
    ) {
        let moved = self.rule == Connections::Moved;
        self.tell(to, client, What::Moment("refused", why), moved);
        let known = self.connections.get(&client);
        if known.is_some_and(|known| known.place != self.home) {
            self.lives(to, client, self.home);
        }
    }

    /// Says of all connections that are not over where they live.
    pub fn settle<W: Write>(
        &mut self,
        to: &mut Within<'_, W>,
        place_of: impl Fn(Endpoint) -> &'static str,
    ) {
        for client in self.clients() {
            let place = place_of(client);
            let moves = |known: &Connection| !known.is_over && known.place != place;
            if self.connections.get(&client).is_some_and(moves) {
                self.lives(to, client, place);
            }
        }
    }

    /// Nothing follows: all that is open ends.
    pub fn finish<W: Write>(&mut self, to: &mut Within<'_, W>) {
        for client in self.clients() {
            self.close(to, client);
        }
    }

    /// Of all connections, in an order that does not depend on how they are kept.
    fn clients(&self) -> Vec<Endpoint> {
        let mut clients: Vec<Endpoint> = self.connections.keys().copied().collect();
        clients.sort_unstable();
        clients
    }

    /// Whether the connection that this SYN opens is there already.
    fn is_known(&self, client: Endpoint, seq: SeqNr) -> bool {
        let known = self.connections.get(&client);
        known.is_some_and(|known| known.sent[Way::In as usize].first == seq)
    }

    fn open<W: Write>(&mut self, to: &mut Within<'_, W>, client: Endpoint, seq: SeqNr) {
        self.close(to, client);
        let number = self.opened;
        self.opened += 1;
        let is_chosen = self.rule.chooses(number, client);
        let mut sent = [Sent::default(); 2];
        (sent[Way::In as usize].first, sent[Way::In as usize].end) = (seq, seq);
        let connection = Connection {
            number,
            place: self.home,
            lives: self.home,
            since: to.now,
            sent,
            is_chosen,
            is_over: false,
            track: None,
            is_open: false,
            had_ended: false,
            kept: VecDeque::new(),
        };
        self.connections.insert(client, connection);
    }

    /// Forgets one that is over, if there are too many.
    fn forget<W: Write>(&mut self, to: &mut Within<'_, W>) {
        if self.over.len() > MOST_OVER
            && let Some((client, number)) = self.over.pop_front()
            && self
                .connections
                .get(&client)
                .is_some_and(|known| known.number == number)
        {
            self.close(to, client);
        }
    }

    fn close<W: Write>(&mut self, to: &mut Within<'_, W>, client: Endpoint) {
        let closed = self.connections.remove(&client);
        let open = closed.filter(|closed| closed.is_open);
        if let Some(track) = open.and_then(|open| open.track).flatten() {
            to.writer.end(track, to.window.end(to.now));
        }
    }

    fn tell<W: Write>(
        &mut self,
        to: &mut Within<'_, W>,
        client: Endpoint,
        what: What,
        chooses: bool,
    ) {
        let Some(connection) = self.connections.get_mut(&client) else {
            return;
        };
        connection.is_chosen |= chooses;
        let may_be = matches!(self.rule, Connections::Moved | Connections::Lossy);
        match connection.is_chosen {
            true => {
                let had_none = connection.track.flatten().is_none();
                for (at, kept) in std::mem::take(&mut connection.kept) {
                    connection.write(to, self.process, client, at, kept);
                }
                connection.write(to, self.process, client, to.now, what);
                let has_one = connection.track.flatten().is_some();
                self.shown += u64::from(had_none && has_one);
            }
            false if may_be => connection.keep(to.now, what),
            false => connection.pass(to.now, what),
        }
    }
}

impl Connection {
    /// What a segment is, and whether it was sent before.
    fn take(&mut self, way: Way, header: &Header, bytes: u32) -> (What, bool) {
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
    fn keep(&mut self, at: Time, what: What) {
        if self.kept.len() == MOST_KEPT
            && let Some((at, what)) = self.kept.pop_front()
        {
            self.pass(at, what);
        }
        self.kept.push_back((at, what));
    }

    /// Something was not written.
    fn pass(&mut self, at: Time, what: What) {
        match what {
            What::Lives(place) => (self.lives, self.since) = (place, at),
            What::Ends => self.had_ended = true,
            What::Segment { .. } | What::Moment(..) => {}
        }
    }

    fn write<W: Write>(
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

/// Where and when connections are written.
pub struct Within<'a, W> {
    /// Where.
    pub writer: &'a mut Writer<W>,
    /// What is written.
    pub window: &'a Window,
    /// When it happens.
    pub now: Time,
}
