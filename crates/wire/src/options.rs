//! Encodes and decodes TCP options (RFC 9293 3.1) without allocation.

use crate::{Checksum, FastOpenCookie, FastOpenOption, Options, SackBlock, SeqNr, Timestamps};
use etherparse::tcp_option::{
    KIND_END, KIND_MAXIMUM_SEGMENT_SIZE, KIND_NOOP, KIND_SELECTIVE_ACK,
    KIND_SELECTIVE_ACK_PERMITTED, KIND_TIMESTAMP, KIND_WINDOW_SCALE, LEN_MAXIMUM_SEGMENT_SIZE,
    LEN_SELECTIVE_ACK_PERMITTED, LEN_TIMESTAMP, LEN_WINDOW_SCALE,
};

/// Kind of the Fast Open option (RFC 7413 4.1.1), which the library does not define.
const KIND_FAST_OPEN: u8 = 34;

/// Kind of experimental options, and the number of Fast Open as an experiment (RFC 6994, RFC 7413 9).
const KIND_EXPERIMENT: u8 = 254;
const FAST_OPEN_EXPERIMENT: [u8; 2] = [0xf9, 0x89];

/// Maximum length of the options in a TCP header, bytes.
pub(crate) const MOST_LEN: usize = 40;

/// Two no-operations, and kind and length of timestamps: the options of almost every segment start with these bytes.
const ALIGNED_TIMESTAMPS: [u8; 4] = [KIND_NOOP, KIND_NOOP, KIND_TIMESTAMP, LEN_TIMESTAMP];

/// Writes options in Linux's order, which aligns four-byte numbers: MSS, SACK-permitted, timestamps, window scale, SACK, Fast Open. `room`
/// must be exactly as long as the options. Returns their sum.
#[inline]
pub(crate) fn write(options: &Options, room: &mut [u8]) -> Checksum {
    if room.is_empty() {
        return Checksum::new();
    }
    if let Some(Timestamps { value, echo }) = options.timestamps
        && let Ok(room) = <&mut [u8; ALIGNED_TIMESTAMPS.len() + 8]>::try_from(&mut *room)
    {
        // No other option fits, except SACK-permitted instead of the no-operations.
        if !options.sack_permitted {
            room[0..4].copy_from_slice(&ALIGNED_TIMESTAMPS);
            room[4..8].copy_from_slice(&value.to_be_bytes());
            room[8..12].copy_from_slice(&echo.to_be_bytes());
            return Checksum::new()
                .add_u32(u32::from_be_bytes(ALIGNED_TIMESTAMPS))
                .add_u32(value)
                .add_u32(echo);
        }
    }
    write_any(options, room);
    Checksum::new().add_bytes(room)
}

fn write_any(options: &Options, room: &mut [u8]) {
    room.fill(KIND_NOOP);
    let mut out = Cursor { room, len: 0 };
    if let Some(mss) = options.mss {
        out.push([KIND_MAXIMUM_SEGMENT_SIZE, LEN_MAXIMUM_SEGMENT_SIZE]);
        out.push(mss.to_be_bytes());
    }
    // SACK-permitted replaces two no-operations before timestamps.
    if options.sack_permitted {
        if options.timestamps.is_none() {
            out.pad();
        }
        out.push([KIND_SELECTIVE_ACK_PERMITTED, LEN_SELECTIVE_ACK_PERMITTED]);
    }
    if let Some(Timestamps { value, echo }) = options.timestamps {
        if !options.sack_permitted {
            out.pad();
        }
        out.push([KIND_TIMESTAMP, LEN_TIMESTAMP]);
        out.push(value.to_be_bytes());
        out.push(echo.to_be_bytes());
    }
    if let Some(shift) = options.window_scale {
        out.push([KIND_NOOP, KIND_WINDOW_SCALE, LEN_WINDOW_SCALE, shift]);
    }
    if !options.sack.is_empty() {
        out.pad();
        out.push([KIND_SELECTIVE_ACK, 2 + 8 * options.sack.len() as u8]);
        for block in &options.sack {
            out.push(block.start.0.to_be_bytes());
            out.push(block.end.0.to_be_bytes());
        }
    }
    if let Some(option) = &options.fast_open {
        let (len, cookie) = (option.len() as u8, &option.cookie);
        if option.experimental {
            out.push([KIND_EXPERIMENT, len]);
            out.push(FAST_OPEN_EXPERIMENT);
        } else {
            out.push([KIND_FAST_OPEN, len]);
        }
        out.room[out.len..out.len + cookie.len()].copy_from_slice(cookie);
        out.len = (out.len + cookie.len()).next_multiple_of(4);
    }
    debug_assert_eq!(out.len, options.len(), "options fill their space");
}

