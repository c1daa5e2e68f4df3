//! Messages about arguments that cannot be read.

use super::Cli;
use clap::CommandFactory;
use clap::error::{ContextKind, Error, ErrorKind};
use std::error::Error as _;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};

/// Returns the error with a message in plain words if a number was expected, and unchanged otherwise.
pub fn explain(error: Error) -> Error {
    let expected = error.source().and_then(|source| {
        if source.is::<ParseFloatError>() {
            return Some("expected a number, as in 2.5");
        }
        let number: &ParseIntError = source.downcast_ref()?;
        Some(match number.kind() {
            IntErrorKind::Zero => "expected a whole number of at least 1",
            IntErrorKind::PosOverflow => "the number is too large",
            _ => "expected a whole number of at least 0",
        })
    });
    let said = |kind| error.get(kind).map(ToString::to_string);
    let context = (
        said(ContextKind::InvalidArg),
        said(ContextKind::InvalidValue),
    );
    let (Some(expected), (Some(argument), Some(value))) = (expected, context) else {
        return error;
    };
    let message = format!("invalid value '{value}' for '{argument}': {expected}");
    Cli::command().error(ErrorKind::ValueValidation, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn numbers_are_refused_in_plain_words() {
        let refused = |line: &str| {
            let error = Cli::try_parse_from(line.split(' ')).expect_err("cannot be read");
            explain(error).to_string()
        };
        for (line, expected) in [
            (
                "baton demo --seed abc",
                "'--seed <N>': expected a whole number of at least 0",
            ),
            (
                "baton demo --seed -1",
                "expected a whole number of at least 0",
            ),
            (
                "baton demo --threads 0",
                "expected a whole number of at least 1",
            ),
            (
                "baton demo --threads -1",
                "expected a whole number of at least 0",
            ),
            ("baton run x --seconds long", "expected a number"),
            (
                "baton demo --seed 99999999999999999999",
                "the number is too large",
            ),
        ] {
            let message = refused(line);
            assert!(message.contains(expected), "{line}: {message}");
        }
        assert!(refused("baton demo --sede 1").contains("--seed"));
    }
}
