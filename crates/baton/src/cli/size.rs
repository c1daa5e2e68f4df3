//! Sizes in bytes, and counts.

/// Parses a count, such as 200000, 10k or 1e5.
pub(super) fn parse_count(text: &str) -> Result<u64, String> {
    baton_config::count(text)
        .ok_or_else(|| "expected a whole number, as in 200000, 200k or 2e5".to_owned())
}

/// Parses a number of bytes, with or without a unit.
pub(super) fn parse_size(text: &str) -> Result<u32, String> {
    let bytes = parse_bytes(text).and_then(|bytes| u32::try_from(bytes).ok());
    bytes.ok_or_else(|| "expected bytes below 4G, as in 65536, 64K, 64M or 1G".to_owned())
}

/// Parses an amount of memory of a machine: 1 MiB or more.
#[cfg(live)]
pub(super) fn parse_memory(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text).filter(|&bytes| bytes >= 1 << 20);
    bytes.ok_or_else(|| "expected 1M or more, as in 64M, 1G or 1073741824".to_owned())
}

fn parse_bytes(text: &str) -> Option<u64> {
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
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
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

    #[cfg(live)]
    #[test]
    fn memory_below_the_minimum_is_refused() {
        assert_eq!(parse_memory("64G"), Ok(64 << 30));
        assert!(parse_memory("1023K").is_err());
    }
}
