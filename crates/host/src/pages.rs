//! Pages of files that connections and adapters refer to.

use crate::SocketId;
use crate::layer::AdapterId;
use baton_tcp::ConnId;
use baton_wire::SeqNr;
use smallvec::SmallVec;

/// Bytes of a page of memory.
pub const PAGE_BYTES: u32 = 4096;

/// A component that refers to pages of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Borrower {
    /// A connection of the host's stack, until its peer has acknowledged the content.
    Connection(ConnId),
    /// A socket on an adapter, by its number there, until its SENDs have been answered.
    Socket(AdapterId, SocketId),
    /// The data cache of an adapter, until its INSERTs have been answered.
    Cache(AdapterId),
}

/// Components that refer to the same content.
pub type Borrowers = SmallVec<[(Borrower, SeqNr); 2]>;

/// Splits `len` bytes from `offset` of a file on into runs that each lie in one page. Returns (start, length) within the range.
pub fn pages(offset: u64, len: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut start = 0;
    std::iter::from_fn(move || {
        if start == len {
            return None;
        }
        let in_page = ((offset + start as u64) % u64::from(PAGE_BYTES)) as usize;
        let run = (PAGE_BYTES as usize - in_page).min(len - start);
        start += run;
        Some((start - run, run))
    })
}

#[cfg(test)]
mod tests {
    use super::pages;

    #[test]
    fn runs_end_where_pages_end() {
        let runs = |offset, len| pages(offset, len).collect::<Vec<_>>();
        assert_eq!(runs(0, 0), []);
        assert_eq!(runs(0, 4096), [(0, 4096)]);
        assert_eq!(runs(1, 4096), [(0, 4095), (4095, 1)]);
        assert_eq!(
            runs(4096 * 7 + 4000, 5000),
            [(0, 96), (96, 4096), (4192, 808)]
        );
    }
}
