//! Conversion of dates and times in logs to microseconds since 1970 UTC.

use super::{number, split_once};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::strtime::BrokenDownTime;
use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::TimeZone;

pub(super) const SECOND_US: u64 = 1_000_000;
pub(super) const DAY_S: u64 = 86_400;

/// Converts `30/Apr/1998` to days since 1970.
pub(in crate::log) fn day_month_year(text: &[u8]) -> Option<u64> {
    let (day, rest) = split_once(text, b'/')?;
    let (month, year) = split_once(rest, b'/')?;
    days_since_1970(number(year)?, month_number(month)?, number(day)?)
}

/// Converts `1998-04-30` to days since 1970.
pub(in crate::log) fn year_month_day(text: &[u8]) -> Option<u64> {
    let (year, rest) = split_once(text, b'-')?;
    let (month, day) = split_once(rest, b'-')?;
    days_since_1970(number(year)?, number(month)?, number(day)?)
}

/// Converts `HH:MM:SS` to seconds since midnight. A leap second counts as the following second.
pub(in crate::log) fn time_of_day(text: &[u8]) -> Option<u64> {
    let &[h1, h2, b':', m1, m2, b':', s1, s2] = text else {
        return None;
    };
    let (hour, minute, second) = (number(&[h1, h2])?, number(&[m1, m2])?, number(&[s1, s2])?);
    (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3600 + minute * 60 + second)
}

/// Converts `HH:MM:SS` or `HH:MM:SS.fff` to microseconds since midnight.
pub(in crate::log) fn time_of_day_us(text: &[u8]) -> Option<u64> {
    let (whole, fraction) = split_once(text, b'.').unwrap_or((text, b""));
    Some(time_of_day(whole)? * SECOND_US + fraction_us(fraction)?)
}

/// Converts the decimal digits of a fraction of a second to microseconds.
fn fraction_us(digits: &[u8]) -> Option<u64> {
    let mut sum_us = 0;
    let mut place = SECOND_US / 10;
    for &c in digits {
        if !c.is_ascii_digit() {
            return None;
        }
        sum_us += u64::from(c - b'0') * place;
        place /= 10;
    }
    Some(sum_us)
}

/// Converts `30/Apr/1998:22:00:04 +0200` (Common Log Format), optionally with a fraction of the second, to microseconds since 1970 UTC.
/// Without a zone, the time is in UTC.
pub(in crate::log) fn clf(text: &[u8]) -> Option<u64> {
    let (date, rest) = split_once(text, b':')?;
    let (time, zone) = split_once(rest, b' ').unwrap_or((rest, b"+0000"));
    let local_us = day_month_year(date)? * (DAY_S * SECOND_US) + time_of_day_us(time)?;
    local_us.checked_add_signed(-zone_s(zone)? * SECOND_US as i64)
}

/// Converts Unix time, optionally with a fraction, to microseconds. The magnitude distinguishes seconds from milli-, micro- and
/// nanoseconds, whose ranges for the years 1973 to 5138 do not overlap.
pub(in crate::log) fn unix(text: &[u8]) -> Option<u64> {
    let (whole, fraction) = split_once(text, b'.').unwrap_or((text, b""));
    let count = number(whole)?;
    let fraction_us = fraction_us(fraction)?;
    match count {
        0..100_000_000_000 => Some(count * SECOND_US + fraction_us),
        100_000_000_000..100_000_000_000_000 => Some(count * 1000 + fraction_us / 1000),
        100_000_000_000_000..100_000_000_000_000_000 => Some(count),
        _ => Some(count / 1000),
    }
}

/// Converts any form of a date with a time: Unix time, Common Log Format, RFC 3339, each optionally in brackets.
pub(in crate::log) fn any(text: &[u8]) -> Option<u64> {
    let text = text.strip_prefix(b"[").unwrap_or(text);
    let text = text.strip_suffix(b"]").unwrap_or(text);
    unix(text).or_else(|| clf(text)).or_else(|| rfc3339(text))
}

/// Converts `1998-04-30T22:00:04.5+02:00`, or the same with a space instead of `T`. Without a zone, the time is in UTC.
pub(in crate::log) fn rfc3339(text: &[u8]) -> Option<u64> {
    static PARSER: DateTimeParser = DateTimeParser::new();
    if text.get(4) != Some(&b'-') {
        return None;
    }
    match PARSER.parse_timestamp(text) {
        Ok(time) => timestamp_us(time),
        Err(_) => civil_us(PARSER.parse_datetime(text).ok()?),
    }
}

/// Converts a date and a time of day.
pub(in crate::log) fn day_and_time(day: &[u8], time: &[u8]) -> Option<u64> {
    let day = year_month_day(day).or_else(|| day_month_year(day))?;
    Some(day * (DAY_S * SECOND_US) + time_of_day_us(time)?)
}

/// Converts a time in a strptime format. Without a zone, the time is in UTC.
pub(in crate::log) fn strptime(format: &str, text: &[u8]) -> Option<u64> {
    let time = BrokenDownTime::parse(format, text).ok()?;
    match time.to_timestamp() {
        Ok(time) => timestamp_us(time),
        Err(_) => civil_us(time.to_datetime().ok()?),
    }
}

