//! Log formats, their names, patterns and examples: one table.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Creates [`Format`] from rows of variant, name, description, pattern and example. A format without a pattern has a parser of its own.
macro_rules! formats {
    ($($variant:ident $name:literal $description:literal $pattern:expr, $example:literal;)*) => {
        /// An access log format.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
        pub enum Format {
            $(
                #[doc = $description]
                #[serde(rename = $name)]
                $variant,
            )*
        }

        impl Format {
            /// All formats. If several fit a log equally well, the first one is used.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            const fn row(self) -> Row {
                match self {
                    $(Self::$variant => Row {
                        name: $name,
                        description: $description,
                        pattern: $pattern,
                        example: $example,
                    },)*
                }
            }
        }
    };
}

/// The row of a format in the table.
struct Row {
    name: &'static str,
    description: &'static str,
    pattern: Option<&'static str>,
    example: &'static str,
}

// Patterns are in the notation of `--format`: two blanks stand for one or more, and the text at `...` is ignored. Fields stand in the
// order of the lines' fields; names that have no meaning (`super::fields`) are ignored. Sources: the manual of each server.
formats! {
    VhostCombined "vhost-combined" "Apache, virtual host first: vhost_combined, vhost_common" None,
        r#"www.example.com:80 host - - [30/Apr/1998:22:00:04 +0000] "GET /a HTTP/1.0" 200 512 "referer" "agent""#;
    Common "common" "NCSA Common Log Format, of nearly every server" None,
        r#"host - - [30/Apr/1998:22:00:04 +0000] "GET /a HTTP/1.0" 200 512"#;
    Combined "combined" "Common with referer and user agent: nginx, Apache, Traefik" None,
        r#"host - - [30/Apr/1998:22:00:04 +0000] "GET /a HTTP/1.0" 200 512 "referer" "agent""#;
    Squid "squid" "Squid's native access.log; sizes include headers"
        Some("$msec  $elapsed $remote_addr $result/$status $bytes_sent $request_method $request_uri $user $hierarchy/$peer..."),
        "893973604.123 62 client TCP_HIT/200 512 GET http://host/a - HIER_NONE/- text/html";
    Haproxy "haproxy" "HAProxy, option httplog or httpslog; sizes include headers"
        Some("$remote_addr:$port [$time_local] $frontend $backend/$server $timers $status $bytes_sent $cookie $set_cookie $state $counts \
              $queues $captured_headers\"$request\"..."),
        r#"10.0.0.1:33317 [30/Apr/1998:22:00:04.655] front back/srv 10/0/30/69/109 200 512 - - ---- 1/1/1/1/0 0/0 "GET /a HTTP/1.1""#;
    W3c "w3c" "W3C extended: IIS, CloudFront standard logs" None,
        "#Fields: date time c-ip cs-method cs-uri-stem sc-status sc-bytes";
    Json "json" "JSON lines: nginx, Caddy, Traefik, Apache, Envoy, Azure" None,
        r#"{"time_iso8601":"1998-04-30T22:00:04+00:00","remote_addr":"10.0.0.1","request":"GET /a HTTP/1.1","status":200,"body_bytes_sent":512}"#;
    NasaTsv "nasa-tsv" "public NASA 1995 excerpts" None,
        "host<tab>logname<tab>804571201<tab>GET<tab>/a<tab>200<tab>512";
    WorldCupCsv "world-cup-csv" "public World Cup 1998 excerpts; times are UTC"
        Some("$remote_addr,%{%d/%b/%Y,%H:%M:%S}t,$request_uri,$status,$bytes_sent"),
        "client,30/Apr/1998,22:00:04,/a,200,512";
    Csv "csv" "columns named by a header, with comma, semicolon, tab or bar" None,
        "time,client,method,url,status,bytes";
    Epa "epa" "EPA's 1995 log, with the day of the month only" None,
        r#"host [30:00:00:04] "GET /a HTTP/1.0" 200 512"#;
    Sdsc "sdsc" "San Diego Supercomputer Center's 1995 log; no sizes" None,
        "client: Tue Aug 22 00:00:04 1995 (/a): Sent text: GET /a HTTP/1.0";
    Alb "alb" "AWS application load balancer; sizes include headers"
        Some("$type $time_iso8601 $elb $remote_addr:$port $target $in $work $out $status $target_status $received $bytes_sent \"$request\"..."),
        r#"https 1998-04-30T22:00:04.1Z app/lb/1 192.0.2.1:2817 10.0.0.1:80 0.0 0.1 0.0 200 200 34 512 "GET https://host:443/a HTTP/1.1" "agent" - -"#;
    Elb "elb" "AWS classic load balancer"
        Some("$time_iso8601 $elb $remote_addr:$port $backend $in $work $out $status $backend_status $received $bytes_sent \"$request\"..."),
        r#"1998-04-30T22:00:04.1Z lb 192.0.2.1:2817 10.0.0.1:80 0.0 0.1 0.0 200 200 0 512 "GET http://host:80/a HTTP/1.1" "agent" - -"#;
    S3 "s3" "Amazon S3 server access logs"
        Some("$owner $bucket [$time_local] $remote_addr $requester $id $operation $key \"$request\" $status $error $bytes_sent..."),
        r#"f00d bucket [30/Apr/1998:22:00:04 +0000] 192.0.2.1 - 3E57 REST.GET.OBJECT a "GET /a HTTP/1.1" 200 - 512 512 12 11 "-" "agent" -"#;
    Envoy "envoy" "Envoy's default; its client is X-Forwarded-For"
        Some("[$time_iso8601] \"$request\" $status $flags $received $bytes_sent $duration $upstream_time \"$http_x_forwarded_for\"..."),
        r#"[1998-04-30T22:00:04.1Z] "GET /a HTTP/1.1" 200 - 0 512 12 11 "192.0.2.1" "agent" "id" "host" "10.0.0.9:80""#;
    Istio "istio" "Istio's proxies"
        Some("[$time_iso8601] \"$request\" $status $flags $details $end \"$failure\" $received $bytes_sent $duration $upstream_time \
              \"$http_x_forwarded_for\" \"$agent\" \"$id\" \"$host\" \"$upstream\" $cluster $upstream_local $local $remote_addr..."),
        r#"[1998-04-30T22:00:04.1Z] "GET /a HTTP/1.1" 200 - via_upstream - "-" 0 512 12 11 "-" "agent" "id" "host" "10.0.0.9:80" out 10.0.0.8:1 10.0.0.9:80 192.0.2.1:2817 - default"#;
    IngressNginx "ingress-nginx" "ingress-nginx up to 0.25, with the client twice"
        Some("$remote_addr - [$proxied] - $user [$time_local] \"$request\" $status $body_bytes_sent..."),
        r#"192.0.2.1 - [192.0.2.1] - - [30/Apr/1998:22:00:04 +0000] "GET /a HTTP/1.1" 200 512 "referer" "agent" 120 0.003"#;
    Python "python" "Python's http.server; no sizes"
        Some("$remote_addr $ident $user [$date $time] \"$request\" $status $bytes_sent"),
        r#"192.0.2.1 - - [30/Apr/1998 22:00:04] "GET /a HTTP/1.1" 200 -"#;
    Beanstalk "beanstalk" "AWS Elastic Beanstalk, X-Forwarded-For in parentheses"
        Some("$remote_addr ($http_x_forwarded_for) $ident $user [$time_local] \"$request\" $status $body_bytes_sent..."),
        r#"10.0.0.1 (192.0.2.1) - - [30/Apr/1998:22:00:04 +0000] "GET /a HTTP/1.1" 200 512 "referer" "agent""#;
    ForwardedFirst "forwarded-first" "Combined behind X-Forwarded-For in quotes"
        Some("\"$http_x_forwarded_for\" $remote_addr $ident $user [$time_local] \"$request\" $status $body_bytes_sent..."),
        r#""192.0.2.1, 10.0.0.2" 10.0.0.1 - - [30/Apr/1998:22:00:04 +0000] "GET /a HTTP/1.1" 200 512 "referer" "agent""#;
    SslRequest "ssl-request" "Apache's ssl_request_log; no status"
        Some("[$time_local] $remote_addr $protocol $cipher \"$request\" $body_bytes_sent"),
        r#"[30/Apr/1998:22:00:04 +0000] 192.0.2.1 TLSv1.3 TLS_AES_256_GCM_SHA384 "GET /a HTTP/1.1" 512"#;
    IisNative "iis-native" "Microsoft's IIS log file format"
        Some("$remote_addr, $user, %{%m/%d/%y}t, %{%H:%M:%S}t, $service, $server, $address, $ms, $received, $bytes_sent, $status, $win32, \
              $request_method, $request_uri, $query_string,..."),
        "192.0.2.1, -, 04/30/98, 22:00:04, W3SVC1, SRV, 10.0.0.1, 12, 163, 512, 200, 0, GET, /a, -,";
    Uwsgi "uwsgi" "uWSGI's request log"
        Some("[$process] $remote_addr ($user) {$vars} [%{%a %b %d %H:%M:%S %Y}t] $request_method $request_uri => generated $body_bytes_sent \
              bytes in $ms msecs ($protocol $status)..."),
        "[pid: 7|app: 0|req: 1/1] 192.0.2.1 () {34 vars in 500 bytes} [Thu Apr 30 22:00:04 1998] GET /a => generated 512 bytes in 5 msecs (HTTP/1.1 200) 2 headers";
    Heroku "heroku" "Heroku's router"
        Some("$time_iso8601 heroku[router]: at=$at method=$request_method path=\"$request_uri\" host=$host request_id=$id \
              fwd=\"$http_x_forwarded_for\" dyno=$dyno connect=$connect service=$service status=$status bytes=$bytes_sent..."),
        r#"1998-04-30T22:00:04.1Z heroku[router]: at=info method=GET path="/a" host=host request_id=1 fwd="192.0.2.1" dyno=web.1 connect=1ms service=8ms status=200 bytes=512"#;
    LogFormat "log-format" "given as Apache's LogFormat or nginx's log_format" None,
        r#"%h %t "%r" %>s %b"#;
}

