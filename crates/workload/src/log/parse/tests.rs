//! Example lines of every format, good and malformed.

use super::*;

fn entry(format: Format, line: &str) -> (u64, String, Method, String, u16, Option<u64>) {
    match Parser::named(format).parse(line.as_bytes()) {
        Ok(Parsed::Entry(e)) => {
            let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
            (
                e.time_us / 1_000_000,
                text(e.client),
                e.method,
                text(e.url),
                e.status,
                e.bytes,
            )
        }
        other => panic!("{line}: {other:?}"),
    }
}

/// Checks lines that are skipped, each preceded by its reason; `@` stands for a time in the Common Log Format.
fn skips(format: Format, lines: &str) {
    for line in lines.trim().lines() {
        let (reason, line) = line.split_once(": ").expect("a reason and a line");
        let line = line.replace('@', "[01/Jul/1995:04:00:01 +0000]");
        let line = line.replace("<tab>", "\t");
        let mut parser = Parser::named(format);
        let found = parser.parse(line.as_bytes()).expect_err(&line);
        assert_eq!(format!("{found:?}"), reason, "{line}");
    }
}

fn expect(
    time_s: u64,
    client: &str,
    url: &str,
    bytes: Option<u64>,
) -> (u64, String, Method, String, u16, Option<u64>) {
    (time_s, client.into(), Method::Get, url.into(), 200, bytes)
}

#[test]
fn every_example_parses() {
    for format in Format::ALL {
        let line = format.example().replace("<tab>", "\t");
        if format == Format::LogFormat {
            assert!(line.parse::<FormatSpec>().is_ok());
            continue;
        }
        let mut parser = Parser::named(format);
        assert!(parser.parse(line.as_bytes()).is_ok(), "{format}: {line}");
    }
}

