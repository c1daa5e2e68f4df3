//! Which data of an offloaded connection's send buffer also stands in the cache.

use super::CacheReference;
use baton_bus::handoff::CachedRun;
use std::collections::VecDeque;

/// A run of the stream and where it stands in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    /// First byte, counted from the start of the send buffer that the connection brought.
    start: u64,
    len: u32,
    reference: CacheReference,
}

/// A piece of a range of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// In host memory only.
    Memory { len: u32 },
    /// In the cache as well, if that was not used for something else since.
    Cache { reference: CacheReference, len: u32 },
}

/// The references of one connection, in order of the stream.
#[derive(Debug, Default)]
pub(crate) struct References {
    runs: VecDeque<Run>,
    /// Bytes that were given to send, those included that the connection brought.
    written: u64,
}

impl References {
    /// References of a connection that brings so many bytes, of which the first are `cached` as told.
    pub(crate) fn new(brought: usize, cached: &[CachedRun]) -> Self {
        let mut references = Self::default();
        for run in cached {
            references.written(run.len as usize, run.cached);
        }
        // More may have been told of than is brought: what the peer has acknowledged since.
        references.written = references.written.max(brought as u64);
        references
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// `len` more bytes are to be sent. Where a reference says that they are beyond any cache, it is not kept.
    pub(crate) fn written(&mut self, len: usize, reference: Option<CacheReference>) {
        let can_be =
            |reference: &CacheReference| reference.offset.checked_add(len as u32).is_some();
        if let Some(reference) = reference.filter(can_be) {
            self.runs.push_back(Run {
                start: self.written,
                len: len as u32,
                reference,
            });
        }
        self.written += len as u64;
    }

    /// The first byte that is not acknowledged, when so many are not.
    fn first_unacknowledged(&self, unacknowledged: usize) -> u64 {
        debug_assert!(
            unacknowledged as u64 <= self.written,
            "no more is outstanding than was written"
        );
        self.written.saturating_sub(unacknowledged as u64)
    }

    /// Only `unacknowledged` bytes are left to be acknowledged: references to those before them go.
    pub(crate) fn prune(&mut self, unacknowledged: usize) {
        let first = self.first_unacknowledged(unacknowledged);
        while let Some(run) = self.runs.front()
            && run.start + u64::from(run.len) <= first
        {
            self.runs.pop_front();
        }
    }

    /// Cuts the `len` bytes that begin `distance` after the first of `unacknowledged` bytes into pieces.
    pub(crate) fn pieces(
        &self,
        unacknowledged: usize,
        distance: u32,
        len: u32,
    ) -> impl Iterator<Item = Where> {
        let mut at = self.first_unacknowledged(unacknowledged) + u64::from(distance);
        let end = at + u64::from(len);
        let first = self
            .runs
            .partition_point(|run| run.start + u64::from(run.len) <= at);
        let mut runs = self.runs.range(first..).peekable();
        std::iter::from_fn(move || {
            if at == end {
                return None;
            }
            let piece = match runs.peek() {
                Some(run) if run.start <= at => {
                    let skipped = (at - run.start) as u32;
                    let len = (run.len - skipped).min((end - at) as u32);
                    let reference = CacheReference {
                        offset: run.reference.offset + skipped,
                        ..run.reference
                    };
                    if skipped + len == run.len {
                        runs.next();
                    }
                    Where::Cache { reference, len }
                }
                Some(run) => Where::Memory {
                    len: (run.start.min(end) - at) as u32,
                },
                None => Where::Memory {
                    len: (end - at) as u32,
                },
            };
            let (Where::Memory { len } | Where::Cache { len, .. }) = piece;
            at += u64::from(len);
            Some(piece)
        })
    }

    pub(crate) fn check(&self) {
        assert!(
            self.runs
                .iter()
                .zip(self.runs.iter().skip(1))
                .all(|(a, b)| a.start + u64::from(a.len) <= b.start),
            "references are in order of the stream"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(offset: u32) -> CacheReference {
        CacheReference {
            offset,
            generation: 1,
        }
    }

    #[test]
    fn a_range_is_cut_where_references_begin_and_end() {
        let brought = |len, cached| CachedRun { len, cached };
        let cached = [brought(100, None), brought(50, Some(reference(1000)))];
        let mut references = References::new(150, &cached);
        references.written(10, None);
        references.written(40, Some(reference(2000)));
        references.check();
        let cut = |references: &References, unacknowledged, distance, len| {
            references
                .pieces(unacknowledged, distance, len)
                .collect::<Vec<_>>()
        };
        let memory = |len| Where::Memory { len };
        let cache = |offset, len| Where::Cache {
            reference: reference(offset),
            len,
        };
        assert_eq!(cut(&references, 200, 0, 90), [memory(90)]);
        assert_eq!(
            cut(&references, 200, 90, 110),
            [memory(10), cache(1000, 50), memory(10), cache(2000, 40)]
        );
        references.prune(80);
        assert_eq!(
            cut(&references, 80, 0, 35),
            [cache(1020, 30), memory(5)],
            "counted from what is unacknowledged"
        );
        assert_eq!(cut(&references, 80, 45, 2), [cache(2005, 2)]);
        references.prune(0);
        references.check();
        assert!(references.is_empty());
    }

    #[test]
    fn data_that_are_said_to_be_beyond_any_cache_are_in_memory() {
        let mut references = References::default();
        references.written(10, Some(reference(u32::MAX - 5)));
        references.written(5, Some(reference(u32::MAX - 5)));
        let cut: Vec<_> = references.pieces(15, 8, 7).collect();
        let cached = Where::Cache {
            reference: reference(u32::MAX - 5),
            len: 5,
        };
        assert_eq!(cut, [Where::Memory { len: 2 }, cached]);
    }
}
