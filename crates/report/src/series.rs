//! Time series as lines of block characters.

use crate::number::{grouped, significant};

/// A named time series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Name of the series.
    pub name: String,
    /// Values at equal time intervals.
    pub values: Vec<f64>,
}

/// Returns the series one below the other, each scaled from zero to its own maximum, which is printed with the mean. `span` describes the
/// horizontal axis.
pub fn series_text(series: &[Series], span: &str, width: usize) -> String {
    let name_width = series
        .iter()
        .map(|s| s.name.chars().count())
        .max()
        .unwrap_or(0);
    let mut text = format!("{span}\n");
    for Series { name, values } in series {
        let gap = name_width - name.chars().count();
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let most = values.iter().copied().fold(0.0, f64::max);
        let counts = values.iter().all(|value| value.fract() == 0.0);
        text.push_str(&format!(
            "  {name}{:gap$}  {}  mean {}, most {}\n",
            "",
            sparkline(values, width),
            significant(mean),
            if counts {
                grouped(most as u64)
            } else {
                significant(most)
            },
        ));
    }
    text
}

/// Returns `values` as at most `width` blocks, each the mean of its share of the values, scaled from zero to the maximum.
pub fn sparkline(values: &[f64], width: usize) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let columns = width.min(values.len());
    let means: Vec<f64> = (0..columns)
        .map(|column| {
            let part =
                &values[column * values.len() / columns..(column + 1) * values.len() / columns];
            part.iter().sum::<f64>() / part.len() as f64
        })
        .collect();
    let most = means.iter().copied().fold(0.0, f64::max);
    let block = |mean: f64| {
        let level = if most > 0.0 {
            (mean / most * (BLOCKS.len() - 1) as f64).round()
        } else {
            0.0
        };
        BLOCKS[(level.max(0.0) as usize).min(BLOCKS.len() - 1)]
    };
    means.into_iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_value_is_a_full_block() {
        assert_eq!(sparkline(&[0.0, 7.0, 3.5], 10), "▁█▅");
        assert_eq!(sparkline(&[0.0, 0.0], 10), "▁▁");
        assert_eq!(sparkline(&[], 10), "");
    }

    #[test]
    fn many_values_share_few_columns() {
        let values: Vec<f64> = (0..1000).map(f64::from).collect();
        let line = sparkline(&values, 8);
        assert_eq!(line.chars().count(), 8);
        assert!(line.ends_with('█'));
    }

    #[test]
    fn a_figure_has_a_line_per_series() {
        let series = [Series {
            name: "Qlen".into(),
            values: vec![1.0, 2.0],
        }];
        assert_eq!(
            series_text(&series, "0 to 1 s", 40),
            "0 to 1 s\n  Qlen  ▅█  mean 1.50, most 2\n"
        );
    }
}
