//! Plays a dialogue with the engine, its peers and its application.

mod calls;
mod checks;
mod packets;

use crate::Fault;
use baton_tcp::{
    Config, Congestion, ConnId, EcnMode, Event, Handled, ListenerId, Refusal, Segment, Stack,
    SynCookies, WindowProbe, WindowUpdate,
};
use baton_testkit::SegmentText;
use baton_testkit::dialogue::value;
use baton_wire::{Endpoint, Flow, SeqNr, Span, Symbolic, Time};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Initial sequence number of peers, close to the wrap-around, which every dialogue therefore crosses.
const PEER_ISS: SeqNr = SeqNr(0xffff_ff00);

/// Source of the data that the engine sends.
const OURS: u64 = 1;
/// Source of the data that peers send.
const PEERS: u64 = 2;

/// The other side of one connection.
#[derive(Debug)]
struct Peer {
    number: u16,
    /// The flow as the engine names it.
    flow: Flow,
    id: Option<ConnId>,
    /// The engine's initial sequence number, once known.
    iss: Option<SeqNr>,
    written: u64,
    read: u64,
    /// The peer's timestamp clock: a value, and how long after the start the clock had this value.
    clock: Option<(u32, Span)>,
    /// The engine's first timestamp, from which timestamps are counted, and its last one.
    timestamps: Option<(u32, u32)>,
    events: VecDeque<Event>,
}

/// A segment that the engine sent and no line has expected yet.
#[derive(Debug)]
struct Sent {
    /// Time since the start.
    at: Span,
    peer: u16,
    segment: SegmentText,
}

/// One dialogue in progress.
#[derive(Debug)]
pub struct Player {
    pub stack: Stack<Symbolic>,
    /// Start of the dialogue, by the stack's clock.
    start: Time,
    pub now: Time,
    local: Endpoint,
    listener: Option<ListenerId>,
    peers: Vec<Peer>,
    current: usize,
    sent: VecDeque<Sent>,
    last_refusal: Option<Refusal>,
}

/// Returns parameters that give round numbers: no options, and no delays that a test has to consider.
fn bare() -> Config {
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
        challenge_acks_per_second: 0,
        window_probe: WindowProbe::NextByte,
        window_update: WindowUpdate::TwoSegments,
        delay_fin_ack: false,
        syn_cookies: SynCookies::Off,
        ..Config::default()
    }
}

/// Returns `config` with NewReno, and recovery as it was before RACK-TLP and related mechanisms.
fn classic(config: Config) -> Config {
    Config {
        congestion: Congestion::NewReno,
        hystart: false,
        rack_tlp: false,
        rate_reduction: false,
        duplicate_sack: false,
        forward_rto: false,
        undo: false,
        ecn: EcnMode::Off,
        ..config
    }
}

/// Returns `config` with the parameter `key = value` in TOML changed; the string "none" removes a value.
fn with_setting(config: &Config, text: &str) -> Result<Config, String> {
    let fault = || format!("expected `key = value` as in TOML, found `{text}`");
    let setting: toml::Table = text.parse().map_err(|_| fault())?;
    let (key, value) = setting.into_iter().next().ok_or_else(fault)?;
    let mut table = toml::Table::try_from(config).expect("parameters are a table");
    if value.as_str() == Some("none") {
        table.remove(&key);
    } else {
        table.insert(key, value);
    }
    let config: Config = table.try_into().map_err(|error| error.to_string())?;
    config.check().map_err(|error| error.to_string())?;
    Ok(config)
}

/// Returns the lines of a dialogue that are not empty, without comments, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or(""));
    (1..)
        .zip(lines.map(str::trim))
        .filter(|(_, line)| !line.is_empty())
}

/// Parses decimal seconds exactly.
fn parse_seconds(text: &str) -> Result<Span, String> {
    let fault = || format!("expected seconds as in `+0.200` or `@1.5`, found `{text}`");
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if fraction.is_empty() || fraction.len() > 12 {
        return Err(fault());
    }
    let whole: u64 = whole.parse().map_err(|_| fault())?;
    let digits: u64 = fraction.parse().map_err(|_| fault())?;
    Ok(Span::from_secs(whole) + Span::from_ps(digits * 10_u64.pow(12 - fraction.len() as u32)))
}

