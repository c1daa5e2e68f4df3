//! Decompression, told by content.

use super::format::Compression;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

const BUFFER_BYTES: usize = 256 << 10;

/// The source with the bytes that were read to tell its compression put back in front.
type Rejoined<R> = Chain<Cursor<Vec<u8>>, R>;

/// Wraps `source` so that it yields plain text, and says what it was compressed with.
pub(super) fn decompress<'a>(
    mut source: impl Read + 'a,
) -> io::Result<(Box<dyn BufRead + 'a>, Compression)> {
    let mut magic = Vec::with_capacity(6);
    source.by_ref().take(6).read_to_end(&mut magic)?;
    let compression = Compression::of(&magic);
    let rejoined: Rejoined<_> = Cursor::new(magic).chain(source);
    let reader: Box<dyn BufRead + 'a> = match compression {
        Compression::None => Box::new(buffered(rejoined)),
        Compression::Gzip => Box::new(buffered(flate2::bufread::MultiGzDecoder::new(buffered(
            rejoined,
        )))),
        Compression::Xz => Box::new(buffered(liblzma::bufread::XzDecoder::new_multi_decoder(
            buffered(rejoined),
        ))),
        Compression::Zstd => Box::new(buffered(zstd::Decoder::with_buffer(buffered(rejoined))?)),
    };
    Ok((reader, compression))
}

fn buffered<R: Read>(reader: R) -> BufReader<R> {
    BufReader::with_capacity(BUFFER_BYTES, reader)
}
