//! The other side of the conversations.

use baton_tcp::{
    Config, Congestion, ConnId, EcnMode, Event, Handled, ListenerId, Pieces, Segment, Stack, State,
    Symbolic, SynCookies, WindowProbe, WindowUpdate,
};
use baton_wire::{
    Ecn, Endpoint, Flags, Flow, Header, Options, SackBlock, SeqNr, Span, Time, Timestamps,
};
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};

/// The peer's initial sequence number: near the wrap, so that every dialogue crosses it.
const PEER_ISS: SeqNr = SeqNr(0xffff_ff00);

/// Names the data that the stack under test sends.
pub const OURS: u64 = 1;
/// Names the data that the peer sends.
pub const PEERS: u64 = 2;

/// One connection of the stack under test, and its peer, who is played by the test.
pub struct Dialogue {
    pub stack: Stack<Symbolic>,
    pub now: Time,
    pub id: ConnId,
    pub listener: Option<ListenerId>,
    /// As the stack names it.
    pub flow: Flow,
    /// The stack's initial sequence number, once it was seen.
    iss: Option<SeqNr>,
    /// Bytes written so far.
    pub written: u64,
    /// Timestamps that injected segments carry when the script does not say otherwise.
    pub timestamps: Option<(u32, u32)>,
    last_sent: Vec<Segment<Symbolic>>,
}

/// Parameters under which numbers are round: no options, small initial window.
pub fn plain() -> Config {
    Config {
        mss: 1000,
        window_scaling: false,
        timestamps: false,
        sack: false,
        receive_buffer: 10_000,
        send_buffer: 100_000,
        nagle: false,
        quick_acks: 0,
        eager_acks: false,
        ack_rate_limit_ms: 0,
        cork_limit_ms: 0,
        window_probe: WindowProbe::NextByte,
        window_update: WindowUpdate::TwoSegments,
        delay_fin_ack: false,
        syn_cookies: SynCookies::Off,
        ..classic()
    }
}

/// Recovery as it was before RACK-TLP and its companions, and NewReno.
pub fn classic() -> Config {
    Config {
        congestion: Congestion::NewReno,
        hystart: false,
        rack_tlp: false,
        rate_reduction: false,
        duplicate_sack: false,
        forward_rto: false,
        undo: false,
        ecn: EcnMode::Off,
        ..Config::default()
    }
}

/// The same with SACK.
pub fn with_sack() -> Config {
    Config {
        sack: true,
        ..plain()
    }
}

pub fn endpoint(host: u8, port: u16) -> Endpoint {
    Endpoint::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)), port)
}

impl Dialogue {
    fn new(config: Config, local_port: u16, remote_port: u16) -> Self {
        let flow = Flow {
            local: endpoint(1, local_port),
            remote: endpoint(2, remote_port),
        };
        Self {
            stack: Stack::new(config, 7),
            now: Time::ZERO + Span::from_secs(1000),
            id: ConnId(u32::MAX),
            listener: None,
            flow,
            iss: None,
            written: 0,
            timestamps: None,
            last_sent: Vec::new(),
        }
    }

    /// A stack that listens.
    pub fn listening(config: Config, backlog: usize) -> Self {
        let mut dialogue = Self::new(config, 80, 5000);
        dialogue.listener = Some(dialogue.stack.listen(dialogue.flow.local, backlog));
        dialogue
    }

    /// A stack that opens actively; its SYN is not polled yet.
    pub fn connecting(config: Config) -> Self {
        let mut dialogue = Self::new(config, 5000, 80);
        dialogue.id = dialogue
            .stack
            .connect(dialogue.now, dialogue.flow)
            .expect("a free four-tuple");
        dialogue
    }

    /// A connection that was opened passively and accepted. The peer has `options`, as in a script.
    pub fn accepted_with(config: Config, options: &str) -> Self {
        let mut dialogue = Self::listening(config, 5);
        dialogue.inject(&format!("S 0:0 {options}"));
        assert_eq!(dialogue.sent().len(), 1);
        dialogue.inject("A 1:1 ack 1 win 60000");
        let (_, event) = dialogue
            .stack
            .poll_event()
            .expect("the handshake is complete");
        assert!(matches!(event, Event::Acceptable(_)));
        dialogue.id = dialogue
            .stack
            .accept(dialogue.listener.expect("it listens"))
            .expect("one waits");
        dialogue.quiet();
        dialogue
    }

