//! The engine with real bytes: segments are encoded as frames, and another implementation checks the capture.

use baton_tcp::{CloseReason, Config, Event, Segment, Stack};
use baton_testkit::Pattern;
use baton_wire::{
    CaptureWriter, Endpoint, Flow, Link, Packet, Span, Time, decode_frame, encode_frame,
};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::process::Command;

/// Two stacks, and a link that carries Ethernet frames.
struct Line {
    stacks: [Stack<Bytes>; 2],
    now: Time,
    frames: VecDeque<(Time, usize, Vec<u8>)>,
    capture: CaptureWriter<Vec<u8>>,
    received: [BytesMut; 2],
    /// One of this many data frames of the server is lost, if set.
    lose_every: Option<usize>,
    data_frames: usize,
    closed: Vec<CloseReason>,
}

const DELAY: Span = Span::from_us(500);

fn content() -> Bytes {
    Pattern::new(0).bytes(300_000).into()
}

impl Line {
    fn new(config: Config, addresses: [IpAddr; 2], lose_every: Option<usize>) -> Self {
        let mut stacks = [Stack::new(config.clone(), 1), Stack::new(config, 2)];
        let [client, server] = addresses;
        let to = Endpoint::new(server, 80);
        stacks[1].listen(to, 5);
        let flow = Flow {
            local: Endpoint::new(client, 5000),
            remote: to,
        };
        stacks[0]
            .connect(Time::ZERO, flow)
            .expect("a free four-tuple");
        Self {
            stacks,
            now: Time::ZERO,
            frames: VecDeque::new(),
            capture: CaptureWriter::new(Vec::new(), "line").expect("a vector can be written"),
            received: [BytesMut::new(), BytesMut::new()],
            lose_every,
            data_frames: 0,
            closed: Vec::new(),
        }
    }

    fn run(&mut self) {
        loop {
            self.settle(0);
            self.settle(1);
            if self.closed.len() == 2 {
                return;
            }
            let arrival = self.frames.front().map_or(Time::NEVER, |&(at, ..)| at);
            let timers = self
                .stacks
                .iter()
                .filter_map(Stack::poll_timeout)
                .min()
                .unwrap_or(Time::NEVER);
            self.now = self.now.max(arrival.min(timers));
            assert!(
                self.now < Time::ZERO + Span::from_secs(100),
                "both connections end in time"
            );
            self.stacks.iter_mut().for_each(|stack| {
                stack.handle_timeouts(self.now);
            });
            if arrival <= self.now {
                let (_, side, frame) = self.frames.pop_front().expect("a frame arrives");
                self.arrive(side, &frame);
            }
        }
    }

    fn arrive(&mut self, side: usize, frame: &[u8]) {
        let (packet, payload) = decode_frame(frame).expect("the frame is valid");
        let Packet {
            src,
            dst,
            ecn,
            header,
        } = packet;
        let payload = std::iter::once(Bytes::copy_from_slice(payload))
            .filter(|piece| !piece.is_empty())
            .collect();
        self.stacks[side].handle_segment(
            self.now,
            Segment {
                src,
                dst,
                ecn,
                header,
                payload,
            },
        );
    }

    fn settle(&mut self, side: usize) {
        while let Some((id, event)) = self.stacks[side].poll_event() {
            let stack = &mut self.stacks[side];
            match event {
                Event::Connected => {
                    stack
                        .write(id, Bytes::from_static(b"GET / HTTP/1.1\r\n\r\n"))
                        .expect("it is open");
                    stack.shutdown(id);
                }
                Event::Acceptable(listener) => {
                    stack.accept(listener).expect("a connection is pending");
                }
                Event::Readable => {
                    while let Some(piece) = stack.read(id, 5000) {
                        self.received[side].extend_from_slice(&piece);
                        stack.consume(id, piece.len());
                    }
                }
                Event::PeerClosed if side == 1 => {
                    stack
                        .write(id, Bytes::from_static(b"HTTP/1.1 200 OK\r\n\r\n"))
                        .expect("it is open");
                    // The buffer is large enough for all of it.
                    assert_eq!(stack.write(id, content()), Ok(content().len()));
                    stack.close(id);
                }
                Event::Closed(reason) => self.closed.push(reason),
                _ => {}
            }
        }
        while let Some((_, segment)) = self.stacks[side].poll_transmit(self.now) {
            self.send(side, &segment);
        }
        self.stacks[side].check();
    }

