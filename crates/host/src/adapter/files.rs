//! Sending files that the adapter reads by itself.

use super::OsLayer;
use super::socket::{Operation, Phase, Socket};
use super::stats::NoRoom;
use crate::{Gone, SocketId};
use baton_bus::descriptor::{Action, Buffer, MOST_FILE_BYTES};
use baton_bus::link::Inline;
use baton_bus::{HostLink, Urgency};
use baton_wire::Time;

impl<P: Inline> OsLayer<P> {
    /// Sends `len` bytes from `address` on, in a file that this side lends to the adapter for this SEND, or as many of them as there is
    /// space for. Returns how many; if that is not all, the socket becomes writable later. If it is none, the file stays unused.
    pub(super) fn send_lent<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        link: &mut L,
        socket: SocketId,
        (address, len): (u64, u32),
    ) -> Result<u32, Gone> {
        let number = socket.0;
        let entry = self.known(socket).ok_or(Gone)?;
        if !entry.may_send() {
            return Err(Gone);
        }
        let taken = match entry.is_full() || entry.phase == Phase::Opening {
            false => len.min(MOST_FILE_BYTES - entry.lent),
            true => 0,
        };
        if taken == 0 {
            self.wait_for_room(number, NoRoom::Sends);
        }
        if taken == 0 || !self.has_room_for_reference(now, link, number) {
            self.socket_mut(number).wants_room = true;
            return Ok(0);
        }
        let entry = self.socket_mut(number);
        entry.wants_room = taken < len;
        entry.lent += taken;
        let (len, more) = (taken, false);
        let data = Buffer::Memory { address, len };
        self.queue_reference(now, number, (Some(address), len), Action::send(data, more));
        self.stats.lent_sends += 1;
        self.stats.lent_bytes += u64::from(len);
        Ok(taken)
    }

    /// Queues a SEND of data that is not in a buffer; the caller has checked for space.
    pub(super) fn queue_reference(
        &mut self,
        now: Time,
        number: u32,
        (address, len): (Option<u64>, u32),
        action: Action,
    ) {
        let end = self.give(number, len);
        let tag = self.remember(number, Operation::Send { address, len, end });
        let request = baton_bus::descriptor::Request {
            socket: number,
            tag,
            action,
        };
        let pushed = self
            .queue
            .push(now, &[request.encode()], len, Urgency::Awaited);
        debug_assert!(pushed, "there was room");
        self.stats.sends += 1;
        self.stats.sent_bytes += u64::from(len);
    }
}

impl Socket {
    /// Returns whether the adapter has so much of files to read for the connection that it should read some of it before there is more.
    pub fn is_full(&self) -> bool {
        self.lent > MOST_FILE_BYTES / 2
    }
}
