//! Decompression, told by content.

use super::format::Compression;
use std::io::{self, BufRead, BufReader, Cursor, Read};

const BUFFER_BYTES: usize = 256 << 10;

/// Wraps `source` so that it yields plain text, and says what it was compressed with.
pub(super) fn decompress<'a>(
    mut source: impl Read + 'a,
) -> io::Result<(Box<dyn BufRead + 'a>, Compression)> {
    let mut magic = Vec::with_capacity(6);
    source.by_ref().take(6).read_to_end(&mut magic)?;
    let compression = Compression::of(&magic);
    // What was read to tell the compression is put back in front.
    let rejoined = buffered(Cursor::new(magic).chain(source));
    Ok((decoder(compression, rejoined)?, compression))
}

#[cfg(feature = "compressed-logs")]
fn decoder<'a>(
    compression: Compression,
    source: impl BufRead + 'a,
) -> io::Result<Box<dyn BufRead + 'a>> {
    use flate2::bufread::MultiGzDecoder;
    use liblzma::bufread::XzDecoder;
    Ok(match compression {
        Compression::None => Box::new(source),
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
    let name = match compression {
        Compression::None => return Ok(Box::new(source)),
        Compression::Gzip => "gzip",
        Compression::Xz => "xz",
        Compression::Zstd => "Zstandard",
    };
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        format!(
            "compressed with {name}, and this program was built without the feature `compressed-logs`"
        ),
    ))
}

fn buffered<R: Read>(reader: R) -> BufReader<R> {
    BufReader::with_capacity(BUFFER_BYTES, reader)
}
