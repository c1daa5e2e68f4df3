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
/// How long a selected connection still takes data. Longer than Linux delays acknowledgments (40 ms).
const GRACE: Span = Span::from_ms(50);
/// A connection that has not settled within this time stays: the window of its peer may be closed.
const LONGEST: Span = Span::from_secs(1);
/// Maximum number of pieces kept of what an application sends meanwhile.
const MOST_PIECES: usize = 256;
/// The policy may select the connection again after this time, so that it is held back for at most a tenth of the time.
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
        if self.socket(id).stays.is_some() {
            self.give_early_back(now, stack, id);
        } else if let Err(why) = self.hand_off(now, stack, os, id) {
            return self.gives_up(now, stack, id, why);
        }
        let settling = self.socket(id).settling;
        if settling.is_some_and(|it| now.saturating_since(it.since) >= LONGEST) {
            self.gives_up(now, stack, id, NotOffloaded::UnderWay);
        }
    }

    /// Returns whether a connection that cannot move now still takes data.
    pub(super) fn has_grace(&self, now: Time, id: SocketId) -> bool {
        let settling = self.socket(id).settling;
        settling.is_none_or(|it| !it.is_closed && now.saturating_since(it.since) < GRACE)
    }

    /// Records that a connection cannot move now, and when to look again. If `is_closed`, the connection takes no more data.
    pub(super) fn settles(&mut self, now: Time, id: SocketId, is_closed: bool) {
        let before = self.socket(id).settling;
        if let Some(before) = &mut self.socket_mut(id).settling
            && before.look_at > now
        {
            before.is_closed = is_closed;
            return;
        }
        self.settles_no_more(id);
        let pause = before.map_or(FIRST_PAUSE, |before| before.pause);
        let settling = Settling {
            since: before.map_or(now, |before| before.since),
            look_at: now + pause,
            pause: (pause * 2).min(LONGEST_PAUSE),
            is_closed,
        };
        self.settling.insert((settling.look_at, id));
        self.socket_mut(id).settling = Some(settling);
    }

    /// Ends the settling of a connection. Returns false if it was not settling.
    pub(super) fn settles_no_more(&mut self, id: SocketId) -> bool {
        let settling = self.socket_mut(id).settling.take();
        settling.is_some_and(|settling| self.settling.remove(&(settling.look_at, id)))
    }

    /// Ends the settling of a connection that stays where it is, because its application closes it or time has run out. Returns false if
    /// the socket was removed.
    pub(super) fn stays(&mut self, stack: &mut impl HostStack<P>, id: SocketId) -> bool {
        let is_closed = self.socket(id).settling.is_some_and(|it| it.is_closed);
        if !self.settles_no_more(id) {
            return true;
        }
        let socket = self.socket(id);
        if let (Place::Host(conn), true) = (socket.place, is_closed) {
            stack.unsettle(conn);
            stack.set_cork(conn, socket.corked);
            if !self.send_unsent(stack, id, conn) {
                return false;
            }
        }
        self.wake_writer(id);
        true
    }

    /// Keeps as much of `data` as there is space for, to be sent after the move. Returns how many bytes.
    pub(super) fn keep(&mut self, id: SocketId, data: &P) -> usize {
        let taken = self.room_to_keep(id).min(data.len());
        if taken > 0 {
            self.socket_mut(id).unsent.push_back(data.slice(0, taken));
        }
        taken
    }

    /// Returns how many more bytes would be kept.
    pub(super) fn room_to_keep(&self, id: SocketId) -> usize {
        match self.socket(id).unsent.len() {
            MOST_PIECES.. => 0,
            _ => self.most_kept.saturating_sub(self.unsent(id)),
        }
    }

    fn gives_up(
        &mut self,
        now: Time,
        stack: &mut impl HostStack<P>,
        id: SocketId,
        why: NotOffloaded,
    ) {
        if !self.stays(stack, id) {
            return;
        }
        // If the stack refused to export the connection, settling has already ended, and its writer still waits.
        self.wake_writer(id);
        if why == NotOffloaded::UnderWay {
            self.socket_mut(id).not_before = now + BETWEEN_ATTEMPTS;
        }
        self.not_handed_off(id, why);
    }
}
