//! Sizes in bytes.

/// Parses a number of bytes, with or without a unit.
pub(super) fn parse_size(text: &str) -> Result<u32, String> {
    let (digits, unit) = match text.strip_suffix(['K', 'M', 'G']) {
        Some(digits) => (digits, &text[digits.len()..]),
        None => (text, ""),
    };
    let shift = match unit {
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => 0,
    };
    let bytes = digits.parse::<u64>().ok();
    let bytes = bytes.and_then(|number| u32::try_from(number.checked_mul(1 << shift)?).ok());
    bytes.ok_or_else(|| "expected bytes below 4G, as in 65536, 64K, 64M or 1G".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [("0", 0), ("4096", 4096), ("64K", 65_536), ("3G", 3 << 30)] {
            assert_eq!(parse_size(text), Ok(bytes));
        }
        for text in ["", "M", "4G", "-1", "1.5M", "64k", "99999999999G"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
