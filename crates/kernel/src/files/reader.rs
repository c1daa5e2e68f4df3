//! Fetches pages of files for a socket that sends them. Contains the state that a socket keeps between two calls of `sendfile`.

use super::cache::Wanted;
use super::{FilePage, Files};
use crate::footprint::{self, PAGE_BYTES};
use crate::meter::Meter;
use baton_host::{FileId, SocketId};
use baton_wire::Payload;

/// Reason why no more of a file goes into the send buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Everything requested was sent, or as much as there was space for.
    Done,
    /// There are no mbufs, or no memory for the page.
    NoMemory,
    /// The next page is being read.
    Read,
    /// The file ends here.
    End,
}

/// A socket's state for the file that it sends.
#[derive(Debug)]
pub(crate) struct Reader<P> {
    /// The rest of a page that `sendfile` started but had no space for.
    pub(crate) open_page: Option<OpenPage<P>>,
    /// The place where `sendfile` last found the end of a file within a page. It may continue there only if that page has just grown.
    pub(crate) met_end: Option<MetEnd>,
    /// The page of memory that the socket's writer waited for, wired until it is used.
    pub(crate) held_page: Option<u32>,
    /// The disk read that the socket's writer waits for.
    pub(crate) waits_for_read: Option<u64>,
}

impl<P> Default for Reader<P> {
    fn default() -> Self {
        Self {
            open_page: None,
            met_end: None,
            held_page: None,
            waits_for_read: None,
        }
    }
}

impl<P> Reader<P> {
    /// Returns the pages of memory that are kept wired for the socket.
    pub(crate) fn frames(&self) -> impl Iterator<Item = u32> {
        let open = self.open_page.as_ref().map(|open| open.page.frame);
        open.into_iter().chain(self.held_page)
    }
}

/// The rest of a page that a `sendfile` started but had no space for. The next `sendfile` continues with this rest, even if the file has
/// changed in the meantime.
#[derive(Debug)]
pub(crate) struct OpenPage<P> {
    page: FilePage,
    data: P,
}

/// Place where a file ended within a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MetEnd {
    file: FileId,
    offset: u64,
    revision: u32,
}

impl MetEnd {
    /// Returns the end of file after a run of `len` bytes, unless the run ends at the end of its page.
    fn after(page: FilePage, len: usize) -> Option<Self> {
        let offset = page.offset(len as u32);
        (!offset.is_multiple_of(u64::from(PAGE_BYTES))).then_some(Self {
            file: page.file,
            offset,
            revision: page.revision,
        })
    }
}

impl<P: Payload> Files<P> {
    /// Returns the next run of a file for a socket, up to the end of its page: either the rest of the page that the last `sendfile`
    /// started, or the page's current content. The page is wired.
    ///
    /// # Errors
    /// There is no such run, or not yet.
    pub(crate) fn next_run<M: Meter>(
        &mut self,
        (reader, id): (&mut Reader<P>, SocketId),
        file: FileId,
        at: u64,
        asked: u64,
        m: &mut M,
    ) -> Result<(FilePage, P), Stop> {
        if let Some(open) = reader.open_page.take() {
            if open.page.file == file && open.page.offset(0) == at {
                return Ok((open.page, open.data));
            }
            self.unwire(open.page.frame);
        }
        if let Some(end) = reader.met_end
            && (end.file, end.offset) == (file, at)
            && self.rewritten_since(file, end.revision)
        {
            return Err(Stop::End);
        }
        let Some(store) = &mut self.store else {
            return Err(Stop::End);
        };
        let file_len = store.len(file, asked);
        if at >= file_len {
            return Err(Stop::End);
        }
        let page_bytes = u64::from(PAGE_BYTES);
        let number = (at / page_bytes) as u32;
        let frame = match &mut self.cache {
            None => memory_page(file, at),
            Some(cache) => {
                footprint::file_page_lookup(m);
                match cache.use_and_wire(file, number) {
                    Some(frame) => frame,
                    None if cache.find(file, number).is_some() => {
                        cache.stats.no_page += 1;
                        return Err(Stop::NoMemory);
                    }
                    None => {
                        let pages = file_len.div_ceil(page_bytes) as u32;
                        return Err(self.want_page((reader, id), file, number, pages, m));
                    }
                }
            }
        };
        let end = ((u64::from(number) + 1) * page_bytes).min(file_len);
        let data = store.read(file, at, (end - at) as u32);
        let page = FilePage {
            frame,
            file,
            number,
            start: (at % page_bytes) as u16,
            revision: self.revision(file),
        };
        Ok((page, data))
    }

