//! Takes turns among several candidates.

/// Round robin: the candidate that had the last turn comes last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turns {
    next: usize,
}

impl Turns {
    /// Returns the first of `count` candidates for which `wanted` returns a value, with the value, or `None` if there is none.
    pub(super) fn take<T>(
        &mut self,
        count: usize,
        mut wanted: impl FnMut(usize) -> Option<T>,
    ) -> Option<(usize, T)> {
        let mut others = (0..count).map(|step| (self.next + step) % count);
        let found = others.find_map(|one| Some((one, wanted(one)?)));
        if let Some((one, _)) = &found {
            self.next = one + 1;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_turn() {
        let mut turns = Turns::default();
        let mut left = [3_u32, 0, 2];
        let order: Vec<usize> = std::iter::from_fn(|| {
            let mut take = |one: usize| left[one].checked_sub(1).map(|less| left[one] = less);
            turns.take(3, &mut take).map(|(one, ())| one)
        })
        .collect();
        assert_eq!(order, [0, 2, 0, 2, 0]);
    }
}
