//! W-TinyLFU.

use crate::Replacement;
use crate::list::{Links, List};
use crate::sketch::Sketch;

/// The window has one in this many slots (paper, section 5.2).
const WINDOW_SHARE: u32 = 100;
/// Percentage of the main area that is protected (paper, section 5.2: 80 per cent).
const PROTECTED_PERCENT: u64 = 80;

/// Window TinyLFU (Einziger, Friedman and Manes, "TinyLFU: a highly efficient cache admission policy", ACM Transactions on Storage 2017,
/// section 4).
///
/// New blocks enter a small LRU window. The block that leaves the window competes with the victim of the main area, a segmented LRU: the
/// one that was requested more often recently stays. If both are equal, the one in the main area stays.
#[derive(Debug)]
pub struct WTinyLfu {
    links: Links,
    /// Lists by [`Area`].
    lists: [List; 3],
    blocks: Vec<Block>,
    sketch: Sketch,
    window_target: u32,
    protected_target: u32,
}

#[derive(Clone, Copy, Default, Debug)]
struct Block {
    key: u64,
    area: Area,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
enum Area {
    #[default]
    Window,
    Probation,
    Protected,
}

impl WTinyLfu {
    /// Creates a policy for slots below `slots`.
    pub fn new(slots: u32) -> Self {
        let window_target = (slots / WINDOW_SHARE).max(1);
        let main = u64::from(slots.saturating_sub(window_target));
        Self {
            links: Links::new(slots),
            lists: [List::new(), List::new(), List::new()],
            blocks: vec![Block::default(); slots as usize],
            sketch: Sketch::new(slots),
            window_target,
            protected_target: (main * PROTECTED_PERCENT / 100) as u32,
        }
    }

    const fn len(&self, area: Area) -> u32 {
        self.lists[area as usize].len()
    }

    const fn oldest(&self, area: Area) -> Option<u32> {
        self.lists[area as usize].oldest()
    }

    fn remove(&mut self, slot: u32) {
        let area = self.blocks[slot as usize].area;
        self.lists[area as usize].remove(&mut self.links, slot);
    }

    fn push(&mut self, slot: u32, area: Area) {
        self.blocks[slot as usize].area = area;
        self.lists[area as usize].push(&mut self.links, slot);
    }

    fn move_to(&mut self, slot: u32, area: Area) {
        self.remove(slot);
        self.push(slot, area);
    }

    /// Moves a block from a window above its target to probation. That happens only while the cache fills: after that, a victim leaves for
    /// every new block.
    fn shrink_window(&mut self) {
        if self.len(Area::Window) > self.window_target
            && let Some(slot) = self.oldest(Area::Window)
        {
            self.move_to(slot, Area::Probation);
        }
    }

    /// Returns the next victim of the main area.
    fn main_victim(&self) -> Option<u32> {
        self.oldest(Area::Probation)
            .or(self.oldest(Area::Protected))
    }

    fn estimate(&self, slot: u32) -> u8 {
        self.sketch.estimate(self.blocks[slot as usize].key)
    }
}

impl Replacement for WTinyLfu {
    fn inserted(&mut self, slot: u32, key: u64, _bytes: u32) {
        self.sketch.count(key);
        self.blocks[slot as usize].key = key;
        self.push(slot, Area::Window);
        self.shrink_window();
    }

    fn used(&mut self, slot: u32) {
        let Block { key, area } = self.blocks[slot as usize];
        self.sketch.count(key);
        let used = match area {
            Area::Window => Area::Window,
            Area::Probation | Area::Protected => Area::Protected,
        };
        self.move_to(slot, used);
        if self.len(Area::Protected) > self.protected_target
            && let Some(demoted) = self.oldest(Area::Protected)
        {
            self.move_to(demoted, Area::Probation);
        }
    }

    fn removed(&mut self, slot: u32) {
        self.remove(slot);
    }

    fn victim(&mut self) -> Option<u32> {
        let window_is_full = self.len(Area::Window) >= self.window_target;
        let candidate = self.oldest(Area::Window).filter(|_| window_is_full);
        let victim = match (candidate, self.main_victim()) {
            (Some(candidate), Some(main)) if self.estimate(candidate) > self.estimate(main) => {
                self.move_to(candidate, Area::Probation);
                main
            }
            (Some(candidate), _) => candidate,
            (None, main) => main.or(self.oldest(Area::Window))?,
        };
        self.remove(victim);
        Some(victim)
    }

    fn check(&self) {
        let mut len = 0;
        for area in [Area::Window, Area::Probation, Area::Protected] {
            let list = &self.lists[area as usize];
            list.check(&self.links);
            len += list.len();
            let mut slots = list.iter(&self.links);
            assert!(slots.all(|slot| self.blocks[slot as usize].area == area));
        }
        assert_eq!(self.links.linked(), len as usize, "a slot is in no area");
        assert!(self.len(Area::Window) <= self.window_target);
        assert!(self.len(Area::Protected) <= self.protected_target);
    }
}
