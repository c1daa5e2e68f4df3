//! A client on an engine, which fetches one file.

use crate::engine::Application;
use crate::http::{BadResponse, Framing, ResponseReader};
use baton_inet::Host;
use baton_tcp::{CloseReason, ConnId, Event};
use baton_wire::{Endpoint, Flow, Time};
use bytes::Bytes;
use std::io::{self, Write};
use std::net::IpAddr;
use std::str::FromStr;

/// First port of the range from which connections are opened (RFC 6335 6).
const FIRST_LOCAL_PORT: u16 = 49_152;

/// A file and the server to fetch it from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Endpoint of the server.
    pub remote: Endpoint,
    /// The server as written in the URL.
    pub authority: String,
    /// Path and query.
    pub target: String,
}

/// The reason why a text is not a URL that can be fetched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// The scheme is not `http`.
    #[error("expected a URL that starts with http://")]
    Scheme,
    /// The host is a name instead of an address.
    #[error(
        "{0:?} is not an address, and names are not looked up: expected an address such as 10.9.0.1 or [fd00::1]"
    )]
    NotAnAddress(String),
    /// The port is invalid.
    #[error("{0:?} is not a port: expected 1 to 65535")]
    BadPort(String),
    /// The path contains something that is not allowed in a request.
    #[error(
        "the path contains spaces, control characters or characters outside ASCII; percent-encode them (%20 for a space)"
    )]
    BadPath,
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let rest = text.strip_prefix("http://").ok_or(UrlError::Scheme)?;
        let rest = rest.split('#').next().unwrap_or(rest);
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if path.contains(|letter: char| letter.is_control() || letter == ' ' || !letter.is_ascii())
        {
            return Err(UrlError::BadPath);
        }
        let target = match path.chars().next() {
            Some('/') => path.to_owned(),
            _ => format!("/{path}"),
        };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, Some(port)),
            _ => (authority, None),
        };
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        let addr: IpAddr = bare
            .parse()
            .map_err(|_| UrlError::NotAnAddress(host.to_owned()))?;
        let port = match port {
            None => 80,
            Some(port) => port
                .parse()
                .ok()
                .filter(|&port| port > 0)
                .ok_or_else(|| UrlError::BadPort(port.to_owned()))?,
        };
        Ok(Self {
            remote: Endpoint::new(addr, port),
            authority: authority.to_owned(),
            target,
        })
    }
}

/// The reason why a file was not fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The engine has no route to the server.
    #[error("no route to {0}; give the engine an address of that network, or a gateway")]
    NoRoute(IpAddr),
    /// All local ports have connections to the server, or had one within the last minute.
    #[error("no port is free for another connection to {0}")]
    NoPort(Endpoint),
    /// The connection could not be opened.
    #[error("cannot connect to {remote}: {reason}{}", advice(*reason))]
    NotConnected {
        /// Endpoint of the server.
        remote: Endpoint,
        /// The reason.
        reason: CloseReason,
    },
    /// The connection broke.
    #[error("the connection broke after {received} bytes of content: {reason}")]
    Broken {
        /// The reason.
        reason: CloseReason,
        /// Number of content bytes received before.
        received: u64,
    },
    /// The server refused the request.
    #[error("the server answered {code} {phrase}{}", location.as_ref().map_or(String::new(), |l| format!(" (it is at {l})")))]
    Refused {
        /// Status code.
        code: u16,
        /// Reason phrase.
        phrase: String,
        /// Location that the server gave instead.
        location: Option<String>,
    },
    /// The response is malformed or cut off.
    #[error(transparent)]
    Response(#[from] BadResponse),
    /// The content could not be written.
    #[error("cannot write the content: {0}")]
    Output(io::Error),
}

/// Returns advice for a connection that could not be opened.
fn advice(reason: CloseReason) -> &'static str {
    match reason {
        CloseReason::Refused => "; start a server there, or name another port",
        CloseReason::Unreachable(_) | CloseReason::TimedOut => {
            "; check that the server has this address and is on this link"
        }
        _ => "",
    }
}

/// One GET over one connection.
pub struct Fetch<W> {
    url: Url,
    out: W,
    conn: Option<ConnId>,
    connected: bool,
    reader: ResponseReader,
    /// The part of the request that the socket has not accepted yet.
    request: Bytes,
    outcome: Option<Result<(), FetchError>>,
}

