//! Formats numbers for people.

use baton_stats::Estimate;

/// Formats a whole number with digits in groups of three: `1,234,567`.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count with a noun whose plural ends in s: `1 run`, `1,234 runs`.
pub fn counted(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", grouped(count))
}

/// Formats a share in per cent with one decimal below ten and none above. `0` stands for exactly zero, `-` for values that are not finite.
pub fn percent(value: f64) -> String {
    if !value.is_finite() {
        "-".to_owned()
    } else if value == 0.0 {
        "0 %".to_owned()
    } else if value.abs() < 0.05 {
        format!("{}<0.1 %", if value < 0.0 { "-" } else { "" })
    } else if value.abs() < 9.95 {
        format!("{value:.1} %")
    } else {
        format!("{value:.0} %")
    }
}

/// Formats a measured number to about three significant digits. Large numbers are whole and grouped, tiny ones only marked as such.
pub fn significant(value: f64) -> String {
    let magnitude = value.abs();
    if !value.is_finite() {
        "-".to_owned()
    } else if magnitude >= 99.95 {
        let sign = if value < 0.0 { "-" } else { "" };
        format!("{sign}{}", grouped(magnitude.round() as u64))
    } else if magnitude >= 9.995 {
        format!("{value:.1}")
    } else if value == 0.0 {
        "0".to_owned()
    } else if magnitude >= 0.0995 {
        format!("{value:.2}")
    } else if magnitude >= 0.000_95 {
        format!("{value:.*}", if magnitude >= 0.009_95 { 3 } else { 4 })
    } else {
        format!("{}<0.001", if value < 0.0 { "-" } else { "" })
    }
}

/// Formats a number with half of its 95 % interval in per cent, if known: `23,031 ±0.6 %`.
pub fn estimated(estimate: Estimate) -> String {
    let mean = significant(estimate.mean);
    match estimate.relative() {
        Some(share) if share < 0.0005 => format!("{mean} ±<0.1 %"),
        Some(share) => format!("{mean} ±{}", percent(100.0 * share)),
        None => mean,
    }
}

/// Formats a share in per cent with half of its 95 % interval, if known: `61.7 ±1.2 %`.
pub fn estimated_percent(estimate: Estimate) -> String {
    match estimate.half_width {
        Some(half_width) => format!("{:.1} ±{half_width:.1} %", estimate.mean),
        None => percent(estimate.mean),
    }
}

/// Formats a difference in per cent with half of its 95 % interval, if known: `+12.4 ±1.2 %`.
pub fn difference(percent: Estimate) -> String {
    let interval = percent.half_width.map(|half| format!(" ±{half:.1}"));
    format!("{:+.1}{} %", percent.mean, interval.unwrap_or_default())
}

/// Formats the magnitude of a difference in per cent, for texts that give its direction in words: `12.4 ±1.2 %`.
pub fn difference_size(percent: Estimate) -> String {
    let text = difference(percent);
    text.trim_start_matches(['+', '-']).to_owned()
}

/// Formats a size in bytes with a binary unit: `52.1 MiB`.
pub fn bytes(value: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut scaled = value as f64;
    let mut unit = 0;
    while scaled >= 1024.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{value} B")
    } else {
        format!("{scaled:.1} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_in_threes_from_the_right() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(12_345_678), "12,345,678");
    }

    #[test]
    fn small_shares_are_not_shown_as_zero() {
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(0.01), "<0.1 %");
        assert_eq!(percent(5.04), "5.0 %");
        assert_eq!(percent(61.7), "62 %");
    }

    #[test]
    fn numbers_have_three_significant_digits() {
        assert_eq!(significant(23_031.4), "23,031");
        assert_eq!(significant(-1_234.0), "-1,234");
        assert_eq!(significant(61.04), "61.0");
        assert_eq!(significant(2.345), "2.35");
        assert_eq!(significant(0.0), "0");
        assert_eq!(significant(0.0996), "0.10");
        assert_eq!(significant(0.0916), "0.092");
        assert_eq!(significant(-0.00123), "-0.0012");
        assert_eq!(significant(0.000_04), "<0.001");
        assert_eq!(significant(f64::NAN), "-");
    }

    #[test]
    fn an_interval_is_shown_in_per_cent() {
        let of = |half_width| Estimate {
            mean: 23_031.2,
            half_width,
        };
        assert_eq!(estimated(of(None)), "23,031");
        assert_eq!(estimated(of(Some(129.0))), "23,031 ±0.6 %");
        assert_eq!(estimated(of(Some(5.0))), "23,031 ±<0.1 %");
    }

    #[test]
    fn sizes_are_shown_with_a_unit() {
        assert_eq!(bytes(512), "512 B");
        assert_eq!(bytes(54_616_868), "52.1 MiB");
    }
}
