//! Formats and compressions, and how they are told apart.

use super::LogError;
use super::lines::HeadLine;
use super::parse::Parser;
use super::skipped::excerpt;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;

/// How many lines are looked at to tell the format.
pub(super) const SAMPLE_LINES: usize = 100;

/// An access log format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// NCSA Common Log Format.
    Common,
    /// Common with referer and user agent appended.
    Combined,
    /// `host [DD:HH:MM:SS] "request" status bytes`, as EPA's 1995 log.
    Epa,
    /// Tab-separated with Unix seconds, as the public NASA 1995 excerpts.
    NasaTsv,
    /// Comma-separated, as the public World Cup 1998 excerpts.
    WorldCupCsv,
    /// W3C extended log file format, its fields named by `#Fields`.
    W3c,
    /// `client: date (path): action`, as the San Diego Supercomputer Center's 1995 log. No sizes.
    Sdsc,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 7] = [
        Self::Common,
        Self::Combined,
        Self::Epa,
        Self::NasaTsv,
        Self::WorldCupCsv,
        Self::W3c,
        Self::Sdsc,
    ];

    /// The name used on the command line and in experiment files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Common => "common",
            Self::Combined => "combined",
            Self::Epa => "epa",
            Self::NasaTsv => "nasa-tsv",
            Self::WorldCupCsv => "world-cup-csv",
            Self::W3c => "w3c",
            Self::Sdsc => "sdsc",
        }
    }

    /// The format of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|f| f.name() == name)
    }

    /// What a line looks like.
    pub const fn example(self) -> &'static str {
        match self {
            Self::Common => r#"host - - [30/Apr/1998:22:00:04 +0000] "GET /a HTTP/1.0" 200 512"#,
            Self::Combined => {
                r#"host - - [30/Apr/1998:22:00:04 +0000] "GET /a HTTP/1.0" 200 512 "referer" "agent""#
            }
            Self::Epa => r#"host [30:00:00:04] "GET /a HTTP/1.0" 200 512"#,
            Self::NasaTsv => "host<tab>logname<tab>804571201<tab>GET<tab>/a<tab>200<tab>512",
            Self::WorldCupCsv => "client,30/Apr/1998,22:00:04,/a,200,512",
            Self::W3c => "#Fields: date time c-ip cs-method cs-uri-stem sc-status sc-bytes",
            Self::Sdsc => "client: Tue Aug 22 00:00:04 1995 (/a): Sent text: GET /a HTTP/1.0",
        }
    }

    /// All names, for messages.
    pub(super) fn list() -> String {
        Self::ALL.map(Self::name).join(", ")
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The format that fits most of the lines, the earlier in [`Format::ALL`] of equals; it must fit half of them.
pub(super) fn detect(path: &Path, lines: &[HeadLine]) -> Result<Format, LogError> {
    let with_text = || {
        lines
            .iter()
            .map(HeadLine::as_raw)
            .filter(|l| !l.text.is_empty())
    };
    let mut best: Option<(usize, Format)> = None;

    for format in Format::ALL {
        let fits = count_fitting(format, lines);
        if best.is_none_or(|(most, _)| fits > most) {
            best = Some((fits, format));
        }
    }
    match best {
        Some((fits, format)) if fits > 0 && 2 * fits >= with_text().count() => Ok(format),
        _ => Err(match with_text().next() {
            Some(line) => LogError::UnknownFormat {
                path: path.to_owned(),
                line: line.number,
                text: excerpt(line.text),
            },
            None => LogError::Empty {
                path: path.to_owned(),
            },
        }),
    }
}

/// How many of the lines are requests or directives in this format.
fn count_fitting(format: Format, lines: &[HeadLine]) -> usize {
    let mut parser = Parser::new(format);
    lines
        .iter()
        .filter(|line| parser.parse(line.as_raw().text).is_ok())
        .count()
}

/// How a file is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip, RFC 1952.
    Gzip,
    /// xz.
    Xz,
    /// Zstandard, RFC 8878.
    Zstd,
}

impl Compression {
    /// Tells it by the first bytes of a file.
    pub fn of(start: &[u8]) -> Self {
        if start.starts_with(&[0x1f, 0x8b]) {
            Self::Gzip
        } else if start.starts_with(&[0xfd, b'7', b'z', b'X', b'Z', 0]) {
            Self::Xz
        } else if start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            Self::Zstd
        } else {
            Self::None
        }
    }
}
