//! Lines of arbitrary bytes, read into one reused buffer.

use std::io::{self, BufRead};

/// Longest line; longer lines are truncated, since no server logs request lines of this length.
pub(super) const MAX_LINE_BYTES: usize = 64 << 10;

/// UTF-8 byte order mark, which some editors insert.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One line without its line ending.
#[derive(Clone, Copy)]
pub(super) struct RawLine<'a> {
    /// Line number, from 1.
    pub number: u64,
    /// The bytes, without `\n` or `\r\n`.
    pub text: &'a [u8],
    /// Whether the line was longer than [`MAX_LINE_BYTES`]; `text` is its start.
    pub truncated: bool,
}

/// One of the first lines, stored to detect the format.
pub(super) struct HeadLine {
    number: u64,
    text: Vec<u8>,
    truncated: bool,
}

impl HeadLine {
    pub(super) fn is_blank(&self) -> bool {
        self.text.trim_ascii().is_empty()
    }

    pub(super) fn as_raw(&self) -> RawLine<'_> {
        RawLine {
            number: self.number,
            text: &self.text,
            truncated: self.truncated,
        }
    }
}

/// Splits a reader into lines.
pub(super) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) const fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            number: 0,
        }
    }

    /// Returns the number of lines read so far.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// Returns the next line, or `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<RawLine<'_>>> {
        self.buffer.clear();
        let mut truncated = false;
        let mut any = false;
        loop {
            let chunk = self.reader.fill_buf()?;
            if chunk.is_empty() {
                break;
            }
            any = true;
            let end = memchr::memchr(b'\n', chunk);
            let part = &chunk[..end.unwrap_or(chunk.len())];
            let room = MAX_LINE_BYTES - self.buffer.len();
            truncated |= part.len() > room;
            self.buffer.extend_from_slice(&part[..part.len().min(room)]);
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                break;
            }
        }
        if !any {
            return Ok(None);
        }
        if self.buffer.last() == Some(&b'\r') {
            self.buffer.pop();
        }
        if self.number == 0 && self.buffer.starts_with(BYTE_ORDER_MARK) {
            self.buffer.drain(..BYTE_ORDER_MARK.len());
        }
        self.number += 1;
        Ok(Some(RawLine {
            number: self.number,
            text: &self.buffer,
            truncated,
        }))
    }

    /// Reads up to `limit` lines.
    pub(super) fn take_head(&mut self, limit: usize) -> io::Result<Vec<HeadLine>> {
        let mut head = Vec::new();
        while head.len() < limit {
            let Some(line) = self.next()? else { break };
            let RawLine {
                number,
                text,
                truncated,
            } = line;
            head.push(HeadLine {
                number,
                text: text.to_vec(),
                truncated,
            });
        }
        Ok(head)
    }
}
