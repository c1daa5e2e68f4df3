//! Fields of a log line, and the names that servers use for them.

use super::spec::SpecError;

/// Meaning of a field of a log line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    /// Time of the request: Unix time in seconds to nanoseconds, RFC 3339, or as in the Common Log Format; or the time of day alone.
    Time,
    /// Date of the request, if separate from the time of day.
    Date,
    /// Address or name of the client.
    Client,
    /// X-Forwarded-For.
    Forwarded,
    /// Headers that HAProxy captured, one of which may be X-Forwarded-For.
    Headers,
    /// The request line.
    Request,
    /// The method.
    Method,
    /// The URL or its path.
    Url,
    /// The query, if separate from the URL.
    Query,
    /// The status.
    Status,
    /// The size of the response in bytes.
    Bytes,
    /// A line in another format, which has the request's fields.
    Line,
}

impl Field {
    /// All fields.
    pub const ALL: [Self; 12] = [
        Self::Time,
        Self::Date,
        Self::Client,
        Self::Forwarded,
        Self::Headers,
        Self::Request,
        Self::Method,
        Self::Url,
        Self::Query,
        Self::Status,
        Self::Bytes,
        Self::Line,
    ];

    /// Returns the name in a [`FormatSpec`](super::FormatSpec).
    pub const fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Date => "date",
            Self::Client => "client",
            Self::Forwarded => "forwarded",
            Self::Headers => "headers",
            Self::Request => "request",
            Self::Method => "method",
            Self::Url => "url",
            Self::Query => "query",
            Self::Status => "status",
            Self::Bytes => "bytes",
            Self::Line => "line",
        }
    }

    /// Returns the names that servers use, the preferred ones first.
    fn known_names(self) -> impl Iterator<Item = &'static str> {
        let named = KNOWN_NAMES.iter().filter(move |(field, _)| *field == self);
        named.flat_map(|(_, names)| names.iter().copied())
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.name() == name)
    }
}

/// Names that servers use for each field, the preferred ones first, in lower case and with `_` for `-` and spaces: nginx, Caddy, Traefik,
/// Apache as it is often set up, Envoy, Google's load balancers and storage, Azure's gateways, Cloudflare, Akamai, Zeek, Suricata, the Elastic Common
/// Schema, W3C. A dot selects a member of an object.
const KNOWN_NAMES: [(Field, &[&str]); Field::ALL.len()] = [
    (
        Field::Time,
        &[
            "time_iso8601",
            "time_local",
            "msec",
            "startutc",
            "start_time",
            "@timestamp",
            "timestamp",
            "ts",
            "time",
            "datetime",
            "date_time",
            "time_micros",
            "requesttime",
            "reqtimesec",
            "edgestarttimestamp",
        ],
    ),
    (Field::Date, &["date", "date_local"]),
    (
        Field::Client,
        &[
            "client_ip",
            "request.client_ip",
            "clienthost",
            "remote_addr",
            "remote_ip",
            "request.remote_ip",
            "request.remote_addr",
            "remoteip",
            "httprequest.remoteip",
            "client.ip",
            "source.ip",
            "client_addr",
            "clientaddr",
            "clientip",
            "downstream_remote_address",
            "c_ip",
            "client",
            "remote_host",
            "remotehost",
            "remote",
            "ip",
            "ip_address",
            "c_dns",
            "properties.clientip",
            "cliip",
            "id.orig_h",
            "src_ip",
            "sourceip",
        ],
    ),
    (
        Field::Forwarded,
        &[
            "x_forwarded_for",
            "http_x_forwarded_for",
            "request_x_forwarded_for",
            "request.headers.x_forwarded_for",
            "cs(x_forwarded_for)",
            "xff",
        ],
    ),
    (Field::Headers, &["captured_headers"]),
    (Field::Request, &["request", "request_line"]),
    (
        Field::Method,
        &[
            "request_method",
            "method",
            "request.method",
            "requestmethod",
            "httprequest.requestmethod",
            "http.request.method",
            "cs_method",
            "http_method",
            "verb",
            "properties.httpmethod",
            "httpmethod",
            "clientrequestmethod",
            "reqmethod",
            "http.http_method",
        ],
    ),
    (
        Field::Url,
        &[
            "request_uri",
            "request.uri",
            "requestpath",
            "httprequest.requesturl",
            "url.original",
            "uri",
            "url",
            "cs_uri",
            "cs_uri_stem",
            "url.path",
            "path",
            "uri_path",
            "request_path",
            "properties.requesturi",
            "clientrequesturi",
            "reqpath",
            "http.url",
            "resourcepath",
        ],
    ),
    (
        Field::Query,
        &[
            "query_string",
            "args",
            "query",
            "url.query",
            "cs_uri_query",
            "properties.requestquery",
        ],
    ),
    (
        Field::Status,
        &[
            "status",
            "status_code",
            "downstreamstatus",
            "response_code",
            "httprequest.status",
            "http.response.status_code",
            "sc_status",
            "http_status",
            "response",
            "code",
            "c_status",
            "properties.httpstatus",
            "properties.httpstatuscode",
            "edgeresponsestatus",
            "http.status",
            "statuscode",
        ],
    ),
    (
        Field::Bytes,
        &[
            "body_bytes_sent",
            "downstreamcontentsize",
            "http.response.body.bytes",
            "httprequest.responsesize",
            "response_size",
            "size",
            "bytes_sent",
            "sc_bytes",
            "bytes",
            "body_bytes",
            "response_bytes",
            "response_length",
            "responselength",
            "properties.sentbytes",
            "properties.responsebytes",
            "edgeresponsebytes",
            "response_body_len",
            "http.length",
        ],
    ),
    (
        Field::Line,
        &[
            "log",
            "message",
            "jsonpayload.message",
            "_source.message",
            "content.message",
            "data.message",
            "msg",
            "short_message",
            "@message",
            "textpayload",
            "event.original",
            "_raw",
            "line",
        ],
    ),
];

