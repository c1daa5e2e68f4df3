//! The numbers of sockets. The host chooses them; those of one bulk accept are consecutive.

/// Free numbers, in blocks as long as a bulk accept. A completely free block serves an accept; single numbers come from partly used blocks,
/// so that free blocks are kept for accepts.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    block_len: u32,
    most_blocks: u32,
    blocks: Vec<Block>,
    /// Completely free blocks; the last block to become free is reused first.
    whole: Vec<u32>,
    /// Partly used blocks, and some that were partly used when they were added.
    broken: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Block {
    used: u32,
    in_broken: bool,
}

impl Numbers {
    /// Creates at most `most` numbers, in blocks of `block_len`.
    pub fn new(block_len: u16, most: u32) -> Self {
        let block_len = u32::from(block_len);
        Self {
            block_len,
            most_blocks: most / block_len,
            blocks: Vec::new(),
            whole: Vec::new(),
            broken: Vec::new(),
        }
    }

    /// Returns an upper bound of all numbers that have ever been in use.
    pub fn end(&self) -> u32 {
        self.blocks.len() as u32 * self.block_len
    }

    /// Takes the numbers of a whole block. Returns the first.
    pub fn take_block(&mut self) -> Option<u32> {
        let block = self.whole_block()?;
        self.blocks[block as usize].used = self.block_len;
        Some(block * self.block_len)
    }

    /// Takes one number. The socket table knows which numbers are free.
    pub fn take_one(&mut self, is_free: impl Fn(u32) -> bool) -> Option<u32> {
        while let Some(&block) = self.broken.last() {
            let entry = &mut self.blocks[block as usize];
            if (1..self.block_len).contains(&entry.used) {
                entry.used += 1;
                let first = block * self.block_len;
                let number = (first..first + self.block_len).find(|&number| is_free(number));
                debug_assert!(number.is_some(), "some number of the block is free");
                return number;
            }
            entry.in_broken = false;
            self.broken.pop();
        }
        let block = self.whole_block()?;
        self.blocks[block as usize].used = 1;
        self.note_broken(block);
        Some(block * self.block_len)
    }

    /// Gives a number back.
    pub fn give_back(&mut self, number: u32) {
        let block = number / self.block_len;
        self.blocks[block as usize].used -= 1;
        if self.blocks[block as usize].used == 0 {
            self.whole.push(block);
        } else {
            self.note_broken(block);
        }
    }

    fn whole_block(&mut self) -> Option<u32> {
        if let Some(block) = self.whole.pop() {
            return Some(block);
        }
        let block = self.blocks.len() as u32;
        if block >= self.most_blocks {
            return None;
        }
        self.blocks.push(Block::default());
        Some(block)
    }

    fn note_broken(&mut self, block: u32) {
        let entry = &mut self.blocks[block as usize];
        if entry.used < self.block_len && !std::mem::replace(&mut entry.in_broken, true) {
            self.broken.push(block);
        }
    }

    /// Asserts that the socket table agrees on which numbers are free.
    pub fn check(&self, is_free: impl Fn(u32) -> bool) {
        for (block, entry) in (0..).zip(&self.blocks) {
            let first = block * self.block_len;
            let numbers = first..first + self.block_len;
            let used = numbers.filter(|&number| !is_free(number)).count();
            assert_eq!(used, entry.used as usize, "numbers in use of block {block}");
            assert_eq!(self.whole.contains(&block), used == 0);
            assert_eq!(self.broken.contains(&block), entry.in_broken);
            assert!(entry.in_broken || used == 0 || used == self.block_len as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// In any sequence of calls, no number is in use twice, and the numbers of a block are consecutive.
        #[test]
        fn no_number_is_in_use_twice(block_len in 1_u16..6, steps in prop::collection::vec((0_u8..4, any::<prop::sample::Index>()), 1..200)) {
            const MOST: u32 = 30;
            let mut numbers = Numbers::new(block_len, MOST);
            let mut out: Vec<u32> = Vec::new();
            for (step, index) in steps {
                let taken: Vec<u32> = match step {
                    0 => numbers.take_block().map_or(vec![], |first| (first..first + u32::from(block_len)).collect()),
                    1 => numbers.take_one(|number| !out.contains(&number)).into_iter().collect(),
                    _ if out.is_empty() => continue,
                    _ => {
                        let number = out.swap_remove(index.index(out.len()));
                        numbers.give_back(number);
                        continue;
                    }
                };
                prop_assert!(!taken.is_empty() || out.len() as u32 + u32::from(block_len) > MOST / u32::from(block_len));
                for number in taken {
                    prop_assert!(number < MOST && number < numbers.end() && !out.contains(&number));
                    out.push(number);
                }
                numbers.check(|number| !out.contains(&number));
            }
        }
    }
}
