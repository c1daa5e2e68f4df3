//! The client's check that every byte of a response is correct.

use super::{Exchange, offset, revision};
use baton_wire::{Payload, Symbolic};

/// Reads one response and checks that it consists of exactly the header and then the requested content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseReader {
    exchange: Exchange,
    head_read: u32,
    content_read: u64,
    /// Revision of the page that is being read.
    page_revision: u32,
    /// The oldest and the newest revision among all pages read.
    revisions: Option<(u32, u32)>,
}

/// Size of a page. Within a page, all content of a file has the same revision.
const PAGE_BYTES: u64 = 4096;

impl ResponseReader {
    /// Creates a reader for the response to `request`. Panics if `request` is not a request.
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

    /// Returns the oldest and the newest revision of all pages read so far. The caller must check that these were current.
    pub fn revisions(&self) -> Option<(u32, u32)> {
        self.revisions
    }

    /// Takes the bytes of this response from the front of `data`.
    ///
    /// # Errors
    /// Returns the expected range if `data` starts with other bytes, or if the revision of the file changes within a page.
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

    /// Checks the revision of content of a page. Returns `None` if the page began in another revision.
    fn note_revision(&mut self, data: &Symbolic) -> Option<()> {
        let revision = revision(data);
        if self.content_read.is_multiple_of(PAGE_BYTES) {
            self.page_revision = revision;
            let (oldest, newest) = self.revisions.unwrap_or((revision, revision));
            self.revisions = Some((oldest.min(revision), newest.max(revision)));
        }
        (self.page_revision == revision).then_some(())
    }

    /// Returns the remaining range of the part that is being read.
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

    /// Returns whether the whole response was read.
    pub fn is_complete(&self) -> bool {
        self.head_read == self.exchange.head().len
            && self.content_read == self.exchange.response_len()
    }
}