    /// A connection without options that was accepted.
    pub fn accepted(config: Config) -> Self {
        Self::accepted_with(config, "win 60000 mss 1000")
    }

    /// The same with timestamps: the peer's clock stands at 100.
    pub fn accepted_with_timestamps(config: Config) -> Self {
        let mut dialogue = Self::listening(config, 5);
        dialogue.timestamps = Some((100, 0));
        dialogue.inject("S 0:0 mss 1000 sackOK");
        dialogue.sent();
        let echo = dialogue
            .last_options()
            .timestamps
            .expect("timestamps are in use")
            .value;
        dialogue.timestamps = Some((100, echo));
        dialogue.inject("A 1:1 ack 1");
        dialogue.id = dialogue
            .stack
            .accept(dialogue.listener.expect("it listens"))
            .expect("one waits");
        dialogue.events();
        dialogue.quiet();
        dialogue
    }

    // --- the peer's part ---

    /// The peer's segment arrives.
    pub fn inject(&mut self, script: &str) -> Handled {
        let segment = self.parse(script);
        let handled = self.stack.handle_segment(self.now, segment);
        self.stack.check();
        handled
    }

    /// Its description as a segment.
    pub fn parse(&self, script: &str) -> Segment<Symbolic> {
        let mut words = script.split_whitespace();
        let flags = parse_flags(words.next().expect("flags"));
        let (start, end) = parse_range(words.next().expect("sequence numbers"));
        let mut header = Header {
            seq: PEER_ISS + start,
            flags,
            window: 60_000,
            ..Header::default()
        };
        let options = &mut header.options;
        options.timestamps = self
            .timestamps
            .map(|(value, echo)| Timestamps { value, echo });
        while let Some(word) = words.next() {
            let mut number = || {
                words
                    .next()
                    .expect("a number")
                    .parse::<u32>()
                    .expect("a number")
            };
            match word {
                "ack" => header.ack = self.iss.unwrap_or(SeqNr(0)) + number(),
                "win" => header.window = number() as u16,
                "mss" => options.mss = Some(number() as u16),
                "wscale" => options.window_scale = Some(number() as u8),
                "sackOK" => options.sack_permitted = true,
                "ts" => {
                    options.timestamps = Some(Timestamps {
                        value: number(),
                        echo: number(),
                    })
                }
                "sack" => options.sack = self.parse_blocks(words.next().expect("blocks")),
                other => panic!("`{other}` is not a word of these scripts"),
            }
        }
        let mut payload = Pieces::new();
        if end > start {
            payload.push(Symbolic {
                source: PEERS,
                offset: u64::from(start),
                len: end - start,
            });
        }
        Segment {
            src: self.flow.remote,
            dst: self.flow.local,
            ecn: Ecn::NotCapable,
            header,
            payload,
        }
    }

    fn parse_blocks(&self, text: &str) -> baton_wire::SackBlocks {
        let iss = self.iss.expect("our SYN was seen");
        let blocks = text.split(',').map(parse_range);
        blocks
            .map(|(start, end)| SackBlock {
                start: iss + start,
                end: iss + end,
            })
            .collect()
    }

    // --- the stack's part ---

    /// Everything the stack sends now.
    pub fn sent(&mut self) -> Vec<String> {
        self.last_sent.clear();
        while let Some((_, segment)) = self.stack.poll_transmit(self.now) {
            if segment.header.flags.contains(Flags::SYN) {
                self.iss = Some(segment.header.seq);
            }
            self.last_sent.push(segment);
        }
        self.stack.check();
        self.last_sent
            .iter()
            .map(|segment| self.render(segment))
            .collect()
    }

    /// The stack sends exactly this now.
    #[track_caller]
    pub fn expect(&mut self, expected: &[&str]) {
        assert_eq!(self.sent(), expected);
    }

    /// The stack sends nothing now.
    #[track_caller]
    pub fn quiet(&mut self) {
        self.expect(&[]);
    }

