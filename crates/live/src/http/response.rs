//! The client's side: parses a response.

use super::body::{BodyReader, Framing};
use super::request::content_length;
use bytes::{Buf, Bytes, BytesMut};

/// Maximum length of a response's header in bytes.
const LONGEST_HEAD: usize = 64 * 1024;
/// Maximum number of header fields of a response.
const MOST_FIELDS: usize = 100;

/// A parsed response header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// Status code.
    pub code: u16,
    /// Reason phrase.
    pub phrase: String,
    /// The framing of the body.
    pub framing: Framing,
    /// The Location field.
    pub location: Option<String>,
}

/// The error of an invalid response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadResponse {
    /// The data is not an HTTP/1 response.
    #[error("the answer is not an HTTP/1 response: {0}")]
    Malformed(String),
    /// The header is too long.
    #[error("the header of the response has more than {LONGEST_HEAD} bytes")]
    TooLong,
    /// The connection ended too early.
    #[error(
        "the connection ended after {received} bytes of content, before the response was complete"
    )]
    CutOff {
        /// Number of content bytes received.
        received: u64,
    },
}

/// Parses one response.
#[derive(Debug)]
pub struct ResponseReader {
    /// Whether the request was HEAD: the response has no body, whatever its header says.
    without_body: bool,
    text: BytesMut,
    head: Option<ResponseHead>,
    body: Option<BodyReader>,
    received: u64,
}

impl ResponseReader {
    /// Creates a reader of the response to a request, which was HEAD if `without_body` is set.
    pub fn new(without_body: bool) -> Self {
        Self {
            without_body,
            text: BytesMut::new(),
            head: None,
            body: None,
            received: 0,
        }
    }

    /// Returns the header once it is complete. Interim responses are skipped.
    pub fn head(&self) -> Option<&ResponseHead> {
        self.head.as_ref()
    }

    /// Returns the number of content bytes received so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Returns whether the response is complete.
    pub fn is_complete(&self) -> bool {
        self.body.as_ref().is_some_and(BodyReader::is_complete)
    }

    /// Processes received data and passes the content in it to `content`. Data after a complete response is ignored.
    ///
    /// # Errors
    /// The data is not a valid response.
    pub fn handle_data(
        &mut self,
        mut data: Bytes,
        mut content: impl FnMut(Bytes),
    ) -> Result<(), BadResponse> {
        while self.body.is_none() {
            if data.is_empty() && self.text.is_empty() {
                return Ok(());
            }
            self.text.extend_from_slice(&data);
            data.clear();
            if !self.read_head()? {
                return Ok(());
            }
            data = self.text.split().freeze();
        }
        let Some(body) = &mut self.body else {
            return Ok(());
        };
        let malformed = |error: super::BadBody| BadResponse::Malformed(error.to_string());
        while let Some(run) = body.take(&mut data).map_err(malformed)? {
            self.received += run.len() as u64;
            content(run);
        }
        Ok(())
    }

    /// Handles the end of the connection.
    ///
    /// # Errors
    /// The response is incomplete.
    pub fn handle_end(&self) -> Result<(), BadResponse> {
        match &self.body {
            Some(body) if body.may_end() => Ok(()),
            _ => Err(BadResponse::CutOff {
                received: self.received,
            }),
        }
    }

    /// Parses the header at the front of the text and removes it. Returns false if more data is needed.
    fn read_head(&mut self) -> Result<bool, BadResponse> {
        let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
        let mut response = httparse::Response::new(&mut fields);
        let len = match response.parse(&self.text) {
            Ok(httparse::Status::Complete(len)) => len,
            Ok(httparse::Status::Partial) if self.text.len() < LONGEST_HEAD => return Ok(false),
            Ok(httparse::Status::Partial) => return Err(BadResponse::TooLong),
            Err(error) => return Err(BadResponse::Malformed(error.to_string())),
        };
        let code = response.code.unwrap_or_default();
        let field = |name: &str| {
            let mut fields = response.headers.iter();
            let field = fields.find(|field| field.name.eq_ignore_ascii_case(name))?;
            Some(field.value)
        };
        let framing = framing(code, self.without_body, field)?;
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let head = ResponseHead {
            code,
            phrase: response.reason.unwrap_or_default().to_owned(),
            framing,
            location: field("location").map(text),
        };
        self.text.advance(len);
        // RFC 9110 15.2: the final response follows.
        if (100..200).contains(&code) {
            return Ok(!self.text.is_empty());
        }
        self.body = Some(BodyReader::new(framing));
        self.head = Some(head);
        Ok(true)
    }
}

/// RFC 9112 6.3.
fn framing<'a>(
    code: u16,
    without_body: bool,
    field: impl Fn(&str) -> Option<&'a [u8]>,
) -> Result<Framing, BadResponse> {
    if without_body || (100..200).contains(&code) || code == 204 || code == 304 {
        return Ok(Framing::Length(0));
    }
    if let Some(coding) = field("transfer-encoding") {
        if coding.eq_ignore_ascii_case(b"chunked") {
            return Ok(Framing::Chunked);
        }
        let coding = String::from_utf8_lossy(coding);
        return Err(BadResponse::Malformed(format!(
            "the transfer coding is {coding}, which is unknown"
        )));
    }
    match field("content-length") {
        None => Ok(Framing::UntilClose),
        Some(value) => content_length(value).map(Framing::Length).ok_or_else(|| {
            let value = String::from_utf8_lossy(value);
            BadResponse::Malformed(format!("the content length is {value}"))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8], piece: usize) -> (ResponseReader, Vec<u8>) {
        let mut reader = ResponseReader::new(false);
        let mut content = Vec::new();
        for piece in text.chunks(piece) {
            reader
                .handle_data(Bytes::copy_from_slice(piece), |run| {
                    content.extend_from_slice(&run)
                })
                .expect("a response");
        }
        (reader, content)
    }

    #[test]
    fn a_response_is_read_in_pieces_of_any_size() {
        let counted = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345";
        let chunked =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n\r\n";
        let interim = format!("HTTP/1.1 100 Continue\r\n\r\n{counted}");
        for text in [counted, chunked, &interim] {
            for piece in 1..text.len() + 1 {
                let (reader, content) = read(text.as_bytes(), piece);
                assert!(reader.is_complete(), "{text} in pieces of {piece}");
                assert_eq!(content, b"12345");
                assert_eq!(reader.head().map(|head| head.code), Some(200));
            }
        }
    }

    #[test]
    fn an_early_end_is_noticed() {
        let (reader, _) = read(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n123", 1000);
        assert_eq!(
            reader.handle_end(),
            Err(BadResponse::CutOff { received: 3 })
        );
        let (reader, _) = read(b"HTTP/1.1 200 OK\r\n\r\n123", 1000);
        assert!(!reader.is_complete());
        assert_eq!(reader.handle_end(), Ok(()));
        let (reader, _) = read(b"HTTP/1.1 200", 1000);
        assert!(reader.handle_end().is_err());
    }

    #[test]
    fn malformed_responses_are_refused() {
        for text in [
            "SSH-2.0-OpenSSH\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        ] {
            let mut reader = ResponseReader::new(false);
            let outcome = reader.handle_data(Bytes::from(text), |_| {});
            assert!(outcome.is_err(), "{text}");
        }
    }
}
