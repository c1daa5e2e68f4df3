//! Entries of a transfer: descriptors with their continuations.

use super::{Descriptor, Malformed};

/// Returns the entries of a transfer, each a descriptor with its continuations.
pub fn entries(transfer: &[Descriptor]) -> Entries<'_> {
    Entries { left: transfer }
}

/// Iterator over entries; see [`entries`]. Ends after an error.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    left: &'a [Descriptor],
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<&'a [Descriptor], Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let len = 1 + self.left.first()?.continuations();
        let Some((entry, left)) = self.left.split_at_checked(len) else {
            let missing = len - self.left.len();
            self.left = &[];
            return Some(Err(Malformed::Truncated { missing }));
        };
        self.left = left;
        Some(Ok(entry))
    }
}

/// Returns the number of descriptors, at most `most`, in the longest run of whole entries at the start of `transfer`.
#[inline]
pub fn whole_entries(transfer: &[Descriptor], most: usize) -> usize {
    let most = most.min(transfer.len());
    let mut whole = 0;
    while whole < most {
        let end = whole + 1 + transfer[whole].continuations();
        if end > most {
            break;
        }
        whole = end;
    }
    whole
}

/// Like [`whole_entries`], for a transfer that ends with a whole entry.
#[inline]
pub fn entries_within(transfer: &[Descriptor], most: usize) -> usize {
    match transfer.len() <= most {
        true => transfer.len(),
        false => whole_entries(transfer, most),
    }
}