    /// What was last sent, as segments.
    pub fn last_sent(&self) -> &[Segment<Symbolic>] {
        &self.last_sent
    }

    /// The options of the last segment sent.
    pub fn last_options(&self) -> &Options {
        &self
            .last_sent
            .last()
            .expect("something was sent")
            .header
            .options
    }

    /// The window field of the last segment sent.
    pub fn last_window(&self) -> u16 {
        self.last_sent
            .last()
            .expect("something was sent")
            .header
            .window
    }

    fn render(&self, segment: &Segment<Symbolic>) -> String {
        let header = &segment.header;
        let mut text = String::new();
        let letters = [
            (Flags::SYN, 'S'),
            (Flags::FIN, 'F'),
            (Flags::RST, 'R'),
            (Flags::PSH, 'P'),
            (Flags::ACK, 'A'),
        ];
        text.extend(
            letters
                .iter()
                .filter(|(flag, _)| header.flags.contains(*flag))
                .map(|(_, letter)| letter),
        );
        let start = header.seq - self.iss.unwrap_or(SeqNr(0));
        write!(
            text,
            " {start}:{}",
            start.wrapping_add(segment.payload_len() as u32)
        )
        .expect("a string takes all");
        if header.flags.contains(Flags::ACK) {
            write!(text, " ack {}", header.ack - PEER_ISS).expect("a string takes all");
        }
        for (index, block) in header.options.sack.iter().enumerate() {
            let word = if index == 0 { " sack " } else { "," };
            write!(
                text,
                "{word}{}:{}",
                block.start - PEER_ISS,
                block.end - PEER_ISS
            )
            .expect("a string takes all");
        }
        text
    }

    /// Lets time pass, running the timers that come due, up to and including that moment.
    pub fn wait(&mut self, span: Span) {
        let until = self.now + span;
        while let Some(at) = self.stack.poll_timeout().filter(|&at| at <= until) {
            self.now = self.now.max(at);
            self.stack.handle_timeouts(self.now);
            self.stack.check();
        }
        self.now = until;
    }

    pub fn wait_ms(&mut self, ms: u64) {
        self.wait(Span::from_ms(ms));
    }

    /// Lets time pass until a timer makes the stack send something; gives how long that took, in ms.
    pub fn wait_for_output(&mut self) -> (u64, Vec<String>) {
        let start = self.now;
        loop {
            let at = self.stack.poll_timeout().expect("a timer runs");
            self.now = self.now.max(at);
            self.stack.handle_timeouts(self.now);
            let sent = self.sent();
            if !sent.is_empty() {
                return ((self.now - start).as_us() / 1000, sent);
            }
        }
    }

    // --- the application's part ---

    /// Writes `len` bytes, which must fit.
    pub fn write(&mut self, len: u32) {
        let data = Symbolic {
            source: OURS,
            offset: self.written,
            len,
        };
        assert_eq!(self.stack.write(self.id, data), Ok(len as usize));
        self.written += u64::from(len);
    }

    /// Reads and consumes everything; gives how many bytes there were.
    pub fn read_all(&mut self) -> u32 {
        let mut total = 0;
        while let Some(piece) = self.stack.read(self.id, usize::MAX) {
            assert_eq!(piece.source, PEERS);
            total += piece.len;
            self.stack.consume(self.id, piece.len as usize);
        }
        total
    }

    pub fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.stack.poll_event())
            .map(|(_, event)| event)
            .collect()
    }

    pub fn state(&self) -> State {
        self.stack.state(self.id)
    }
}

fn parse_flags(text: &str) -> Flags {
    let flag = |letter| match letter {
        'S' => Flags::SYN,
        'F' => Flags::FIN,
        'R' => Flags::RST,
        'P' => Flags::PSH,
        'A' => Flags::ACK,
        other => panic!("`{other}` is no flag"),
    };
    text.chars()
        .map(flag)
        .fold(Flags::empty(), |all, one| all | one)
}

fn parse_range(text: &str) -> (u32, u32) {
    let (start, end) = text.split_once(':').expect("two numbers");
    (
        start.parse().expect("a number"),
        end.parse().expect("a number"),
    )
}
