//! Reads lines of each format as servers write them, including unusual ones. The tests name a format only if it cannot be detected.

use baton_workload::Log;
use baton_workload::log::{Format, FormatSpec, LogError, Method, ReadOptions, Request, SkipReason};
use std::path::Path;

use Method::{Get, Head, Other, Post};

/// The fields of a request: whole seconds since 1970, client, method, URL, status, bytes.
type Row<'a> = (u64, &'a str, Method, &'a str, u16, u64);

fn try_read(text: &[u8], format: Option<&str>) -> Result<Log, LogError> {
    let options = ReadOptions {
        format: format.map(|format| format.parse::<FormatSpec>().expect(format)),
        ..ReadOptions::default()
    };
    Log::from_reader(Path::new("some.log"), text, &options)
}

#[track_caller]
fn read(text: &str) -> Log {
    try_read(text.as_bytes(), None).unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn read_as(text: &str, format: &str) -> Log {
    try_read(text.as_bytes(), Some(format)).unwrap_or_else(|error| panic!("{error}"))
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).expect("UTF-8")
}

/// 2024-11-24 08:17:57 UTC.
const AT: u64 = 1_732_436_277;

/// Asserts that the log has this format and these requests, and that no line was skipped.
#[track_caller]
fn assert_rows(log: &Log, format: Format, expected: &[Row<'_>]) {
    assert_eq!((log.format, log.skipped.total()), (format, 0));
    assert_eq!(rows_of(log), expected);
}

fn rows_of(log: &Log) -> Vec<Row<'_>> {
    let row = |r: &Request| {
        let (client, url) = (log.clients.get(r.client), log.urls.get(r.file));
        let seconds = r.time_us / 1_000_000;
        (
            seconds,
            text(client),
            r.method,
            text(url),
            r.status,
            r.bytes,
        )
    };
    log.requests.iter().map(row).collect()
}

/// Reads the logs in `formats.txt`, and compares what it reads with what is there.
#[test]
fn lines_of_each_format_give_the_requests_beside_them() {
    let logs = include_str!("formats.txt").split("\n\n").skip(1);
    for lines in logs.map(|log| log.lines().filter(|line| !line.starts_with('#'))) {
        let lines: Vec<&str> = lines.collect();
        println!("{}", lines[0]);
        let all = |mark: &'static str| lines.iter().filter_map(move |line| line.strip_prefix(mark));
        let log: String = all("> ").map(|line| format!("{line}\n")).collect();
        for spec in all("as ")
            .map(Some)
            .chain(all("as ").next().is_none().then_some(None))
        {
            let format = spec.map(|spec| spec.parse::<FormatSpec>().expect(spec));
            let options = ReadOptions {
                format,
                allow_skipped: all("skipped ").next().is_some(),
                ..ReadOptions::default()
            };
            let read = Log::from_reader(Path::new("some.log"), log.as_bytes(), &options);
            for message in all("! ") {
                let error = read.as_ref().expect_err(message).to_string();
                assert!(error.contains(message), "{error}");
            }
            for found in all("= ") {
                let rows: Vec<Row<'_>> = all("+").map(row_of).collect();
                assert_log(
                    read.as_ref().expect("a log"),
                    found,
                    all("skipped ").next(),
                    &rows,
                );
            }
        }
    }
}

/// Asserts that the log has the format and the counts in `found`, as many lines skipped as `skipped` says, and these requests.
fn assert_log(log: &Log, found: &str, skipped: Option<&str>, rows: &[Row<'_>]) {
    let mut words = found.split(' ');
    assert_eq!(words.next(), Some(&*format!("{:?}", log.format)));
    for count in words {
        let found = match count.split_once('=') {
            Some(("dashes", _)) => log.dashes,
            Some(("forwarded", _)) => log.forwarded,
            Some(("bodiless_bytes", _)) => log.bodiless_bytes,
            Some(("sizes", _)) => log.has_sizes.into(),
            _ => panic!("{count} is not counted"),
        };
        assert!(count.ends_with(&format!("={found}")), "{count}: {found}");
    }
    let reasons = log.skipped.reasons();
    let reasons = reasons.map(|(reason, _)| format!("{reason:?}={}", log.skipped.count(reason)));
    assert_eq!(
        reasons.collect::<Vec<_>>().join(" "),
        skipped.unwrap_or_default()
    );
    assert_eq!(rows_of(log), rows);
}

/// Parses `SECONDS CLIENT METHOD URL STATUS BYTES`; a URL may have blanks.
fn row_of(row: &str) -> Row<'_> {
    let words: Vec<&str> = row.splitn(4, ' ').collect();
    let [after, client, method, rest] = words[..] else {
        panic!("{row}");
    };
    let (rest, bytes) = rest.rsplit_once(' ').expect("a size");
    let (url, status) = rest.rsplit_once(' ').expect("a status");
    let after: u64 = after.parse().expect("seconds");
    let mut methods = [Get, Head, Other, Post].into_iter();
    let method = methods.find(|known| format!("{known:?}") == method);
    (
        AT + after,
        client,
        method.expect("a method"),
        url,
        status.parse().expect("a status"),
        bytes.parse().expect("a size"),
    )
}

