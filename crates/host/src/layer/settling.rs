//! Connections that are to move and have data in flight. The stack of a live host releases a connection only when the peer has acknowledged
//! all data; no event reports that, so the layer polls. At first the connection continues as before: a program that sends an answer in
//! parts would otherwise have to wait with the second part for the acknowledgment of the first, which the peer delays. If the connection
//! does not come to rest by itself, it then takes no more data. What the application sends meanwhile is kept, up to a limit.

use super::socket::Settling;
use super::{AdapterEnd, HostStack, Place, SocketLayer};
use crate::adapter::OsLayer;
use crate::{NotOffloaded, SocketId};
use baton_bus::link::Inline;
use baton_wire::{Span, Time};

/// Time from the first look to the second. Each pause is twice as long as the one before.
const FIRST_PAUSE: Span = Span::from_ms(1);
const LONGEST_PAUSE: Span = Span::from_ms(20);
/// A connection that has not settled by then goes on: the window of its peer may be closed.
const LONGEST: Span = Span::from_secs(1);
/// Policy may choose it again after so long: it is held back for a tenth of the time at most.
const BETWEEN_ATTEMPTS: Span = Span::from_secs(10);

impl<P: Inline> SocketLayer<P> {
    /// Returns when to call [`SocketLayer::handle_settling`] next; `None` if no connection is settling.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.settling.first().map(|&(look_at, _)| look_at)
    }

    /// Moves connections whose data was acknowledged, and gives up on connections that have waited too long.
    pub fn handle_settling<L>(
        &mut self,
        now: Time,
        stack: &mut impl HostStack<P>,
        adapters: &mut [AdapterEnd<P, L>],
    ) {
        // Each look either schedules the next one after `now` or ends settling.
        while let Some(&(look_at, id)) = self.settling.first()
            && look_at <= now
        {
            match adapters.get_mut(self.socket(id).adapter.index()) {
                Some(end) => self.look_at_settling(now, stack, &mut end.os, id),
                None => self.gives_up(now, stack, id, NotOffloaded::State),
            }
        }
    }

    /// Moves a settling connection, if it can move now.
    pub(super) fn look_at_settling(
        &mut self,
        now: Time,
        stack: &mut impl HostStack<P>,
        os: &mut OsLayer<P>,
        id: SocketId,
    ) {
        if let Err(why) = self.hand_off(now, stack, os, id) {
            return self.gives_up(now, stack, id, why);
        }
        let settling = self.socket(id).settling;
        if settling.is_some_and(|it| now.saturating_since(it.since) >= LONGEST) {
            self.gives_up(now, stack, id, NotOffloaded::UnderWay);
        }
    }

    /// A connection cannot go now: it is looked at again.
    pub(super) fn settles(&mut self, now: Time, id: SocketId) {
        let before = self.socket(id).settling;
        if before.is_some_and(|before| before.look_at > now) {
            return;
        }
        self.settles_no_more(id);
        let pause = before.map_or(FIRST_PAUSE, |before| before.pause);
        let settling = Settling {
            since: before.map_or(now, |before| before.since),
            look_at: now + pause,
            pause: (pause * 2).min(LONGEST_PAUSE),
        };
        self.settling.insert((settling.look_at, id));
        self.socket_mut(id).settling = Some(settling);
    }

    /// Ends the settling of a connection. Returns false if it was not settling.
    pub(super) fn settles_no_more(&mut self, id: SocketId) -> bool {
        let settling = self.socket_mut(id).settling.take();
        settling.is_some_and(|settling| self.settling.remove(&(settling.look_at, id)))
    }

    /// A connection that settles stays where it is, because its application has ended it or for want of time.
    pub(super) fn stays(&mut self, stack: &mut impl HostStack<P>, id: SocketId) {
        if !self.settles_no_more(id) {
            return;
        }
        let socket = self.socket(id);
        if let Place::Host(conn) = socket.place {
            stack.unsettle(conn);
            stack.set_cork(conn, socket.corked);
        }
        self.wake_writer(id);
    }

    fn gives_up(
        &mut self,
        now: Time,
        stack: &mut impl HostStack<P>,
        id: SocketId,
        why: NotOffloaded,
    ) {
        self.stays(stack, id);
        // Where the stack did not let it go it settles no more, and its writer waits all the same.
        self.wake_writer(id);
        if why == NotOffloaded::UnderWay {
            self.socket_mut(id).not_before = now + BETWEEN_ATTEMPTS;
        }
        self.not_handed_off(id, why);
    }
}
