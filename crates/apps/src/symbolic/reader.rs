//! The client's side: is every byte of a response the right one?

use super::{Exchange, offset, revision};
use baton_wire::{Payload, Symbolic};

/// Reads one response and checks that it is exactly the header and then the content of what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseReader {
    exchange: Exchange,
    head_read: u32,
    content_read: u64,
    /// Revision of the page being read.
    page_revision: u32,
    /// The oldest and the newest revision among all pages read.
    revisions: Option<(u32, u32)>,
}

/// Content of a file is of one revision within each page.
const PAGE_BYTES: u64 = 4096;

impl ResponseReader {
    /// A reader of the response to `request`. Panics when that is no request.
    pub fn new(request: Symbolic) -> Self {
        let exchange = Exchange::of(request.source).filter(|exchange| exchange.kind.is_request());
        Self {
            exchange: exchange.expect("a request"),
            head_read: 0,
            content_read: 0,
            page_revision: 0,
            revisions: None,
        }
    }

    /// The oldest and the newest revision of a page read so far. Whether they were current is for somebody else to say.
    pub fn revisions(&self) -> Option<(u32, u32)> {
        self.revisions
    }

    /// Takes what belongs to this response off the front of `data`.
    ///
    /// # Errors
    /// Gives the range that should have come, when `data` is something else, or when a page begun in one revision of its file goes on in
    /// another.
    pub fn take(&mut self, data: &mut Symbolic) -> Result<(), Symbolic> {
        while data.len > 0 && !self.is_complete() {
            let expected = self.next();
            if data.source != expected.source || offset(data) != expected.offset {
                return Err(expected);
            }
            let mut taken = data.len.min(expected.len);
            let head = self.exchange.head().source;
            if expected.source != head {
                taken = taken.min((PAGE_BYTES - expected.offset % PAGE_BYTES) as u32);
                self.note_revision(data).ok_or(expected)?;
            }
            if expected.source == head {
                self.head_read += taken;
            } else {
                self.content_read += u64::from(taken);
            }
            *data = data.slice(taken as usize, (data.len - taken) as usize);
        }
        Ok(())
    }

    /// Content of a page comes in this revision; none if it began in another.
    fn note_revision(&mut self, data: &Symbolic) -> Option<()> {
        let revision = revision(data);
        if self.content_read.is_multiple_of(PAGE_BYTES) {
            self.page_revision = revision;
            let (oldest, newest) = self.revisions.unwrap_or((revision, revision));
            self.revisions = Some((oldest.min(revision), newest.max(revision)));
        }
        (self.page_revision == revision).then_some(())
    }

    /// All that is left of the part being read.
    fn next(&self) -> Symbolic {
        let head = self.exchange.head();
        if self.head_read < head.len {
            return head.slice(
                self.head_read as usize,
                (head.len - self.head_read) as usize,
            );
        }
        self.exchange.content(
            self.content_read,
            (self.exchange.response_len() - self.content_read) as u32,
        )
    }

    /// Whether the whole response was read.
    pub fn is_complete(&self) -> bool {
        self.head_read == self.exchange.head().len
            && self.content_read == self.exchange.response_len()
    }
}
