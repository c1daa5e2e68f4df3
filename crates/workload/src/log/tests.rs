//! Whole files: detection, compression, errors, and the public excerpts.

use super::*;

const LINES: [&str; 3] = [
    "2,30/Apr/1998,22:46:13,/a,200,508",
    "1,30/Apr/1998,22:46:12,/b,304,77",
    "2,30/Apr/1998,22:46:13,/a,206,100",
];

fn read(text: &[u8]) -> Result<Log, LogError> {
    Log::from_reader(Path::new("some.log"), text, None)
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
    assert_eq!(log.content_bytes(), 608);
    assert_eq!(log.replayable(), Ok(()));
}

#[cfg(feature = "compressed-logs")]
#[test]
fn compression_is_told_by_content() {
    use std::io::Write;

    let text = LINES.join("\r\n");
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(text.as_bytes()).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(text.as_bytes()).unwrap();
    let zst = zstd::encode_all(text.as_bytes(), 1).unwrap();
    for bytes in [
        gz.finish().unwrap(),
        xz.finish().unwrap(),
        zst,
        text.into_bytes(),
    ] {
        let log = read(&bytes).unwrap();
        assert_eq!((log.requests.len(), log.skipped.total()), (3, 0));
    }
}

#[cfg(not(feature = "compressed-logs"))]
#[test]
fn an_archive_that_this_build_cannot_read_is_an_error_that_says_why() {
    let error = read(&[0x28, 0xb5, 0x2f, 0xfd, 0, 0, 0]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "some.log: cannot read: compressed with Zstandard, and this program was built without the feature \
         `compressed-logs`"
    );
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
    let first: Vec<_> = log
        .skipped
        .first()
        .iter()
        .map(|l| (l.line, l.reason))
        .collect();
    let expected = [
        (4, SkipReason::Blank),
        (5, SkipReason::MissingFields),
        (6, SkipReason::Bytes),
        (7, SkipReason::TooLong),
    ];
    assert_eq!(first, expected);
    let shown = log.skipped.to_string();
    assert!(
        shown.starts_with(
            "4 lines skipped: 1 blank line, 1 line longer than 64 KiB, 1 too few fields"
        ),
        "{shown}"
    );
}

#[test]
fn formats_are_told_apart() {
    for format in Format::ALL {
        let line = format.example().replace("<tab>", "\t");
        let text = match format {
            Format::W3c => format!("{line}\n2002-05-02 17:42:15 1.1.1.1 GET /a 200 5\n"),
            _ => format!("{line}\n{line}\n"),
        };
        let log = read(text.as_bytes()).unwrap();
        assert_eq!(log.format, format);
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
    let forced = Log::from_reader(Path::new("x"), &b"a b c\n"[..], Some(Format::Common))
        .unwrap_err()
        .to_string();
    assert!(forced.contains("no line parses as common"), "{forced}");
    assert!(
        forced.contains("line 1 (unreadable time): \"a b c\""),
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
    let mut text = Vec::new();
    write_common_log(&log, &mut text).unwrap();
    let again = read(&text).unwrap();
    assert_eq!(again.format, Format::Common);
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
    assert_eq!(facts(&again), facts(&log));
}
