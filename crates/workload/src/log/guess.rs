//! Guesses a `--format` for lines in an unknown format.

use super::parse::{Parsed, Parser, address, date, number, request_line};
use super::spec::FormatSpec;
use std::collections::BTreeSet;

/// Returns a format that reads nearly all of `lines`, or `None`. If the lines have several addresses, the client is the one with the most
/// distinct values, and the first in case of a tie.
pub(super) fn format(lines: &[&[u8]]) -> Option<String> {
    let tokens: Vec<Token<'_>> = tokens(lines.first()?).collect();
    let is_client = |&at: &usize| {
        // A name can be the client only if ident, user and time follow it.
        let names = match tokens.get(at + 1..at + 4) {
            Some([ident, user, time]) => {
                ident.text == b"-" && user.text == b"-" && time.around.0 == "["
            }
            _ => false,
        };
        names || address::is_address(address::without_port(tokens[at].text))
    };
    let guesses = (0..tokens.len()).filter(is_client).filter_map(|client| {
        let format = Guess::default().format(&tokens, client)?;
        let mut parser = Parser::new(&format.parse::<FormatSpec>().ok()?);
        let (mut read, mut clients) = (0, BTreeSet::new());
        for line in lines {
            if let Ok(Parsed::Entry(entry)) = parser.parse(line) {
                read += 1;
                clients.insert(entry.client.to_vec());
            }
        }
        (10 * read >= 9 * lines.len()).then_some((clients.len(), format))
    });
    let best = guesses.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.map(|(_, format)| format)
}

/// A part of a line between blanks, or within quotes or brackets.
struct Token<'a> {
    text: &'a [u8],
    /// The quotes or brackets around the text, if any.
    around: (&'static str, &'static str),
    /// Number of blanks before it.
    blanks: usize,
}

fn tokens(line: &[u8]) -> impl Iterator<Item = Token<'_>> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let text = rest.trim_ascii_start();
        let blanks = rest.len() - text.len();
        let (around, end) = match text.first()? {
            b'"' => (("\"", "\""), b'"'),
            b'[' => (("[", "]"), b']'),
            b'(' => (("(", ")"), b')'),
            b'{' => (("{", "}"), b'}'),
            _ => (("", ""), b' '),
        };
        let inner = &text[around.0.len()..];
        let escaped = |at: usize| end == b'"' && at > 0 && inner[at - 1] == b'\\';
        let at = memchr::memchr_iter(end, inner).find(|&at| !escaped(at));
        let (text, after) = inner.split_at(at.unwrap_or(inner.len()));
        rest = after.get(around.1.len()..).unwrap_or_default();
        Some(Token {
            text,
            around,
            blanks,
        })
    })
}

/// The fields found in the tokens so far.
#[derive(Default)]
struct Guess {
    time: bool,
    request: bool,
    status: bool,
    size: bool,
}

impl Guess {
    /// Returns the format of a line with these tokens, if token number `client` is the client.
    fn format(mut self, tokens: &[Token<'_>], client: usize) -> Option<String> {
        let (mut format, mut end, mut at) = (String::new(), 0, 0);
        while let Some(token) = tokens.get(at) {
            let next = tokens.get(at + 1).map_or(&b""[..], |next| next.text);
            let names = match at == client {
                true => &["remote_addr"][..],
                false => self.names(token.text, next),
            };
            for (name, token) in names.iter().zip(&tokens[at..]) {
                let blanks = &"  "[..token.blanks.min(2)];
                let (before, after) = token.around;
                format += &format!("{blanks}{before}${name}{after}");
            }
            if names != ["_"] {
                end = format.len();
            }
            at += names.len();
        }
        if end < format.len() {
            format.replace_range(end.., "...");
        }
        (self.time && self.request).then_some(format)
    }

    /// Returns the names, in nginx's notation, of the fields in a token and perhaps in the next one.
    fn names(&mut self, text: &[u8], next: &[u8]) -> &'static [&'static str] {
        let is_time = || text.len() >= LEAST_TIME && date::any(text).is_some();
        // A date alone is not the time.
        let has_clock = text.contains(&b':') || date::unix(text).is_some();
        if !self.time && has_clock && is_time() {
            self.time = true;
            &["time_local"]
        } else if !self.time && date::day_and_time(text, next).is_some() {
            self.time = true;
            &["date", "time"]
        } else if !self.request && is_request(text) {
            self.request = true;
            &["request"]
        } else if !self.request && is_method(text) && next.contains(&b'/') {
            self.request = true;
            &["request_method", "request_uri"]
        } else if self.request && !self.status && matches!(number(text), Some(100..=599)) {
            self.status = true;
            &["status"]
        } else if self.status && !self.size && (number(text).is_some() || text == b"-") {
            self.size = true;
            &["body_bytes_sent"]
        } else {
            &["_"]
        }
    }
}

/// Length of Unix seconds, the shortest form of a time.
const LEAST_TIME: usize = 10;

fn is_request(text: &[u8]) -> bool {
    let url = request_line::parse(text).map(|(_, url)| url);
    url.is_ok_and(|url| url.starts_with(b"/") || url.starts_with(b"http"))
}

fn is_method(text: &[u8]) -> bool {
    const METHODS: [&[u8]; 7] = [
        b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS",
    ];
    METHODS.contains(&text)
}
