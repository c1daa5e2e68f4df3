//! Timelines are read back, whole or truncated; limits are kept; connections are recorded, with late segments.

use baton_testkit::{Timeline, endpoint};
use baton_timeline::{
    ConnectionTracks, Connections, Counters, Grain, LEAST_BYTES, Sampling, Value, Way, Window,
    Within, Writer,
};
use baton_wire::{Endpoint, Flags, Header, SeqNr, Span, Time};
use std::io::{self, Write};

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// Returns the bytes of the timeline that `write` writes.
fn written(write: impl FnOnce(&mut Writer<&mut Vec<u8>>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, 0);
    write(&mut writer);
    writer.flush().expect("memory");
    assert_eq!(writer.written(), bytes.len() as u64);
    bytes
}

#[test]
fn written_timelines_are_read_back() {
    let read = Timeline::read(&written(|to| {
        let process = to.process("host");
        let thread = to.thread(process, "processor");
        let row = to.row(process, "calls");
        let mut counters = Counters::new(process, Grain::Sample);
        to.begin(row, at(1), "outer", &[("bytes", Value::Number(7))]);
        to.span(row, (at(2), at(3)), "inner", &[]);
        to.moment(row, at(4), "lost", &[("why", Value::Words("full"))]);
        to.end(row, at(5));
        to.span(thread, (at(0), at(9)), "tcp", &[]);
        for (us, value) in [(1, 0), (2, 0), (3, 5), (4, 5), (5, 0)] {
            counters.set(to, (at(0), at(us)), ("Qlen", "packets"), value);
        }
        to.facts([("seed", "1".to_owned()), ("seed", "2".to_owned())]);
    }));
    let spans: Vec<_> = read
        .spans
        .iter()
        .map(|s| (&*s.name, s.from, s.to, s.depth))
        .collect();
    let expected = [
        ("inner", 2_000, 3_000, 1),
        ("outer", 1_000, 5_000, 0),
        ("tcp", 0, 9_000, 0),
    ];
    assert_eq!(spans, expected);
    assert_eq!(read.spans[1].number("bytes"), 7);
    assert_eq!(read.spans_on("host", "processor").count(), 1);
    assert_eq!(read.moments[0].words["why"], "full");
    // Only changes are written, after an initial 0.
    assert_eq!(
        read.counter("host", "Qlen"),
        [(0, 0), (3_000, 5), (5_000, 0)]
    );
    assert_eq!(read.facts["seed"], "2");
}

/// The writer passes whole packets to the file, so that the file is readable after each write.
#[test]
fn a_truncated_timeline_is_readable_up_to_its_end() {
    struct Lengths(Vec<u8>, Vec<usize>);
    impl Write for Lengths {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.extend_from_slice(bytes);
            self.1.push(self.0.len());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut file = Lengths(Vec::new(), Vec::new());
    let mut writer = Writer::new(&mut file, 0);
    let process = writer.process("host");
    let row = writer.row(process, "row");
    for us in 0..10_000 {
        writer.span(row, (at(us), at(us + 1)), "work", &[]);
    }
    writer.pass_on();
    assert!(file.1.len() > 4, "{:?}", file.1);
    let read = |len: usize| Timeline::read_cut_off(&file.0[..len]).spans.len();
    assert!(
        file.1
            .iter()
            .map(|len| read(*len))
            .is_sorted_by(|a, b| a < b)
    );
    assert_eq!(read(file.0.len()), 10_000);
}

#[test]
fn an_error_while_writing_is_kept() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut writer = Writer::new(Full, 0);
    writer.pass_on();
    writer.pass_on();
    let error = writer.flush().expect_err("it is full");
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}

