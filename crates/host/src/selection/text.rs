//! Textual form of selection policies.

use super::{PortSelection, SelectionConfig};
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// Error for a text that is not a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{found}`: expected learn, fcfs, never, tN as in t4, rN, rate:PERCENT, benefit:N, alternate:N, one of these after retry:, \
     bulk:SIZE=kernel or bulk:SIZE=kernel:POLICY as in bulk:256K=kernel:t4, or ports:80=t4,443=never,*=fcfs"
)]
pub struct SelectionTextError {
    /// The invalid part of the text.
    pub found: String,
}

/// Parses `learn`, `fcfs`, `never`, `t4` (the fourth enqueue), `r1` (the first read), `rate:150` (per cent of the mean rate), `benefit:8`
/// (enqueues that pay for a handoff), `alternate:4` (every fourth enqueue), `retry:` before one of these, `bulk:256K=kernel` (responses from
/// this size on stay in the kernel, all others follow `fcfs` or the policy after another colon), or a list by port, in which `*` is for all
/// other ports; without `*` their connections stay. An oracle is for experiments only.
impl FromStr for SelectionConfig {
    type Err = SelectionTextError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix("ports:") {
            Some(list) => by_port(list),
            None => one(text),
        }
    }
}

fn error(found: &str) -> SelectionTextError {
    let found = found.to_owned();
    SelectionTextError { found }
}

fn one(text: &str) -> Result<SelectionConfig, SelectionTextError> {
    match text {
        "fcfs" => return Ok(SelectionConfig::Fcfs),
        "learn" => return Ok(SelectionConfig::Learned),
        "never" => return Ok(SelectionConfig::Never),
        _ => {}
    }
    if let Some(policy) = text.strip_prefix("retry:") {
        let selection = Box::new(one(policy)?);
        return Ok(SelectionConfig::Retry { selection });
    }
    if let Some(bulk) = text.strip_prefix("bulk:") {
        let (size, rest) = bulk.split_once("=kernel").ok_or_else(|| error(text))?;
        let bytes = bytes_of(size).ok_or_else(|| error(text))?;
        let policy = match rest {
            "" => "fcfs",
            _ => rest.strip_prefix(':').ok_or_else(|| error(text))?,
        };
        let selection = Box::new(one(policy)?);
        return Ok(SelectionConfig::Bulk { bytes, selection });
    }
    let number = |prefix| {
        let digits = text.strip_prefix(prefix)?;
        digits.parse::<u32>().ok()
    };
    // Numbers start at 1.
    let nth = |prefix| number(prefix).filter(|&number| number > 0);
    let threshold = || nth("t").map(|enqueues| SelectionConfig::Threshold { enqueues });
    let receive = || nth("r").map(|receives| SelectionConfig::AtReceive { receives });
    let rate = || number("rate:").map(|percent| SelectionConfig::Rate { percent });
    let benefit = || number("benefit:").map(|enqueues| SelectionConfig::Benefit { enqueues });
    let alternate = || {
        let enqueues = nth("alternate:")?;
        Some(SelectionConfig::Alternate { enqueues })
    };
    threshold()
        .or_else(receive)
        .or_else(rate)
        .or_else(benefit)
        .or_else(alternate)
        .ok_or_else(|| error(text))
}

/// Letters after sizes, with the powers of two that they stand for.
const UNITS: [(char, u32); 3] = [('K', 10), ('M', 20), ('G', 30)];

/// Parses a number of bytes that is not zero, such as `1500` or `256K`.
fn bytes_of(text: &str) -> Option<u64> {
    let of_unit = |&(unit, power): &(char, u32)| Some((text.strip_suffix(unit)?, power));
    let (digits, power) = UNITS.iter().find_map(of_unit).unwrap_or((text, 0));
    let number: u64 = digits.parse().ok()?;
    number.checked_mul(1 << power).filter(|&bytes| bytes > 0)
}

