//! Numbers as people write them.

/// Parses a whole number, which may have an exponent or end with `k`, `M` or `G`, as in `10k`, `2.5M` or `1e5`. Returns `None` if the text
/// is no such number, or if it has an exponent or a suffix and is more than 2^53.
pub fn count(text: &str) -> Option<u64> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let factors = [("k", 1e3), ("M", 1e6), ("G", 1e9)];
    let suffixed = |(suffix, factor)| Some((text.strip_suffix(suffix)?, factor));
    let (digits, factor) = factors
        .into_iter()
        .find_map(suffixed)
        .unwrap_or((text, 1.0));
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let number = digits.parse::<f64>().ok()? * factor;
    let is_whole = number.fract() == 0.0 && number <= (1_u64 << 53) as f64;
    is_whole.then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_suffixes_and_exponents() {
        for (text, number) in [
            ("0", 0),
            ("200000", 200_000),
            ("10k", 10_000),
            ("2.5M", 2_500_000),
            ("1e5", 100_000),
            ("1G", 1_000_000_000),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(count(text), Some(number), "{text}");
        }
        for text in [
            "", "k", "-1k", "1.5", "1e-3", "10K", "1 k", "inf", "nan", "1e99", "10kk",
        ] {
            assert_eq!(count(text), None, "{text}");
        }
    }
}
