//! The other end of the connections. It gets commands, line by line, at a Unix socket, and answers once the effect of each has arrived.

use crate::play::{self, Digest};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time for sent data to be acknowledged; it takes longer if the other end's buffer is full.
const LONGEST_ARRIVAL: Duration = Duration::from_millis(150);
/// Maximum time that a peer waits for bytes that must arrive.
const LONGEST_READ: Duration = Duration::from_secs(2);
/// Pause after an action that is not acknowledged.
const PAUSE: Duration = Duration::from_millis(4);
/// Pause before an action that is to happen while the other end is in a blocking call.
const LATER: Duration = Duration::from_millis(30);

/// Returns the loopback address of a family.
pub fn loopback(is_ipv6: bool) -> IpAddr {
    match is_ipv6 {
        true => Ipv6Addr::LOCALHOST.into(),
        false => Ipv4Addr::LOCALHOST.into(),
    }
}

/// Serves all clients.
///
/// # Errors
/// The socket at `path` cannot be created.
pub fn serve(path: &Path) -> io::Result<()> {
    for told in UnixListener::bind(path)?.incoming() {
        let told = told?;
        thread::spawn(move || obey(&told));
    }
    Ok(())
}

#[derive(Default)]
struct Peer {
    listener: Option<TcpListener>,
    end: Option<TcpStream>,
    sent: usize,
    read: Digest,
}

fn obey(told: &UnixStream) {
    let mut peer = Peer::default();
    for line in BufReader::new(told).lines().map_while(Result::ok) {
        let (what, number) = line.split_once(' ').unwrap_or((&line, "0"));
        let number = number.parse().unwrap_or(0);
        let later = what.strip_prefix("later-").map(|what| (what, LATER));
        let much_later = || Some((what.strip_prefix("much-later-")?, 4 * LATER));
        if let Some((what, pause)) = later.or_else(much_later) {
            let _ = writeln!({ told }, "later");
            thread::sleep(pause);
            let _ = peer.act(what, number);
            continue;
        }
        let answer = peer.act(what, number);
        let answer = answer.unwrap_or_else(|error| play::error(error.raw_os_error().unwrap_or(0)));
        if writeln!({ told }, "{answer}").is_err() {
            return;
        }
    }
}

impl Peer {
    fn act(&mut self, what: &str, number: usize) -> io::Result<String> {
        match what {
            "listen" => {
                let listener = TcpListener::bind((loopback(number == 6), 0))?;
                let port = listener.local_addr()?.port();
                self.listener = Some(listener);
                return Ok(port.to_string());
            }
            "accept" => {
                let listener = self.listener.take().ok_or(ErrorKind::NotConnected)?;
                self.end = Some(listener.accept()?.0);
            }
            "connect4" | "connect6" => {
                let to = (loopback(what == "connect6"), number as u16);
                self.end = Some(TcpStream::connect(to)?);
            }
            "reset" => {
                let end = self.end.take().ok_or(ErrorKind::NotConnected)?;
                play::reset_on_close(end.as_raw_fd());
                drop(end);
                thread::sleep(PAUSE);
            }
            "close" => {
                self.end = None;
                thread::sleep(PAUSE);
            }
            _ => return self.use_end(what, number),
        }
        Ok(String::from("done"))
    }

    fn use_end(&mut self, what: &str, number: usize) -> io::Result<String> {
        let mut end = self.end.as_ref().ok_or(ErrorKind::NotConnected)?;
        match what {
            "send" => {
                end.set_write_timeout(Some(LONGEST_ARRIVAL))?;
                let data: Vec<u8> = (self.sent..self.sent + number).map(play::pattern).collect();
                end.write_all(&data)?;
                self.sent += number;
                arrive(end);
            }
            "shut" => {
                end.shutdown(Shutdown::Write)?;
                arrive(end);
            }
            // Reads until this many bytes have arrived since the beginning.
            "read" => {
                let due = Instant::now() + LONGEST_READ;
                let mut data = vec![0; 1 << 16];
                while self.read.len() < number {
                    let left = due.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Ok(format!("{} and no more", self.read));
                    }
                    end.set_read_timeout(Some(left))?;
                    match end.read(&mut data) {
                        Ok(0) => return Ok(format!("{} and the end", self.read)),
                        Ok(len) => self.read.add(&data[..len]),
                        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                        Err(error) => return Err(error),
                    }
                }
                return Ok(self.read.to_string());
            }
            _ => return Err(ErrorKind::InvalidInput.into()),
        }
        Ok(String::from("done"))
    }
}

/// Waits until all sent data is acknowledged, and then a little longer, until the other end's program can see it.
fn arrive(end: &TcpStream) {
    let due = Instant::now() + LONGEST_ARRIVAL;
    while play::unacknowledged(end.as_raw_fd()) && Instant::now() < due {
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(PAUSE);
}
