//! Pages that are lent: whoever was given content of a file by reference needs its pages until he is done with it.

use super::transient::Blocks;
use crate::layer::AdapterId;
use crate::memory::PageBuffer;
use crate::sockets::SocketId;
use baton_tcp::ConnId;
use baton_wire::SeqNr;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Who refers to pages of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Borrower {
    /// A connection of the host's stack, until its peer has acknowledged them.
    Connection(ConnId),
    /// A socket on an adapter, by its number there, until its SENDs have been answered.
    Socket(AdapterId, SocketId),
    /// The data cache of an adapter, until its INSERTs have been answered.
    Cache(AdapterId),
}

/// Pages, by who refers to them.
#[derive(Debug, Default)]
pub(crate) struct Lent {
    /// Oldest first, each with the sequence number behind what the borrower has of it.
    pages: FxHashMap<Borrower, VecDeque<(SeqNr, LentPage)>>,
}

/// A page of memory, what it is wrapped into for a send buffer, and of a transient file the blocks that it is sent from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LentPage {
    pub(crate) frame: u32,
    pub(crate) buffer: Option<PageBuffer>,
    pub(crate) blocks: Option<Blocks>,
}

/// A page in the send buffer of a connection of the host's stack.
#[derive(Clone, Copy, Debug)]
pub struct SendPage {
    /// The sequence number behind what the connection has of it.
    pub(crate) end: SeqNr,
    pub(crate) frame: u32,
    pub(crate) buffer: PageBuffer,
}

impl Lent {
    /// Somebody refers to a page until he is done with all before `end`.
    pub(crate) fn lend(&mut self, to: Borrower, end: SeqNr, page: LentPage) {
        self.pages.entry(to).or_default().push_back((end, page));
    }

    /// The next page that a borrower is done with: all that was lent to him before `end`, if that `is_done`.
    pub(crate) fn give_back(
        &mut self,
        from: Borrower,
        is_done: impl Fn(SeqNr) -> bool,
    ) -> Option<LentPage> {
        let lent = self.pages.get_mut(&from)?;
        let (_, page) = lent.pop_front_if(|(end, _)| is_done(*end))?;
        Some(page)
    }

    /// Pages in the send buffer of a connection, oldest first.
    pub(crate) fn in_send_buffer(&self, conn: ConnId) -> impl Iterator<Item = SendPage> {
        let lent = self.pages.get(&Borrower::Connection(conn));
        let wrapped = |&(end, page): &(SeqNr, LentPage)| {
            Some(SendPage {
                end,
                frame: page.frame,
                buffer: page.buffer?,
            })
        };
        lent.into_iter().flatten().filter_map(wrapped)
    }

    /// All pages that are lent, as often as they are.
    pub(crate) fn pages(&self) -> impl Iterator<Item = LentPage> {
        self.pages.values().flatten().map(|&(_, page)| page)
    }
}