/// Map from names to fields: the names that servers use, and those that the user specifies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct FieldMap {
    /// Sorted by name, each with its field and its rank among that field's names (0 is best).
    names: Vec<(String, Field, u8)>,
    /// The user's mapping, as written.
    own: String,
}

impl Default for FieldMap {
    fn default() -> Self {
        Self::with(&[], String::new())
    }
}

impl FieldMap {
    /// Parses `client=remote_addr,time=ts`; these names override the known ones.
    ///
    /// # Errors
    /// The text does not have that form, or refers to an unknown field.
    pub(super) fn parse(text: &str) -> Result<Self, SpecError> {
        let mut own = Vec::new();
        for part in text.split(',') {
            let (field, name) = part
                .split_once('=')
                .map(|(field, name)| (field.trim(), name.trim()))
                .filter(|(_, name)| !name.is_empty())
                .ok_or_else(|| SpecError::NoMapping(part.trim().to_owned()))?;
            let field =
                Field::from_name(field).ok_or_else(|| SpecError::UnknownField(field.to_owned()))?;
            own.push((field, name));
        }
        Ok(Self::with(&own, text.to_owned()))
    }

    fn with(own: &[(Field, &str)], text: String) -> Self {
        let mut names: Vec<(String, Field, u8)> = own
            .iter()
            .map(|&(field, name)| (normal(name), field, 0))
            .collect();
        let is_given = |field| own.iter().any(|&(given, _)| given == field);
        for field in Field::ALL.into_iter().filter(|&field| !is_given(field)) {
            for (rank, name) in (1..).zip(field.known_names()) {
                if !names.iter().any(|(taken, ..)| taken == name) {
                    names.push((name.to_owned(), field, rank));
                }
            }
        }
        names.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Self { names, own: text }
    }

    /// Returns the field with this normalized name, and the name's rank.
    pub(super) fn find(&self, normal_name: &str) -> Option<(Field, u8)> {
        let found = self
            .names
            .binary_search_by(|(name, ..)| name.as_str().cmp(normal_name));
        found.ok().map(|at| (self.names[at].1, self.names[at].2))
    }

    /// Assigns fields to columns with these names.
    pub(super) fn columns<'n>(&self, names: impl Iterator<Item = &'n [u8]>) -> Columns {
        let mut best: [Option<(u8, usize)>; Field::ALL.len()] = [None; Field::ALL.len()];
        for (index, name) in names.enumerate() {
            let name = normal(&String::from_utf8_lossy(name.trim_ascii()));
            if let Some((field, rank)) = self.find(&name) {
                let best = &mut best[field as usize];
                if best.is_none_or(|(least, _)| rank < least) {
                    *best = Some((rank, index));
                }
            }
        }
        Columns(best.map(|best| best.map(|(_, index)| index)))
    }

    /// Returns the user's mapping, as written.
    pub(super) fn own(&self) -> &str {
        &self.own
    }
}

/// Normalizes a name for comparison.
fn normal(name: &str) -> String {
    let mut text = String::new();
    push_normal(&mut text, name);
    text
}

/// Appends a normalized name.
pub(super) fn push_normal(text: &mut String, name: &str) {
    text.extend(name.chars().map(|c| match c {
        '-' | ' ' => '_',
        c => c.to_ascii_lowercase(),
    }));
}

/// Column of each field.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Columns([Option<usize>; Field::ALL.len()]);

impl Columns {
    pub(super) const fn get(&self, field: Field) -> Option<usize> {
        self.0[field as usize]
    }

    /// Returns whether the columns suffice to identify requests.
    pub(super) fn are_enough(&self) -> bool {
        let has = |field: Field| self.get(field).is_some();
        (has(Field::Time) || has(Field::Date))
            && (has(Field::Client) || has(Field::Forwarded))
            && (has(Field::Url) || has(Field::Request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_name_means_one_thing() {
        let map = FieldMap::default();
        for field in Field::ALL {
            assert_eq!(Field::from_name(field.name()), Some(field));
            for name in field.known_names() {
                assert_eq!(name, normal(name));
                assert_eq!(
                    map.find(name).map(|(found, _)| found),
                    Some(field),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn names_given_by_the_user_override_the_known_ones() {
        let map = FieldMap::parse("client=Visitor-IP, time=status").unwrap();
        assert_eq!(map.find("visitor_ip"), Some((Field::Client, 0)));
        assert_eq!(map.find("status"), Some((Field::Time, 0)));
        assert_eq!(map.find("remote_addr"), None);
        assert_eq!(map.find("ts"), None);
        let names = [&b"Visitor IP"[..], b"Status", b"path", b"URL"];
        let columns = map.columns(names.into_iter());
        assert_eq!(columns.get(Field::Url), Some(3));
        assert!(columns.are_enough());
    }

    #[test]
    fn invalid_mappings_are_refused() {
        for text in ["client", "client=", "visitor=ip", ""] {
            assert!(FieldMap::parse(text).is_err(), "{text}");
        }
    }
}
