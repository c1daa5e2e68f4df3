//! Counters of connections that move.

use serde::Serialize;

/// Counters of connections that move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CapturedStats {
    /// Current number of flows.
    pub flows: u64,
    /// Number of flows so far.
    pub captured: u64,
    /// Of these, flows that went back to the kernel.
    pub let_go: u64,
    /// Flows whose connection ended on the adapter or on the way.
    pub ended: u64,
    /// Packets that came to the adapter and were passed to the kernel, because the connection was back there.
    pub injected: u64,
    /// Connections that continued in the kernel after their adapter was killed.
    pub recovered: u64,
    /// Connections that were reset because their adapter was killed.
    pub reset: u64,
    /// Connections that stayed in the kernel because their user had reached its share of the adapter.
    pub over_share: u64,
}

impl CapturedStats {
    /// Returns the counters in the order in which they are stored in the memory.
    fn fields(&mut self) -> [&mut u64; 8] {
        let Self {
            flows,
            captured,
            let_go,
            ended,
            injected,
            recovered,
            reset,
            over_share,
        } = self;
        [
            flows, captured, let_go, ended, injected, recovered, reset, over_share,
        ]
    }

    pub(in crate::broker) fn to_words(mut self) -> [u64; 8] {
        let mut words = [0; 8];
        for (word, field) in words.iter_mut().zip(self.fields()) {
            *word = *field;
        }
        words
    }

    pub(in crate::broker) fn from_words(words: [u64; 8]) -> Self {
        let mut stats = Self::default();
        for (field, word) in stats.fields().into_iter().zip(words) {
            *field = word;
        }
        stats
    }
}
