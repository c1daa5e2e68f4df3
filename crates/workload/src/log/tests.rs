//! Tests of whole files: detection, compression, errors, and the public excerpts.

use super::*;
use std::path::Path;

const LINES: [&str; 3] = [
    "2,30/Apr/1998,22:46:13,/a,200,508",
    "1,30/Apr/1998,22:46:12,/b,304,77",
    "2,30/Apr/1998,22:46:13,/a,206,100",
];

fn read(text: &[u8]) -> Result<Log, LogError> {
    Log::from_reader(Path::new("some.log"), text, &ReadOptions::default())
}

#[test]
fn requests_are_sorted_by_time_and_sizes_follow_the_rule() {
    let log = read(LINES.join("\n").as_bytes()).unwrap();
    assert_eq!(log.format, Format::WorldCupCsv);
    assert!(log.resorted);
    let seen: Vec<_> = log
        .requests
        .iter()
        .map(|r| (log.urls.get(r.file), r.status, r.bytes))
        .collect();
    assert_eq!(
        seen,
        [(&b"/b"[..], 304, 0), (b"/a", 200, 508), (b"/a", 206, 100)]
    );
    assert_eq!(log.files.size(log.urls.find(b"/a").unwrap()), 508);
    assert_eq!(log.files.size(log.urls.find(b"/b").unwrap()), 0);
    assert_eq!((log.content_bytes(), log.bodiless_bytes), (608, 77));
    assert_eq!(log.replayable(), Ok(()));
}

#[cfg(feature = "compressed-logs")]
#[test]
fn compression_is_detected_from_the_content() {
    use std::io::Write;

    let text = LINES.join("\r\n");
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(text.as_bytes()).unwrap();
    let mut bz2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bz2.write_all(text.as_bytes()).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(text.as_bytes()).unwrap();
    let zst = zstd::encode_all(text.as_bytes(), 1).unwrap();
    for bytes in [
        bz2.finish().unwrap(),
        gz.finish().unwrap(),
        xz.finish().unwrap(),
        zst,
        text.into_bytes(),
    ] {
        let log = read(&bytes).unwrap();
        assert_eq!((log.requests.len(), log.skipped.total()), (3, 0));
    }
}

#[cfg(feature = "compressed-logs")]
#[test]
fn a_damaged_archive_is_an_error_that_names_file_and_line() {
    let text = LINES.join("\n").repeat(5000);
    let zst = zstd::encode_all(text.as_bytes(), 1).unwrap();
    let error = read(&zst[..zst.len() - 3]).unwrap_err();
    assert!(matches!(error, LogError::Io { .. }), "{error}");
    assert!(
        error
            .to_string()
            .starts_with("some.log: cannot read after line "),
        "{error}"
    );
}

#[test]
fn malformed_lines_are_counted_and_the_first_are_kept() {
    let mut text = LINES.join("\n");
    text.push_str("\n\nbad line\n3,30/Apr/1998,22:46:13,/a,200,12x\n");
    text.push_str("x".repeat(lines::MAX_LINE_BYTES + 1).as_str());
    let log = read(text.as_bytes()).unwrap();
    assert_eq!(log.requests.len(), 3);
    assert_eq!(log.skipped.total(), 4);
    assert_eq!(log.skipped.count(SkipReason::TooLong), 1);
    let examples: Vec<_> = log
        .skipped
        .reasons()
        .map(|(reason, skipped)| (skipped.first_line, reason))
        .collect();
    let expected = [
        (4, SkipReason::Blank),
        (7, SkipReason::TooLong),
        (5, SkipReason::MissingFields),
        (6, SkipReason::Bytes),
    ];
    assert_eq!(examples, expected);
    assert_eq!(log.skipped.share(), 0.5);
    let shown = log.skipped.to_string();
    assert!(
        shown.starts_with(
            "4 of 7 lines skipped: 1 blank line (as line 4: \"\"), 1 line longer than 64 KiB (as line 7"
        ),
        "{shown}"
    );
}

