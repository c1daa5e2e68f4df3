//! Opens many connections to a web server through the kernel's sockets, holds them all open at the same time, and then makes one request on
//! each: `open_connections ADDRESS:PORT PATH COUNT`.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Time limit for connecting and for each read.
const TIMEOUT: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, path, count] = &arguments[..] else {
        eprintln!("usage: open_connections ADDRESS:PORT PATH COUNT");
        return ExitCode::from(2);
    };
    let (Ok(server), Ok(count)) = (server.parse(), count.parse()) else {
        eprintln!("expected ADDRESS:PORT and a number, not {server} and {count}");
        return ExitCode::from(2);
    };
    match run(server, path, count) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(server: SocketAddr, path: &str, count: usize) -> io::Result<()> {
    let started = Instant::now();
    let mut streams = Vec::with_capacity(count);
    for number in 0..count {
        let stream = TcpStream::connect_timeout(&server, TIMEOUT)
            .map_err(|error| io::Error::other(format!("connection {number}: {error}")))?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        streams.push(stream);
    }
    println!("{count} connections are open after {:?}", started.elapsed());
    let request = format!("GET {path} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\r\n");
    for stream in &mut streams {
        stream.write_all(request.as_bytes())?;
    }
    let mut lengths = Vec::new();
    for (number, stream) in streams.iter_mut().enumerate() {
        let mut response = Vec::new();
        stream
            .read_to_end(&mut response)
            .map_err(|error| io::Error::other(format!("response {number}: {error}")))?;
        if !response.starts_with(b"HTTP/1.1 200 ") {
            let text = String::from_utf8_lossy(&response[..response.len().min(100)]).into_owned();
            return Err(io::Error::other(format!("response {number}: {text:?}")));
        }
        lengths.push(response.len());
    }
    if lengths.iter().any(|len| *len != lengths[0]) {
        return Err(io::Error::other("the responses have different lengths"));
    }
    println!(
        "{count} responses of {} bytes after {:?}",
        lengths[0],
        started.elapsed()
    );
    Ok(())
}
