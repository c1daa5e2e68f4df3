//! Conversion of requests for files to references to blocks.

use crate::log::{Log, Request};
use crate::session::Sessions;
use baton_cache::Reference;

/// Maximum number of blocks of all files, so that a mistyped size does not use up the memory: 4 TB with blocks of 4 KB.
const MAX_BLOCKS: u64 = 1 << 30;
/// Maximum number of references in a string; a reference takes eight bytes.
const MAX_REFERENCES: u64 = 1 << 29;

/// All blocks are followed if there are at most this many references per request of a log, or `LEAST_REFERENCES` in total.
const REFERENCES_A_REQUEST: u64 = 64;
const LEAST_REFERENCES: u64 = 1 << 15;
/// Number of blocks of a response that are followed, in multiples of the cache; later blocks are left out.
const CACHES_A_RESPONSE: u64 = 4;

/// Which blocks of a log's responses an analysis follows: all, or a sample if there are far more blocks than requests.
///
/// Under any policy, a cache keeps at most as much of a response as its own size. Of each response, only the first blocks are followed,
/// four times as many as fit in the cache, and of those one in `step`, for a cache that is smaller by this factor: "Cache modeling and
/// optimization using miniature simulations" (Waldspurger et al., USENIX ATC 2017).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// Number of the first blocks of a response that are followed.
    first: u64,
    /// One in this many blocks is followed.
    step: u32,
}

impl Sample {
    /// All blocks.
    pub const ALL: Self = Self {
        first: u64::MAX,
        step: 1,
    };

    /// Returns the sample for a cache of `cache_bytes`: all blocks, if they are few enough for the number of requests.
    pub fn of(log: &Log, block_bytes: u64, cache_bytes: u64) -> Self {
        let most = REFERENCES_A_REQUEST * log.requests.len() as u64;
        let most = most.max(LEAST_REFERENCES);
        let count = |first: u64| {
            let blocks = log
                .requests
                .iter()
                .map(|r| r.bytes.div_ceil(block_bytes).min(first));
            blocks.fold(0u64, u64::saturating_add)
        };
        if count(u64::MAX) <= most {
            return Self::ALL;
        }
        let first = CACHES_A_RESPONSE * (cache_bytes / block_bytes).max(1);
        let step = count(first).div_ceil(most).max(1);
        Self {
            first,
            step: u32::try_from(step).unwrap_or(u32::MAX),
        }
    }

    /// Returns the number of blocks that each followed block stands for.
    pub const fn step(self) -> u32 {
        self.step
    }

    /// Returns the first block of a file that is followed; it differs between files so that small ones are followed as often as large ones.
    fn offset(self, file: usize) -> u64 {
        (file as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) % u64::from(self.step)
    }

    /// Returns the number of followed blocks of the first `bytes` bytes of a file.
    fn count(self, file: usize, bytes: u64, block_bytes: u64) -> u64 {
        let blocks = bytes.div_ceil(block_bytes).min(self.first);
        let followed = blocks.saturating_sub(self.offset(file));
        followed.div_ceil(self.step.into())
    }
}

/// Numbering of all blocks of all files that are followed, consecutive from 0.
#[derive(Clone, Debug)]
pub struct Blocks {
    /// The first block of each file.
    first: Vec<u32>,
    block_bytes: u32,
    count: u32,
    sample: Sample,
}

/// Why blocks cannot be numbered.
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
        Self::sampled(sizes, block_bytes, Sample::ALL)
    }

    /// Numbers the blocks of a sample of files of these sizes in bytes.
    ///
    /// # Errors
    /// The block size is invalid, or there are too many blocks.
    pub fn sampled(sizes: &[u64], block_bytes: u64, sample: Sample) -> Result<Self, BlocksError> {
        let sensible = block_bytes.is_power_of_two() && (512..=1 << 30).contains(&block_bytes);
        if !sensible {
            return Err(BlocksError::BlockBytes(block_bytes));
        }
        let mut count = 0u64;
        let mut first = Vec::with_capacity(sizes.len());
        for (file, &size) in sizes.iter().enumerate() {
            first.push(count.min(MAX_BLOCKS) as u32);
            count = count.saturating_add(sample.count(file, size, block_bytes));
        }
        if count > MAX_BLOCKS {
            return Err(BlocksError::TooManyBlocks(count));
        }
        Ok(Self {
            first,
            block_bytes: block_bytes as u32,
            count: count as u32,
            sample,
        })
    }

    /// Returns the number of blocks.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Returns the number of blocks that each numbered block stands for.
    pub const fn step(&self) -> u32 {
        self.sample.step
    }

    /// Returns the size of a block in bytes.
    pub const fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// Returns references to the first `content` bytes of `file`, whose size must be at least that.
    pub fn of_request(&self, file: u32, content: u64) -> impl Iterator<Item = Reference> + use<> {
        let (sample, block_bytes) = (self.sample, u64::from(self.block_bytes));
        let (first, file) = (self.first[file as usize], file as usize);
        let offset = sample.offset(file);
        (0..sample.count(file, content, block_bytes)).map(move |i| {
            let block = offset + i * u64::from(sample.step);
            Reference {
                block: first + i as u32,
                bytes: (content - block * block_bytes).min(block_bytes) as u32,
            }
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
        Self::sampled(log, sessions, caches, block_bytes, Sample::ALL)
    }

    /// Returns the references to a sample of the blocks, like [`Self::split`].
    ///
    /// # Errors
    /// As [`Self::split`].
    pub fn sampled(
        log: &Log,
        sessions: &Sessions,
        caches: usize,
        block_bytes: u64,
        sample: Sample,
    ) -> Result<Vec<Self>, BlocksError> {
        let blocks = Blocks::sampled(log.files.sizes(), block_bytes, sample)?;
        let of_request = |r: &Request| sample.count(r.file as usize, r.bytes, block_bytes);
        let count = log.requests.iter().map(of_request);
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
