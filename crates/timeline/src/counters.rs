//! Counters that are written when they change.

use crate::writer::{Grain, Track, Writer};
use baton_wire::Time;
use rustc_hash::FxHashMap;
use std::io::Write;

/// The counters of a process, by name.
#[derive(Debug)]
pub struct Counters {
    process: Track,
    grain: Grain,
    counters: FxHashMap<String, Counter>,
}

/// A counter. It has no track while it has always been 0.
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    track: Option<Track>,
    last: i64,
}

impl Counters {
    /// Creates an empty set of counters.
    pub fn new(process: Track, grain: Grain) -> Self {
        Self {
            process,
            grain,
            counters: FxHashMap::default(),
        }
    }

    /// Sets the value of a counter at `now`, in a window that opened at `opened`.
    pub fn set<W: Write>(
        &mut self,
        writer: &mut Writer<W>,
        (opened, now): (Time, Time),
        (name, unit): (&str, &str),
        value: u64,
    ) {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        let known = self.counters.get(name).copied();
        let counter = known.unwrap_or_default();
        if known.is_some() && counter.last == value {
            return;
        }
        let mut track = counter.track;
        if (value != 0 || track.is_some()) && writer.admits(self.grain, now) {
            let to = *track.get_or_insert_with(|| {
                let track = writer.counter(self.process, name, unit);
                if known.is_some() {
                    writer.set(track, opened, 0);
                }
                track
            });
            writer.set(to, now, value);
        }
        let now = Counter { track, last: value };
        match self.counters.get_mut(name) {
            Some(counter) => *counter = now,
            None => drop(self.counters.insert(name.to_owned(), now)),
        }
    }
}
