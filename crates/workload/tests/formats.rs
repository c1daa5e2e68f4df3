//! Reads lines of each format as servers write them, including unusual ones. The tests name a format only if it cannot be detected.

use baton_workload::Log;
use baton_workload::log::{Format, FormatSpec, LogError, Method, ReadOptions, SkipReason};
use std::path::Path;

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

/// Asserts that the log has this format and these requests, and that no line was skipped.
#[track_caller]
fn assert_rows(log: &Log, format: Format, expected: &[Row<'_>]) {
    assert_eq!(log.format, format);
    assert_eq!(log.skipped.total(), 0, "{}", log.skipped);
    let rows: Vec<Row<'_>> = log
        .requests
        .iter()
        .map(|r| {
            (
                r.time_us / 1_000_000,
                text(log.clients.get(r.client)),
                r.method,
                text(log.urls.get(r.file)),
                r.status,
                r.bytes,
            )
        })
        .collect();
    assert_eq!(rows, expected);
}

use Method::{Get, Head, Other, Post};

/// 2024-11-24 08:17:57 UTC.
const AT: u64 = 1_732_436_277;

#[test]
fn apache_vhost_combined() {
    let log = read(
        r#"www.example.com:80 83.149.9.216 - - [24/Nov/2024:08:17:57 +0000] "GET /a HTTP/1.1" 200 203 "-" "Mozilla (\"x\")"
www.example.com:443 2001:db8::9 - frank [24/Nov/2024:09:17:58 +0100] "POST /b?c=d HTTP/1.1" 404 - "http://x/" "-"
[::1]:8080 ::1 - - [24/Nov/2024:08:17:59 +0000] "OPTIONS * HTTP/1.0" 200 126 "-" "Apache (internal dummy connection)"
"#,
    );
    let rows = [
        (AT, "83.149.9.216", Get, "/a", 200, 203),
        (AT + 1, "2001:db8::9", Post, "/b?c=d", 404, 0),
        (AT + 2, "::1", Other, "*", 200, 126),
    ];
    assert_rows(&log, Format::VhostCombined, &rows);
    assert_eq!(log.dashes, 1);
}

#[test]
fn apache_vhost_without_port() {
    let log = read(
        "a.example 10.0.0.1 - - [24/Nov/2024:08:17:57 +0000] \"GET /a HTTP/1.1\" 200 3\n\
         b.example 10.0.0.2 - J. Doe [24/Nov/2024:08:17:58 +0000] \"GET /b HTTP/1.1\" 200 4\n",
    );
    let rows = [
        (AT, "10.0.0.1", Get, "/a", 200, 3),
        (AT + 1, "10.0.0.2", Get, "/b", 200, 4),
    ];
    assert_rows(&log, Format::VhostCombined, &rows);
}

#[test]
fn clients_with_ports_and_users_with_blanks_are_no_virtual_hosts() {
    let log = read(
        "10.0.0.1:4711 - - [24/Nov/2024:08:17:57 +0000] \"GET /a HTTP/1.1\" 200 3\n\
         ::1 - J. R. Doe [24/Nov/2024:08:17:58 +0000] \"GET /b HTTP/1.1\" 200 4\n\
         10.0.0.1:4712 - J. R. Doe [24/Nov/2024:08:17:59 +0000] \"HEAD /c HTTP/1.1\" 200 5\n",
    );
    // A response to HEAD has no body, whatever size is logged.
    let rows = [
        (AT, "10.0.0.1", Get, "/a", 200, 3),
        (AT + 1, "::1", Get, "/b", 200, 4),
        (AT + 2, "10.0.0.1", Head, "/c", 200, 0),
    ];
    assert_rows(&log, Format::Common, &rows);
    assert_eq!(log.bodiless_bytes, 5);
}

#[test]
fn nginx_combined_and_its_main_with_x_forwarded_for() {
    let log = read(
        r#"10.0.0.1 - - [24/Nov/2024:08:17:57 +0000] "GET /a HTTP/1.1" 200 612 "-" "curl/8.5.0"
10.0.0.1 - - [24/Nov/2024:08:17:58 +0000] "GET /b HTTP/2.0" 000 0 "-" "a \x22b\x22" "203.0.113.7, 10.9.9.9"
10.0.0.1 - - [24/Nov/2024:08:17:59 +0000] "GET /c HTTP/2.0" 304 0 "-" "\"quoted\" \\" "2001:db8::7"
10.0.0.1 - - [24/Nov/2024:08:18:00 +0000] "GET /d HTTP/2.0" 200 1 "-" "x" "-" rt=0.004
"#,
    );
    let rows = [
        (AT, "10.0.0.1", Get, "/a", 200, 612),
        (AT + 1, "203.0.113.7", Get, "/b", 0, 0),
        (AT + 2, "2001:db8::7", Get, "/c", 304, 0),
        (AT + 3, "10.0.0.1", Get, "/d", 200, 1),
    ];
    assert_rows(&log, Format::Combined, &rows);
    assert_eq!(log.forwarded, 2);
}

#[test]
fn x_forwarded_for_in_place_of_the_host() {
    let log = read(
        "203.0.113.7, 10.0.0.2 - - [24/Nov/2024:08:17:57 +0000] \"GET /a HTTP/1.1\" 200 3 \"-\" \"x\"\n\
         203.0.113.8, 10.0.0.3, 10.0.0.2 - - [24/Nov/2024:08:17:58 +0000] \"GET /a HTTP/1.1\" 200 3 \"-\" \"x\"\n",
    );
    let rows = [
        (AT, "203.0.113.7", Get, "/a", 200, 3),
        (AT + 1, "203.0.113.8", Get, "/a", 200, 3),
    ];
    assert_rows(&log, Format::Combined, &rows);
    assert_eq!(log.forwarded, 2);
}

#[test]
fn the_traefik_format_is_combined_with_more_fields() {
    let log = read(
        r#"10.0.0.1 - - [24/Nov/2024:08:17:57 +0000] "GET /a HTTP/2.0" 200 19 "-" "-" 1 "web@docker" "http://10.0.0.2:8080" 4ms
"#,
    );
    assert_rows(
        &log,
        Format::Combined,
        &[(AT, "10.0.0.1", Get, "/a", 200, 19)],
    );
}

#[test]
fn squid_native() {
    let log = read(
        "1732436277.603    310 192.0.2.1 TCP_MISS/200 1234 GET http://www.example.com/a?b - HIER_DIRECT/192.0.2.5 text/html\n\
         1732436278.001     -2 2001:db8::1 TCP_HIT/304 220 GET http://www.example.com/b frank HIER_NONE/- -\n\
         1732436279.120  90012 192.0.2.1 TCP_TUNNEL/200 5821 CONNECT www.example.com:443 - HIER_DIRECT/192.0.2.5 -\n\
         1732436280.120      0 192.0.2.1 TCP_MISS_ABORTED/000 0 GET http://www.example.com/c - HIER_DIRECT/192.0.2.5 -\n",
    );
    let rows = [
        (
            AT,
            "192.0.2.1",
            Get,
            "http://www.example.com/a?b",
            200,
            1234,
        ),
        (
            AT + 1,
            "2001:db8::1",
            Get,
            "http://www.example.com/b",
            304,
            0,
        ),
        (AT + 2, "192.0.2.1", Other, "www.example.com:443", 200, 5821),
        (AT + 3, "192.0.2.1", Get, "http://www.example.com/c", 0, 0),
    ];
    assert_rows(&log, Format::Squid, &rows);
    assert_eq!(log.requests[0].time_us % 1_000_000, 603_000);
    let none = "1732436277.603 0 192.0.2.1 NONE_NONE/000 0 - error:transaction-end-before-headers - HIER_NONE/- -\n";
    let error = try_read(none.as_bytes(), Some("squid")).unwrap_err();
    assert!(
        matches!(error, LogError::NoRequests { skipped, .. } if skipped.count(SkipReason::NoRequest) == 1)
    );
}

#[test]
fn haproxy_http() {
    let log = read(
        r#"Nov 24 08:17:57 lb haproxy[14389]: 10.0.1.2:33317 [24/Nov/2024:08:17:57.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /index.html HTTP/1.1"
<134>1 2024-11-24T08:17:58Z lb haproxy 14389 - - 2001:db8::1:33318 [24/Nov/2024:08:17:58.001] https~ app/<NOSRV> -1/-1/-1/-1/+5 503 +217 - - SC-- 2/2/0/0/3 0/0 "POST /api?x={1|2} HTTP/2.0"
10.0.1.2:33319 [24/Nov/2024:08:17:59.000] https~ app/srv2 0/0/0/1/1 200 99 a=1 b=2 --NI 1/1/0/0/0 0/0 {203.0.113.5, 10.3.3.3|Mozilla/5.0 (X11; Linux)|} {text/html|} "GET /b HTTP/1.1" 0/0000000000000000/0/0/0 1wt.eu/TLSv1.3/TLS_AES_256_GCM_SHA384
10.0.1.2:33320 [24/Nov/2024:08:18:00.000] http-in static/<NOSRV> -1/-1/-1/-1/8490 -1 0 - - CR-- 2/2/2/0/0 0/0 "GET /c HTTP/1.1"
"#,
    );
    let rows = [
        (AT, "10.0.1.2", Get, "/index.html", 200, 2750),
        (AT + 1, "2001:db8::1", Post, "/api?x={1|2}", 503, 217),
        (AT + 2, "203.0.113.5", Get, "/b", 200, 99),
        (AT + 3, "10.0.1.2", Get, "/c", 0, 0),
    ];
    assert_rows(&log, Format::Haproxy, &rows);
    assert_eq!(log.forwarded, 1);
    // HAProxy also logs lines that are not requests.
    let more = r#"haproxy[1]: Proxy http-in started.
haproxy[1]: 10.0.1.2:33313 [24/Nov/2024:12:12:51.443] fnt bck/srv1 0/0/5007 212 -- 0/0/0/0/3 0/0
haproxy[1]: 10.0.1.2:33317 [24/Nov/2024:08:17:57.655] http-in http-in/<NOSRV> -1/-1/-1/-1/0 400 187 - - PR-- 1/1/0/0/0 0/0 "<BADREQ>"
haproxy[1]: 10.0.1.2:33317 [24/Nov/2024:08:17:57.655] f b/s 1/0/0/1/2 200 1 - - ---- 1/1/0/0/0 0/0 "GET /a HTTP/1.1"
"#;
    let options = ReadOptions {
        format: FormatSpec::named(Format::Haproxy),
        allow_skipped: true,
        ..ReadOptions::default()
    };
    let log = Log::from_reader(Path::new("x"), more.as_bytes(), &options).unwrap();
    assert_eq!((log.requests.len(), log.skipped.total()), (1, 3));
}

#[test]
fn cloudfront_standard_logs() {
    let fields = "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) \
                  cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes time-taken \
                  x-forwarded-for ssl-protocol\n";
    let line = |second: u32, ip: &str, query: &str, forwarded: &str| {
        format!(
            "2024-11-24\t08:17:{second}\tFRA56-C1\t2390\t{ip}\tGET\td111.cloudfront.net\t/view/my%20file.html\t200\t-\tMozilla/5.0%20(X11;\
             %20Linux)\t{query}\t-\tHit\tSOX4xwn4XV6Q4rgb7XiVGOHms_BGlTAC4KyHmureZmBNrjGdRLiNIQ==\td111.cloudfront.net\thttps\t23\t0.001\t\
             {forwarded}\tTLSv1.3\n"
        )
    };
    let text = fields.to_owned()
        + &line(57, "192.0.2.10", "-", "-")
        + &line(58, "2001:db8::1", "a=b&c", "203.0.113.9");
    let url = "/view/my%20file.html";
    let with_query = format!("{url}?a=b&c");
    let rows = [
        (AT, "192.0.2.10", Get, url, 200, 2390),
        (AT + 1, "203.0.113.9", Get, &with_query, 200, 2390),
    ];
    assert_rows(&read(&text), Format::W3c, &rows);
}

#[test]
fn iis_with_a_user_agent_and_an_empty_value() {
    let log = read(
        "#Software: Microsoft Internet Information Services 10.0\r\n#Version: 1.0\r\n#Date: 2024-11-24 08:17:57\r\n\
         #Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) sc-status sc-substatus \
         sc-win32-status sc-bytes cs-bytes time-taken\r\n\
         2024-11-24 08:17:57 10.1.1.1 GET /a.aspx id=3 443 - 198.51.100.7 Mozilla/5.0+(Windows+NT) 200 0 0 5120 402 15\r\n",
    );
    assert_rows(
        &log,
        Format::W3c,
        &[(AT, "198.51.100.7", Get, "/a.aspx?id=3", 200, 5120)],
    );
}

#[test]
fn json_of_nginx_with_numbers_as_strings() {
    let log = read(
        r#"{"time_local":"24/Nov/2024:08:17:57 +0000","remote_addr":"10.0.0.1","request":"GET /a?b HTTP/1.1","status": "200","body_bytes_sent":"612","http_user_agent":"a \"b\" {c}"}
{"msec":"1732436278.250","remote_addr":"2001:db8::1","request_method":"POST","request_uri":"/c","uri":"/index.php","args":"x=y","status":"404","body_bytes_sent":"-","http_x_forwarded_for":"203.0.113.7, 10.0.0.1"}
{"time_iso8601":"2024-11-24T09:17:59+01:00","remote_addr":"10.0.0.1","request_method":"GET","uri":"/d","args":"x=y","status":304,"bytes_sent":180,"http_x_forwarded_for":"-"}
"#,
    );
    let rows = [
        (AT, "10.0.0.1", Get, "/a?b", 200, 612),
        (AT + 1, "203.0.113.7", Post, "/c?x=y", 404, 0),
        (AT + 2, "10.0.0.1", Get, "/d?x=y", 304, 0),
    ];
    assert_rows(&log, Format::Json, &rows);
    assert_eq!((log.forwarded, log.dashes), (1, 1));
}

#[test]
fn json_of_caddy() {
    let log = read(
        r#"{"level":"info","ts":1732436277.5241024,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"10.0.0.1","remote_port":"41342","client_ip":"203.0.113.7","proto":"HTTP/2.0","method":"GET","host":"localhost","uri":"/a?b","headers":{"User-Agent":["curl/7.82.0"],"Accept":["*/*"]},"tls":{"resumed":false,"version":772}},"bytes_read":0,"user_id":"","duration":0.000929675,"size":10900,"status":200,"resp_headers":{"Server":["Caddy"],"Content-Encoding":["gzip"]}}
{"level":"info","ts":1732436278.1,"logger":"http.log.access","msg":"handled request","request":{"remote_addr":"10.0.0.1:41342","proto":"HTTP/1.1","method":"HEAD","host":"localhost","uri":"/b","headers":{"X-Forwarded-For":["203.0.113.8, 10.0.0.2","x"]}},"common_log":"-","duration":0.1,"size":0,"status":304}
"#,
    );
    let rows = [
        (AT, "203.0.113.7", Get, "/a?b", 200, 10_900),
        (AT + 1, "203.0.113.8", Head, "/b", 304, 0),
    ];
    assert_rows(&log, Format::Json, &rows);
}

#[test]
fn json_of_traefik() {
    let log = read(
        r#"{"ClientAddr":"10.0.0.1:4711","ClientHost":"10.0.0.1","ClientPort":"4711","ClientUsername":"-","DownstreamContentSize":19,"DownstreamStatus":404,"Duration":71600,"OriginContentSize":20,"OriginStatus":200,"RequestAddr":"localhost:8080","RequestContentSize":5,"RequestCount":1,"RequestHost":"localhost","RequestMethod":"GET","RequestPath":"/a","RequestProtocol":"HTTP/1.1","StartLocal":"2024-11-24T09:17:57.123456789+01:00","StartUTC":"2024-11-24T08:17:57.123456789Z","entryPointName":"web","level":"info","msg":"","request_X-Forwarded-For":"203.0.113.7","time":"2024-11-24T08:17:58Z"}
"#,
    );
    assert_rows(
        &log,
        Format::Json,
        &[(AT, "203.0.113.7", Get, "/a", 404, 19)],
    );
}

#[test]
fn json_of_apache_as_it_is_often_set_up_and_of_google() {
    let log = read(
        r#"{ "time":"[24/Nov/2024:08:17:57 +0000]", "remoteIP":"10.0.0.1", "host":"www", "request":"/a", "query":"?b=c", "method":"GET", "status":"200", "userAgent":"-", "bytes":"12" }
{"httpRequest":{"remoteIp":"10.0.0.2","requestMethod":"GET","requestUrl":"https://x/b","responseSize":"77","status":200},"timestamp":"2024-11-24T08:17:58.000001Z"}
"#,
    );
    let rows = [
        (AT, "10.0.0.1", Get, "/a?b=c", 200, 12),
        (AT + 1, "10.0.0.2", Get, "https://x/b", 200, 77),
    ];
    assert_rows(&log, Format::Json, &rows);
}

#[test]
fn json_fields_are_mapped() {
    let text = r#"{"when":1732436277000,"who":{"addr":"10.0.0.1"},"what":"/a","ts":5,"len":"9"}
"#;
    let error = try_read(text.as_bytes(), None).unwrap_err().to_string();
    assert!(error.contains("json:client=NAME"), "{error}");
    let log = read_as(text, "json:time=when,client=who.addr,url=what,bytes=len");
    assert_rows(&log, Format::Json, &[(AT, "10.0.0.1", Get, "/a", 0, 9)]);
    // Without a mapped size, the log has no sizes.
    assert!(!read_as(text, "json:time=when,client=who.addr,url=what").has_sizes);
}

#[test]
fn lines_that_are_not_json_are_skipped() {
    let text = r#"{"ts":1732436277,"client":"a","url":"/a","size":1}
{"ts":1732436278,"client":"a","url":"/a","size":1
[1]
{"ts":1732436279,"url":"/a"}
{"client":"a","url":"/a"}
{"ts":1732436279,"client":"a"}
{"ts":1732436280,"client":"a","url":"/a","size":[2,3],"status":null}
{"ts":1732436281,"client":"a","url":"/a","size":2} {"ts":1}
{"ts":1732436282,"client":"a","url":"/a","size":-1}
"#;
    let options = ReadOptions {
        allow_skipped: true,
        ..ReadOptions::default()
    };
    let log = Log::from_reader(Path::new("x"), text.as_bytes(), &options).unwrap();
    assert_eq!(log.requests.len(), 2);
    let count = |reason| log.skipped.count(reason);
    assert_eq!(count(SkipReason::NotJson), 3);
    assert_eq!(count(SkipReason::Client), 1);
    assert_eq!(count(SkipReason::Time), 1);
    assert_eq!(count(SkipReason::Request), 1);
    assert_eq!(count(SkipReason::Bytes), 1);
}

#[test]
fn csv_with_any_separator_and_quotes() {
    for separator in [",", ";", "\t", "|"] {
        let text = "timestamp,Client IP,method,url,Status Code,bytes\n\
                    2024-11-24T08:17:57Z,10.0.0.1,GET,/a,200,12\n\
                    2024-11-24 08:17:58,2001:db8::1,POST,\"/b,;\"\"c\",404,-\n"
            .replace("\"/b,;\"\"c\"", "QUOTED")
            .replace(',', separator)
            .replace("QUOTED", "\"/b,;\"\"c\"");
        let rows = [
            (AT, "10.0.0.1", Get, "/a", 200, 12),
            (AT + 1, "2001:db8::1", Post, "/b,;\"c", 404, 0),
        ];
        assert_rows(&read(&text), Format::Csv, &rows);
    }
}

#[test]
fn csv_with_day_and_time_apart_and_mapped_columns() {
    let log = read("date,time,client,path,bytes\n2024-11-24,08:17:57,a,/a,1\n");
    assert_rows(&log, Format::Csv, &[(AT, "a", Get, "/a", 0, 1)]);
    let text = "host,time,method,url,response,bytes\na.edu,1732436277,GET,/a,200,5\n";
    assert!(matches!(
        try_read(text.as_bytes(), None),
        Err(LogError::UnknownFormat { .. })
    ));
    let log = read_as(text, "csv:client=host");
    assert_rows(&log, Format::Csv, &[(AT, "a.edu", Get, "/a", 200, 5)]);
    let error = try_read(text.as_bytes(), Some("csv"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("no #Fields or header before it"), "{error}");
    // One line has too few columns, and another has more than the header.
    let log = read(
        "time,client,url\n1732436277,a,/a\n1732436278,a\n1732436279,a,/b,c\n1732436280,a,/c\n",
    );
    assert_eq!((log.requests.len(), log.has_sizes), (3, false));
}

#[test]
fn formats_spelled_as_apache_s_log_format() {
    let rows = [(AT, "10.0.0.1", Get, "/a \\\"b", 200, 5)];
    let line = r#"10.0.0.1 [24/Nov/2024:08:17:57 +0000] "GET /a \"b HTTP/1.1" 200 5"#;
    assert_rows(
        &read_as(line, r#"%h %t "%r" %>s %b"#),
        Format::LogFormat,
        &rows,
    );
    assert_rows(
        &read_as(line, r#"%h %t \"%r\" %>s %b"#),
        Format::LogFormat,
        &rows,
    );

    let format = r#"%v:%p|%{X-Forwarded-For}i|%a|%h|%{%Y-%m-%d}t %{%T}t %{msec_frac}t|%m %U%q %H|%s>%>s|%I+%O|%D us|100%%"#;
    let line = "www:80|-|10.0.0.2|host.example|2024-11-24 08:17:57 123|GET /a?b HTTP/1.1|301>200|80+9|17 us|100%\n\
                www:80|203.0.113.7, 10.0.0.2|10.0.0.2|-|2024-11-24 08:17:58 123|GET /b HTTP/1.1|200>200|80+9|17 us|100%\n";
    let rows = [
        (AT, "10.0.0.2", Get, "/a?b", 200, 9),
        (AT + 1, "203.0.113.7", Get, "/b", 200, 9),
    ];
    assert_rows(&read_as(line, format), Format::LogFormat, &rows);

    let line = "doe 10.0.0.1 2024-11-24 09:17:57 +0100 /a -";
    let log = read_as(line, "%u %h %{%Y-%m-%d %H:%M:%S %z}t %U %b");
    assert_rows(
        &log,
        Format::LogFormat,
        &[(AT, "10.0.0.1", Get, "/a", 0, 0)],
    );
    let log = read_as("10.0.0.1 1732436277000 /a -", "%h %{msec}t %U %b");
    assert_rows(
        &log,
        Format::LogFormat,
        &[(AT, "10.0.0.1", Get, "/a", 0, 0)],
    );
}

#[test]
fn formats_spelled_as_nginx_s_log_format() {
    let format = r#"$host $remote_addr [$time_iso8601] "$request" $status ${body_bytes_sent}b "$http_x_forwarded_for" $request_time"#;
    let line =
        r#"www 10.0.0.1 [2024-11-24T08:17:57+00:00] "GET /a HTTP/1.1" 200 5b "203.0.113.7" 0.003"#;
    assert_rows(
        &read_as(line, format),
        Format::LogFormat,
        &[(AT, "203.0.113.7", Get, "/a", 200, 5)],
    );
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
fn lines_behind_what_others_write_in_front_have_the_same_clients() {
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
fn an_escaped_quote_does_not_end_a_request() {
    for quoted in [
        r#"\"a\" 404 7 b"#,
        r#"a\\\" 404 7 "b"#,
        r"\x22a\x22 404 7 b",
    ] {
        let text = format!(
            "198.51.100.1 - - [24/Nov/2024:08:17:57 +0000] \"GET /s?q={quoted} HTTP/1.1\" 200 100 \"-\" \"agent\"\n"
        );
        let url = format!("/s?q={quoted}");
        let rows = [(AT, "198.51.100.1", Get, url.as_str(), 200, 100)];
        assert_rows(&read(&text), Format::Combined, &rows);
        let format = r#"%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i""#;
        assert_rows(&read_as(&text, format), Format::LogFormat, &rows);
    }
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
fn load_balancers_with_ipv6_clients_and_connections_without_a_request() {
    let line = |client: &str, request: &str| {
        format!(
            "https 2024-11-24T08:17:57.123456Z app/lb/50dc {client} 10.0.0.1:80 0.001 0.002 0.000 200 200 34 366 \"{request}\" \"a \\\"b\\\"\" - \
             - arn \"Root=1\" \"-\" \"-\" 0 2024-11-24T08:17:57.0Z \"forward\" \"-\" \"-\"\n"
        )
    };
    let text = line("2001:db8::1:40000", "GET https://www:443/a HTTP/2.0")
        + &line("[2001:db8::2]:40000", "HEAD /b HTTP/2.0");
    let rows = [
        (AT, "2001:db8::1", Get, "https://www:443/a", 200, 366),
        (AT, "2001:db8::2", Head, "/b", 200, 0),
    ];
    assert_rows(&read(&text), Format::Alb, &rows);
    let log = read(&(text + &line("192.0.2.1:1", "- - -")));
    assert_eq!(
        (log.requests.len(), log.skipped.count(SkipReason::NoRequest)),
        (2, 1)
    );
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
fn logs_without_requests_are_named() {
    let logs = [
        (
            "Nov 24 08:17:57 lb haproxy[9]: 192.0.2.1:40000 [24/Nov/2024:08:17:57.123] fe be/s1 0/0/5007 100 -- 1/1/1/1/0 0/0",
            "HAProxy's log of TCP connections",
        ),
        (
            "2024/11/24 08:17:57 [error] 12#12: *1 open() \"/x\" failed, client: 192.0.2.1, request: \"GET /x HTTP/1.1\"",
            "nginx's error log",
        ),
        (
            "[Sun Nov 24 08:17:57.123456 2024] [core:error] [pid 12] [client 192.0.2.1:9] AH00126: x",
            "Apache's error log",
        ),
    ];
    for (line, name) in logs {
        let error = try_read(format!("{line}\n{line}\n").as_bytes(), None)
            .unwrap_err()
            .to_string();
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn w3c_with_local_times_doubled_quotes_and_other_directives() {
    let log = read(
        "#Software: x\n#Version: 1.0\n#Fields: date-local time-local c-ip cs(User-Agent) cs-method cs-uri-stem sc-status sc-bytes\n\
         2024-11-24 08:17:57.5 192.0.2.1 \"a \"\"b\"\" c\" GET /a 200 5\n\
         #Fields: time-local date-local time date cs-uri-stem c-ip c-status sc-bytes\n\
         09:17:58 2024-11-24 08:17:58 2024-11-24 /b 192.0.2.2 304 6\n\
         #Date: 2024-11-24\n#Fields: time c-ip cs-uri-stem sc-bytes\n\
         23:59:59 192.0.2.3 /c 7\n00:00:01 192.0.2.3 /c 8\n",
    );
    let rows = [
        (AT, "192.0.2.1", Get, "/a", 200, 5),
        (AT + 1, "192.0.2.2", Get, "/b", 304, 0),
        (1_732_492_799, "192.0.2.3", Get, "/c", 0, 7),
        (1_732_492_801, "192.0.2.3", Get, "/c", 0, 8),
    ];
    assert_rows(&log, Format::W3c, &rows);
}

#[test]
fn json_as_nginx_writes_it_without_escapes_for_json() {
    let log = read(
        r#"{"remote_addr":"192.0.2.1","time_iso8601":"2024-11-24T08:17:57+00:00","request":"GET /a?\x22b\x22 HTTP/1.1","status":"200","body_bytes_sent":"9","ua":"a \x22b\x22 \x5C"}
"#,
    );
    assert_rows(
        &log,
        Format::Json,
        &[(AT, "192.0.2.1", Get, "/a?\"b\"", 200, 9)],
    );
}

#[test]
fn json_of_gateways_and_content_networks() {
    let log = read(
        r#"{"timeStamp":"2024-11-24T08:17:57Z","properties":{"clientIP":"192.0.2.1","httpMethod":"GET","requestUri":"/a","requestQuery":"b=c","httpStatus":200,"receivedBytes":65,"sentBytes":553}}
{"ClientIP":"192.0.2.2","ClientRequestMethod":"POST","ClientRequestURI":"/b","EdgeResponseStatus":200,"EdgeResponseBytes":77,"EdgeStartTimestamp":"2024-11-24T08:17:58Z"}
{"cliIP":"192.0.2.3","reqMethod":"GET","reqPath":"/c","statusCode":"404","bytes":"9","reqTimeSec":"1732436279.25"}
"#,
    );
    let rows = [
        (AT, "192.0.2.1", Get, "/a?b=c", 200, 553),
        (AT + 1, "192.0.2.2", Post, "/b", 200, 77),
        (AT + 2, "192.0.2.3", Get, "/c", 404, 9),
    ];
    assert_rows(&log, Format::Json, &rows);
}

#[test]
fn sizes_may_exceed_those_of_32_bits() {
    let text = many(|i, client, second| {
        combined(i, client, second).replace(&format!(" 200 {}", 100 + i), " 200 4700000000")
    });
    assert_eq!(read(&text).content_bytes(), 24 * 4_700_000_000);
}

/// Some servers do not escape quotes. A line of Common ends with status and size.
#[test]
fn an_unescaped_quote_does_not_end_a_request_before_the_last_one() {
    let line =
        r#"192.0.2.1 - - [24/Nov/2024:08:17:57 +0000] "GET /s?q="a" 404 7 b HTTP/1.1" 200 100"#;
    let url = r#"/s?q="a" 404 7 b"#;
    let rows = [(AT, "192.0.2.1", Get, url, 200, 100)];
    assert_rows(&read(line), Format::Common, &rows);
    let python = line
        .replace("2024:08", "2024 08")
        .replace(" +0000", "")
        .replace("200 100", "200 -");
    assert_rows(
        &read(&python),
        Format::Python,
        &[(AT, "192.0.2.1", Get, url, 200, 0)],
    );
}
