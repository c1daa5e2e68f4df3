//! Opening and decompression. The path `-` is standard input.

use super::compression::Compression;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

const BUFFER_BYTES: usize = 256 << 10;
/// Bytes of content that tell what it is: more than a record of any capture.
const PEEK_BYTES: usize = 96 << 10;

/// Opens the file at `path`.
pub(crate) fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    if path == Path::new("-") {
        Ok(Box::new(standard_input()?))
    } else {
        Ok(Box::new(File::open(path)?))
    }
}

/// Standard input, once it has been read.
static KEPT: Mutex<Option<&[u8]>> = Mutex::new(None);

/// Takes these bytes for standard input, where a program has none: in a browser. What was read or given before is gone.
pub fn give_standard_input(all: Vec<u8>) {
    *KEPT.lock().unwrap_or_else(PoisonError::into_inner) = Some(all.leak());
}

/// All of standard input, which is kept, so that several runs can read the same.
///
/// # Errors
/// It cannot be read.
pub fn standard_input() -> io::Result<&'static [u8]> {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    match *kept {
        Some(all) => Ok(all),
        None => {
            let mut all = Vec::new();
            io::stdin().lock().read_to_end(&mut all)?;
            Ok(kept.insert(all.leak()))
        }
    }
}

/// Wraps `source` so that it yields plain content, whose start it shows.
pub(crate) fn decompress<'a>(
    source: impl Read + 'a,
) -> io::Result<(Vec<u8>, Box<dyn BufRead + 'a>)> {
    let (start, source) = peek(buffered(source), Compression::START_BYTES)?;
    let plain = decoder(Compression::of(&start), source)?;
    let (start, plain) = peek(plain, PEEK_BYTES)?;
    Ok((start, Box::new(plain)))
}

/// Up to so many bytes of the start, and all of it.
fn peek<R: BufRead>(mut reader: R, bytes: usize) -> io::Result<(Vec<u8>, impl BufRead)> {
    let mut start = Vec::new();
    reader.by_ref().take(bytes as u64).read_to_end(&mut start)?;
    let all = Cursor::new(start.clone()).chain(reader);
    Ok((start, all))
}

#[cfg(feature = "compressed-logs")]
fn decoder<'a>(
    compression: Compression,
    source: impl BufRead + 'a,
) -> io::Result<Box<dyn BufRead + 'a>> {
    use bzip2::bufread::MultiBzDecoder;
    use flate2::bufread::MultiGzDecoder;
    use liblzma::bufread::XzDecoder;
    Ok(match compression {
        Compression::None => Box::new(source),
        Compression::Bzip2 => Box::new(buffered(MultiBzDecoder::new(source))),
        Compression::Gzip => Box::new(buffered(MultiGzDecoder::new(source))),
        Compression::Xz => Box::new(buffered(XzDecoder::new_multi_decoder(source))),
        Compression::Zstd => Box::new(buffered(zstd::Decoder::with_buffer(source)?)),
    })
}

#[cfg(not(feature = "compressed-logs"))]
fn decoder<'a>(
    compression: Compression,
    source: impl BufRead + 'a,
) -> io::Result<Box<dyn BufRead + 'a>> {
    if compression == Compression::None {
        return Ok(Box::new(source));
    }
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        format!(
            "compressed with {}, and this program was built without the feature `compressed-logs`",
            compression.name()
        ),
    ))
}

fn buffered<R: Read>(reader: R) -> BufReader<R> {
    BufReader::with_capacity(BUFFER_BYTES, reader)
}
