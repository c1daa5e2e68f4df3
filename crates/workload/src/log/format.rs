//! Log formats, their names and examples.

use serde::{Deserialize, Serialize};
use std::fmt;

/// An access log format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Combined or Common with the virtual host in front, such as Apache's `vhost_combined`.
    VhostCombined,
    /// NCSA Common Log Format.
    Common,
    /// Common with referer and user agent appended, and any further fields.
    Combined,
    /// Squid's native format. Its sizes include headers.
    Squid,
    /// HAProxy's HTTP log format, with or without a syslog prefix. Its sizes include headers.
    Haproxy,
    /// W3C extended log file format, with fields named by `#Fields`.
    W3c,
    /// One JSON object per line.
    Json,
    /// Tab-separated with Unix seconds, as in the public NASA 1995 excerpts.
    NasaTsv,
    /// Comma-separated, as in the public World Cup 1998 excerpts.
    WorldCupCsv,
    /// Values separated by commas, semicolons, tabs or bars, with a header that names the columns.
    Csv,
    /// `host [DD:HH:MM:SS] "request" status bytes`, as in EPA's 1995 log.
    Epa,
    /// `client: date (path): action`, as in the San Diego Supercomputer Center's 1995 log. Has no sizes.
    Sdsc,
    /// A format that is described by Apache's `LogFormat` or nginx's `log_format`.
    LogFormat,
}

impl Format {
    /// All formats. If several fit a log equally well, the first one is used.
    pub const ALL: [Self; 13] = [
        Self::VhostCombined,
        Self::Common,
        Self::Combined,
        Self::Squid,
        Self::Haproxy,
        Self::W3c,
        Self::Json,
        Self::NasaTsv,
        Self::WorldCupCsv,
        Self::Csv,
        Self::Epa,
        Self::Sdsc,
        Self::LogFormat,
    ];

    /// Returns the name used on the command line and in experiment files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::VhostCombined => "vhost-combined",
            Self::Common => "common",
            Self::Combined => "combined",
            Self::Squid => "squid",
            Self::Haproxy => "haproxy",
            Self::W3c => "w3c",
            Self::Json => "json",
            Self::NasaTsv => "nasa-tsv",
            Self::WorldCupCsv => "world-cup-csv",
            Self::Csv => "csv",
            Self::Epa => "epa",
            Self::Sdsc => "sdsc",
            Self::LogFormat => "log-format",
        }
    }

    /// Returns a description of one line.
    pub const fn description(self) -> &'static str {
        match self {
            Self::VhostCombined => "Apache, virtual host first: vhost_combined, vhost_common",
            Self::Common => "NCSA Common Log Format, of nearly every server",
            Self::Combined => "Common with referer and user agent: nginx, Apache, Traefik",
            Self::Squid => "Squid's native access.log",
            Self::Haproxy => "HAProxy, option httplog or httpslog",
            Self::W3c => "W3C extended: IIS, CloudFront standard logs",
            Self::Json => "JSON lines: nginx, Caddy, Traefik, Apache, Envoy",
            Self::NasaTsv => "public NASA 1995 excerpts",
            Self::WorldCupCsv => "public World Cup 1998 excerpts",
            Self::Csv => "columns named by a header, with comma, semicolon, tab or bar",
            Self::Epa => "EPA's 1995 log",
            Self::Sdsc => "San Diego Supercomputer Center's 1995 log; no sizes",
            Self::LogFormat => "given as Apache's LogFormat or nginx's log_format",
        }
    }

    /// Returns an example line; for [`Self::LogFormat`], an example of the description.
    pub const fn example(self) -> &'static str {
        match self {
            Self::VhostCombined => {
                r#"www.example.com:80 host - - [30/Apr/1998:22:00:04 +0000] "GET /a HTTP/1.0" 200 512 "referer" "agent""#
            }
            Self::Common => r#"host - - [30/Apr/1998:22:00:04 +0000] "GET /a HTTP/1.0" 200 512"#,
            Self::Combined => {
                r#"host - - [30/Apr/1998:22:00:04 +0000] "GET /a HTTP/1.0" 200 512 "referer" "agent""#
            }
            Self::Squid => {
                "893973604.123 62 client TCP_HIT/200 512 GET http://host/a - HIER_NONE/- text/html"
            }
            Self::Haproxy => {
                r#"10.0.0.1:33317 [30/Apr/1998:22:00:04.655] front back/srv 10/0/30/69/109 200 512 - - ---- 1/1/1/1/0 0/0 "GET /a HTTP/1.1""#
            }
            Self::W3c => "#Fields: date time c-ip cs-method cs-uri-stem sc-status sc-bytes",
            Self::Json => {
                r#"{"time_iso8601":"1998-04-30T22:00:04+00:00","remote_addr":"10.0.0.1","request":"GET /a HTTP/1.1","status":200,"body_bytes_sent":512}"#
            }
            Self::NasaTsv => "host<tab>logname<tab>804571201<tab>GET<tab>/a<tab>200<tab>512",
            Self::WorldCupCsv => "client,30/Apr/1998,22:00:04,/a,200,512",
            Self::Csv => "time,client,method,url,status,bytes",
            Self::Epa => r#"host [30:00:00:04] "GET /a HTTP/1.0" 200 512"#,
            Self::Sdsc => "client: Tue Aug 22 00:00:04 1995 (/a): Sent text: GET /a HTTP/1.0",
            Self::LogFormat => r#"%h %t "%r" %>s %b"#,
        }
    }

    /// Finds the format with this name, or with a name that a server or a log analyser uses for it.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase().replace('_', "-");
        let other = match name.as_str() {
            "nginx" | "apache" => Some(Self::Combined),
            "vhost-common" | "vcombined" | "vcommon" => Some(Self::VhostCombined),
            "cloudfront" | "iis" => Some(Self::W3c),
            "caddy" | "traefik" | "jsonl" | "ndjson" => Some(Self::Json),
            _ => None,
        };
        Self::ALL.into_iter().find(|f| f.name() == name).or(other)
    }

    /// Returns all names, for messages.
    pub(super) fn list() -> String {
        Self::ALL.map(Self::name).join(", ")
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
