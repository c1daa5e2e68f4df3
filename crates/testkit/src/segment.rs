//! Segments in text form: `S. 0:0(0) ack 1 win 65535 <mss 1000,sackOK,TS val 1 ecr 2,wscale 7> ect0`.

mod header;
mod shown;

pub use header::Numbers;

use baton_wire::{Ecn, FastOpenCookie, FastOpenOption, Flags};
use std::str::FromStr;

/// Options in text form, with sequence numbers relative to the SYNs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OptionsText {
    /// MSS.
    pub mss: Option<u16>,
    /// Window scale.
    pub window_scale: Option<u8>,
    /// SACK permitted.
    pub sack_permitted: bool,
    /// Value and echo. Timestamps of the side under test are relative to its first one.
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks.
    pub sack: Vec<(u32, u32)>,
    /// Fast Open: a cookie, or a request for a cookie.
    pub fast_open: Option<FastOpenOption>,
    /// Whether an injected segment lacks the timestamps that were negotiated.
    pub bare: bool,
}

/// A segment in text form, with sequence numbers relative to the SYNs. Fields of an expected segment that are not given are not compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentText {
    /// Flags.
    pub flags: Flags,
    /// Sequence number of the first byte of data.
    pub start: u32,
    /// Sequence number after the last byte.
    pub end: u32,
    /// Acknowledgment number.
    pub ack: Option<u32>,
    /// Window as in the header, unscaled.
    pub window: Option<u16>,
    /// Urgent pointer.
    pub urgent: Option<u16>,
    /// All options.
    pub options: Option<OptionsText>,
    /// The ECN field of the IP header.
    pub ecn: Option<Ecn>,
}

impl SegmentText {
    /// Returns `count` copies, each starting where the one before it ends.
    pub fn row(&self, count: u32) -> impl Iterator<Item = Self> {
        let len = self.end.wrapping_sub(self.start);
        (0..count).map(move |number| Self {
            start: self.start.wrapping_add(number * len),
            end: self.end.wrapping_add(number * len),
            ..self.clone()
        })
    }

    /// Returns whether `seen` matches this segment; fields that are not given here are not compared.
    pub fn says(&self, seen: &Self) -> bool {
        let said = Self {
            window: self.window.and(seen.window),
            urgent: self.urgent.and(seen.urgent),
            options: self.options.as_ref().and(seen.options.clone()),
            ecn: self.ecn.and(seen.ecn),
            ..seen.clone()
        };
        *self == said
    }
}

/// Letters of the flags, in the order in which they are written.
const LETTERS: [(char, Flags); 8] = [
    ('S', Flags::SYN),
    ('F', Flags::FIN),
    ('R', Flags::RST),
    ('P', Flags::PSH),
    ('U', Flags::URG),
    ('E', Flags::ECE),
    ('W', Flags::CWR),
    ('.', Flags::ACK),
];

/// Names of the ECN field.
const ECN_NAMES: [(&str, Ecn); 4] = [
    ("noecn", Ecn::NotCapable),
    ("ect0", Ecn::Capable0),
    ("ect1", Ecn::Capable1),
    ("ce", Ecn::Congested),
];

impl FromStr for SegmentText {
    type Err = String;

    /// Parses a segment; an error names what was expected and what was found.
    fn from_str(text: &str) -> Result<Self, String> {
        let (plain, options) = take_options(text)?;
        let mut words = plain.split_whitespace();
        let flags = parse_flags(words.next().unwrap_or(""))?;
        let (start, end) = parse_range(words.next().unwrap_or(""))?;
        let mut segment = Self {
            flags,
            start,
            end,
            ack: None,
            window: None,
            urgent: None,
            options,
            ecn: None,
        };
        while let Some(word) = words.next() {
            match word {
                "ack" => segment.ack = Some(relative(words.next())?),
                "win" => segment.window = Some(number(words.next())?),
                "urg" => segment.urgent = Some(number(words.next())?),
                other => {
                    let known = ECN_NAMES.iter().find(|(name, _)| *name == other);
                    let (_, ecn) = known.ok_or_else(|| {
                    format!("expected `ack`, `win`, `urg`, `<options>`, noecn, ect0, ect1 or ce, found `{other}`")
                })?;
                    segment.ecn = Some(*ecn);
                }
            }
        }
        if flags.contains(Flags::ACK) != segment.ack.is_some() {
            return Err("expected `ack N` with the flag `.` and only with it".into());
        }
        Ok(segment)
    }
}