/// Writes a number of bytes as [`bytes_of`] reads it, with the largest unit that fits.
fn size_text(bytes: u64) -> String {
    let mut units = UNITS.iter().rev();
    match units.find(|(_, power)| bytes.is_multiple_of(1 << power)) {
        Some((unit, power)) => format!("{}{unit}", bytes >> power),
        None => bytes.to_string(),
    }
}

fn by_port(list: &str) -> Result<SelectionConfig, SelectionTextError> {
    let mut ports = Vec::new();
    let mut default = Box::new(SelectionConfig::Never);
    for entry in list.split(',') {
        let (port, policy) = entry.split_once('=').ok_or_else(|| error(entry))?;
        let selection = one(policy)?;
        match port {
            "*" => default = Box::new(selection),
            _ => {
                let port = port.parse().map_err(|_| error(entry))?;
                ports.push(PortSelection { port, selection });
            }
        }
    }
    Ok(SelectionConfig::PerPort { ports, default })
}

impl Display for SelectionConfig {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fcfs => out.write_str("fcfs"),
            Self::Learned => out.write_str("learn"),
            Self::Bulk { bytes, selection } => {
                write!(out, "bulk:{}=kernel:{selection}", size_text(*bytes))
            }
            Self::Never => out.write_str("never"),
            Self::Threshold { enqueues } => write!(out, "t{enqueues}"),
            Self::Alternate { enqueues } => write!(out, "alternate:{enqueues}"),
            Self::AtReceive { receives } => write!(out, "r{receives}"),
            Self::Rate { percent } => write!(out, "rate:{percent}"),
            Self::Benefit { enqueues } => write!(out, "benefit:{enqueues}"),
            Self::Oracle { enqueues } => write!(out, "oracle:{enqueues}"),
            Self::Retry { selection } => write!(out, "retry:{selection}"),
            Self::PerPort { ports, default } => {
                out.write_str("ports:")?;
                for PortSelection { port, selection } in ports {
                    write!(out, "{port}={selection},")?;
                }
                write!(out, "*={default}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_written_as_they_are_read() {
        for text in [
            "fcfs",
            "never",
            "t4",
            "alternate:8",
            "r1",
            "rate:150",
            "benefit:12",
            "retry:fcfs",
            "retry:retry:t4",
            "learn",
            "bulk:256K=kernel:fcfs",
            "bulk:1500=kernel:retry:t4",
            "bulk:3M=kernel:learn",
            "ports:80=t4,443=never,*=retry:r2",
        ] {
            let policy: SelectionConfig = text.parse().expect(text);
            assert_eq!(policy.to_string(), text);
        }
        let bulk: SelectionConfig = "bulk:1024K=kernel".parse().expect("a policy");
        assert_eq!(bulk.to_string(), "bulk:1M=kernel:fcfs");
        let without: SelectionConfig = "ports:80=fcfs".parse().expect("a list");
        assert_eq!(without.to_string(), "ports:80=fcfs,*=never");
    }

    #[test]
    fn invalid_policies_are_named() {
        for (text, found) in [
            ("", ""),
            ("t", "t"),
            ("four", "four"),
            ("alternate:0", "alternate:0"),
            ("t0", "t0"),
            ("retry:r0", "r0"),
            ("rate:fast", "rate:fast"),
            ("oracle:8", "oracle:8"),
            ("retry:", ""),
            ("bulk:0=kernel", "bulk:0=kernel"),
            ("bulk:9Q=kernel", "bulk:9Q=kernel"),
            ("bulk:17179869184G=kernel", "bulk:17179869184G=kernel"),
            ("bulk:1K", "bulk:1K"),
            ("bulk:1K=kernel,t4", "bulk:1K=kernel,t4"),
            ("bulk:1K=kernel:", ""),
            ("ports:80", "80"),
            ("ports:80=t4,http=fcfs", "http=fcfs"),
            ("ports:80=ports:1=t4", "ports:1=t4"),
        ] {
            let error = text.parse::<SelectionConfig>().expect_err(text);
            assert_eq!(error.found, found);
        }
    }
}