    fn send(&mut self, side: usize, segment: &Segment<Bytes>) {
        let payload: Vec<u8> = segment.payload.iter().flatten().copied().collect();
        let header = segment.header;
        let packet = Packet {
            src: segment.src,
            dst: segment.dst,
            ecn: segment.ecn,
            header,
        };
        let mut frame = Vec::new();
        encode_frame(
            Link::between(packet.src.addr, packet.dst.addr),
            &packet,
            &payload,
            &mut frame,
        )
        .expect("it fits");
        assert_eq!(
            segment.frame_len(),
            (frame.len() + 4).max(64),
            "a segment knows its length on the wire"
        );
        self.capture
            .write_frame(self.now, &frame, frame.len())
            .expect("a vector can be written");
        self.data_frames += usize::from(side == 1 && !payload.is_empty());
        let lost = side == 1
            && !payload.is_empty()
            && self
                .lose_every
                .is_some_and(|every| self.data_frames.is_multiple_of(every));
        if !lost {
            self.frames.push_back((self.now + DELAY, 1 - side, frame));
        }
    }

    fn assert_complete(&self) {
        assert_eq!(self.closed, [CloseReason::Normal; 2]);
        assert_eq!(self.received[1], b"GET / HTTP/1.1\r\n\r\n"[..]);
        let expected = [b"HTTP/1.1 200 OK\r\n\r\n", content().as_ref()].concat();
        assert!(self.received[0] == expected, "every byte arrived");
        assert!(self.stacks.iter().all(Stack::is_empty));
        let waiting: usize = self.stacks.iter().map(Stack::time_wait_len).sum();
        assert_eq!(waiting, 1, "only the end that closed first is in TIME-WAIT");
    }
}

fn v4() -> [IpAddr; 2] {
    ["10.0.0.1", "10.0.0.2"].map(|text| text.parse().expect("an address"))
}

fn v6() -> [IpAddr; 2] {
    ["fd00::1", "fd00::2"].map(|text| text.parse().expect("an address"))
}

fn config() -> Config {
    Config {
        send_buffer: 1 << 20,
        ..Config::default()
    }
}

#[test]
fn bytes_cross_frames_of_both_versions() {
    for addresses in [v4(), v6()] {
        for lose_every in [None, Some(7)] {
            let mut line = Line::new(config(), addresses, lose_every);
            line.run();
            line.assert_complete();
            if lose_every.is_none() {
                let stats = line.stacks.each_ref().map(Stack::stats);
                assert!(stats.iter().all(|stats| stats.retransmissions == 0));
                assert!(
                    line.now < Time::ZERO + Span::from_secs(2),
                    "the transfer is quick"
                );
            }
        }
    }
}

/// Returns what Wireshark's expert reports about a capture, or `None` if tshark is not installed.
fn oddities(capture: &[u8], filter: &str) -> Option<String> {
    let path = std::env::temp_dir().join(format!("baton-tcp-{}.pcapng", std::process::id()));
    std::fs::write(&path, capture).ok()?;
    let options = ["-o", "tcp.check_checksum:TRUE", "-Y", filter];
    let output = Command::new("tshark")
        .arg("-r")
        .arg(&path)
        .args(options)
        .output();
    std::fs::remove_file(&path).ok()?;
    Some(String::from_utf8(output.ok()?.stdout).expect("text"))
}

#[test]
fn wireshark_finds_nothing_odd_on_a_perfect_link() {
    let mut line = Line::new(config(), v4(), None);
    line.run();
    line.assert_complete();
    let odd = oddities(
        &line.capture.into_inner(),
        "tcp.analysis.flags or tcp.checksum.status == 0 or _ws.malformed",
    );
    assert_eq!(odd.unwrap_or_default(), "");
    // Check that Wireshark's expert notices faults.
    let mut line = Line::new(config(), v4(), Some(7));
    line.run();
    let stats = line.stacks[1].stats();
    let again = stats.retransmissions;
    let lost = line.data_frames as u64 / 7;
    // A probe may repeat data whose acknowledgment is only late.
    assert!(
        (lost..=lost + 1 + stats.tail_probes).contains(&again),
        "{lost} lost: {stats:?}"
    );
    let filter = "tcp.analysis.retransmission or tcp.analysis.out_of_order";
    if let Some(odd) = oddities(&line.capture.into_inner(), filter) {
        assert_eq!(odd.lines().count() as u64, again);
    }
}
