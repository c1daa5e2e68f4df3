//! Sources of values, and errors that point to them.

use std::fmt;
use std::ops::Range;

/// Kinds of texts that hold values. Later kinds override earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The program's own defaults, which have no text.
    Default,
    /// A machine: a file, or part of the program.
    Profile,
    /// An experiment file.
    File,
    /// The experiment file that a shorthand stands for; named by the shorthand.
    Shorthand,
    /// A flag of the command line, such as `--set nic.mips=600`.
    Flag,
}

/// A text that holds values.
#[derive(Clone, Debug)]
pub struct Source {
    /// Kind of the text.
    pub kind: Kind,
    /// Name in errors.
    pub name: String,
    /// The text itself.
    pub text: String,
}

/// A place in one of the [`Sources`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    source: usize,
    span: Range<usize>,
}

/// All texts read so far. The first stands for the program's defaults.
#[derive(Clone, Debug)]
pub struct Sources(Vec<Source>);

impl Sources {
    /// Creates a collection that holds only the defaults.
    pub fn new() -> Self {
        Self(vec![Source {
            kind: Kind::Default,
            name: "built-in default".to_owned(),
            text: String::new(),
        }])
    }

    /// Returns the origin of the program's defaults.
    pub const fn default_origin() -> Origin {
        Origin {
            source: 0,
            span: 0..0,
        }
    }

    /// Adds a text and returns its number, for [`Self::at`].
    pub fn add(&mut self, kind: Kind, name: impl Into<String>, text: impl Into<String>) -> usize {
        self.0.push(Source {
            kind,
            name: name.into(),
            text: text.into(),
        });
        self.0.len() - 1
    }

    /// Returns a place in text number `source`.
    pub const fn at(source: usize, span: Range<usize>) -> Origin {
        Origin { source, span }
    }

    /// Returns the text that holds a place.
    pub fn source(&self, origin: &Origin) -> &Source {
        &self.0[origin.source]
    }

    /// Returns the offset of a place in its text, bytes.
    pub const fn start(&self, origin: &Origin) -> usize {
        origin.span.start
    }

    /// Returns the rank of a value in the order of layers; later layers have higher ranks.
    pub fn rank(&self, origin: &Origin) -> (Kind, usize) {
        (self.source(origin).kind, origin.source)
    }

    /// Returns the name of a place for messages: `FILE:LINE:COLUMN` or the flag.
    pub fn place(&self, origin: &Origin) -> String {
        let Diagnostic { source, place, .. } = self.diagnose(origin, "");
        match place {
            Some(Place { line, column, .. }) => format!("{source}:{line}:{column}"),
            None => source,
        }
    }

    /// Creates a diagnostic about the text at `origin`.
    pub fn diagnose(&self, origin: &Origin, message: impl Into<String>) -> Diagnostic {
        let source = self.source(origin);
        let place = match source.kind {
            Kind::Profile | Kind::File => Place::of(&source.text, &origin.span),
            Kind::Default | Kind::Shorthand | Kind::Flag => None,
        };
        Diagnostic {
            source: source.name.clone(),
            place,
            message: message.into(),
        }
    }
}

/// An error with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    source: String,
    place: Option<Place>,
    message: String,
}

/// A place in a file, with line and column counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    line: usize,
    column: usize,
    text: String,
    underlined: usize,
}

impl Place {
    fn of(text: &str, span: &Range<usize>) -> Option<Self> {
        let before = text.get(..span.start)?;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = text[start..].lines().next().unwrap_or("");
        let column = before[start..].chars().count();
        let marked = text
            .get(span.clone())
            .and_then(|marked| marked.lines().next())
            .unwrap_or("");
        Some(Self {
            line: before.matches('\n').count() + 1,
            column: column + 1,
            text: line.replace('\t', " "),
            underlined: marked.chars().count().max(1),
        })
    }
}

/// Writes `FILE:LINE:COLUMN: MESSAGE` with the line below it, or `FLAG: MESSAGE`.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            source,
            place,
            message,
        } = self;
        let Some(Place {
            line,
            column,
            text,
            underlined,
        }) = place
        else {
            return write!(f, "{source}: {message}");
        };
        let number = line.to_string();
        let (gap, indent) = (number.len(), column - 1);
        write!(
            f,
            "{source}:{line}:{column}: {message}\n \
             {:gap$} |\n {number} | {text}\n {:gap$} | {:indent$}{}",
            "",
            "",
            "",
            "^".repeat(*underlined),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagnostic_shows_line_and_column() {
        let mut sources = Sources::new();
        let file = sources.add(Kind::File, "x.toml", "[nic]\nmips = \"fast\"\n");
        let diagnostic = sources.diagnose(&Sources::at(file, 13..19), "not a number");
        let expected = "x.toml:2:8: not a number\n   |\n 2 | mips = \"fast\"\n   |        ^^^^^^";
        assert_eq!(diagnostic.to_string(), expected);
    }

    #[test]
    fn a_diagnostic_quotes_the_flag_as_given() {
        let mut sources = Sources::new();
        let flag = sources.add(Kind::Flag, "--set nic.mips=fast", "fast");
        let diagnostic = sources.diagnose(&Sources::at(flag, 0..4), "not a number");
        assert_eq!(diagnostic.to_string(), "--set nic.mips=fast: not a number");
    }

    #[test]
    fn errors_at_the_end_of_a_file_have_a_place() {
        let mut sources = Sources::new();
        let file = sources.add(Kind::File, "x.toml", "[nic");
        let text = sources
            .diagnose(&Sources::at(file, 4..4), "unclosed")
            .to_string();
        assert!(text.starts_with("x.toml:1:5: unclosed"), "{text}");
    }
}
