//! Renders ranges as the bytes that they represent.

use super::{Exchange, HEAD_BYTES, Kind, offset, remote_files, revision};
use crate::web::Program;
use baton_wire::Symbolic;
use std::io::Write;

/// Appends the bytes of `data` to `out`: HTTP that a packet analyser understands. Content is a pattern that shows its file and offset.
/// Ranges with unknown sources are zeros.
pub fn render(data: &Symbolic, out: &mut Vec<u8>) {
    let start = offset(data);
    let range = start..start + u64::from(data.len);
    match Exchange::of(data.source) {
        None => out.resize(out.len() + data.len as usize, 0),
        Some(exchange) => match exchange.kind {
            Kind::Request => out.extend_from_slice(&request_text(exchange)[index(&range)]),
            Kind::Head => out.extend_from_slice(&head_text(exchange)[index(&range)]),
            Kind::ReadCall | Kind::WriteCall => {
                let data_len = match exchange.kind {
                    Kind::WriteCall => exchange.content_len as u32,
                    _ => 0,
                };
                out.extend_from_slice(&record(exchange.request_len(), data_len)[index(&range)]);
            }
            Kind::Reply => {
                let header_len = remote_files::reply_len(exchange.content_len);
                let header = record(header_len, exchange.content_len as u32);
                out.extend_from_slice(&header[index(&range)]);
            }
            Kind::File | Kind::Dynamic | Kind::Upload => {
                let revision = revision(data);
                out.extend(range.map(|offset| content_byte(exchange.file, revision, offset)));
            }
        },
    }
}

fn index(range: &std::ops::Range<u64>) -> std::ops::Range<usize> {
    range.start as usize..range.end as usize
}

/// Returns a byte of a repeated line of 32 bytes: file, offset of the line, revision if the file was changed, end of line.
fn content_byte(file: u32, revision: u32, offset: u64) -> u8 {
    let hex = |value: u64, digit: u64| b"0123456789abcdef"[(value >> (4 * digit)) as usize & 15];
    let line = offset / 32 * 32;
    match offset % 32 {
        column @ 0..8 => hex(u64::from(file), 7 - column),
        8 => b'@',
        column @ 9..25 => hex(line, 24 - column),
        31 => b'\n',
        column @ 25..31 if revision > 0 => hex(u64::from(revision), 30 - column),
        _ => b'.',
    }
}

/// Returns a record's mark, followed by zeros for the rest of its header (RFC 5531 section 11).
fn record(header_len: u32, data_len: u32) -> Vec<u8> {
    const LAST_FRAGMENT: u32 = 1 << 31;
    const MARK_BYTES: u32 = 4;
    let mark = LAST_FRAGMENT | (header_len - MARK_BYTES + data_len);
    let mut header = mark.to_be_bytes().to_vec();
    header.resize(header_len as usize, 0);
    header
}

fn request_text(exchange: Exchange) -> Vec<u8> {
    let Exchange {
        file,
        content_len,
        program,
        last,
        ..
    } = exchange;
    let (method, name) = match program {
        None => ("GET", "file"),
        Some(Program::Answer) => ("GET", "dynamic"),
        Some(Program::Page) => ("GET", "page"),
        Some(Program::Cgi) => ("GET", "cgi-bin"),
        Some(Program::Advertisement) => ("GET", "advertisement"),
        Some(Program::Post) => ("POST", "form"),
    };
    let form_len = exchange.form_len() as usize;
    let mut text = Vec::new();
    let mut written = write!(
        text,
        "{method} /{name}/{file}?bytes={content_len} HTTP/1.1\r\nHost: server.example\r\nUser-Agent: baton\r\nAccept: */*\r\n"
    );
    if form_len > 0 {
        written = written.and_then(|()| write!(text, "Content-Length: {form_len}\r\n"));
    }
    if last {
        written = written.and_then(|()| text.write_all(b"Connection: close\r\n"));
    }
    debug_assert!(written.is_ok(), "writing to a vector does not fail");
    pad_header(&mut text, exchange.request_len() as usize - form_len);
    text.resize(exchange.request_len() as usize, b'f');
    text
}

fn head_text(exchange: Exchange) -> Vec<u8> {
    let Exchange {
        content_len,
        program,
        last,
        ..
    } = exchange;
    let kind = match program {
        Some(_) => "text/html",
        None => "application/octet-stream",
    };
    let connection = if last { "close" } else { "keep-alive" };
    let mut text = Vec::new();
    let written = write!(
        text,
        "HTTP/1.1 200 OK\r\nServer: baton\r\nContent-Type: {kind}\r\nContent-Length: {content_len}\r\nConnection: {connection}\r\n"
    );
    debug_assert!(written.is_ok(), "writing to a vector does not fail");
    pad_header(&mut text, HEAD_BYTES as usize);
    text
}

/// Extends a header to exactly `len` bytes with a meaningless field.
fn pad_header(text: &mut Vec<u8>, len: usize) {
    text.extend_from_slice(b"X-Padding: ");
    debug_assert!(text.len() + 4 <= len, "the header has space for its end");
    text.resize(len - 4, b'x');
    text.extend_from_slice(b"\r\n\r\n");
}