fn civil_us(time: DateTime) -> Option<u64> {
    timestamp_us(TimeZone::UTC.to_timestamp(time).ok()?)
}

fn timestamp_us(time: Timestamp) -> Option<u64> {
    u64::try_from(time.as_microsecond()).ok()
}

/// Converts an English abbreviation such as `Aug` to the number of the month.
pub(in crate::log) fn month_number(text: &[u8]) -> Option<u64> {
    const MONTHS: [&[u8; 3]; 12] = [
        b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov",
        b"Dec",
    ];
    (1..)
        .zip(MONTHS)
        .find(|(_, name)| name.eq_ignore_ascii_case(text))
        .map(|(n, _)| n)
}

/// Returns the days from 1970-01-01 to this day of the Gregorian calendar, or `None` if the day does not exist or is earlier.
pub(in crate::log) fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    const BEFORE_MONTH: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let length = match month {
        2 => 28 + u64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1970..10_000).contains(&year) || !(1..=length).contains(&day) {
        return None;
    }
    let before = year - 1;
    let leap_days =
        (before / 4 - before / 100 + before / 400) - (1969 / 4 - 1969 / 100 + 1969 / 400);
    let this_year = BEFORE_MONTH[month as usize - 1] + u64::from(leap && month > 2);
    Some((year - 1970) * 365 + leap_days + this_year + day - 1)
}

/// Converts `+0130` to 5400, `-0400` to -14400.
fn zone_s(text: &[u8]) -> Option<i64> {
    let (&sign, hours_minutes) = text.split_first()?;
    let &[h1, h2, m1, m2] = hours_minutes else {
        return None;
    };
    let seconds = (number(&[h1, h2])? * 3600 + number(&[m1, m2])? * 60) as i64;
    match sign {
        b'+' => Some(seconds),
        b'-' => Some(-seconds),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days() {
        assert_eq!(days_since_1970(1970, 1, 1), Some(0));
        assert_eq!(days_since_1970(2000, 2, 29), Some(11_016));
        assert_eq!(days_since_1970(2000, 3, 1), Some(11_017));
        assert_eq!(days_since_1970(2026, 1, 1), Some(20_454));
        assert_eq!(days_since_1970(1900, 1, 1), None);
        assert_eq!(days_since_1970(1999, 2, 29), None);
        assert_eq!(days_since_1970(1999, 13, 1), None);
        assert_eq!(days_since_1970(1999, 1, 0), None);
    }

    #[test]
    fn days_are_consecutive() {
        let mut expected = 0;
        for year in 1970..2110 {
            for month in 1..=12 {
                for day in 1..=31 {
                    if let Some(days) = days_since_1970(year, month, day) {
                        assert_eq!(days, expected, "{year}-{month}-{day}");
                        expected += 1;
                    }
                }
            }
        }
    }

    #[test]
    fn all_forms_of_one_moment() {
        let forms = [
            "804571201.25",
            "804571201250",
            "804571201250000",
            "804571201250000000",
            "[01/Jul/1995:00:00:01.25 -0400]",
            "1995-07-01T04:00:01.250Z",
            "1995-07-01T00:00:01.25-04:00",
            "1995-07-01 04:00:01.25",
        ];
        for text in forms {
            assert_eq!(any(text.as_bytes()), Some(804_571_201_250_000), "{text}");
        }
        for day in ["1995-07-01", "01/Jul/1995"] {
            let found = day_and_time(day.as_bytes(), b"04:00:01.25");
            assert_eq!(found, Some(804_571_201_250_000));
        }
        let format = "%d/%b/%Y\n%H:%M:%S";
        assert_eq!(
            strptime(format, b"01/Jul/1995\n04:00:01"),
            Some(804_571_201 * SECOND_US)
        );
        assert_eq!(
            strptime("%Y-%m-%d %T %z", b"1995-07-01 00:00:01 -0400"),
            Some(804_571_201 * SECOND_US)
        );
        for text in [
            "",
            "-",
            "yesterday",
            "12:00:00",
            "1e9",
            "1995-13-01T00:00:00Z",
        ] {
            assert_eq!(any(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn clf_times_honour_the_zone() {
        // The first line of the public NASA July 1995 log: 804571201 Unix seconds.
        assert_eq!(
            clf(b"01/Jul/1995:00:00:01 -0400"),
            Some(804_571_201 * SECOND_US)
        );
        assert_eq!(
            clf(b"01/Jul/1995:06:00:01 +0200"),
            Some(804_571_201 * SECOND_US)
        );
        assert_eq!(clf(b"01/Jul/1995:04:00:01"), Some(804_571_201 * SECOND_US));
        for bad in [
            "",
            "01/Jul/1995",
            "32/Jul/1995:00:00:01 +0000",
            "01/Jux/1995:00:00:01 +0000",
            "1/1/1:1:1:1 x",
        ] {
            assert_eq!(clf(bad.as_bytes()), None, "{bad}");
        }
        for bad in [
            "01/Jul/1995:24:00:00 +0000",
            "01/Jul/1995:00:60:00 +0000",
            "01/Jul/1995:00:00:00 0400",
        ] {
            assert_eq!(clf(bad.as_bytes()), None, "{bad}");
        }
    }
}
