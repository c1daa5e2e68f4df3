//! Reports results as tables, text figures, figures in files ([`figure`]) and HTML pages ([`page`]).
//!
//! Everything here is a pure function from plain rows, and the [`width`] available for text, to a `String` that ends with a newline, or to
//! the bytes of a picture. Nothing here depends on the simulator: callers map their results to these rows.

mod comparison;
mod cycles;
mod facts;
pub mod figure;
mod handoff;
mod number;
pub mod page;
mod runs;
mod series;
mod table;
mod text;
mod width;

pub use comparison::{Comparison, Scale, comparison_table};
pub use cycles::{
    CyclesRow, LayerShares, PacketCosts, TaskRow, cycles_table, layer_shares_table,
    packet_costs_table, tasks_table,
};
pub use facts::{Count, counts_table, facts_table};
pub use handoff::{Handoffs, handoffs_text};
pub use number::{
    bytes, counted, difference, difference_size, estimated, estimated_percent, grouped, percent,
    significant,
};
pub use runs::{Metric, RunRow, runs_table};
pub use series::{Series, series_text, sparkline};
pub use table::{Align, Column, Table};
pub use text::{folded, wrapped};
pub use width::{DEFAULT_WIDTH, set_width, width};
