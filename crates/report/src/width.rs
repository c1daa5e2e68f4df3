//! How wide text may be.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Where nobody says how wide: a file, a pipe.
pub const DEFAULT_WIDTH: usize = 100;

/// The least that tables are made for.
const LEAST: usize = 40;

static WIDTH: AtomicUsize = AtomicUsize::new(DEFAULT_WIDTH);

/// Columns of text that tables and running text may take.
pub fn width() -> usize {
    WIDTH.load(Ordering::Relaxed)
}

/// Sets it for the whole program, once it is known where text goes. Less than 40 columns are taken as 40.
pub fn set_width(columns: usize) {
    WIDTH.store(columns.max(LEAST), Ordering::Relaxed);
}