#[test]
fn common() {
    let line = r#"10.0.0.1 - frank [01/Jul/1995:00:00:01 -0400] "GET /a.gif HTTP/1.0" 200 2326"#;
    assert_eq!(
        entry(Format::Common, line),
        expect(804_571_201, "10.0.0.1", "/a.gif", Some(2326))
    );
    // HTTP/0.9, an escaped quote, an unescaped quote, a user name with a space, a space in the URL, no size.
    let at = "[01/Jul/1995:04:00:01 +0000]";
    let url = |line: String| entry(Format::Common, &line).3;
    assert_eq!(url(format!(r#"h - - {at} "GET /a" 200 -"#)), "/a");
    assert_eq!(
        url(format!(r#"h - - {at} "GET /a\"b HTTP/1.0" 200 1"#)),
        r#"/a\"b"#
    );
    assert_eq!(
        url(format!(r#"h - - {at} "GET /a"b HTTP/1.0" 200 1"#)),
        r#"/a"b"#
    );
    assert_eq!(
        url(format!(r#"h - a b {at} "GET /a b HTTP/1.0" 200 1"#)),
        "/a b"
    );
    assert_eq!(
        entry(
            Format::Common,
            &format!(r#"h - - {at} "POST /a HTTP/1.0" 200 -"#)
        )
        .5,
        None
    );
    assert_eq!(
        entry(
            Format::Common,
            &format!(r#"h - - {at} "POST /a HTTP/1.0" 200 -"#)
        )
        .2,
        Method::Post
    );
}

#[test]
fn malformed_common() {
    for blank in ["", "   "] {
        let mut parser = Parser::named(Format::Common);
        assert_eq!(parser.parse(blank.as_bytes()), Err(SkipReason::Blank));
    }
    let lines = r#"
MissingFields: word
MissingFields: h @ "GET / HTTP/1.0" 200 1
Time: h - - no time
Time: h - - [32/Jul/1995:04:00:01 +0000] "GET / HTTP/1.0" 200 1
Request: h - - @ GET / HTTP/1.0 200 1
NoRequest: h - - @ "-" 408 -
Request: h - - @ "\x16\x03 x" 400 1
Status: h - - @ "GET / HTTP/1.0" abc 1
Status: h - - @ "GET / HTTP/1.0" 20 1
Bytes: h - - @ "GET / HTTP/1.0" 200 -5
Bytes: h - - @ "GET / HTTP/1.0" 200 99999999999999999999
MissingFields: h - - @ "GET / HTTP/1.0" 200
ExtraFields: h - - @ "GET / HTTP/1.0" 200 1 "ref" "agent"
Client:  - - @ "GET / HTTP/1.0" 200 1
"#;
    skips(Format::Common, lines);
}

#[test]
fn combined() {
    let line = r#"::1 - - [01/Jul/1995:04:00:01 +0000] "GET /a HTTP/1.1" 200 5 "http://x/" "Mozilla (X; \"Y\" 404 5)""#;
    assert_eq!(
        entry(Format::Combined, line),
        expect(804_571_201, "::1", "/a", Some(5))
    );
}

#[test]
fn epa_takes_the_last_fields_from_the_right() {
    let line = r#"h [30:00:00:04] "GET /a"b c" HTTP/1.0" 200 12"#;
    assert_eq!(
        entry(Format::Epa, line),
        expect(30 * 86_400 + 4, "h", r#"/a"b c""#, Some(12))
    );
    let mut parser = Parser::named(Format::Epa);
    let latin1 = b"h [30:00:00:04] \"GET /\xe9\xa0 HTTP/1.0\" 404 -";
    assert!(
        matches!(parser.parse(latin1), Ok(Parsed::Entry(e)) if e.url == b"/\xe9\xa0" && e.bytes.is_none())
    );
    let lines = r#"
Time: h [30:00:00] "GET / HTTP/1.0" 200 1
Time: h [32:00:00:00] "GET / HTTP/1.0" 200 1
Bytes: h [30:00:00:00] "GET / HTTP/1.0" 200 x
Request: h [30:00:00:00] GET / 200 1
"#;
    skips(Format::Epa, lines);
}

#[test]
fn epa_times_continue_into_the_next_month() {
    let mut parser = Parser::named(Format::Epa);
    let mut time = |line: &str| match parser.parse(line.as_bytes()) {
        Ok(Parsed::Entry(e)) => e.time_us,
        other => panic!("{other:?}"),
    };
    let last = time(r#"h [31:23:59:59] "GET /" 200 1"#);
    assert_eq!(time(r#"h [01:00:00:00] "GET /" 200 1"#) - last, 1_000_000);
}

#[test]
fn nasa() {
    let line = "199.72.81.55\t-\t804571201\tGET\t/history/\t200\t6245\t\t";
    assert_eq!(
        entry(Format::NasaTsv, line),
        expect(804_571_201, "199.72.81.55", "/history/", Some(6245))
    );
    let mut parser = Parser::named(Format::NasaTsv);
    let header = b"host\tlogname\ttime\tmethod\turl\tresponse\tbytes";
    assert_eq!(parser.parse(header), Ok(Parsed::Directive));
    let lines = r#"
MissingFields: h<tab>-<tab>1<tab>GET<tab>/a<tab>200
Time: h<tab>-<tab>x<tab>GET<tab>/a<tab>200<tab>1
Time: h<tab>-<tab>18446744073709551615<tab>GET<tab>/a<tab>200<tab>1
Request: h<tab>-<tab>1<tab>GET<tab><tab>200<tab>1
"#;
    skips(Format::NasaTsv, lines);
}

#[test]
fn world_cup() {
    let line = "1044,30/Apr/1998,22:46:12,/images/a,b.gif,200,508";
    assert_eq!(
        entry(Format::WorldCupCsv, line),
        expect(893_976_372, "1044", "/images/a,b.gif", Some(508))
    );
    let lines = r#"
MissingFields: 1,30/Apr/1998,22:46:12,200,508
Time: 1,1998-04-30,22:46:12,/,200,508
Status: 1,30/Apr/1998,22:46:12,/,2x0,508
Bytes: 1,30/Apr/1998,22:46:12,/,200,5e3
Client: ,30/Apr/1998,22:46:12,/,200,5
"#;
    skips(Format::WorldCupCsv, lines);
}

#[test]
fn sdsc_has_no_sizes() {
    let line = "1+1: Tue Aug 22 00:00:05 1995 (/wow/a.gif): Sent binary: GET /wow/a.gif HTTP/1.0";
    let (time_s, client, method, url, status, bytes) = entry(Format::Sdsc, line);
    assert_eq!(
        (time_s, client.as_str(), method),
        (809_049_605, "1+1", Method::Get)
    );
    assert_eq!((url.as_str(), status, bytes), ("/wow/a.gif", 0, None));
    assert!(!Parser::named(Format::Sdsc).has_sizes());
    let line = "2+1: Tue Aug  1 00:00:05 1995 (/a): Sent CGI output: POST /cgi/a HTTP/1.0";
    assert_eq!(entry(Format::Sdsc, line).2, Method::Post);
    let lines = r#"
Time: 1+1: Tue Aug 22 1995 (/a): Sent text: GET /a
MissingFields: 1+1: Tue Aug 22 00:00:05 1995 /a
Request: 1+1: Tue Aug 22 00:00:05 1995 (/a)
"#;
    skips(Format::Sdsc, lines);
}

#[test]
fn w3c_columns_come_from_the_fields_directive() {
    let mut parser = Parser::named(Format::W3c);
    let line = b"2002-05-02 17:42:15.25 /a \"x y\" 172.22.255.255 GET 200 1500";
    assert_eq!(parser.parse(line), Err(SkipReason::NoFields));
    assert_eq!(parser.parse(b"#Version: 1.0"), Ok(Parsed::Directive));
    let fields = b"#Fields: date time cs-uri-stem cs(User-Agent) c-ip cs-method sc-status sc-bytes";
    assert_eq!(parser.parse(fields), Ok(Parsed::Directive));
    let Ok(Parsed::Entry(entry)) = parser.parse(line) else {
        panic!("not parsed")
    };
    assert_eq!(
        (entry.time_us, entry.client, entry.url),
        (1_020_361_335_250_000, &b"172.22.255.255"[..], &b"/a"[..])
    );
    assert_eq!((entry.status, entry.bytes), (200, Some(1500)));
    assert_eq!(
        parser.parse(b"2002-05-02 17:42:15 /a"),
        Err(SkipReason::MissingFields)
    );
    assert_eq!(
        parser.parse(b"2002-05-02 17:42 /a - 1.1.1.1 GET 200 1"),
        Err(SkipReason::Time)
    );
    assert!(parser.has_sizes());
}

#[test]
fn w3c_with_date_directive_query_and_no_sizes() {
    let mut parser = Parser::named(Format::W3c);
    assert!(parser.parse(b"#Date: 2002-05-02 17:42:15").is_ok());
    assert!(
        parser
            .parse(b"#Fields: time c-ip cs-method cs-uri-stem cs-uri-query sc-status")
            .is_ok()
    );
    let Ok(Parsed::Entry(entry)) = parser.parse(b"17:42:15\t1.1.1.1\tGET\t/a\tq=1\t304") else {
        panic!("not parsed")
    };
    assert_eq!(
        (entry.url, entry.bytes, entry.status),
        (&b"/a?q=1"[..], None, 304)
    );
    let Ok(Parsed::Entry(entry)) = parser.parse(b"17:42:15 1.1.1.1 GET /a - 304") else {
        panic!("not parsed")
    };
    assert_eq!(entry.url, b"/a");
    assert!(!parser.has_sizes());
}
