//! The blocks of a SACK option, stored inline so that headers can be copied like numbers.

use crate::SackBlock;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Maximum number of blocks in an option (RFC 2018 3).
const MOST: usize = 4;

/// The blocks of one SACK option: at most as many as fit into a header (RFC 2018 3). Dereferences to a slice.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<SackBlock>", into = "Vec<SackBlock>")]
pub struct SackBlocks {
    blocks: [SackBlock; MOST],
    len: u8,
}

/// The error of more blocks than fit into a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} SACK blocks do not fit into a header")]
pub struct TooManyBlocks(pub usize);

impl SackBlocks {
    /// No blocks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a block. Panics if there is no space for it.
    pub fn push(&mut self, block: SackBlock) {
        self.blocks[usize::from(self.len)] = block;
        self.len += 1;
    }

    /// Inserts a block before the others. Panics if there is no space for it.
    pub fn push_front(&mut self, block: SackBlock) {
        assert!(self.len() < MOST, "there is room for one more");
        self.blocks.rotate_right(1);
        self.blocks[0] = block;
        self.len += 1;
    }

    /// Keeps the first `len` blocks.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len().min(len) as u8;
    }
}

impl Deref for SackBlocks {
    type Target = [SackBlock];
    #[inline]
    fn deref(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.len)]
    }
}

impl DerefMut for SackBlocks {
    fn deref_mut(&mut self) -> &mut [SackBlock] {
        &mut self.blocks[..usize::from(self.len)]
    }
}

impl<'a> IntoIterator for &'a SackBlocks {
    type Item = &'a SackBlock;
    type IntoIter = std::slice::Iter<'a, SackBlock>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for SackBlocks {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for SackBlocks {}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// Panics if there are more blocks than fit into a header.
impl FromIterator<SackBlock> for SackBlocks {
    fn from_iter<I: IntoIterator<Item = SackBlock>>(blocks: I) -> Self {
        let mut out = Self::new();
        blocks.into_iter().for_each(|block| out.push(block));
        out
    }
}

impl TryFrom<Vec<SackBlock>> for SackBlocks {
    type Error = TooManyBlocks;
    fn try_from(blocks: Vec<SackBlock>) -> Result<Self, TooManyBlocks> {
        match blocks.len() <= MOST {
            true => Ok(blocks.into_iter().collect()),
            false => Err(TooManyBlocks(blocks.len())),
        }
    }
}

impl From<SackBlocks> for Vec<SackBlock> {
    fn from(blocks: SackBlocks) -> Self {
        blocks.to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SeqNr;

    fn block(start: u32) -> SackBlock {
        SackBlock {
            start: SeqNr(start),
            end: SeqNr(start + 1),
        }
    }

    #[test]
    fn blocks_are_kept_in_the_order_in_which_they_were_put() {
        let mut blocks: SackBlocks = [2, 3].map(block).into_iter().collect();
        blocks.push_front(block(1));
        assert_eq!(*blocks, [1, 2, 3].map(block));
        blocks.truncate(2);
        blocks.push(block(9));
        assert_eq!(*blocks, [1, 2, 9].map(block));
        assert_eq!(
            SackBlocks::try_from(vec![block(0); 5]),
            Err(TooManyBlocks(5))
        );
    }

    #[test]
    fn truncated_blocks_do_not_count() {
        let mut blocks: SackBlocks = [1, 2].map(block).into_iter().collect();
        blocks.truncate(1);
        assert_eq!(blocks, [1].map(block).into_iter().collect());
    }
}
