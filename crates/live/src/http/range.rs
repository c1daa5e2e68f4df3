//! Requests for part of a file (RFC 9110 14).

/// One range of bytes, as requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RangeSpec {
    /// From the first to the last byte, or to the end.
    From(u64, Option<u64>),
    /// This number of bytes at the end.
    Last(u64),
}

impl RangeSpec {
    /// Parses a Range field. Other units, several ranges and malformed fields are ignored, as RFC 9110 14.2 allows.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let range = text.strip_prefix("bytes=")?.trim();
        let (first, last) = range.split_once('-')?;
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| text.parse().ok()).flatten()
        };
        if first.is_empty() {
            return Some(Self::Last(number(last)?));
        }
        let first = number(first)?;
        let last = if last.is_empty() {
            None
        } else {
            Some(number(last)?)
        };
        last.is_none_or(|last| last >= first)
            .then_some(Self::From(first, last))
    }

    /// Returns start and length of the range in a file of `len` bytes, or `None` if the range contains no byte of the file (RFC 9110
    /// 14.1.2).
    pub(super) fn within(self, len: u64) -> Option<(u64, u64)> {
        let (start, end) = match self {
            Self::From(first, last) => (first, last.map_or(len, |last| last.saturating_add(1))),
            Self::Last(count) => (len.saturating_sub(count), len),
        };
        let end = end.min(len);
        (start < end).then(|| (start, end - start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_to_the_file() {
        for (text, len, range) in [
            ("bytes=0-0", 10, Some((0, 1))),
            ("bytes=0-99", 10, Some((0, 10))),
            ("bytes=3-", 10, Some((3, 7))),
            ("bytes=-3", 10, Some((7, 3))),
            ("bytes=-30", 10, Some((0, 10))),
            ("bytes=-0", 10, None),
            ("bytes=10-", 10, None),
            ("bytes=0-", 0, None),
            ("bytes=0-18446744073709551615", 10, Some((0, 10))),
        ] {
            let spec = RangeSpec::parse(text).expect(text);
            assert_eq!(spec.within(len), range, "{text} of {len}");
        }
    }

    #[test]
    fn headers_that_are_not_a_single_byte_range_are_ignored() {
        for text in [
            "lines=0-1",
            "bytes=1",
            "bytes=2-1",
            "bytes=0-1,3-4",
            "bytes=-",
            "bytes=x-1",
            "bytes=+1-2",
            "bytes=99999999999999999999-",
        ] {
            assert_eq!(RangeSpec::parse(text), None, "{text}");
        }
    }
}
