//! Pages that are lent: a borrower that was given content of a file by reference needs the pages until it has finished with the content.

use super::transient::Blocks;
use crate::memory::PageBuffer;
use baton_host::Borrower;
use baton_tcp::ConnId;
use baton_wire::SeqNr;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Lent pages, by borrower.
#[derive(Debug, Default)]
pub(crate) struct Lent {
    /// Pages, oldest first, each with the sequence number after the borrower's part of it.
    pages: FxHashMap<Borrower, VecDeque<(SeqNr, LentPage)>>,
}

/// A page of memory, its wrapping in a send buffer, and, for a transient file, the blocks that contain the sent data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LentPage {
    pub(crate) frame: u32,
    pub(crate) buffer: Option<PageBuffer>,
    pub(crate) blocks: Option<Blocks>,
}

/// A page in the send buffer of a connection of the host's stack.
#[derive(Clone, Copy, Debug)]
pub struct SendPage {
    /// The sequence number after the connection's part of the page.
    pub(crate) end: SeqNr,
    pub(crate) frame: u32,
    pub(crate) buffer: PageBuffer,
}

impl Lent {
    /// Lends a page to a borrower until it has finished with all data before `end`.
    pub(crate) fn lend(&mut self, to: Borrower, end: SeqNr, page: LentPage) {
        self.pages.entry(to).or_default().push_back((end, page));
    }

    /// Takes back the oldest page of a borrower if `is_done` returns true for its sequence number.
    pub(crate) fn give_back(
        &mut self,
        from: Borrower,
        is_done: impl Fn(SeqNr) -> bool,
    ) -> Option<LentPage> {
        let lent = self.pages.get_mut(&from)?;
        let (_, page) = lent.pop_front_if(|(end, _)| is_done(*end))?;
        Some(page)
    }

    /// Returns the pages in the send buffer of a connection, oldest first.
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

    /// Returns all lent pages; a page that is lent several times is repeated.
    pub(crate) fn pages(&self) -> impl Iterator<Item = LentPage> {
        self.pages.values().flatten().map(|&(_, page)| page)
    }
}
