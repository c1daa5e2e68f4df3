//! Reports results as tables, text figures, figures in files and HTML pages.
//!
//! Everything here is a pure function from plain rows, and the [`width`] available for text, to a `String` that ends with a newline, or to
//! the bytes of a picture. Nothing here depends on the simulator: callers map their results to these rows.
//!
//! | to find | look in |
//! |---|---|
//! | a table as text | [`Table`], [`Column`] |
//! | the table that compares runs; tables of facts | [`runs_table`], [`facts_table`] |
//! | numbers for people | `src/number.rs`, such as [`significant`] |
//! | time series as text | [`series_text`], [`sparkline`] |
//! | figures in files, and how they are drawn | [`figure`], `src/figure/drawing/` |
//! | HTML pages | [`page`] |

mod facts;
pub mod figure;
mod number;
pub mod page;
mod runs;
mod scale;
mod series;
mod table;
mod text;
mod width;

pub use facts::facts_table;
pub use number::{
    bytes, counted, difference, difference_size, estimated, estimated_percent, grouped, percent,
    significant,
};
pub use runs::{Metric, RunRow, runs_table};
pub use scale::Scale;
pub use series::{Series, series_text, sparkline};
pub use table::{Align, Column, Table};
pub use text::{folded, wrapped};
pub use width::{DEFAULT_WIDTH, set_width, width};
