//! What waits to be asked of the adapter because there was no room, or because the piece of work goes on.

use super::socket::{Asked, Intents, Phase, SetUp};
use super::{OsLayer, Request};
use baton_bus::descriptor::{self, Action, Close};
use baton_bus::link::Inline;
use baton_bus::{HostLink, Urgency};
use baton_wire::Time;

/// How far a socket got with what it has to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Settled {
    /// All was asked that can be now; the rest is tried again when something comes back.
    Done,
    /// The ring is full.
    NoRoom,
}

impl<P: Inline> OsLayer<P> {
    /// Something is to be asked about a socket, at the end of the piece of work.
    pub(super) fn ask(&mut self, number: u32) {
        let queued = &mut self.socket_mut(number).queued.asking;
        if !std::mem::replace(queued, true) {
            self.asking.push_back(number);
        }
    }

    /// The same, and what.
    pub(super) fn intend(&mut self, number: u32, intent: Intents) {
        self.socket_mut(number).intents |= intent;
        self.ask(number);
    }

    /// Asks what waits to be asked, in order, as far as there is room.
    pub(super) fn ask_all<L: HostLink<Data = P>>(&mut self, now: Time, link: &mut L) {
        for _ in 0..self.asking.len() {
            let Some(number) = self.asking.pop_front() else {
                return;
            };
            if self.settle(now, link, number) == Settled::NoRoom {
                self.asking.push_front(number);
                return;
            }
            self.socket_mut(number).queued.asking = false;
        }
    }

    fn settle<L: HostLink<Data = P>>(&mut self, now: Time, link: &mut L, number: u32) -> Settled {
        while self.socket(number).intents.contains(Intents::SET_UP) {
            if !self.set_up(now, number) {
                return Settled::NoRoom;
            }
        }
        if self.socket(number).intents.contains(Intents::ABORT) {
            if !self.ask_close(now, number, Close::Abort) {
                return Settled::NoRoom;
            }
            return Settled::Done;
        }
        if self.settle_sending(now, link, number) == Settled::NoRoom {
            return Settled::NoRoom;
        }
        // Never behind what is to be sent: a peer that sends, too, may read no more before it has been read.
        if self.socket(number).intents.contains(Intents::RECEIVE) {
            if !self.post_buffers(now, link, number) {
                return Settled::NoRoom;
            }
            self.socket_mut(number).intents.remove(Intents::RECEIVE);
        }
        Settled::Done
    }

    /// Sends what is held back, and says that nothing follows once all of it has gone.
    fn settle_sending<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        link: &mut L,
        number: u32,
    ) -> Settled {
        if self.socket(number).intents.contains(Intents::IMPORT)
            && !self.give_state(now, link, number)
        {
            return Settled::NoRoom;
        }
        if self.socket(number).is_leaving() {
            let wants_more = self.socket(number).intents.contains(Intents::EXPORT);
            return match wants_more && !self.ask_export(now, link, number) {
                true => Settled::NoRoom,
                false => Settled::Done,
            };
        }
        let ends = Intents::FLUSH | Intents::SHUT | Intents::CLOSE;
        if self.socket(number).intents.intersects(ends) {
            if !self.flush(now, link, number, false) {
                return Settled::Done;
            }
            self.socket_mut(number).intents.remove(Intents::FLUSH);
        }
        for (intent, how) in [(Intents::SHUT, Close::Write), (Intents::CLOSE, Close::Both)] {
            if self.socket(number).intents.contains(intent) && !self.ask_close(now, number, how) {
                return Settled::NoRoom;
            }
        }
        Settled::Done
    }

    /// Asks for the next step in the making of a socket; false when there is no room.
    fn set_up(&mut self, now: Time, number: u32) -> bool {
        let entry = self.socket(number);
        let endpoint = entry.endpoint;
        let (action, asked, next) = match entry.set_up {
            SetUp::Socket if entry.phase == Phase::Packets => {
                (Action::PacketSocket, Asked::Socket, SetUp::Bind)
            }
            SetUp::Bind if entry.phase == Phase::Packets => {
                (Action::Bind(endpoint), Asked::Bind, SetUp::Name)
            }
            SetUp::Socket if entry.phase == Phase::Listening => {
                (Action::Socket, Asked::Socket, SetUp::Bind)
            }
            SetUp::Socket => (Action::Socket, Asked::Socket, SetUp::Connect),
            SetUp::Bind => (Action::Bind(endpoint), Asked::Bind, SetUp::Listen),
            SetUp::Listen => {
                let backlog = self.listener(number).map_or(0, |l| l.backlog);
                let next = match endpoint.port {
                    0 => SetUp::Name,
                    _ => SetUp::Done,
                };
                (Action::Listen { backlog }, Asked::Listen, next)
            }
            SetUp::Name => (Action::Name, Asked::Name, SetUp::Done),
            SetUp::Connect => (Action::Connect(endpoint), Asked::Connect, SetUp::Done),
            SetUp::Done => {
                self.socket_mut(number).intents.remove(Intents::SET_UP);
                return true;
            }
        };
        let done = self.request(now, number, action, asked, Urgency::Awaited);
        if done {
            self.socket_mut(number).set_up = next;
            self.settle_pledge(number);
        }
        done
    }

    fn ask_close(&mut self, now: Time, number: u32, how: Close) -> bool {
        let (asked, intent) = match how {
            Close::Write => (Asked::Shut, Intents::SHUT),
            Close::Both => (Asked::Close, Intents::CLOSE),
            Close::Abort => (Asked::Close, Intents::all()),
        };
        let done = self.request(now, number, Action::Close(how), asked, Urgency::Awaited);
        if done {
            self.socket_mut(number).intents.remove(intent);
        }
        done
    }

    /// Queues a request without data; false when there is no room.
    pub(super) fn request(
        &mut self,
        now: Time,
        number: u32,
        action: Action,
        asked: Asked,
        urgency: Urgency,
    ) -> bool {
        if self.queue.room() == 0 {
            return false;
        }
        let tag = self.remember(number, asked);
        let request = descriptor::Request {
            socket: number,
            tag,
            action,
        };
        let pushed = self.queue.push(now, &[request.encode()], 0, urgency);
        debug_assert!(pushed, "there was room");
        true
    }

    /// Remembers that something was asked; gives its tag.
    pub(super) fn remember(&mut self, number: u32, asked: Asked) -> u32 {
        self.stats.requests += 1;
        self.releasing += usize::from(asked.is_releasing());
        let entry = &mut self.sockets[number as usize];
        let chain = match asked {
            Asked::Send { .. } => &mut entry.sends,
            Asked::Receive { .. } => &mut entry.receives,
            _ => &mut entry.control,
        };
        let request = Request {
            socket: number,
            asked,
        };
        self.requests.push(chain, request)
    }
}