#[test]
fn the_most_frequent_events_are_left_out_first() {
    let mut left_out = Default::default();
    let bytes = written(|to| {
        let process = to.process("host");
        let row = to.row(process, "row");
        let mut us = 0;
        for grain in [Grain::Work, Grain::Connection, Grain::Sample] {
            while to.admits(grain, at(us)) {
                to.moment(row, at(us), grain.name(), &[]);
                us += 1;
            }
            assert!(
                !to.admits(Grain::Work, at(us)),
                "no event of a class follows an omitted one"
            );
        }
        left_out = to.left_out();
        to.facts([("left_out", "some".to_owned())]);
    });
    let len = bytes.len() as u64;
    assert!(len <= LEAST_BYTES && len > LEAST_BYTES * 9 / 10, "{len}");
    let moments = Timeline::read(&bytes).moments;
    let count = |grain: Grain| moments.iter().filter(|m| m.name == grain.name()).count() as u64;
    let until: Vec<_> = left_out
        .iter()
        .map(|left| left.since.expect("a time"))
        .collect();
    let counts = [Grain::Work, Grain::Connection, Grain::Sample].map(count);
    assert!(counts.iter().all(|count| *count > 1_000), "{counts:?}");
    assert_eq!(until[0], at(counts[0]));
    assert_eq!(until[2], at(counts.iter().sum()));
}

#[test]
fn windows_and_rules_are_parsed_and_printed() {
    let window = Sampling::parse_window;
    let seconds = |s: f64| Some(Time::from_ps((s * 1e12) as u64));
    assert_eq!(window("1.5..2"), Ok((seconds(1.5), seconds(2.0))));
    assert_eq!(window("..0.25"), Ok((None, seconds(0.25))));
    assert_eq!(window("3.."), Ok((seconds(3.0), None)));
    for text in [
        "", "1", "2..1", "1..1", "..0", "a..b", "-1..2", "0..1e9", "NaN..1",
    ] {
        assert!(window(text).is_err(), "{text}");
    }
    for text in [
        "none",
        "every:1",
        "every:20",
        "moved",
        "lossy",
        "10.0.0.1:80",
        "[fd00::1]:80",
    ] {
        let rule: Connections = text.parse().expect(text);
        assert_eq!(rule.to_string(), text);
    }
    assert_eq!("all".parse(), Ok(Connections::Every(1)));
    for text in ["", "every:0", "every:x", "some", "10.0.0.1"] {
        assert!(text.parse::<Connections>().is_err(), "{text}");
    }
}

/// Records the segments of connections as they pass a NIC.
struct Tap<'a, 'b> {
    tracks: ConnectionTracks,
    window: Window,
    writer: &'a mut Writer<&'b mut Vec<u8>>,
    us: u64,
}

impl<'a, 'b> Tap<'a, 'b> {
    fn new(rule: Connections, writer: &'a mut Writer<&'b mut Vec<u8>>) -> Self {
        let process = writer.process("connections");
        let mut window = Window::new(&Sampling::default());
        window.begin(at(0));
        Self {
            tracks: ConnectionTracks::new(rule, process, "on the host"),
            window,
            writer,
            us: 0,
        }
    }

    fn act(&mut self, act: impl FnOnce(&mut ConnectionTracks, &mut Within<'_, &'b mut Vec<u8>>)) {
        self.us += 1;
        let mut to = Within {
            writer: &mut *self.writer,
            window: &self.window,
            now: at(self.us),
        };
        act(&mut self.tracks, &mut to);
    }

    fn segment(&mut self, client: Endpoint, way: Way, flags: Flags, seq: u32, bytes: u32) {
        let header = Header {
            seq: SeqNr(seq),
            flags,
            ..Header::default()
        };
        self.act(|tracks, to| tracks.segment(to, client, way, &header, bytes));
    }

