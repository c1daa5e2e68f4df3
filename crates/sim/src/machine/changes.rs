//! Records when files were changed, which determines the content that a client may receive.

use super::violation::Violation;
use baton_host::FileId;
use baton_wire::Time;
use rustc_hash::FxHashMap;

/// A change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) file: FileId,
    pub(super) at: Time,
}

/// All changes of a run. The n-th change of a file created its revision n.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    times: FxHashMap<FileId, Vec<Time>>,
}

impl Changes {
    pub(super) fn note(&mut self, change: Change) {
        self.times.entry(change.file).or_default().push(change.at);
    }

    /// Checks that every revision from `oldest` to `newest` of `file` was current at some time between `asked` and now: none was replaced
    /// before `asked`, and none is from the future.
    pub(super) fn check(
        &self,
        file: FileId,
        (oldest, newest): (u32, u32),
        asked: Time,
    ) -> Result<(), Violation> {
        let times = self.times.get(&file).map_or(&[][..], Vec::as_slice);
        let replaced = times.get(oldest as usize);
        if replaced.is_some_and(|&at| at < asked) || newest as usize > times.len() {
            return Err(Violation::OutOfDate {
                file: file.0,
                oldest,
                newest,
                present: times.len() as u32,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_current_until_the_next() {
        let (file, at) = (FileId(3), |us: u64| Time::from_ps(us * 1_000_000));
        let mut changes = Changes::default();
        assert_eq!(changes.check(file, (0, 0), at(5)), Ok(()));
        for us in [10, 20] {
            changes.note(Change { file, at: at(us) });
        }
        assert_eq!(changes.check(file, (0, 0), at(9)), Ok(()));
        assert!(changes.check(file, (0, 0), at(11)).is_err());
        assert_eq!(changes.check(file, (1, 2), at(20)), Ok(()));
        assert!(changes.check(file, (1, 2), at(21)).is_err());
        assert_eq!(changes.check(file, (2, 2), at(30)), Ok(()));
        assert!(changes.check(file, (2, 3), at(30)).is_err());
        assert_eq!(changes.check(FileId(4), (0, 0), at(30)), Ok(()));
    }
}
