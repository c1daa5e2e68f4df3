//! The programs that the comparison of sequences runs: `peer SOCKET`, and `play SOCKET NUMBER` with sequences as input. A
//! sequence starts `act FD WHAT BYTE`, which exits with the result of one call.

use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = arguments.get(2).and_then(|text| text.parse().ok());
    let done = match (&arguments[..], number) {
        (["peer", path], _) => baton_sequences::peer::serve(Path::new(path)),
        (["play", path, _], Some(at_once)) => {
            baton_sequences::play::all(Path::new(path), NonZeroUsize::get(at_once))
        }
        (["act", fd, what, byte], _) => return act(fd, what, byte).unwrap_or(ExitCode::from(99)),
        _ => {
            eprintln!(
                "expected: peer SOCKET, or play SOCKET NUMBER with sequences as input, one a line, of which NUMBER run at a time"
            );
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn act(fd: &str, what: &str, byte: &str) -> Option<ExitCode> {
    let (fd, what, byte) = (fd.parse().ok()?, what.parse().ok()?, byte.parse().ok()?);
    Some(ExitCode::from(
        baton_sequences::play::act(fd, what, byte) as u8
    ))
}