impl Player {
    /// Creates an engine, plays a dialogue on it, and returns them with the number of the last line.
    pub fn play(text: &str) -> Result<(Self, usize), Fault> {
        let mut lines = lines(text).peekable();
        let (mut ipv6, mut config, mut settings) = (false, Config::default(), Vec::new());
        while let Some(&(number, line)) = lines.peek() {
            match line.split_once(' ').unwrap_or((line, "")) {
                ("ipv6", "") => ipv6 = true,
                ("plain", "") => config = bare(),
                ("classic", "") => config = classic(config),
                ("config", setting) => settings.push((number, setting)),
                _ => break,
            }
            lines.next();
        }
        for (number, setting) in settings {
            config = with_setting(&config, setting).map_err(|error| Fault::new(number, error))?;
        }
        let addr = match ipv6 {
            false => IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
            true => IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1)),
        };
        // Allows times before the start.
        let start = Time::ZERO + Span::from_secs(1000);
        let mut player = Self {
            stack: Stack::new(config, 7),
            start,
            now: start,
            local: Endpoint::new(addr, 80),
            listener: None,
            peers: Vec::new(),
            current: 0,
            sent: VecDeque::new(),
            last_refusal: None,
        };
        player.choose_peer(0);
        let last = player.play_lines(lines)?;
        let last =
            last.ok_or_else(|| Fault::new(text.lines().count(), "expected at least one step"))?;
        Ok((player, last))
    }

    /// Creates an engine, and plays a dialogue on it.
    pub fn after(text: &str) -> Self {
        Self::play(text).expect("the dialogue succeeds").0
    }

    /// Plays a further dialogue.
    pub fn goes_on(&mut self, text: &str) {
        self.play_lines(lines(text)).expect("the dialogue succeeds");
    }

    /// Plays lines, and returns the number of the last one.
    fn play_lines<'a>(
        &mut self,
        lines: impl Iterator<Item = (usize, &'a str)>,
    ) -> Result<Option<usize>, Fault> {
        let mut last = None;
        for (number, line) in lines {
            self.line(line)
                .map_err(|message| Fault::new(number, message))?;
            last = Some(number);
        }
        Ok(last)
    }

    /// Plays a line: a time after the previous line, `+SECONDS`, or after the start, `@SECONDS`, and an action.
    fn line(&mut self, text: &str) -> Result<(), String> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let (until, action) = match word.split_at(1) {
            ("+", span) => (self.now + parse_seconds(span)?, rest.trim()),
            ("@", span) => (self.start + parse_seconds(span)?, rest.trim()),
            _ => (self.now, text),
        };
        self.advance(until)?;
        self.act(action)?;
        self.settle()
    }

    /// Creates a segment of the current peer.
    pub fn segment(&mut self, text: &str) -> Segment<Symbolic> {
        let elapsed = self.elapsed();
        let text = text.parse().expect("a segment");
        self.peer().segment(elapsed, &text)
    }

    /// Lets a segment arrive without polling afterwards.
    pub fn arrives(&mut self, text: &str) -> Handled {
        let segment = self.segment(text);
        self.stack.handle_segment(self.now, segment)
    }

    /// Returns the flow of the current peer's connection as the engine names it.
    pub fn flow(&self) -> Flow {
        self.peers[self.current].flow
    }

    /// Returns the connections of all peers.
    pub fn ids(&self) -> Vec<ConnId> {
        self.peers.iter().filter_map(|peer| peer.id).collect()
    }

    fn act(&mut self, text: &str) -> Result<(), String> {
        let row = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let count = match text.len() - row.len() {
            0 => Ok(1),
            digits => value(&text[..digits]),
        };
        if let Some(segment) = row.strip_prefix('>') {
            let segment: SegmentText = segment.parse()?;
            return segment.row(count?).try_for_each(|one| self.expect(&one));
        }
        if let Some(name) = text.strip_prefix('!') {
            return self.event(name.trim());
        }
        if let Some(property) = text.strip_prefix('?') {
            return self.check(property);
        }
        if let Some(number) = text.strip_prefix("peer ") {
            self.choose_peer(value(number)?);
            return Ok(());
        }
        self.nothing_unexpected()?;
        if let Some(segment) = row.strip_prefix('<') {
            let segment: SegmentText = segment.parse()?;
            return segment.row(count?).try_for_each(|one| {
                self.nothing_unexpected()?;
                self.inject(&one)?;
                self.settle()
            });
        }
        match text.split_once(' ').unwrap_or((text, "")) {
            ("", _) => Ok(()),
            ("accepted", options) => self.accepted(&format!("S 0:0 {options}").parse()?),
            ("connected", options) => self.connected(&format!("S. 0:0 ack 1 {options}").parse()?),
            (word, rest) => self.call(word, rest.trim()),
        }
    }

    fn choose_peer(&mut self, number: u16) {
        let known = self.peers.iter().position(|peer| peer.number == number);
        self.current = known.unwrap_or(self.peers.len());
        if known.is_some() {
            return;
        }
        let addr = match self.local.addr {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2)),
        };
        self.peers.push(Peer {
            number,
            flow: Flow {
                local: self.local,
                remote: Endpoint::new(addr, 5000 + number),
            },
            id: None,
            iss: None,
            written: 0,
            read: 0,
            clock: None,
            timestamps: None,
            events: VecDeque::new(),
        });
    }

    /// Returns the time since the start.
    fn elapsed(&self) -> Span {
        self.now - self.start
    }

    fn peer(&mut self) -> &mut Peer {
        &mut self.peers[self.current]
    }

    pub fn id(&self) -> Result<ConnId, String> {
        self.peers[self.current]
            .id
            .ok_or_else(|| "there is no connection yet".into())
    }

    /// Lets time pass, and runs timers when they are due.
    fn advance(&mut self, until: Time) -> Result<(), String> {
        if until < self.now {
            let now = seconds(self.elapsed());
            return Err(format!("it is {now} already"));
        }
        while let Some(at) = self.stack.poll_timeout().filter(|&at| at <= until) {
            self.now = self.now.max(at);
            self.stack.handle_timeouts(self.now);
            self.settle()?;
        }
        self.now = until;
        Ok(())
    }

    /// Collects the engine's output and events.
    fn settle(&mut self) -> Result<(), String> {
        self.take_output()?;
        while let Some((id, event)) = self.stack.poll_event() {
            if let Event::Acceptable(_) = event {
                let port = self.stack.flow(id).remote.port;
                let peer = self
                    .peers
                    .iter_mut()
                    .find(|peer| peer.flow.remote.port == port);
                let peer = peer.ok_or("a connection of an unknown peer is acceptable")?;
                peer.id = Some(id);
                peer.events.push_back(event);
                continue;
            }
            let owner = self.peers.iter_mut().find(|peer| peer.id == Some(id));
            let owner = owner.ok_or_else(|| format!("{event:?} for an unknown peer"))?;
            if let Event::Closed(_) = event {
                owner.id = None;
            }
            owner.events.push_back(event);
        }
        self.take_output()?;
        self.stack.check();
        Ok(())
    }

    /// Checks that every segment sent was expected.
    fn nothing_unexpected(&self) -> Result<(), String> {
        match self.sent.front() {
            None => Ok(()),
            Some(_) => Err(format!("sent but not expected:\n{}", self.outstanding())),
        }
    }

    /// Returns the unexpected segments, one per line.
    fn outstanding(&self) -> String {
        let lines: Vec<String> = self
            .sent
            .iter()
            .map(|sent| {
                let peer = match sent.peer {
                    0 => String::new(),
                    number => format!(" (to peer {number})"),
                };
                let at = seconds(sent.at);
                format!("    @{at} > {}{peer}", sent.segment)
            })
            .collect();
        lines.join("\n")
    }

    /// Checks that no segments or events remain.
    pub fn end(&self) -> Result<(), String> {
        self.nothing_unexpected()?;
        for peer in &self.peers {
            let left = peer.events.iter().find(|event| !checks::is_minor(event));
            if let Some(event) = left {
                let name = checks::event_name(event);
                return Err(format!("at the end: unexpected event `{name}`"));
            }
        }
        Ok(())
    }
}

/// Formats seconds since the start exactly.
fn seconds(span: Span) -> String {
    let ps = span.as_ps();
    let text = format!("{}.{:012}", ps / 1_000_000_000_000, ps % 1_000_000_000_000);
    let end = text
        .trim_end_matches('0')
        .len()
        .max(text.find('.').expect("it has a decimal point") + 4);
    text[..end].into()
}