/// The position of the next option. Skipped bytes contain no-operations.
struct Cursor<'a> {
    room: &'a mut [u8],
    len: usize,
}

impl Cursor<'_> {
    fn push<const N: usize>(&mut self, bytes: [u8; N]) {
        self.room[self.len..self.len + N].copy_from_slice(&bytes);
        self.len += N;
    }

    /// Skips two bytes.
    fn pad(&mut self) {
        self.len += 2;
    }
}

/// Parses the options of a header into `options`, whose previous content is lost.
///
/// Unknown options are skipped by their length (RFC 9293 3.1, MUST-6), and so are known options with a wrong length. An impossible length
/// (MUST-7) ends the parsing: the options before it remain valid, and the segment is not refused. Linux does the same; the RFC only
/// suggests a reset.
#[inline]
pub(crate) fn read(bytes: &[u8], options: &mut Options) {
    (options.mss, options.window_scale, options.sack_permitted) = (None, None, false);
    (options.timestamps, options.fast_open) = (None, None);
    options.sack.truncate(0);
    if let [a, b, c, d, value @ ..] = bytes
        && [*a, *b, *c, *d] == ALIGNED_TIMESTAMPS
        && let Some([value, echo]) = number_pair(value)
    {
        options.timestamps = Some(Timestamps { value, echo });
    } else {
        read_any(bytes, options);
    }
}

fn read_any(bytes: &[u8], options: &mut Options) {
    let mut rest = bytes;
    while let [kind, after @ ..] = rest {
        match *kind {
            KIND_END => break,
            KIND_NOOP => rest = after,
            kind => {
                let Some(content) = after.first().and_then(|&len| rest.get(2..usize::from(len)))
                else {
                    break;
                };
                take(options, kind, content);
                rest = &rest[2 + content.len()..];
            }
        }
    }
}

/// Parses one option, given without its kind and length; ignores the option if it is unknown or has a wrong length.
fn take(options: &mut Options, kind: u8, content: &[u8]) {
    match (kind, content) {
        (KIND_MAXIMUM_SEGMENT_SIZE, &[high, low]) => {
            options.mss = Some(u16::from_be_bytes([high, low]));
        }
        (KIND_WINDOW_SCALE, &[shift]) => options.window_scale = Some(shift),
        (KIND_SELECTIVE_ACK_PERMITTED, []) => options.sack_permitted = true,
        (KIND_TIMESTAMP, content) => {
            if let Some([value, echo]) = number_pair(content) {
                options.timestamps = Some(Timestamps { value, echo });
            }
        }
        (KIND_SELECTIVE_ACK, content) if content.len().is_multiple_of(8) => {
            let blocks = content.chunks_exact(8).filter_map(number_pair);
            options.sack = blocks
                .map(|[start, end]| SackBlock {
                    start: SeqNr(start),
                    end: SeqNr(end),
                })
                .collect();
        }
        // A wrong length is ignored (RFC 7413 4.1.1).
        (KIND_FAST_OPEN, content) => options.fast_open = fast_open(content, false),
        (KIND_EXPERIMENT, content) => {
            if let Some(content) = content.strip_prefix(&FAST_OPEN_EXPERIMENT) {
                options.fast_open = fast_open(content, true);
            }
        }
        _ => {}
    }
}

fn fast_open(content: &[u8], experimental: bool) -> Option<FastOpenOption> {
    let cookie = FastOpenCookie::new(content).ok()?;
    Some(FastOpenOption {
        cookie,
        experimental,
    })
}

/// Parses two four-byte numbers.
fn number_pair(bytes: &[u8]) -> Option<[u32; 2]> {
    match bytes.as_chunks::<4>() {
        (&[first, second], []) => Some([first, second].map(u32::from_be_bytes)),
        _ => None,
    }
}
