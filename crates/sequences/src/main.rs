//! The programs that the comparison of sequences runs: `peer SOCKET`, and `play SOCKET` with sequences as input.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["peer", path] => baton_sequences::peer::serve(Path::new(path)),
        ["play", path] => baton_sequences::play::all(Path::new(path)),
        _ => {
            eprintln!("expected: peer SOCKET, or play SOCKET with sequences as input, one a line");
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
