//! Opening and decompression of files. The path `-` is standard input.

use super::compression::Compression;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

const BUFFER_BYTES: usize = 256 << 10;
/// Size of the prefix that determines the type of a file; larger than any record of a capture.
const PEEK_BYTES: usize = 96 << 10;

/// Opens the file at `path`.
pub(crate) fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    if path == Path::new("-") {
        Ok(Box::new(standard_input()?))
    } else {
        Ok(Box::new(File::open(path)?))
    }
}

/// Content of standard input, once it has been read.
static KEPT: Mutex<Option<&[u8]>> = Mutex::new(None);

/// Sets the content of standard input, for programs that have none, as in a browser. Replaces any previous content.
pub fn give_standard_input(all: Vec<u8>) {
    *KEPT.lock().unwrap_or_else(PoisonError::into_inner) = Some(all.leak());
}

/// Returns the whole content of standard input, which is cached so that several runs can read it.
///
/// # Errors
/// Standard input cannot be read.
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

/// Returns the decompressed content of a file, or `None` if it has more than `most` bytes.
///
/// # Errors
/// The file cannot be read or decompressed.
pub fn content(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut all = Vec::new();
    let (_, content) = decompress(open(path)?)?;
    content.take(most + 1).read_to_end(&mut all)?;
    Ok((all.len() as u64 <= most).then_some(all))
}

/// Returns the start of the decompressed content of `source`, and a reader of all of it.
pub(crate) fn decompress<'a>(
    source: impl Read + 'a,
) -> io::Result<(Vec<u8>, Box<dyn BufRead + 'a>)> {
    let (start, source) = peek(buffered(source), Compression::START_BYTES)?;
    let plain = decoder(Compression::of(&start), source)?;
    let (start, plain) = peek(plain, PEEK_BYTES)?;
    Ok((start, Box::new(plain)))
}

/// Returns up to `bytes` bytes from the start, and a reader of everything including the start.
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