#[test]
fn a_log_that_is_skipped_for_the_most_part_is_refused_unless_that_is_allowed() {
    let good = LINES.map(|line| format!("{line}\n")).concat().repeat(100);
    let text = good + &"junk\n".repeat(301);
    let error = read(text.as_bytes()).unwrap_err();
    assert!(matches!(error, LogError::MostlySkipped { .. }));
    let message = error.to_string();
    let parts = [
        "301 of 601 lines skipped: 301 too few fields (as line 301: \"junk\")",
        "--allow-skipped",
        "workload.allow_skipped",
    ];
    for part in parts {
        assert!(message.contains(part), "{part}: {message}");
    }
    let allowed = ReadOptions {
        allow_skipped: true,
        ..ReadOptions::default()
    };
    let log = Log::from_reader(Path::new("x"), text.as_bytes(), &allowed).unwrap();
    assert_eq!(log.requests.len(), 300);
    let warnings = log.warnings();
    assert!(
        warnings[0].starts_with("50.1 % of the log is left out: 301 of 601 lines"),
        "{warnings:?}"
    );
}

#[test]
fn the_reported_line_is_one_that_does_not_fit() {
    let text = LINES.join("\n") + &"\njunk".repeat(50);
    let message = read(text.as_bytes()).unwrap_err().to_string();
    assert!(
        message.contains("only 3 of the first 53 lines are in a known access log format (world-cup-csv); line 4 is the first that is not: \"junk\""),
        "{message}"
    );
    let allowed = ReadOptions {
        allow_skipped: true,
        ..ReadOptions::default()
    };
    let log = Log::from_reader(Path::new("x"), text.as_bytes(), &allowed).unwrap();
    assert_eq!(log.format, Format::WorldCupCsv);
}

#[test]
fn few_skipped_lines_and_blank_ones_are_no_warning() {
    let good = LINES.map(|line| format!("{line}\n\n")).concat().repeat(40);
    let log = read((good.clone() + "junk\n").as_bytes()).unwrap();
    assert_eq!(log.skipped.total(), 121);
    assert_eq!(log.warnings(), Vec::<String>::new());
    let log = read((good + "junk\njunk\n").as_bytes()).unwrap();
    assert_eq!(log.warnings().len(), 1);
}

#[test]
fn one_client_for_nearly_all_requests_is_a_warning() {
    let line = |client: &str, at: u32| format!("{client},30/Apr/1998,22:46:{at:02},/a,200,508\n");
    let of = |proxy: u32, others: u32| -> Vec<String> {
        let proxy = (0..proxy).map(|at| line("10.0.0.1", at));
        let others = (0..others).map(|at| line(&at.to_string(), at));
        let text: String = proxy.chain(others).collect();
        read(text.as_bytes()).unwrap().warnings()
    };
    assert_eq!(of(19, 0).len(), 0);
    assert_eq!(of(44, 6).len(), 0);
    let warnings = of(45, 5);
    assert!(
        warnings[0].contains("one client, 10.0.0.1, has 90.0 % of the requests"),
        "{warnings:?}"
    );
}

#[test]
fn a_cancelled_reader_stops() {
    let text = LINES.join("\n").repeat(2000);
    let asked = std::cell::Cell::new(0);
    let cancelled = || {
        asked.set(asked.get() + 1);
        asked.get() == 3
    };
    let options = ReadOptions {
        cancelled: Some(&cancelled),
        ..ReadOptions::default()
    };
    let stopped = Log::from_reader(Path::new("x"), text.as_bytes(), &options);
    assert!(matches!(stopped, Err(LogError::Cancelled { .. })));
    assert_eq!(asked.get(), 3);
}

