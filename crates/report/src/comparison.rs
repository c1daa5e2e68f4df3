//! Published numbers beside simulated ones.

use crate::number::significant;
use crate::table::{Column, Table};

/// How the difference of two values is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// As a share of the published value: rates.
    Relative,
    /// As a difference in points: shares in per cent.
    Points,
    /// As a factor: delays.
    Factor,
}

impl Scale {
    /// The difference in words; `-` if it cannot be told.
    pub fn error(self, published: f64, simulated: f64) -> String {
        match self {
            _ if !simulated.is_finite() => "-".to_owned(),
            Self::Points => format!("{:+.1} points", simulated - published),
            Self::Relative if published != 0.0 => {
                format!("{:+.1} %", 100.0 * (simulated / published - 1.0))
            }
            Self::Factor if published != 0.0 => format!("x {:.2}", simulated / published),
            Self::Relative | Self::Factor => "-".to_owned(),
        }
    }
}

/// One metric of one configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The configuration.
    pub config: String,
    /// The metric, in words.
    pub metric: String,
    /// What was published, if anything was.
    pub published: Option<f64>,
    /// What the simulation gives.
    pub simulated: f64,
    /// How the error is told.
    pub scale: Scale,
}

/// Published beside simulated, with the error; a configuration is named once.
pub fn comparison_table(title: &str, rows: &[Comparison]) -> String {
    let mut table = Table::new(vec![
        Column::words("configuration"),
        Column::words("metric"),
        Column::numbers("published"),
        Column::numbers("simulated"),
        Column::numbers("error"),
    ])
    .titled(title);
    let mut last = None;
    for row in rows {
        let first_of_config = last != Some(&row.config);
        last = Some(&row.config);
        table.row(vec![
            if first_of_config {
                row.config.clone()
            } else {
                String::new()
            },
            row.metric.clone(),
            row.published.map_or_else(|| "-".to_owned(), significant),
            significant(row.simulated),
            row.published.map_or_else(String::new, |published| {
                row.scale.error(published, row.simulated)
            }),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_in_the_metric_s_own_way() {
        assert_eq!(Scale::Relative.error(200.0, 210.0), "+5.0 %");
        assert_eq!(Scale::Points.error(62.0, 58.0), "-4.0 points");
        assert_eq!(Scale::Factor.error(2.0, 3.0), "x 1.50");
        assert_eq!(Scale::Relative.error(0.0, 3.0), "-");
    }

    #[test]
    fn a_configuration_is_named_once() {
        let row = Comparison {
            config: "W-0-N-N-FCFS-400".into(),
            metric: "request rate, 1/s".into(),
            published: None,
            simulated: 1.0,
            scale: Scale::Relative,
        };
        let text = comparison_table("Table 1", &[row.clone(), row]);
        assert_eq!(text.matches("W-0-N-N-FCFS-400").count(), 1, "{text}");
    }
}
