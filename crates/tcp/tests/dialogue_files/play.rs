//! Plays a dialogue with the engine, its peers and its application.

mod calls;
mod checks;
mod packets;

use crate::Fault;
use crate::grammar::{self, Action, Script, Setting, When};
use baton_tcp::{
    Config, Congestion, ConnId, EcnMode, Event, Handled, ListenerId, Refusal, Segment, Stack,
    SynCookies, WindowProbe, WindowUpdate,
};
use baton_testkit::SegmentText;
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

/// Returns `config` with one parameter changed; the string "none" removes a value.
fn with_setting(config: &Config, setting: &Setting) -> Result<Config, String> {
    let mut table = toml::Table::try_from(config).expect("parameters are a table");
    if setting.value.as_str() == Some("none") {
        table.remove(&setting.key);
    } else {
        table.insert(setting.key.clone(), setting.value.clone());
    }
    let config: Config = table.try_into().map_err(|error| error.to_string())?;
    config.check().map_err(|error| error.to_string())?;
    Ok(config)
}

impl Player {
    /// Creates an engine for a dialogue.
    pub fn new(script: &Script) -> Result<Self, Fault> {
        let mut config = if script.plain {
            bare()
        } else {
            Config::default()
        };
        if script.classic {
            config = classic(config);
        }
        for (line, setting) in &script.settings {
            config = with_setting(&config, setting).map_err(|error| Fault::new(*line, error))?;
        }
        let addr = match script.ipv6 {
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
        Ok(player)
    }

    /// Creates an engine, and plays a dialogue on it.
    pub fn after(text: &str) -> Self {
        let script = grammar::parse(text).expect("a dialogue");
        let mut player = Self::new(&script).expect("the parameters are valid");
        player.go_on(&script).expect("the dialogue succeeds");
        player
    }

    /// Plays a further dialogue.
    pub fn goes_on(&mut self, text: &str) {
        let script = grammar::parse(text).expect("a dialogue");
        self.go_on(&script).expect("the dialogue succeeds");
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

    /// Plays all steps, and checks that no segments or events remain.
    pub fn play(mut self, script: &Script) -> Result<(), Fault> {
        self.go_on(script)?;
        let last = script.steps.last().map_or(0, |step| step.line);
        self.end().map_err(|message| Fault::new(last, message))
    }

    /// Plays all steps.
    pub fn go_on(&mut self, script: &Script) -> Result<(), Fault> {
        for step in &script.steps {
            let fault = |message| Fault::new(step.line, message);
            self.advance(step.when).map_err(fault)?;
            self.act(&step.action).map_err(fault)?;
            self.settle().map_err(fault)?;
        }
        Ok(())
    }

    fn act(&mut self, action: &Action) -> Result<(), String> {
        if let Action::Expect(count, segment) = action {
            return segment.row(*count).try_for_each(|one| self.expect(&one));
        }
        let looks_on = matches!(
            action,
            Action::Event(_) | Action::Check(_) | Action::Peer(_)
        );
        if !looks_on {
            self.nothing_unexpected()?;
        }
        match action {
            Action::Expect(..) => unreachable!("done above"),
            Action::Inject(count, segment) => segment.row(*count).try_for_each(|one| {
                self.nothing_unexpected()?;
                self.inject(&one)?;
                self.settle()
            }),
            Action::Event(name) => self.event(name.as_deref()),
            Action::Check(check) => self.check(check),
            Action::Call(call) => self.call(call),
            Action::Peer(number) => {
                self.choose_peer(*number);
                Ok(())
            }
            Action::Icmp { error, seq } => {
                let peer = &self.peers[self.current];
                let seq = peer.iss.unwrap_or(SeqNr(0)) + *seq;
                let flow = peer.flow;
                let outcome = self.stack.handle_path_error(self.now, &flow, seq, *error);
                self.last_refusal = outcome.err();
                Ok(())
            }
            Action::Accepted(syn) => self.accepted(syn),
            Action::Connected(answer) => self.connected(answer),
            Action::Wait => Ok(()),
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
    fn advance(&mut self, when: Option<When>) -> Result<(), String> {
        let until = match when {
            None => self.now,
            Some(When::After(span)) => self.now + span,
            Some(When::At(span)) => self.start + span,
        };
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

    fn end(mut self) -> Result<(), String> {
        self.nothing_unexpected()?;
        for peer in &mut self.peers {
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
