//! A track for each chosen connection: its place, its segments, and its losses.

mod connection;

use crate::sampling::Connections;
use crate::window::Window;
use crate::writer::{Track, Writer};
use baton_wire::{Endpoint, Flags, Header, SeqNr, Time};
pub use connection::Way;
use connection::{Connection, What};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::io::Write;

/// Maximum number of ended connections that are remembered, because segments may be late or duplicated.
const MOST_OVER: usize = 4096;
/// The tracks of all connections.
#[derive(Debug)]
pub struct ConnectionTracks {
    rule: Connections,
    process: Track,
    /// Initial place of connections.
    home: &'static str,
    /// Whether any segment from the client makes a connection known, not only its SYN.
    midway: bool,
    connections: FxHashMap<Endpoint, Connection>,
    /// Ended connections, in order. Some of them may have been replaced since.
    over: VecDeque<(Endpoint, u64)>,
    opened: u64,
    /// Number of connections with a track.
    shown: u64,
}

impl ConnectionTracks {
    /// Creates tracks in a process for the connections that the rule chooses. Their initial place is `home`.
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

    /// Lets any segment from the client make a connection known, not only its SYN.
    pub fn know_midway(&mut self) {
        self.midway = true;
    }

    /// Returns the rule that chooses connections.
    pub fn rule(&self) -> Connections {
        self.rule
    }

    /// Returns the number of connections that were opened, and the number of those with a track.
    pub fn counts(&self) -> (u64, u64) {
        (self.opened, self.shown)
    }

    /// Records a segment of a client's connection, with `bytes` bytes of data.
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
            || !flags.contains(Flags::FIN) && bytes == 0 && connection.has_both_ends();
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

    /// Records that a segment of a client's connection was lost, with `name` as the reason.
    pub fn lost<W: Write>(&mut self, to: &mut Within<'_, W>, client: Endpoint, name: &'static str) {
        let what = What::Moment("lost", name);
        self.tell(to, client, what, self.rule == Connections::Lossy);
    }

    /// Records that a client's connection is at another place from now on.
    pub fn lives<W: Write>(
        &mut self,
        to: &mut Within<'_, W>,
        client: Endpoint,
        place: &'static str,
    ) {
        let Some(connection) = self.connections.get_mut(&client) else {
            return;
        };
        let from = std::mem::replace(&mut connection.place, place);
        // For a connection that became known midway, this may only reveal where it already was.
        let is_found = self.midway && from == self.home;
        let moved = self.rule == Connections::Moved && !is_found;
        self.tell(to, client, What::Lives(place), moved);
    }

    /// Records that a client's connection was to move but does not, with `why` as the reason.
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

    /// Records the place of all connections that have not ended.
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

    /// Ends all open spans, because no events follow.
    pub fn finish<W: Write>(&mut self, to: &mut Within<'_, W>) {
        for client in self.clients() {
            self.close(to, client);
        }
    }

    /// Returns the clients of all connections, in a deterministic order.
    fn clients(&self) -> Vec<Endpoint> {
        let mut clients: Vec<Endpoint> = self.connections.keys().copied().collect();
        clients.sort_unstable();
        clients
    }

    /// Reports whether the connection that this SYN opens is already known.
    fn is_known(&self, client: Endpoint, seq: SeqNr) -> bool {
        let known = self.connections.get(&client);
        known.is_some_and(|known| known.begins_with(seq))
    }

    fn open<W: Write>(&mut self, to: &mut Within<'_, W>, client: Endpoint, seq: SeqNr) {
        self.close(to, client);
        let number = self.opened;
        self.opened += 1;
        let is_chosen = self.rule.chooses(number, client);
        let connection = Connection::new((number, seq), to.now, self.home, is_chosen);
        self.connections.insert(client, connection);
    }

    /// Forgets an ended connection if there are too many.
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

/// The writer, window and time for events of connections.
pub struct Within<'a, W> {
    /// The writer.
    pub writer: &'a mut Writer<W>,
    /// The part of the run that is written.
    pub window: &'a Window,
    /// Time of the event.
    pub now: Time,
}

impl<'a, W> Within<'a, W> {
    /// Creates the context for an event at `now`, and opens the window if it is time.
    pub fn new(now: Time, writer: &'a mut Writer<W>, window: &'a mut Window) -> Self {
        window.opened(now);
        Self {
            writer,
            window,
            now,
        }
    }
}