/// Separates the options, `<...>`, from the rest of the text.
fn take_options(text: &str) -> Result<(String, Option<OptionsText>), String> {
    let Some(open) = text.find('<') else {
        return Ok((text.into(), None));
    };
    let close = text.find('>').ok_or("expected `>` after the options")?;
    let options = parse_options(&text[open + 1..close])?;
    Ok((
        format!("{} {}", &text[..open], &text[close + 1..]),
        Some(options),
    ))
}

fn parse_options(text: &str) -> Result<OptionsText, String> {
    let mut options = OptionsText::default();
    for option in text
        .split(',')
        .map(str::trim)
        .filter(|option| !option.is_empty())
    {
        let words: Vec<&str> = option.split_whitespace().collect();
        match words.as_slice() {
            ["nop"] => {}
            ["noTS"] => options.bare = true,
            ["sackOK"] => options.sack_permitted = true,
            [kind @ ("FO" | "FOEXP"), cookie @ ..] if cookie.len() < 2 => {
                let cookie = cookie.first().copied().unwrap_or_default();
                options.fast_open = Some(FastOpenOption {
                    cookie: parse_cookie(cookie)?,
                    experimental: *kind == "FOEXP",
                });
            }
            ["mss", value] => options.mss = Some(number(Some(value))?),
            ["wscale", value] => options.window_scale = Some(number(Some(value))?),
            ["TS", "val", value, "ecr", echo] => {
                options.timestamps = Some((relative(Some(value))?, relative(Some(echo))?));
            }
            ["sack", blocks @ ..] if !blocks.is_empty() => {
                for block in blocks {
                    options.sack.push(parse_range(block)?);
                }
            }
            _ => {
                return Err(format!(
                    "expected `mss N`, `wscale N`, `sackOK`, `TS val N ecr N`, `sack A:B ...`, `FO [HEX]`, `FOEXP [HEX]` or `nop`, found `{option}`"
                ));
            }
        }
    }
    Ok(options)
}

/// Parses a Fast Open cookie in hexadecimal; without digits it is a request for a cookie.
fn parse_cookie(text: &str) -> Result<FastOpenCookie, String> {
    let fault = || format!("expected a cookie of 4 to 16 bytes in hexadecimal, found `{text}`");
    let byte = |at| {
        text.get(at..at + 2)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
    };
    let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(byte).collect();
    FastOpenCookie::new(&bytes.ok_or_else(fault)?).map_err(|_| fault())
}

fn parse_flags(text: &str) -> Result<Flags, String> {
    let flag = |letter: char| {
        let known = LETTERS.iter().find(|(known, _)| *known == letter);
        known.map(|(_, flag)| *flag)
    };
    let flags: Option<Vec<Flags>> = text.chars().map(flag).collect();
    match flags {
        Some(flags) if !flags.is_empty() || text == "-" => {
            Ok(flags.into_iter().fold(Flags::empty(), |all, one| all | one))
        }
        _ if text == "-" => Ok(Flags::empty()),
        _ => Err(format!(
            "expected flags of `SFRPUEW.` or `-` for none, found `{text}`"
        )),
    }
}

/// Parses `1:1001` or `1:1001(1000)`.
fn parse_range(text: &str) -> Result<(u32, u32), String> {
    let fault = || format!("expected numbers as in `1:1001(1000)`, found `{text}`");
    let (range, len) = match text.split_once('(') {
        Some((range, len)) => (range, Some(len.strip_suffix(')').ok_or_else(fault)?)),
        None => (text, None),
    };
    let (start, end) = range.split_once(':').ok_or_else(fault)?;
    let (start, end) = (relative(Some(start))?, relative(Some(end))?);
    if let Some(len) = len {
        let len: u32 = number(Some(len))?;
        if end.wrapping_sub(start) != len {
            let counted = end.wrapping_sub(start);
            return Err(format!("`{text}` is {counted} bytes long, not {len}"));
        }
    }
    Ok((start, end))
}

/// Parses a number relative to an initial sequence number; it may be negative.
///
/// # Errors
/// The text is not a number of 32 bits; the error names what was expected and what was found.
pub fn relative(text: Option<&str>) -> Result<u32, String> {
    let value: i64 = number(text)?;
    let fits = (i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(&value);
    fits.then_some(value as u32)
        .ok_or_else(|| format!("expected a number of 32 bits, found `{value}`"))
}

/// Parses a number.
///
/// # Errors
/// The text is not a number that fits; the error names what was expected and what was found.
pub fn number<N: std::str::FromStr>(text: Option<&str>) -> Result<N, String> {
    let text = text.unwrap_or("");
    text.parse()
        .map_err(|_| format!("expected a number that fits, found `{text}`"))
}
