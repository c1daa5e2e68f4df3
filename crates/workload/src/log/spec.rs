//! Values of `--format` and the key `format`: the name or the description of a format.

use super::fields::{Field, FieldMap};
use super::format::Format;
use super::parse::Directives;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Format of the lines of a log.
///
/// Written as the name of a [`Format`], as `json:client=remote_addr,time=ts` or `csv:...` if fields have unknown names, or in the notation
/// of Apache's `LogFormat` or nginx's `log_format`: `%h %t "%r" %>s %b`, `$remote_addr [$time_local] "$request" $status $body_bytes_sent`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FormatSpec(Kind);

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A format with a name.
    Named(Format),
    /// JSON lines with these field names.
    Json(FieldMap),
    /// Columns with these field names.
    Csv(FieldMap),
    /// A description of the format.
    LogFormat(Directives),
}

/// An invalid [`FormatSpec`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SpecError {
    /// There is no format with this name.
    #[error(
        "{0:?} is not a format; expected one of {known}, or json:client=NAME,time=NAME,..., csv:client=NAME,..., or a format as in '%h %t \"%r\" \
         %>s %b' or '$remote_addr [$time_local] \"$request\" $status $body_bytes_sent'",
        known = Format::list()
    )]
    Unknown(String),
    /// The format must be given by its description instead of its name.
    #[error("log-format is not a name; expected the format itself, as in '%h %t \"%r\" %>s %b'")]
    NotSpelled,
    /// A part of a mapping is not of the form `FIELD=NAME`.
    #[error("{0:?} is not a mapping; expected FIELD=NAME, as in client=remote_addr")]
    NoMapping(String),
    /// There is no field with this name.
    #[error("there is no field {0:?}; expected one of {known}", known = fields())]
    UnknownField(String),
    /// There is no text between two fields.
    #[error(
        "there is nothing between {0} and the field before it; expected a character that separates them"
    )]
    NothingBetween(String),
    /// A directive is incomplete or unknown.
    #[error("{0:?} is not a directive; expected one as in %h, %>s or %{{Referer}}i")]
    NoDirective(String),
    /// A required field is missing.
    #[error("the format has no {0}")]
    Lacks(&'static str),
}

fn fields() -> String {
    Field::ALL.map(Field::name).join(", ")
}

impl FormatSpec {
    /// Creates the specification of a format by name, which is possible for all formats except [`Format::LogFormat`].
    pub fn named(format: Format) -> Option<Self> {
        (format != Format::LogFormat).then_some(Self(Kind::Named(format)))
    }

    /// Creates the specification of a format that was detected.
    pub(super) const fn detected(format: Format) -> Self {
        Self(Kind::Named(format))
    }

    /// Returns the kind of format.
    pub const fn format(&self) -> Format {
        match &self.0 {
            Kind::Named(format) => *format,
            Kind::Json(_) => Format::Json,
            Kind::Csv(_) => Format::Csv,
            Kind::LogFormat(_) => Format::LogFormat,
        }
    }

    pub(super) const fn kind(&self) -> &Kind {
        &self.0
    }
}

impl FromStr for FormatSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let text = text.trim();
        let kind = if let Some(map) = text.strip_prefix("json:") {
            Kind::Json(FieldMap::parse(map)?)
        } else if let Some(map) = text.strip_prefix("csv:") {
            Kind::Csv(FieldMap::parse(map)?)
        } else if text.contains(['%', '$']) {
            Kind::LogFormat(Directives::parse(text)?)
        } else {
            match Format::from_name(text) {
                Some(Format::LogFormat) => return Err(SpecError::NotSpelled),
                Some(format) => Kind::Named(format),
                None => return Err(SpecError::Unknown(text.to_owned())),
            }
        };
        Ok(Self(kind))
    }
}

impl fmt::Display for FormatSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Named(format) => format.fmt(f),
            Kind::Json(map) => write!(f, "json:{}", map.own()),
            Kind::Csv(map) => write!(f, "csv:{}", map.own()),
            Kind::LogFormat(directives) => f.write_str(directives.text()),
        }
    }
}

impl TryFrom<String> for FormatSpec {
    type Error = SpecError;

    fn try_from(text: String) -> Result<Self, SpecError> {
        text.parse()
    }
}

impl From<FormatSpec> for String {
    fn from(spec: FormatSpec) -> Self {
        spec.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parsed_format_is_printed_back() {
        let specs = [
            "combined",
            "world-cup-csv",
            "json:client=remote_addr,time=ts",
            "csv:url=target",
            r#"%h %l %u %t "%r" %>s %b"#,
            "$remote_addr [$time_local] \"$request\" $status",
        ];
        for text in specs {
            let spec: FormatSpec = text.parse().unwrap();
            assert_eq!(spec.to_string(), text);
            assert_eq!(spec.to_string().parse(), Ok(spec));
        }
        let other: FormatSpec = "vhost_combined".parse().unwrap();
        assert_eq!(other.format(), Format::VhostCombined);
    }

    #[test]
    fn unknown_formats_are_refused_with_the_known_ones() {
        let message = |text: &str| text.parse::<FormatSpec>().unwrap_err().to_string();
        assert!(message("comined").contains("expected one of vhost-combined, common"));
        assert!(message("log-format").contains("expected the format itself"));
        assert!(message("json:visitor=ip").contains("expected one of time, date, client"));
        assert!(message("json:").contains("expected FIELD=NAME"));
    }
}
