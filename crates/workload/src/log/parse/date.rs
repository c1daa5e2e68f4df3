//! Dates and times of logs, to microseconds since 1970 UTC.

use super::{number, split_once};

pub(super) const SECOND_US: u64 = 1_000_000;
pub(super) const DAY_S: u64 = 86_400;

/// `30/Apr/1998` to days since 1970.
pub(super) fn day_month_year(text: &[u8]) -> Option<u64> {
    let (day, rest) = split_once(text, b'/')?;
    let (month, year) = split_once(rest, b'/')?;
    days_since_1970(number(year)?, month_number(month)?, number(day)?)
}

/// `1998-04-30` to days since 1970.
pub(super) fn year_month_day(text: &[u8]) -> Option<u64> {
    let (year, rest) = split_once(text, b'-')?;
    let (month, day) = split_once(rest, b'-')?;
    days_since_1970(number(year)?, number(month)?, number(day)?)
}

/// `HH:MM:SS` to seconds since midnight. A leap second counts as the next one.
pub(super) fn time_of_day(text: &[u8]) -> Option<u64> {
    let &[h1, h2, b':', m1, m2, b':', s1, s2] = text else {
        return None;
    };
    let (hour, minute, second) = (number(&[h1, h2])?, number(&[m1, m2])?, number(&[s1, s2])?);
    (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3600 + minute * 60 + second)
}

/// `30/Apr/1998:22:00:04 +0200` (Common Log Format) to microseconds since 1970 UTC. Without a zone, UTC.
pub(super) fn clf(text: &[u8]) -> Option<u64> {
    let (date, rest) = split_once(text, b':')?;
    let (time, zone) = split_once(rest, b' ').unwrap_or((rest, b"+0000"));
    let local_s = day_month_year(date)? * DAY_S + time_of_day(time)?;
    let utc_s = local_s.checked_add_signed(-zone_s(zone)?)?;
    Some(utc_s * SECOND_US)
}

/// `Aug`, in English, to 8.
pub(super) fn month_number(text: &[u8]) -> Option<u64> {
    const MONTHS: [&[u8; 3]; 12] = [
        b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov",
        b"Dec",
    ];
    (1..)
        .zip(MONTHS)
        .find(|(_, name)| name.eq_ignore_ascii_case(text))
        .map(|(n, _)| n)
}

/// Days from 1970-01-01 to this day of the Gregorian calendar; `None` if there is no such day, or it is earlier.
pub(super) fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
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

/// `+0130` to 5400, `-0400` to -14400.
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
