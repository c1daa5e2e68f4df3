//! What is counted of connections that move.

use serde::Serialize;

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CapturedStats {
    /// Flows now.
    pub flows: u64,
    /// Flows so far.
    pub captured: u64,
    /// Of these, flows that went back to the kernel.
    pub let_go: u64,
    /// And those whose connection came to its end on the adapter or on the way.
    pub ended: u64,
    /// Packets that came to the adapter and went on to the kernel, because the connection was there again.
    pub injected: u64,
    /// Connections that went on in the kernel after their adapter had been killed.
    pub recovered: u64,
    /// Connections that were reset because their adapter had been killed.
    pub reset: u64,
    /// Connections that stayed in the kernel because their user had its share of the adapter.
    pub over_share: u64,
}

impl CapturedStats {
    /// In the order in which they stand in the memory.
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
