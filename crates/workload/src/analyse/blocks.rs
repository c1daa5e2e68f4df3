//! Conversion of requests for files to references to blocks.

use crate::log::Log;
use crate::session::Sessions;
use baton_cache::Reference;

/// Maximum number of blocks of all files, so that a mistyped size does not use up the memory: 4 TB with blocks of 4 KB.
const MAX_BLOCKS: u64 = 1 << 30;
/// Maximum number of references in a string; a reference takes eight bytes.
const MAX_REFERENCES: u64 = 1 << 29;

/// Numbering of all blocks of all files, consecutive from 0.
#[derive(Clone, Debug)]
pub struct Blocks {
    /// The first block of each file.
    first: Vec<u32>,
    block_bytes: u32,
    count: u32,
}

/// Why references cannot be numbered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BlocksError {
    /// The size of a block must be a power of two, at least 512 bytes and at most a gigabyte.
    #[error("found {0}; expected a power of two from 512 to 1073741824")]
    BlockBytes(u64),
    /// The files have too many blocks.
    #[error("the files have {0} blocks; expected at most {MAX_BLOCKS}")]
    TooManyBlocks(u64),
    /// The requests are for too many blocks.
    #[error("the requests are for {0} blocks; expected at most {MAX_REFERENCES}")]
    TooManyReferences(u64),
}

impl Blocks {
    /// Numbers the blocks of files of these sizes in bytes.
    ///
    /// # Errors
    /// The block size is invalid, or there are too many blocks.
    pub fn new(sizes: &[u64], block_bytes: u64) -> Result<Self, BlocksError> {
        let sensible = block_bytes.is_power_of_two() && (512..=1 << 30).contains(&block_bytes);
        if !sensible {
            return Err(BlocksError::BlockBytes(block_bytes));
        }
        let mut count = 0u64;
        let mut first = Vec::with_capacity(sizes.len());
        for size in sizes {
            first.push(count.min(MAX_BLOCKS) as u32);
            count = count.saturating_add(size.div_ceil(block_bytes));
        }
        if count > MAX_BLOCKS {
            return Err(BlocksError::TooManyBlocks(count));
        }
        Ok(Self {
            first,
            block_bytes: block_bytes as u32,
            count: count as u32,
        })
    }

    /// Returns the number of blocks.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Returns the size of a block in bytes.
    pub const fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// Returns references to the first `content` bytes of `file`, whose size must be at least that.
    pub fn of_request(&self, file: u32, content: u64) -> impl Iterator<Item = Reference> + use<> {
        let block_bytes = u64::from(self.block_bytes);
        let first = self.first[file as usize];
        (0..content.div_ceil(block_bytes)).map(move |i| Reference {
            block: first + i as u32,
            bytes: (content - i * block_bytes).min(block_bytes) as u32,
        })
    }
}

/// The references that one cache receives, in order.
#[derive(Clone, Debug)]
pub struct BlockString {
    /// The references.
    pub references: Vec<Reference>,
    /// Upper bound of the block numbers.
    pub blocks: u32,
    /// Number of different blocks that are referenced.
    pub distinct: u32,
    /// Content bytes of all references.
    pub bytes: u64,
    /// Content bytes of all references except the first to each block: the hits of an infinite cache.
    pub again_bytes: u64,
}

impl BlockString {
    fn new(references: Vec<Reference>, blocks: u32) -> Self {
        let mut seen = vec![false; blocks as usize];
        let (mut bytes, mut again_bytes, mut distinct) = (0, 0, 0);
        for reference in &references {
            bytes += u64::from(reference.bytes);
            if std::mem::replace(&mut seen[reference.block as usize], true) {
                again_bytes += u64::from(reference.bytes);
            } else {
                distinct += 1;
            }
        }
        Self {
            references,
            blocks,
            distinct,
            bytes,
            again_bytes,
        }
    }

    /// Distributes connections in turn to `caches` independent caches and returns the references that each cache receives: the trace "split
    /// evenly" over network interfaces (network interface data caching paper, section 3). A connection stays with its interface. The
    /// requests of each string are in order of time.
    ///
    /// # Errors
    /// The block size is invalid, or there are too many blocks.
    pub fn split(
        log: &Log,
        sessions: &Sessions,
        caches: usize,
        block_bytes: u64,
    ) -> Result<Vec<Self>, BlocksError> {
        let blocks = Blocks::new(log.files.sizes(), block_bytes)?;
        let of_request = |bytes: u64| bytes.div_ceil(block_bytes);
        let count = log.requests.iter().map(|r| of_request(r.bytes));
        let count = count.fold(0u64, u64::saturating_add);
        if count > MAX_REFERENCES {
            return Err(BlocksError::TooManyReferences(count));
        }
        let mut strings = vec![Vec::new(); caches];
        for (request, connection) in log.requests.iter().zip(sessions.connections()) {
            let cache = connection as usize % caches;
            strings[cache].extend(blocks.of_request(request.file, request.bytes));
        }
        let string = |references| Self::new(references, blocks.count());
        Ok(strings.into_iter().map(string).collect())
    }
}
