//! The end of a link.

use super::socket::{Intents, Phase, SetUp};
use super::{MoveNews, OsLayer};
use crate::SocketId;
use baton_bus::Chain;
use baton_bus::descriptor::Status;
use baton_bus::link::Inline;
use baton_wire::Time;

impl<P: Inline> OsLayer<P> {
    /// Handles the loss of a link, its buffers, and the adapter's state. Connections fail, but the data that they have received can still
    /// be read. The first [`OsLayer::pump`] with a new link sets up the listeners again.
    pub fn handle_link_lost(&mut self, now: Time) {
        self.now = now;
        self.stats.links_lost += 1;
        self.queue.clear();
        self.placed = 0;
        (self.releasing, self.starved) = (0, false);
        self.posted = 0;
        self.retry_at = None;
        self.completions_due = 0;
        self.reclaiming = false;
        self.lose_cache();
        (self.carrying, self.soft_limit) = (0, None);
        for number in 0..self.sockets.len() as u32 {
            self.forget_requests(number);
        }
        for listener in &mut self.listeners {
            listener.reserved = 0;
            listener.paused = false;
            listener.untaken.clear();
        }
        self.acceptable = false;
        for number in 0..self.sockets.len() as u32 {
            self.lose(number);
        }
        debug_assert_eq!(self.requests.len(), 0);
    }

    fn forget_requests(&mut self, number: u32) {
        let entry = &mut self.sockets[number as usize];
        for chain in [&mut entry.sends, &mut entry.receives, &mut entry.control] {
            self.requests.clear(chain);
            debug_assert_eq!(*chain, Chain::default());
        }
        entry.lent = 0;
        self.tell_done_with(number);
    }

    /// Called when the adapter does not know a socket any more.
    fn lose(&mut self, number: u32) {
        let keeps_lost = self.keeps_lost;
        let entry = self.socket_mut(number);
        // The owner of an imported connection may be able to continue with it.
        let may_recover = keeps_lost && entry.imported && !entry.unknown && entry.error.is_none();
        match entry.phase {
            Phase::Free => {}
            Phase::Closing if entry.untold => {}
            Phase::Reserved | Phase::Closing => self.release(number),
            Phase::Open if entry.untaken => self.release(number),
            Phase::Open if may_recover => self.lose_imported(number),
            // The connection was not requested yet, so it can be opened on the next link.
            Phase::Opening if entry.set_up == SetUp::Socket => {}
            Phase::Opening | Phase::Open => {
                entry.unknown = true;
                entry.intents = Intents::empty();
                if std::mem::take(&mut entry.exporting) {
                    self.carried.remove(&number);
                    self.moves
                        .push_back(MoveNews::NotExported(SocketId(number)));
                }
                self.fail(number, Status::Aborted);
                self.wake_reader(number);
            }
            Phase::Importing => self.import_ended(number, Status::Aborted),
            // The connection has left the adapter.
            Phase::Exported => {}
            Phase::Listening | Phase::Packets if entry.error.is_some() => entry.unknown = true,
            Phase::Packets => {
                entry.set_up = SetUp::Socket;
                self.intend(number, Intents::SET_UP | Intents::RECEIVE);
            }
            Phase::Listening => {
                entry.set_up = SetUp::Socket;
                self.intend(number, Intents::SET_UP);
            }
        }
        self.settle_pledge(number);
    }
}
