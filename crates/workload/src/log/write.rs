//! Writing of logs in Common Log Format or Combined.

use super::{Log, Method};
use std::io::{self, Write};

/// Format in which a log is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// Common Log Format.
    Common,
    /// Common with referer and user agent, which are always `-` because a [`Log`] does not store them.
    Combined,
}

/// Writes `log` in its order, with times in UTC to the second.
///
/// Reading the result gives the same requests, clients and files if times are whole seconds and every request has a status. A missing
/// status is written as 200.
///
/// # Errors
/// If `out` fails.
pub fn write_log(log: &Log, layout: Layout, out: &mut impl Write) -> io::Result<()> {
    let end = match layout {
        Layout::Common => "\n",
        Layout::Combined => " \"-\" \"-\"\n",
    };
    for request in &log.requests {
        out.write_all(log.clients.get(request.client))?;
        let (date, time) = (
            Date::of(request.time_us),
            request.time_us / 1_000_000 % 86_400,
        );
        let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
        write!(
            out,
            " - - [{date}:{hour:02}:{minute:02}:{second:02} +0000] \"{} ",
            name(request.method)
        )?;
        out.write_all(log.urls.get(request.file))?;
        let status = if request.status == 0 {
            200
        } else {
            request.status
        };
        write!(out, " HTTP/1.0\" {status} ")?;
        match request.bytes {
            0 => write!(out, "-{end}")?,
            bytes => write!(out, "{bytes}{end}")?,
        }
    }
    Ok(())
}

const fn name(method: Method) -> &'static str {
    match method {
        Method::Get => "GET",
        Method::Head => "HEAD",
        Method::Post => "POST",
        Method::Other => "OTHER",
    }
}

/// A day of the Gregorian calendar, formatted as `30/Apr/1998`.
struct Date {
    year: u64,
    month: usize,
    day: u64,
}

impl Date {
    /// Returns the day of this time in microseconds since 1970.
    fn of(time_us: u64) -> Self {
        // Count days from 0000-03-01, so that the leap day is the last of its (shifted) year.
        let days = time_us / 1_000_000 / 86_400 + 719_468;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = (shifted_month as usize + 2) % 12;
        Self {
            year: era * 400 + year_of_era + u64::from(month < 2),
            month,
            day,
        }
    }
}

impl std::fmt::Display for Date {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const MONTHS: [&str; 12] = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ];
        write!(f, "{:02}/{}/{}", self.day, MONTHS[self.month], self.year)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_known_moments() {
        let shown = |seconds: u64| Date::of(seconds * 1_000_000).to_string();
        assert_eq!(shown(0), "01/Jan/1970");
        assert_eq!(shown(804_571_201), "01/Jul/1995");
        assert_eq!(shown(951_782_400), "29/Feb/2000");
        assert_eq!(shown(951_868_800), "01/Mar/2000");
    }
}
