//! Width available for text.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Default width, for files and pipes.
pub const DEFAULT_WIDTH: usize = 100;

/// Minimum width for which tables are laid out.
const LEAST: usize = 40;

static WIDTH: AtomicUsize = AtomicUsize::new(DEFAULT_WIDTH);

/// Returns the width available for tables and running text, in columns.
pub fn width() -> usize {
    WIDTH.load(Ordering::Relaxed)
}

/// Sets the width for the whole program, once the destination of the text is known. Fewer than 40 columns count as 40.
pub fn set_width(columns: usize) {
    WIDTH.store(columns.max(LEAST), Ordering::Relaxed);
}