#[test]
fn other_files_are_named() {
    let error = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert_eq!(
        error(b"PK\x03\x04\x14\x00\x00\x00"),
        "some.log: is a zip archive, which cannot be read; unpack it first"
    );
    assert!(error(b"\xd4\xc3\xb2\xa1\x02\x00\x04\x00").contains("baton trace lifetimes"));
    let mut tar = b"access.log\0".repeat(24)[..257].to_vec();
    tar.extend_from_slice(b"ustar\x0000");
    assert!(error(&tar).contains("is a tar archive"));
    assert_eq!(
        error(&(0..=255).collect::<Vec<u8>>()),
        "some.log: is a binary file, which cannot be read; expected an access log"
    );
    let binary = error(&[0x80; 300]);
    assert!(binary.contains(r"\x80\x80"), "{binary}");
    assert!(binary.is_ascii() && binary.len() < 700, "{binary}");
}

#[test]
fn formats_are_distinguished() {
    for format in Format::ALL {
        let line = format.example().replace("<tab>", "\t");
        let text = match format {
            Format::W3c => format!("{line}\n2002-05-02 17:42:15 1.1.1.1 GET /a 200 5\n"),
            Format::Csv => format!("{line}\n893973604,1.1.1.1,GET,/a,200,5\n"),
            Format::LogFormat => continue,
            _ => format!("{line}\n{line}\n"),
        };
        let log = read(text.as_bytes()).unwrap();
        assert_eq!(log.format, format);
        assert_eq!(log.skipped.total(), 0, "{format}");
        assert_eq!(Format::from_name(format.name()), Some(format));
    }
}

#[test]
fn unknown_and_empty_files_are_refused() {
    let message = read(b"\nperiod,count\n1998-04-30 21:30:00,2\n")
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("some.log: line 2: \"period,count\""),
        "{message}"
    );
    assert!(message.contains("world-cup-csv"), "{message}");
    assert!(matches!(read(b""), Err(LogError::Empty { .. })));
    assert!(matches!(read(b"\n\n"), Err(LogError::Empty { .. })));
    let common = ReadOptions {
        format: FormatSpec::named(Format::Common),
        ..ReadOptions::default()
    };
    let forced = Log::from_reader(Path::new("x"), &b"a b c\n"[..], &common)
        .unwrap_err()
        .to_string();
    assert!(
        forced.contains("no line is in the format common"),
        "{forced}"
    );
    assert!(
        forced.contains("1 no time, or an invalid one (as line 1: \"a b c\")"),
        "{forced}"
    );
    let missing = Log::read(Path::new("/nonexistent/log"))
        .unwrap_err()
        .to_string();
    assert!(
        missing.starts_with("/nonexistent/log: cannot read: "),
        "{missing}"
    );
}

#[test]
fn a_log_without_sizes_is_read_but_not_replayable() {
    let log = read(Format::Sdsc.example().as_bytes()).unwrap();
    assert_eq!(
        log.replayable(),
        Err(NotReplayable::NoSizes {
            format: Format::Sdsc
        })
    );
    let log = read(b"1,30/Apr/1998,22:46:13,/a,304,-\n").unwrap();
    assert_eq!(
        (log.replayable(), log.dashes),
        (Err(NotReplayable::NoContent), 1)
    );
}

#[test]
fn a_written_log_reads_back_the_same() {
    let log = read(LINES.join("\n").as_bytes()).unwrap();
    let facts = |log: &Log| -> Vec<_> {
        let name = |r: &Request| {
            (
                log.clients.get(r.client).to_vec(),
                log.urls.get(r.file).to_vec(),
            )
        };
        log.requests
            .iter()
            .map(|r| (r.time_us, name(r), r.status, r.bytes, r.method))
            .collect()
    };
    for (layout, format) in [
        (Layout::Common, Format::Common),
        (Layout::Combined, Format::Combined),
    ] {
        let mut text = Vec::new();
        write_log(&log, layout, &mut text).unwrap();
        let again = read(&text).unwrap();
        assert_eq!(again.format, format);
        assert_eq!(facts(&again), facts(&log));
    }
}