impl<W: Write> Fetch<W> {
    /// Opens a connection; the content is written to `out`. `random` selects the local port.
    ///
    /// # Errors
    /// There is no route to the server, or no port is free.
    pub fn start(
        url: Url,
        out: W,
        random: u64,
        now: Time,
        host: &mut Host,
    ) -> Result<Self, FetchError> {
        let remote = url.remote;
        let source = host.interface().source_for(remote.addr);
        let source = source.ok_or(FetchError::NoRoute(remote.addr))?;
        let conn = connect(source, remote, random, now, host).ok_or(FetchError::NoPort(remote))?;
        let request = format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: baton\r\nAccept: */*\r\nConnection: close\r\n\r\n",
            url.target, url.authority
        );
        Ok(Self {
            url,
            out,
            conn: Some(conn),
            connected: false,
            reader: ResponseReader::new(false),
            request: request.into(),
            outcome: None,
        })
    }

    /// Returns the number of content bytes received so far.
    pub fn received(&self) -> u64 {
        self.reader.received()
    }

    /// Returns the number of content bytes of the whole response, once the server has announced it.
    pub fn expected(&self) -> Option<u64> {
        match self.reader.head()?.framing {
            Framing::Length(len) => Some(len),
            Framing::Chunked | Framing::UntilClose => None,
        }
    }

    /// Returns the outcome once the fetch has finished; the connection may still be closing.
    pub fn outcome(&mut self) -> Option<Result<(), FetchError>> {
        self.outcome.take()
    }

    /// Returns the writer.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn read(&mut self, conn: ConnId, host: &mut Host) -> Result<(), FetchError> {
        let Self { reader, out, .. } = self;
        while let Some(data) = host.stack_mut().read(conn, usize::MAX) {
            host.stack_mut().consume(conn, data.len());
            let mut written = Ok(());
            let mut pieces = smallvec::SmallVec::<[Bytes; 4]>::new();
            reader.handle_data(data, |content| pieces.push(content))?;
            refuse_errors(reader)?;
            for piece in pieces {
                written = written.and_then(|()| out.write_all(&piece));
            }
            written.map_err(FetchError::Output)?;
        }
        if !reader.is_complete() && host.stack().peer_closed(conn) {
            reader.handle_end()?;
            self.finish(conn, host, Ok(()));
        } else if reader.is_complete() {
            self.finish(conn, host, Ok(()));
        }
        Ok(())
    }

    fn finish(&mut self, conn: ConnId, host: &mut Host, outcome: Result<(), FetchError>) {
        if self.outcome.is_none() {
            host.stack_mut().close(conn);
            self.outcome = Some(outcome);
            self.conn = None;
        }
    }

    fn closed(&mut self, reason: CloseReason) {
        self.conn = None;
        if self.outcome.is_some() {
            return;
        }
        self.outcome = Some(if !self.connected {
            let remote = self.url.remote;
            Err(FetchError::NotConnected { remote, reason })
        } else if reason == CloseReason::Normal {
            self.reader.handle_end().map_err(FetchError::from)
        } else {
            let received = self.reader.received();
            Err(FetchError::Broken { reason, received })
        });
    }

    fn send_request(&mut self, conn: ConnId, host: &mut Host) {
        // A request is shorter than any send buffer, so the socket accepts it as a whole, unless the connection has just ended.
        let taken = host.stack_mut().write(conn, self.request.clone());
        let taken = taken.unwrap_or_default();
        self.request = self.request.slice(taken..);
    }
}

/// Opens a connection from a port of the dynamic range: the port that `random` selects, or the next free one.
fn connect(
    source: IpAddr,
    remote: Endpoint,
    random: u64,
    now: Time,
    host: &mut Host,
) -> Option<ConnId> {
    let ports = u64::from(u16::MAX - FIRST_LOCAL_PORT) + 1;
    (0..ports).find_map(|step| {
        let port = FIRST_LOCAL_PORT + (random.wrapping_add(step) % ports) as u16;
        let local = Endpoint::new(source, port);
        host.stack_mut().connect(now, Flow { local, remote })
    })
}

fn refuse_errors(reader: &ResponseReader) -> Result<(), FetchError> {
    match reader.head() {
        Some(head) if !(200..300).contains(&head.code) => Err(FetchError::Refused {
            code: head.code,
            phrase: head.phrase.clone(),
            location: head.location.clone(),
        }),
        _ => Ok(()),
    }
}

impl<W: Write> Application for Fetch<W> {
    fn handle(&mut self, _now: Time, host: &mut Host) {
        while let Some((id, event)) = host.stack_mut().poll_event() {
            let Some(conn) = self.conn.filter(|&conn| conn == id) else {
                continue;
            };
            match event {
                Event::Connected => {
                    self.connected = true;
                    self.send_request(conn, host);
                }
                Event::Readable | Event::PeerClosed => {
                    if let Err(error) = self.read(conn, host) {
                        self.finish(conn, host, Err(error));
                    }
                }
                Event::Closed(reason) => self.closed(reason),
                Event::Acknowledged(_)
                | Event::Acceptable(_)
                | Event::Urgent
                | Event::TransmitTimes => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_a_server_and_a_target() {
        for (text, remote, target) in [
            ("http://10.9.0.1", "10.9.0.1:80", "/"),
            (
                "http://10.9.0.1:8080/a/b?c=d#e",
                "10.9.0.1:8080",
                "/a/b?c=d",
            ),
            ("http://10.9.0.1?c", "10.9.0.1:80", "/?c"),
            ("http://[fd00::1]/x", "[fd00::1]:80", "/x"),
            ("http://[fd00::1]:81/x", "[fd00::1]:81", "/x"),
        ] {
            let url: Url = text.parse().expect(text);
            assert_eq!(url.remote.to_string(), remote);
            assert_eq!(url.target, target);
        }
    }

    #[test]
    fn invalid_urls_are_refused_with_a_reason() {
        for (text, reason) in [
            ("https://10.9.0.1/", "starts with http://"),
            ("http://localhost/", "names are not looked up"),
            ("http:///x", "is not an address"),
            ("http://10.9.0.1:0/", "is not a port"),
            ("http://10.9.0.1:x/", "is not a port"),
            ("http://10.9.0.1/a b", "%20"),
        ] {
            let error = text.parse::<Url>().expect_err(text);
            assert!(error.to_string().contains(reason), "{text}: {error}");
        }
    }
}