#[test]
fn impossible_spelled_formats_are_refused() {
    let message = |format: &str| format.parse::<FormatSpec>().unwrap_err().to_string();
    assert!(message("%h %u%r %t").contains("there is nothing between %r and the field before it"));
    assert!(message(r#"%h "%r" %b"#).contains("has no time (%t"));
    assert!(message(r#"%t "%r" %b"#).contains("has no client (%h"));
    assert!(message("%h %t %b").contains("has no request (%r"));
    assert!(message("%h %t %r %{Referer").contains("is not a directive"));
    assert!(message("%h %t %r %").contains("is not a directive"));
    assert!(message("%h %t %r $").contains("is not a directive"));
}

#[test]
fn lines_that_a_spelled_format_does_not_have() {
    let format = r#"%h %t "%r" %>s %b"#;
    let line = |line: &str| match try_read(line.as_bytes(), Some(format)) {
        Err(LogError::NoRequests { skipped, .. }) => {
            skipped.reasons().next().map(|(reason, _)| reason)
        }
        other => panic!("{other:?}"),
    };
    let at = "[24/Nov/2024:08:17:57 +0000]";
    assert_eq!(
        line(&format!("h {at} \"GET /a HTTP/1.1\" 200 5 more")),
        Some(SkipReason::Bytes)
    );
    assert_eq!(
        line(&format!("h {at} \"GET /a HTTP/1.1")),
        Some(SkipReason::Request)
    );
    assert_eq!(line("h [24/Nov/2024:08:17:57"), Some(SkipReason::Time));
    assert_eq!(
        line("h (24/Nov/2024:08:17:57"),
        Some(SkipReason::MissingFields)
    );
}

#[test]
fn marks_and_ends_of_lines_do_not_matter() {
    let lines = [
        "10.0.0.1 - - [24/Nov/2024:08:17:57 +0000] \"GET /a HTTP/1.1\" 200 5",
        "10.0.0.2 - - [24/Nov/2024:08:17:58 +0000] \"GET /b HTTP/1.1\" 200 -",
    ];
    let rows = [
        (AT, "10.0.0.1", Get, "/a", 200, 5),
        (AT + 1, "10.0.0.2", Get, "/b", 200, 0),
    ];
    for end in ["\n", "\r\n"] {
        for last in ["", end] {
            for mark in ["", "\u{feff}"] {
                let text = format!("{mark}{}{end}{}{last}", lines[0], lines[1]);
                assert_rows(&read(&text), Format::Common, &rows);
            }
        }
    }
    let csv = "\u{feff}time,client,url,bytes\r\n1732436277,a,/a,1";
    assert_rows(&read(csv), Format::Csv, &[(AT, "a", Get, "/a", 0, 1)]);
    for empty in ["", "\n", "\r\n \n", "\u{feff}"] {
        let error = try_read(empty.as_bytes(), None);
        assert!(matches!(error, Err(LogError::Empty { .. })), "{empty:?}");
    }
}

#[test]
fn all_formats_have_a_name_a_description_and_an_example() {
    for format in Format::ALL {
        assert_eq!(Format::from_name(format.name()), Some(format));
        assert!(format.description().len() < 64, "{format}");
        assert!(!format.example().is_empty());
    }
    for (name, format) in [
        ("vhost_combined", Format::VhostCombined),
        ("NGINX", Format::Combined),
        ("cloudfront", Format::W3c),
    ] {
        assert_eq!(Format::from_name(name), Some(format));
    }
}

/// Returns twenty-four lines of twenty clients for five files of 100 bytes and more. `line` formats number, client and second.
fn many(line: impl Fn(u32, &str, u32) -> String) -> String {
    let line = |i: u32| line(i, &format!("198.51.100.{}", i % 20 + 1), 10 + i) + "\n";
    (0..24).map(line).collect()
}

/// Returns the same lines in Combined.
fn combined(i: u32, client: &str, second: u32) -> String {
    format!(
        "{client} - - [24/Nov/2024:08:17:{second} +0000] \"GET /f{} HTTP/1.1\" 200 {} \"-\" \"agent/1.0\"",
        i % 5,
        100 + i
    )
}

/// Asserts that the log is that of [`many`] lines, and in this format.
#[track_caller]
fn assert_many(text: &str, format: Format) -> Log {
    let log = read(text);
    assert_eq!((log.format, log.skipped.total()), (format, 0));
    let found = (log.requests.len(), log.clients.len(), log.urls.len());
    assert_eq!((found, log.content_bytes()), ((24, 20, 5), 2676));
    assert!(log.requests.iter().all(|request| request.status == 200));
    let names = (0..20).map(|i| text_of(log.clients.get(i)));
    assert!(
        names.clone().all(|name| name.starts_with("198.51.100.")),
        "{:?}",
        names.collect::<Vec<_>>()
    );
    log
}

fn text_of(bytes: &[u8]) -> String {
    text(bytes).to_owned()
}

#[test]
fn lines_behind_prefixes_of_other_programs_have_the_same_clients() {
    let prefixes = [
        "Nov 24 08:17:57 web1 nginx: ",
        "<134>Nov  4 08:17:57 web1 nginx[12]: ",
        "<30>Nov 24 08:17:57 nginx: ",
        "<134>1 2024-11-24T08:17:57.123Z web1 nginx 12 - - ",
        "112 <134>1 2024-11-24T08:17:57+01:00 web1 nginx 12 ID [x@1 a=\"b\"][y@1 c=\"d\"] ",
        "2024-11-24T08:17:57.123456+01:00 web1 nginx[12]: ",
        "2024-11-24T08:17:57.123456789Z ",
        "2024-11-24T08:17:57.123456789Z stdout F ",
        "web_1  | ",
        "web-1  | 2024-11-24T08:17:57.123456789Z ",
        "08:17:57 web.1  | ",
        "[pod/web-1-x/nginx] ",
        "[pod/web-1-x/nginx] 2024-11-24T08:17:57.123456789Z ",
        "nginx:  ",
        "Mar  2 2024 10:00:00 web1 nginx: ",
        "1732436277.123456 web1 nginx[12]: ",
        "2024-11-24T08:17:57+0000 web1 nginx[12]: ",
        "@400000005f0b1a2c1d2e3f40 ",
        "web.1.x2y@node1    | ",
        "Tue 2024-03-12 10:00:00 UTC web1 nginx[12]: ",
        "2024-03-12T10:00:00.123000+00:00 web/web/1f2e ",
        "0|web  | ",
        "\x1b[36mweb_1  |\x1b[0m ",
    ];
    for prefix in prefixes {
        let text = many(|i, client, second| format!("{prefix}{}", combined(i, client, second)));
        let log = assert_many(&text, Format::Combined);
        assert_eq!(log.unwrapped, 24, "{prefix}");
    }
}

#[test]
fn lines_within_json_csv_and_quotes_have_the_same_clients() {
    let json = |line: &str| line.replace('"', "\\\"");
    let csv = |line: &str| line.replace('"', "\"\"");
    let forms: [&dyn Fn(&str) -> String; 9] = [
        &|line| {
            format!(
                "{{\"log\":\"{}\\n\",\"stream\":\"stdout\",\"time\":\"2024-11-24T08:17:57Z\"}}",
                json(line)
            )
        },
        &|line| {
            format!(
                "{{\"MESSAGE\":\"{}\",\"_HOSTNAME\":\"web1\",\"__REALTIME_TIMESTAMP\":\"1\"}}",
                json(line)
            )
        },
        &|line| {
            format!(
                "{{\"timestamp\":1732436277000,\"message\":\"{}\",\"id\":\"1\"}}",
                json(line)
            )
        },
        &|line| format!("{{\"log\":\"Nov 24 08:17:57 web1 nginx: {}\"}}", json(line)),
        &|line| format!("2024-11-24 08:17:57.000,\"{}\"", csv(line)),
        &|line| format!("\"2024-11-24 08:17:57.000\",\"{}\"", csv(line)),
        &|line| format!("\"{}\"", csv(line)),
        &|line| {
            format!(
                "2024-11-24T08:17:57+00:00\tweb.nginx\t{{\"log\":\"{}\"}}",
                json(line)
            )
        },
        &|line| format!("{{\"jsonPayload\":{{\"message\":\"{}\"}}}}", json(line)),
    ];
    for form in forms {
        let text = many(|i, client, second| form(&combined(i, client, second)));
        assert_many(&text, Format::Combined);
    }
}

#[test]
fn text_in_front_that_is_not_known_is_refused_with_a_format_that_reads_the_lines() {
    for (prefix, guess) in [
        (
            "web-6d4 nginx ",
            "'$_ $_ $remote_addr $_ $_ [$time_local] \"$request\" $status $body_bytes_sent...'",
        ),
        (
            "INFO - ",
            "'$_ $_ $remote_addr $_ $_ [$time_local] \"$request\" $status $body_bytes_sent...'",
        ),
    ] {
        let text = many(|i, client, second| format!("{prefix}{}", combined(i, client, second)));
        let error = try_read(text.as_bytes(), None).unwrap_err().to_string();
        assert!(error.contains(&format!("--format {guess}")), "{error}");
        let log = read_as(&text, guess.trim_matches('\''));
        assert_eq!((log.clients.len(), log.content_bytes()), (20, 2676));
    }
    // A date without a time of day is not the time; a name is the client only where ident, user and time follow.
    let named = |i, client: &str, second| {
        let line = combined(i, &client.replace("198.51.100.", "host-"), second);
        format!("2024-11-24 INFO {line}")
    };
    let error = try_read(many(named).as_bytes(), None).unwrap_err();
    let guess = "'$_ $_ $remote_addr $_ $_ [$time_local] \"$request\" $status $body_bytes_sent...'";
    assert!(error.to_string().contains(guess), "{error}");
    // Of two addresses in each line, the client is the one with more distinct values.
    let text = many(|i, client, second| {
        format!(
            "10.0.0.1 <{second}> [2024-11-24T08:17:{second}Z] {client}:99 GET /f{} 200 {}",
            i % 5,
            100 + i
        )
    });
    let error = try_read(text.as_bytes(), None).unwrap_err().to_string();
    let guess =
        "'$_ $_ [$time_local] $remote_addr $request_method $request_uri $status $body_bytes_sent'";
    assert!(error.contains(guess), "{error}");
}

#[test]
fn a_user_cannot_pretend_to_be_a_client() {
    // An ident that is no `-`, words that look like the end of a prefix, and an address as a user.
    for names in ["x y z", "- 10.9.9.9 - -", "- a 10.9.9.9:80", "10.9.9.9 -"] {
        let line = format!("web {names} [24/Nov/2024:08:17:57 +0000] \"GET /a HTTP/1.1\" 200 5");
        for format in ["common", "combined"] {
            let error = try_read(line.as_bytes(), Some(format))
                .unwrap_err()
                .to_string();
            assert!(error.contains("no client"), "{names}: {error}");
        }
    }
}

#[test]
fn an_address_behind_the_agent_is_the_client_only_if_it_behaves_like_one() {
    // nginx-proxy logs `$upstream_addr` after the user agent: few addresses, whose ports occur again.
    let upstream = |i: u32| format!("10.9.9.{}:8080", i % 2 + 1);
    let text =
        many(|i, client, second| format!("{} \"{}\"", combined(i, client, second), upstream(i)));
    assert_eq!(assert_many(&text, Format::Combined).forwarded, 0);
    let behind_host = |i, client: &str, second| {
        format!(
            "www.example.com {} \"{}\"",
            combined(i, client, second),
            upstream(i)
        )
    };
    assert_eq!(
        assert_many(&many(behind_host), Format::VhostCombined).forwarded,
        0
    );
    // A list of the servers that were tried, and the server's own address.
    let text = many(|i, client, second| {
        format!(
            "{} \"10.9.9.1:80, 10.9.9.2:80\"",
            combined(i, client, second)
        )
    });
    assert_eq!(assert_many(&text, Format::Combined).forwarded, 0);
    let text = many(|i, client, second| format!("{} \"10.9.9.1\"", combined(i, client, second)));
    assert_eq!(
        assert_many(&text, Format::Combined).warnings(),
        Vec::<String>::new()
    );
    // The clients of a proxy, with ports that hardly occur again.
    let text = many(|i, client, second| {
        format!(
            "{} \"{client}:{}\"",
            combined(i, "10.0.0.1", second),
            4000 + i
        )
    });
    assert_eq!(assert_many(&text, Format::Combined).forwarded, 24);
    // If there are as many addresses as peers, and all are public, either may be the client.
    let text = many(|i, client, second| {
        let other = client.replace("198.51.100", "203.0.113");
        format!("{} \"{other}\"", combined(i, client, second))
    });
    let log = assert_many(&text, Format::Combined);
    assert_eq!(log.perhaps_forwarded, 24);
    assert!(log.warnings()[0].starts_with("24 of 24 requests have another address"));
}

#[test]
fn an_address_in_front_of_the_client_is_a_virtual_host_or_x_forwarded_for() {
    let text = many(|i, client, second| format!("203.0.113.1 {}", combined(i, client, second)));
    assert_many(&text, Format::VhostCombined);
    let text = many(|i, client, second| format!("{client} {}", combined(i, "10.0.0.1", second)));
    assert_eq!(assert_many(&text, Format::VhostCombined).forwarded, 24);
}

#[test]
fn a_header_that_haproxy_captured_is_the_client_only_if_it_behaves_like_one() {
    let line = |i: u32, client: &str, second: u32, headers: &str| {
        format!(
            "Nov 24 08:17:57 lb haproxy[9]: {client}:4{i:04} [24/Nov/2024:08:17:{second}.123] fe be/s1 0/0/1/2/3 200 {} - - ---- 1/1/1/1/0 0/0 \
             {headers} \"GET /f{} HTTP/1.1\"",
            100 + i,
            i % 5
        )
    };
    let host = many(|i, client, second| line(i, client, second, "{10.8.0.5:8443|agent}"));
    assert_eq!(assert_many(&host, Format::Haproxy).forwarded, 0);
    let both =
        many(|i, client, second| line(i, "10.0.0.1", second, &format!("{{10.8.0.5|{client}}}")));
    assert_eq!(assert_many(&both, Format::Haproxy).forwarded, 24);
}

#[test]
fn an_address_for_ident_may_be_the_client() {
    let text =
        many(|i, client, second| combined(i, client, second).replace(" - - ", " 10.0.0.1 - "));
    assert_many(&text, Format::Combined);
    let text = many(|i, client, second| {
        combined(i, "10.0.0.1", second).replace(" - - ", &format!(" {client} - "))
    });
    assert_eq!(assert_many(&text, Format::Combined).forwarded, 24);
}

#[test]
fn formats_with_a_pattern_give_the_client_status_and_size_of_their_example() {
    for format in Format::ALL
        .into_iter()
        .filter(|format| format.pattern().is_some())
    {
        let log = read(format.example());
        assert_eq!((log.format, log.skipped.total()), (format, 0));
        let request = log.requests[0];
        let client = text(log.clients.get(request.client));
        assert!(
            ["192.0.2.1", "10.0.0.1", "client"].contains(&client),
            "{format}: {client}"
        );
        let status = if format == Format::SslRequest { 0 } else { 200 };
        let bytes = if format == Format::Python { 0 } else { 512 };
        assert_eq!((request.status, request.bytes), (status, bytes), "{format}");
        // 1998-04-30 22:00:04 UTC.
        assert_eq!(request.time_us / 1_000_000, 893_973_604, "{format}");
        assert!(text(log.urls.get(0)).ends_with("/a"), "{format}");
    }
}

#[test]
fn connections_without_a_request_do_not_make_a_log_unreadable() {
    let none = |i: u32| {
        format!("198.51.100.{i} - - [24/Nov/2024:08:17:57 +0000] \"-\" 408 0 \"-\" \"-\"\n")
    };
    let text: String = (1..31).map(none).collect();
    let log = read(&(text.clone() + &many(combined)));
    assert_eq!(
        (log.requests.len(), log.skipped.count(SkipReason::NoRequest)),
        (24, 30)
    );
    assert!(
        log.warnings()[0].starts_with("30 of 54 lines are left out: connections without a request")
    );
    let error = try_read(text.as_bytes(), None).unwrap_err().to_string();
    assert!(error.contains("30 connection without a request"), "{error}");
}

#[test]
fn lines_of_several_formats_are_read_and_counted() {
    let json = r#"{"time_iso8601":"2024-11-24T08:17:57Z","remote_addr":"198.51.100.1","request":"GET /f0 HTTP/1.1","status":200,"body_bytes_sent":7}"#;
    let text =
        many(combined) + json + "\nwww.example.com:80 " + &combined(0, "198.51.100.2", 10) + "\n";
    let log = read(&text);
    assert_eq!(
        (log.format, log.requests.len(), log.skipped.total()),
        (Format::Combined, 26, 0)
    );
    assert_eq!((log.clients.len(), log.other_formats), (20, 2));
    assert!(
        log.warnings()[0].contains("2 of 26 requests are in lines of other formats than combined")
    );
    // If a format is named, lines of other formats are not read.
    assert!(
        try_read(text.as_bytes(), Some("combined"))
            .unwrap()
            .skipped
            .total()
            > 0
    );
}

#[test]
fn sizes_may_exceed_those_of_32_bits() {
    let text = many(|i, client, second| {
        combined(i, client, second).replace(&format!(" 200 {}", 100 + i), " 200 4700000000")
    });
    assert_eq!(read(&text).content_bytes(), 24 * 4_700_000_000);
}
