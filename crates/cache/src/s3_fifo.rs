//! S3-FIFO.

use crate::Replacement;
use crate::ghost::Ghosts;
use crate::list::{Links, List};

/// The small queue has one in this many slots before blocks leave it (paper, section 4.1).
const SMALL_SHARE: u32 = 10;
/// Maximum count of uses (two bits per block).
const MOST_USES: u8 = 3;
/// Number of uses in the small queue after which a block moves to the main queue (paper, algorithm 1: more than one).
const USES_TO_MOVE: u8 = 2;

/// S3-FIFO (Yang, Zhang, Qiu, Yue and Rashmi, "FIFO queues are all you need for cache eviction", SOSP 2023).
///
/// New blocks enter a small queue. Blocks that were hardly used by its end are evicted early and remembered as ghosts; the others move to
/// the main queue, where used blocks are reinserted. A block that returns while its ghost is remembered enters the main queue directly.
#[derive(Clone, Debug)]
pub struct S3Fifo {
    links: Links,
    small: List,
    main: List,
    ghosts: Ghosts,
    blocks: Vec<Block>,
    small_target: u32,
    main_target: u32,
}

#[derive(Clone, Copy, Default, Debug)]
struct Block {
    key: u64,
    uses: u8,
    in_main: bool,
}

impl S3Fifo {
    /// Creates a policy for slots below `slots`, which remembers as many ghosts as the main queue has slots.
    pub fn new(slots: u32) -> Self {
        let small_target = (slots / SMALL_SHARE).max(1);
        let main_target = slots.saturating_sub(small_target);
        Self {
            links: Links::new(slots),
            small: List::new(),
            main: List::new(),
            ghosts: Ghosts::new(main_target),
            blocks: vec![Block::default(); slots as usize],
            small_target,
            main_target,
        }
    }

    fn push_main(&mut self, slot: u32) {
        let block = &mut self.blocks[slot as usize];
        block.in_main = true;
        block.uses = 0;
        self.main.push(&mut self.links, slot);
    }

    /// Moves used blocks from the end of the small queue to the main one until either queue has a victim.
    fn victim_of_small(&mut self) -> Option<u32> {
        while let Some(slot) = self.small.pop_oldest(&mut self.links) {
            let Block { key, uses, .. } = self.blocks[slot as usize];
            if uses < USES_TO_MOVE {
                self.ghosts.add(key);
                return Some(slot);
            }
            self.push_main(slot);
            if self.main.len() > self.main_target {
                return self.victim_of_main();
            }
        }
        self.victim_of_main()
    }

    fn victim_of_main(&mut self) -> Option<u32> {
        // This terminates, because every round decrements uses.
        loop {
            let slot = self.main.oldest()?;
            let uses = &mut self.blocks[slot as usize].uses;
            if *uses == 0 {
                self.main.remove(&mut self.links, slot);
                return Some(slot);
            }
            *uses -= 1;
            self.main.renew(&mut self.links, slot);
        }
    }
}

impl Replacement for S3Fifo {
    fn inserted(&mut self, slot: u32, key: u64, _bytes: u32) {
        self.blocks[slot as usize] = Block {
            key,
            ..Block::default()
        };
        if self.ghosts.take(key) {
            self.push_main(slot);
        } else {
            self.small.push(&mut self.links, slot);
        }
    }

    fn used(&mut self, slot: u32) {
        debug_assert!(self.links.is_linked(slot), "slot {slot} is empty");
        let uses = &mut self.blocks[slot as usize].uses;
        *uses = (*uses + 1).min(MOST_USES);
    }

    fn removed(&mut self, slot: u32) {
        let list = if self.blocks[slot as usize].in_main {
            &mut self.main
        } else {
            &mut self.small
        };
        list.remove(&mut self.links, slot);
    }

    fn victim(&mut self) -> Option<u32> {
        if self.small.len() >= self.small_target || self.main.len() == 0 {
            self.victim_of_small()
        } else {
            self.victim_of_main()
        }
    }

    fn check(&self) {
        self.small.check(&self.links);
        self.main.check(&self.links);
        self.ghosts.check();
        let lists = self.small.len() + self.main.len();
        assert_eq!(self.links.linked(), lists as usize, "a slot is in no queue");
        let in_main = |slot| self.blocks[slot as usize].in_main;
        assert!(self.main.iter(&self.links).all(in_main));
        assert!(!self.small.iter(&self.links).any(in_main));
    }
}