impl Format {
    /// Returns the name used on the command line and in experiment files.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns a description of one line.
    pub const fn description(self) -> &'static str {
        self.row().description
    }

    /// Returns the pattern of a line in the notation of [`FormatSpec`](super::FormatSpec), unless the format has a parser of its own.
    pub const fn pattern(self) -> Option<&'static str> {
        self.row().pattern
    }

    /// Returns an example line; for [`Self::LogFormat`], an example of the description.
    pub const fn example(self) -> &'static str {
        self.row().example
    }

    /// Returns whether single lines of this format are recognised among those of another one: they need no header, and resemble nothing else.
    pub(super) const fn mixes(self) -> bool {
        matches!(self, Self::VhostCombined | Self::Combined | Self::Json)
            || self.pattern().is_some()
    }

    /// Finds the format with this name, or with a name that a server or a log analyser uses for it.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase().replace('_', "-");
        let other = match name.as_str() {
            "nginx" | "apache" | "lighttpd" | "varnish" | "gunicorn" | "tomcat" | "icecast" => {
                Some(Self::Combined)
            }
            "vhost-common" | "vcombined" | "vcommon" | "nginx-proxy" => Some(Self::VhostCombined),
            "cloudfront" | "iis" | "shoutcast" => Some(Self::W3c),
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
