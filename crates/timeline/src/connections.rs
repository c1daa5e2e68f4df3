//! A track for each chosen connection: where it lives, its segments, what was lost.

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

/// Connections that are over and are still known at most: segments may come late, or again.
const MOST_OVER: usize = 4096;
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

    /// Which connections have a track.
    pub fn rule(&self) -> Connections {
        self.rule
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
        let Some(connection) = self.connections.get_mut(&client) else {
            return;
        };
        let from = std::mem::replace(&mut connection.place, place);
        // Of one that may be known midway it is only found out where it has lived.
        let is_found = self.midway && from == self.home;
        let moved = self.rule == Connections::Moved && !is_found;
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

/// Where and when connections are written.
pub struct Within<'a, W> {
    /// Where.
    pub writer: &'a mut Writer<W>,
    /// What is written.
    pub window: &'a Window,
    /// When it happens.
    pub now: Time,
}

impl<'a, W> Within<'a, W> {
    /// What happens now, in a window that opens if it is time.
    pub fn new(now: Time, writer: &'a mut Writer<W>, window: &'a mut Window) -> Self {
        window.opened(now);
        Self {
            writer,
            window,
            now,
        }
    }
}
