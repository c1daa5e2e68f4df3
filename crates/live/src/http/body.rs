//! Message bodies with any framing (RFC 9112 6 and 7).

use bytes::{Buf, Bytes};

/// Maximum length of a trailer field, and of a line with a chunk's size and extensions, bytes.
const LONGEST_LINE: usize = 1024;
/// Maximum number of trailer lines.
const MOST_TRAILERS: u32 = 64;

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// After this number of bytes (Content-Length).
    Length(u64),
    /// With the last chunk (Transfer-Encoding: chunked).
    Chunked,
    /// With the connection (responses only).
    UntilClose,
}

/// The error of a body whose framing is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a chunk breaks the format of chunked bodies")]
pub struct BadBody;

/// Reads one body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyReader(Part);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// Content; the number of bytes up to the end of the body.
    Length(u64),
    /// The line with a chunk's size, as far as it has been received.
    Size(Vec<u8>),
    /// A chunk's content; the number of bytes up to the end of the chunk.
    Chunk(u64),
    /// The end of line after a chunk.
    ChunkEnd(Vec<u8>),
    /// Trailer fields after the last chunk: the current line, and the number of lines before it.
    Trailer(Vec<u8>, u32),
    UntilClose,
    Done,
}

impl BodyReader {
    /// Creates a reader of a body with this framing.
    pub fn new(framing: Framing) -> Self {
        Self(match framing {
            Framing::Length(0) => Part::Done,
            Framing::Length(len) => Part::Length(len),
            Framing::Chunked => Part::Size(Vec::new()),
            Framing::UntilClose => Part::UntilClose,
        })
    }

    /// Returns whether the whole body has been read.
    pub fn is_complete(&self) -> bool {
        self.0 == Part::Done
    }

    /// Returns whether the body is complete if the connection ends now.
    pub fn may_end(&self) -> bool {
        matches!(self.0, Part::Done | Part::UntilClose)
    }

    /// Removes bytes from the front of `data` up to the end of the next run of content, and returns the run. Returns `None` if `data` is
    /// used up, or the body is complete, before any content.
    ///
    /// # Errors
    /// The framing is invalid; the rest of the connection's data cannot be interpreted.
    pub fn take(&mut self, data: &mut Bytes) -> Result<Option<Bytes>, BadBody> {
        while !data.is_empty() {
            match &mut self.0 {
                Part::Done => return Ok(None),
                Part::UntilClose => return Ok(Some(data.split_to(data.len()))),
                Part::Length(left) => {
                    let content = take_run(left, data);
                    if *left == 0 {
                        self.0 = Part::Done;
                    }
                    return Ok(Some(content));
                }
                Part::Chunk(left) => {
                    let content = take_run(left, data);
                    if *left == 0 {
                        self.0 = Part::ChunkEnd(Vec::new());
                    }
                    return Ok(Some(content));
                }
                Part::Size(line) => {
                    if take_line(line, data)? {
                        self.0 = match chunk_size(line)? {
                            0 => Part::Trailer(Vec::new(), 0),
                            size => Part::Chunk(size),
                        };
                    }
                }
                Part::ChunkEnd(line) => {
                    if take_line(line, data)? {
                        if !line.is_empty() {
                            return Err(BadBody);
                        }
                        self.0 = Part::Size(Vec::new());
                    }
                }
                Part::Trailer(line, count) => {
                    if take_line(line, data)? {
                        if line.is_empty() {
                            self.0 = Part::Done;
                        } else if *count == MOST_TRAILERS {
                            return Err(BadBody);
                        } else {
                            self.0 = Part::Trailer(Vec::new(), *count + 1);
                        }
                    }
                }
            }
        }
        Ok(None)
    }
}

fn take_run(left: &mut u64, data: &mut Bytes) -> Bytes {
    let len = usize::try_from(*left).map_or(data.len(), |left| left.min(data.len()));
    *left -= len as u64;
    data.split_to(len)
}

/// Moves bytes to `line` up to the end of the line, which is removed; returns true if the end was found.
fn take_line(line: &mut Vec<u8>, data: &mut Bytes) -> Result<bool, BadBody> {
    let end = data.iter().position(|&byte| byte == b'\n');
    let len = end.unwrap_or(data.len());
    if line.len() + len > LONGEST_LINE {
        return Err(BadBody);
    }
    line.extend_from_slice(&data[..len]);
    data.advance(end.map_or(len, |end| end + 1));
    if end.is_none() {
        return Ok(false);
    }
    // Another program on the path could interpret a bare line feed differently.
    if line.pop() == Some(b'\r') {
        Ok(true)
    } else {
        Err(BadBody)
    }
}

/// RFC 9112 7.1: hexadecimal digits, then extensions, which are ignored.
fn chunk_size(line: &[u8]) -> Result<u64, BadBody> {
    let digits = line.split(|&byte| byte == b';').next().unwrap_or(line);
    let text = std::str::from_utf8(digits).map_err(|_| BadBody)?.trim_end();
    if text.is_empty() || text.len() > 15 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(BadBody);
    }
    u64::from_str_radix(text, 16).map_err(|_| BadBody)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a body that arrives in pieces of `piece` bytes; returns the content and the bytes after the body.
    fn read(framing: Framing, text: &[u8], piece: usize) -> Result<(Vec<u8>, Vec<u8>), BadBody> {
        let mut reader = BodyReader::new(framing);
        let (mut content, mut rest) = (Vec::new(), Vec::new());
        for piece in text.chunks(piece) {
            let mut data = Bytes::copy_from_slice(piece);
            while let Some(run) = reader.take(&mut data)? {
                content.extend_from_slice(&run);
            }
            rest.extend_from_slice(&data);
        }
        assert!(reader.may_end());
        Ok((content, rest))
    }

    #[test]
    fn bodies_are_read_in_pieces_of_any_size() {
        let chunked = b"4\r\nWiki\r\n5;name=x\r\npedia\r\n0\r\nTrailer: yes\r\n\r\nGET /";
        for piece in 1..chunked.len() {
            let whole = (b"Wikipedia".to_vec(), b"GET /".to_vec());
            assert_eq!(read(Framing::Chunked, chunked, piece), Ok(whole));
            let whole = (b"12345".to_vec(), b"67".to_vec());
            assert_eq!(read(Framing::Length(5), b"1234567", piece), Ok(whole));
            let whole = (b"1234567".to_vec(), Vec::new());
            assert_eq!(read(Framing::UntilClose, b"1234567", piece), Ok(whole));
        }
    }

    #[test]
    fn malformed_chunks_are_refused() {
        for text in [
            &b"x\r\n"[..],
            b"\r\n",
            b"-1\r\n",
            b"+1\r\na\r\n",
            b"1\na\r\n",
            b"1\r\nab\r\n",
            b"ffffffffffffffff\r\n",
            &[b'0'; 2000],
        ] {
            for piece in [1, 1000] {
                let mut reader = BodyReader::new(Framing::Chunked);
                let refused = text.chunks(piece).any(|piece| {
                    let mut data = Bytes::copy_from_slice(piece);
                    std::iter::from_fn(|| reader.take(&mut data).transpose()).any(|r| r.is_err())
                });
                assert!(refused, "{}", String::from_utf8_lossy(text));
            }
        }
    }
}
