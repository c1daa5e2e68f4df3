//! A run's delays in sections with equal counts.

use super::super::delay::Delays;
use baton_wire::Span;

/// Maximum number of sections. When it is reached, sections are joined in pairs and become twice as long.
const MOST: usize = 64;
/// Initial number of delays per section.
const FIRST: u64 = 16;

/// A run's delays in sections with equal counts, in order.
#[derive(Debug)]
pub(in crate::machine) struct Sections {
    /// Sections, all of which are full except perhaps the last.
    sections: Vec<Section>,
    /// Number of delays of a full section.
    size: u64,
}

/// Consecutive delays.
#[derive(Clone, Debug, Default)]
pub(in crate::machine) struct Section {
    pub(in crate::machine) delays: Delays,
    pub(in crate::machine) count: u64,
    /// Sum of the delays, seconds.
    pub(in crate::machine) sum: f64,
}

impl Section {
    /// Joins all parts.
    pub(in crate::machine) fn joined(parts: &[Self]) -> Self {
        Self {
            delays: Delays::joined(parts.iter().map(|part| &part.delays)),
            count: parts.iter().map(|part| part.count).sum(),
            sum: parts.iter().map(|part| part.sum).sum(),
        }
    }
}

impl Default for Sections {
    fn default() -> Self {
        Self {
            sections: Vec::new(),
            size: FIRST,
        }
    }
}

impl Sections {
    #[inline]
    pub(super) fn record(&mut self, delay: Span) {
        if self
            .sections
            .last()
            .is_none_or(|last| last.count == self.size)
        {
            self.begin();
        }
        let last = self.sections.last_mut().expect("a section was begun");
        last.delays.record(delay);
        last.count += 1;
        last.sum += delay.as_secs_f64();
    }

    fn begin(&mut self) {
        if self.sections.len() == MOST {
            let pairs = self.sections.chunks(2);
            self.sections = pairs.map(Section::joined).collect();
            self.size *= 2;
        }
        self.sections.push(Section::default());
    }

    /// Returns the full sections.
    pub(in crate::machine) fn full(&self) -> &[Section] {
        match self.sections.split_last() {
            Some((last, others)) if last.count < self.size => others,
            _ => &self.sections,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_sections_is_bounded_and_their_lengths_are_equal() {
        let mut sections = Sections::default();
        for delay in 0..1_000_000 {
            sections.record(Span::from_us(delay));
        }
        let full = sections.full();
        assert!(
            (MOST / 2 - 1..=MOST).contains(&full.len()),
            "{}",
            full.len()
        );
        assert!(full.iter().all(|section| section.count == sections.size));
        let whole = Section::joined(full);
        let last = full.len() as f64 * sections.size as f64;
        assert!(
            (whole.sum / (last * last / 2.0 * 1e-6) - 1.0).abs() < 1e-4,
            "in order"
        );
        assert_eq!(whole.delays.distribution(1.0).count, whole.count);
    }
}
