//! Dialogues: tests in text files. Each line either does something or says what must have happened.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt::{Debug, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::str::FromStr;

/// A player of dialogues.
pub trait Play: Default {
    /// Plays one line, given as words.
    ///
    /// # Errors
    /// What is expected did not happen, or the line has no meaning.
    fn line(&mut self, words: &[&str]) -> Result<(), String>;

    /// Checks that nothing unexpected remains.
    ///
    /// # Errors
    /// Something remains.
    fn end(&mut self) -> Result<(), String>;
}

/// Plays all dialogues of a file below a crate's folder, each with a new player. A dialogue begins with a line `== NAME`; lines that begin with `#` are comments;
/// ` ; ` separates lines, such as a request and its answer. After `let NAME TEXT`, the name stands for the text in the rest of the dialogue. `for ITEMS : LINE`
/// is the line with each item in place of `{}`; ` | ` separates items, and `FROM..TO` stands for numbers.
///
/// # Panics
/// If the file cannot be read, or dialogues fail; each is reported with the line where it does.
pub fn play_dialogues<P: Play>(folder: &str, file: &str) {
    let text = std::fs::read_to_string(Path::new(folder).join(file));
    let text = text.unwrap_or_else(|error| panic!("{file}: {error}"));
    let lines: Vec<(usize, &str)> = (1..).zip(text.lines().map(str::trim)).collect();
    let of_dialogues = lines.split(|(_, line)| line.starts_with("== ")).skip(1);
    let (mut count, mut failures) = (0, String::new());
    for lines in of_dialogues {
        count += 1;
        let at = Cell::new((0, ""));
        let play = || {
            let (mut player, mut texts) = (P::default(), Vec::new());
            for &(number, line) in lines {
                if !line.is_empty() && !line.starts_with('#') {
                    at.set((number, line));
                    for part in expanded(line, &mut texts)? {
                        let words: Vec<&str> = part.split_whitespace().collect();
                        let outcome = player.line(&words);
                        outcome.map_err(|error| format!("{error}\n    in `{part}`"))?;
                    }
                }
            }
            player.end()
        };
        let outcome = catch_unwind(AssertUnwindSafe(play));
        let outcome = outcome.unwrap_or_else(|_| Err("the panic above".to_owned()));
        if let Err(message) = outcome {
            let (number, line) = at.get();
            let failure = writeln!(failures, "{file}:{number}: {line}\n    {message}");
            failure.expect("a string can be written");
        }
    }
    assert!(count > 0, "{file} has dialogues");
    assert!(failures.is_empty(), "of {count} dialogues:\n{failures}");
}

/// Returns the lines that a line stands for, with names replaced by their texts.
fn expanded(line: &str, texts: &mut Vec<(String, String)>) -> Result<Vec<String>, String> {
    let line = (texts.iter()).fold(line.to_owned(), |line, (name, text)| {
        line.replace(name, text)
    });
    if let Some(named) = line.strip_prefix("let ") {
        let (name, text) = named.split_once(' ').ok_or("expected a text")?;
        texts.push((name.to_owned(), text.to_owned()));
        return Ok(Vec::new());
    }
    let Some(rest) = line.strip_prefix("for ") else {
        return Ok(line.split(" ; ").map(str::to_owned).collect());
    };
    let (items, line) = rest
        .split_once(" : ")
        .ok_or("expected `for ITEMS : LINE`")?;
    let range = items
        .split_once("..")
        .map(|(from, to)| (from.parse::<u64>(), to.parse()));
    let items: Vec<String> = match range {
        Some((Ok(from), Ok(to))) => (from..to).map(|item| item.to_string()).collect(),
        _ => items
            .split(" | ")
            .map(|item| item.trim().to_owned())
            .collect(),
    };
    let lines = items.iter().flat_map(|item| {
        let line = line.replace("{}", item);
        line.split(" ; ").map(str::to_owned).collect::<Vec<_>>()
    });
    Ok(lines.collect())
}

/// Removes the last word if it is `xN`; returns the other words, and N or 1.
pub fn repeated<'a, 'b>(words: &'a [&'b str]) -> (&'a [&'b str], usize) {
    let times = |last: &&str| last.strip_prefix('x')?.parse().ok();
    match words.split_last() {
        Some((last, others)) => times(last).map_or((words, 1), |times| (others, times)),
        None => (words, 1),
    }
}

/// Compares the first statement with the expected one, and removes it.
///
/// # Errors
/// It differs, or there is none.
pub fn next_is(said: &mut VecDeque<String>, expected: &[&str]) -> Result<(), String> {
    let expected = expected.join(" ");
    match said.pop_front() {
        Some(got) if got == expected => Ok(()),
        Some(got) => Err(format!("expected `{expected}`, got `{got}`, then {said:?}")),
        None => Err(format!("expected `{expected}`, got nothing")),
    }
}

/// Compares a value with the expected one.
///
/// # Errors
/// They differ.
pub fn same<T: PartialEq + Debug + ?Sized>(expected: &T, got: &T) -> Result<(), String> {
    match expected == got {
        true => Ok(()),
        false => Err(format!("expected {expected:?}, got {got:?}")),
    }
}

/// Parses a number or another value.
///
/// # Errors
/// The text is something else.
pub fn value<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is not a {}", std::any::type_name::<T>()))
}

/// Declares tests, each of which plays `tests/$folder/NAME.dialogue` of the crate with the player.
#[macro_export]
macro_rules! dialogues {
    ($Player:ty, $folder:literal: $($name:ident),+ $(,)?) => {$(
        #[test]
        fn $name() {
            $crate::dialogue::play_dialogues::<$Player>(
                env!("CARGO_MANIFEST_DIR"),
                concat!("tests/", $folder, "/", stringify!($name), ".dialogue"),
            );
        }
    )+};
}
