//! Doubly linked lists of the kernel's structures. Changing one touches its neighbours, which were last used long ago.

const NONE: u32 = u32::MAX;

/// One list of structures by their numbers, oldest first.
#[derive(Debug)]
pub(crate) struct List {
    /// Neighbours of each structure, while it is in the list.
    links: Vec<Option<Links>>,
    latest: u32,
}

#[derive(Clone, Copy, Debug)]
struct Links {
    older: u32,
    newer: u32,
}

impl Default for List {
    fn default() -> Self {
        Self {
            links: Vec::new(),
            latest: NONE,
        }
    }
}

impl List {
    /// Whether it is in the list.
    pub fn contains(&self, one: u32) -> bool {
        self.links.get(one as usize).is_some_and(Option::is_some)
    }

    /// Makes it the latest; hears of each other structure that is touched.
    pub fn push(&mut self, one: u32, mut touched: impl FnMut(u32)) {
        if self.latest == one {
            return;
        }
        self.remove(one, &mut touched);
        let index = one as usize;
        if index >= self.links.len() {
            self.links.resize(index + 1, None);
        }
        let older = self.latest;
        self.set_newer(older, one, &mut touched);
        self.links[index] = Some(Links { older, newer: NONE });
        self.latest = one;
    }

    /// Takes it out, if it is there; hears of each other structure that is touched.
    pub fn remove(&mut self, one: u32, mut touched: impl FnMut(u32)) {
        let taken = self.links.get_mut(one as usize).and_then(Option::take);
        let Some(Links { older, newer }) = taken else {
            return;
        };
        self.set_newer(older, newer, &mut touched);
        match self.links.get_mut(newer as usize).and_then(Option::as_mut) {
            Some(links) => {
                links.older = older;
                touched(newer);
            }
            None => self.latest = older,
        }
    }

    fn set_newer(&mut self, one: u32, newer: u32, mut touched: impl FnMut(u32)) {
        if let Some(links) = self.links.get_mut(one as usize).and_then(Option::as_mut) {
            links.newer = newer;
            touched(one);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_touches_the_neighbours() {
        let mut list = List::default();
        let mut touched = Vec::new();
        for one in 0..4 {
            list.push(one, |other| touched.push(other));
        }
        assert_eq!(touched, [0, 1, 2], "each is linked behind the latest");
        touched.clear();
        list.push(1, |other| touched.push(other));
        assert_eq!(touched, [0, 2, 3]);
        touched.clear();
        list.push(1, |other| touched.push(other));
        assert!(touched.is_empty(), "the latest stays where it is");
        list.remove(2, |other| touched.push(other));
        assert_eq!(touched, [0, 3]);
        assert!(list.contains(1) && !list.contains(2));
    }
}
