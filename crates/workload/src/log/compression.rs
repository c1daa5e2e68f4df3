//! Recognition of files by their first bytes: compressed logs, and files that are not access logs.

use crate::capture::CaptureFormat;
use serde::Serialize;

/// Compression of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compression {
    /// Not compressed.
    None,
    /// bzip2.
    Bzip2,
    /// gzip, RFC 1952.
    Gzip,
    /// xz.
    Xz,
    /// Zstandard, RFC 8878.
    Zstd,
}

impl Compression {
    /// Number of bytes at the start of a file that determine its compression.
    pub const START_BYTES: usize = 6;

    /// Recognises the compression by the first bytes of a file.
    pub fn of(start: &[u8]) -> Self {
        if start.starts_with(&[0x1f, 0x8b]) {
            Self::Gzip
        } else if start.starts_with(&[0xfd, b'7', b'z', b'X', b'Z', 0]) {
            Self::Xz
        } else if start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            Self::Zstd
        } else if matches!(start, [b'B', b'Z', b'h', b'1'..=b'9', ..]) {
            Self::Bzip2
        } else {
            Self::None
        }
    }

    /// Returns the name for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "not compressed",
            Self::Bzip2 => "bzip2",
            Self::Gzip => "gzip",
            Self::Xz => "xz",
            Self::Zstd => "Zstandard",
        }
    }
}

const DECOMPRESS: &str = "decompress it first";
const UNPACK: &str = "unpack it first";

/// First bytes of other files that are often stored next to logs, with a description and what to do about them.
const OTHERS: [(&[u8], &str, &str); 12] = [
    (b"PK\x03\x04", "a zip archive", UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", UNPACK),
    (b"Rar!", "a rar archive", UNPACK),
    (b"\x04\x22\x4d\x18", "compressed with lz4", DECOMPRESS),
    (b"\x5d\x00\x00", "compressed with lzma", DECOMPRESS),
    (b"LZIP", "compressed with lzip", DECOMPRESS),
    (b"\x89LZO", "compressed with lzop", DECOMPRESS),
    (b"\x1f\x9d", "compressed with compress (.Z)", DECOMPRESS),
    (
        b"\xff\x06\x00\x00sNaPpY",
        "compressed with Snappy",
        DECOMPRESS,
    ),
    (
        b"PAR1",
        "a Parquet file",
        "write it as CSV or JSON lines first",
    ),
    (
        b"\xff\xfe",
        "text in UTF-16",
        "convert it to UTF-8 first, as with iconv",
    ),
    (
        b"\xfe\xff",
        "text in UTF-16",
        "convert it to UTF-8 first, as with iconv",
    ),
];

/// Position of the magic number of tar archives.
const TAR_MARK: std::ops::Range<usize> = 257..262;

/// Describes the file with this start, and what to do about it, if the file is known not to consist of lines of text.
pub(super) fn other_than_a_log(start: &[u8]) -> Option<(&'static str, &'static str)> {
    let known = OTHERS
        .iter()
        .find(|(magic, ..)| start.starts_with(magic))
        .map(|&(_, what, remedy)| (what, remedy));
    let tar = || (start.get(TAR_MARK) == Some(b"ustar")).then_some(("a tar archive", UNPACK));
    let capture = || {
        CaptureFormat::of(start).map(|_| ("a packet capture", "`baton trace lifetimes` reads it"))
    };
    known.or_else(tar).or_else(capture)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_not_logs_are_named() {
        let named = |start: &[u8]| other_than_a_log(start).map(|(what, _)| what);
        assert_eq!(named(b"PK\x03\x04\x14\x00"), Some("a zip archive"));
        assert_eq!(named(b"\x04\x22\x4d\x18"), Some("compressed with lz4"));
        let mut tar = vec![b'x'; 512];
        tar[TAR_MARK].copy_from_slice(b"ustar");
        assert_eq!(named(&tar), Some("a tar archive"));
        assert_eq!(
            named(b"\xd4\xc3\xb2\xa1\x02\0\x04\0"),
            Some("a packet capture")
        );
        assert_eq!(named(b"10.0.0.1 - - ["), None);
        assert_eq!(named("caf\u{e9} - - [".as_bytes()), None);
    }
}