    /// Records a connection with one request and its response, from SYN to FIN.
    fn exchange(&mut self, client: Endpoint, first: u32) {
        self.segment(client, Way::In, Flags::SYN, first, 0);
        self.segment(client, Way::Out, Flags::SYN | Flags::ACK, 100, 0);
        self.segment(client, Way::In, Flags::ACK, first + 1, 10);
        self.segment(client, Way::Out, Flags::ACK | Flags::FIN, 101, 1000);
        self.segment(client, Way::In, Flags::ACK | Flags::FIN, first + 11, 0);
        self.segment(client, Way::Out, Flags::ACK, 1102, 0);
    }
}

#[test]
fn a_connection_is_recorded_from_its_syn_including_late_segments() {
    let client = endpoint(2, 1000);
    let read = Timeline::read(&written(|writer| {
        let mut tap = Tap::new(Connections::Every(2), writer);
        tap.exchange(client, 0);
        tap.segment(client, Way::In, Flags::ACK | Flags::FIN, 11, 0);
        // The second connection is not chosen, the third is.
        tap.exchange(client, 5_000);
        tap.exchange(client, 9_000);
        tap.act(|tracks, to| tracks.finish(to));
        assert_eq!(tap.tracks.counts(), (3, 2));
    }));
    let lives: Vec<_> = read.spans.iter().map(|span| (span.from, span.to)).collect();
    assert_eq!(lives, [(1_000, 6_000), (14_000, 19_000)]);
    let first = read.spans[0].number;
    let names = read.moments.iter().filter(|moment| moment.number == first);
    let names: Vec<_> = names.map(|moment| &*moment.name).collect();
    let expected = [
        "SYN in",
        "SYN out",
        "data in",
        "FIN out",
        "FIN in",
        "ACK out",
        "FIN again in",
    ];
    assert_eq!(names, expected);
    let data = &read.moments[3];
    assert_eq!((data.number("seq"), data.number("bytes")), (1, 1000));
}

#[test]
fn a_connection_found_midway_has_moved_only_when_its_place_changes() {
    let clients = [1, 2].map(|host| endpoint(host, 1000));
    let read = Timeline::read(&written(|writer| {
        let mut tap = Tap::new(Connections::Moved, writer);
        tap.tracks.know_midway();
        for client in clients {
            tap.segment(client, Way::In, Flags::ACK, 7, 10);
        }
        let places = ["in the kernel", "in the kernel", "on the adapter"];
        for place in places {
            tap.act(|tracks, to| {
                tracks.settle(to, |client| match client == clients[1] {
                    true => place,
                    false => places[0],
                });
            });
        }
        tap.act(|tracks, to| tracks.finish(to));
        assert_eq!(tap.tracks.counts(), (2, 1));
    }));
    let lives: Vec<_> = read.spans.iter().map(|span| &*span.name).collect();
    assert_eq!(lives, ["on the host", "in the kernel", "on the adapter"]);
}

#[test]
fn a_connection_that_loses_a_segment_is_recorded_from_its_start() {
    let clients = [0, 1, 2].map(|host| endpoint(host, 1000));
    let read = Timeline::read(&written(|writer| {
        let mut tap = Tap::new(Connections::Lossy, writer);
        tap.exchange(clients[0], 0);
        for client in [clients[1], clients[2]] {
            tap.segment(client, Way::In, Flags::SYN, 7, 0);
            tap.act(|tracks, to| tracks.lives(to, client, "on the NIC"));
        }
        tap.act(|tracks, to| tracks.lost(to, clients[1], "arrival_queue"));
        tap.segment(clients[2], Way::In, Flags::SYN, 7, 0);
        tap.act(|tracks, to| tracks.finish(to));
        assert_eq!(tap.tracks.counts(), (3, 2));
    }));
    let lives: Vec<_> = read.spans.iter().map(|span| &*span.name).collect();
    assert_eq!(
        lives,
        ["on the host", "on the host", "on the NIC", "on the NIC"]
    );
    let names: Vec<_> = read.moments.iter().map(|moment| &*moment.name).collect();
    assert_eq!(names, ["SYN in", "lost", "SYN in", "SYN again in"]);
}