    /// Requests a page that is not in memory. The socket, or the whole process, waits for the page.
    fn want_page<M: Meter>(
        &mut self,
        (reader, id): (&mut Reader<P>, SocketId),
        file: FileId,
        number: u32,
        pages: u32,
        m: &mut M,
    ) -> Stop {
        let Some(cache) = &mut self.cache else {
            return Stop::End;
        };
        let before = cache.stats.reads;
        let wanted = cache.want(id, file, number, pages);
        if cache.stats.reads > before {
            footprint::disk_read(m);
        }
        match wanted {
            Wanted::Later => Stop::NoMemory,
            Wanted::Read(token) => {
                reader.waits_for_read = Some(token);
                if self.blocking {
                    self.sleeps_for = Some(token);
                }
                Stop::Read
            }
        }
    }

    /// Accounts for a run from [`Files::next_run`] of which the first `run` bytes were sent. The rest stays with the socket, which keeps
    /// the page wired.
    pub(crate) fn sent_of(&mut self, reader: &mut Reader<P>, page: FilePage, data: P, run: usize) {
        let rest = data.len() - run;
        reader.met_end = MetEnd::after(page, run).filter(|_| rest == 0);
        if rest > 0 {
            self.wire(page.frame);
            let left = FilePage {
                start: page.start + run as u16,
                ..page
            };
            self.keep_open(reader, left, data.slice(run, rest));
        }
    }

    /// Keeps a wired page with which the socket continues next.
    pub(crate) fn keep_open(&mut self, reader: &mut Reader<P>, page: FilePage, data: P) {
        if let Some(before) = reader.open_page.replace(OpenPage { page, data }) {
            self.unwire(before.page.frame);
        }
    }

    /// Releases the page that the socket's writer waited for, because it was used or is no longer needed.
    pub(crate) fn release_held(&mut self, reader: &mut Reader<P>) {
        if let Some(frame) = reader.held_page.take() {
            self.unwire(frame);
        }
    }

    /// Releases all pages that are kept for the socket.
    pub(crate) fn drop_kept(&mut self, reader: &mut Reader<P>) {
        if let Some(open) = reader.open_page.take() {
            self.unwire(open.page.frame);
        }
        self.release_held(reader);
        reader.waits_for_read = None;
    }

    /// Completes the read that the socket's writer waited for; the page is wired for the socket.
    pub(crate) fn hold_for(&mut self, reader: &mut Reader<P>, frame: u32) {
        reader.waits_for_read = None;
        if let Some(before) = reader.held_page.replace(frame) {
            self.unwire(before);
        }
    }

    pub(crate) fn wire(&mut self, frame: u32) {
        if let Some(cache) = &mut self.cache {
            cache.wire(frame);
        }
    }

    pub(crate) fn unwire(&mut self, frame: u32) {
        if let Some(cache) = &mut self.cache {
            cache.unwire(frame);
        }
    }
}

/// Number of pages of memory over which the file cache is spread: 2 GB.
const MEMORY_PAGES: u64 = 1 << 19;

/// Returns the page of memory that holds this offset of a file if all files are in memory. Pages of a file that was read long ago are at
/// effectively random places.
pub(crate) fn memory_page(file: FileId, offset: u64) -> u32 {
    let page = (u64::from(file.0) << 32) | (offset / u64::from(PAGE_BYTES));
    (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32 % MEMORY_PAGES as u32
}
