//! The grammar of dialogues, line by line.

use crate::Fault;
use baton_tcp::{FastOpen, FastOpenListening, PathError};
use baton_testkit::{SegmentText, number, relative};
use baton_wire::Span;

/// Time of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// This long after the previous line.
    After(Span),
    /// This long after the start.
    At(Span),
}

/// A parameter and its value in TOML.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    pub key: String,
    pub value: toml::Value,
}

/// Call of the application.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    Listen {
        backlog: usize,
    },
    Unlisten,
    Backlog(usize),
    Connect,
    /// Connects by Fast Open, with this many bytes written before the SYN leaves.
    ConnectFast {
        len: u32,
        how: FastOpen,
    },
    /// Sets how the listener accepts Fast Open.
    FastOpen(FastOpenListening),
    /// Sets the cookie keys: the value of each byte of the current key, and of the previous key.
    FastOpenKeys(u8, Option<u8>),
    Accept,
    Write {
        len: u32,
        more: bool,
        record: bool,
        urgent: bool,
        /// Key under which to report when the last byte reaches each stage.
        timed: Option<u64>,
        result: Option<u32>,
    },
    WriteClosed,
    Read {
        len: u32,
        consume: bool,
    },
    Consume(u32),
    Shutdown,
    ShutdownRead,
    Close,
    Abort,
    Cork(bool),
    Defer(bool),
    Settle(bool),
    Nodelay(bool),
    QuickAck,
    /// Sets whether to record when data arrives.
    KeepArrivals(bool),
    Configure(Setting),
    /// Moves the connection out of its stack and back.
    Move,
    /// Moves the connection to a stack with other parameters and another clock, which listens or does not.
    MoveAway {
        listening: bool,
    },
}

/// Assertion.
#[derive(Clone, Debug, PartialEq)]
pub enum Check {
    State(String),
    /// The last injected segment was refused for this reason; with `None`, it was accepted.
    Refused(Option<String>),
    Info(String, u64),
    Stat(String, u64),
    Refusals(String, u64),
    Unread(usize),
    /// Number of bytes to read before the peer's urgent byte; `None` if there is none.
    Urgent(Option<u32>),
    /// Next report of a byte that reached a stage: stage, key, and microseconds since the start; `None` if there is none.
    TransmitTime(Option<(String, u64, u64)>),
    /// When the last byte that was read arrived, in microseconds since the start.
    Arrived(Option<u64>),
    NotSent(usize),
    SendSpace(usize),
    AcceptQueue(usize),
    SoftError(Option<PathError>),
    LimitedBy(String),
    /// Whether everything sent is acknowledged, and nothing was received beyond a hole.
    AtRest(bool),
    TimeWait,
    Gone,
}

/// Action of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Injects this many segments, each starting where the previous one ended.
    Inject(u32, SegmentText),
    Expect(u32, SegmentText),
    /// Expects an event of this name, or no event.
    Event(Option<String>),
    Check(Check),
    Call(Call),
    /// Selects the peer for the following lines.
    Peer(u16),
    /// Injects an ICMP error that quotes this sequence number.
    Icmp {
        error: PathError,
        seq: u32,
    },
    /// Opens passively, from the SYN to `accept`, with these options of the peer.
    Accepted(SegmentText),
    /// Opens actively, from the SYN to the event `connected`, with these options of the peer.
    Connected(SegmentText),
    /// Lets time pass.
    Wait,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub line: usize,
    pub when: Option<When>,
    pub action: Action,
}

/// A complete dialogue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    pub ipv6: bool,
    /// Whether to start from the parameters of a bare stack, without options and delays.
    pub plain: bool,
    /// Whether to start from NewReno, with recovery as it was before RACK-TLP and related mechanisms.
    pub classic: bool,
    /// Changed parameters, with their line numbers.
    pub settings: Vec<(usize, Setting)>,
    pub steps: Vec<Step>,
}

/// Parses a dialogue.
///
/// # Errors
/// The first line that cannot be parsed, and what was expected there.
pub fn parse(text: &str) -> Result<Script, Fault> {
    let mut script = Script::default();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let line = line.split('#').next().unwrap_or("").trim();
        if !line.is_empty() {
            parse_line(&mut script, number, line).map_err(|message| Fault::new(number, message))?;
        }
    }
    match script.steps.is_empty() {
        true => Err(Fault::new(
            text.lines().count(),
            "expected at least one step",
        )),
        false => Ok(script),
    }
}

fn parse_line(script: &mut Script, line: usize, text: &str) -> Result<(), String> {
    if script.steps.is_empty() && parse_preamble(script, line, text)? {
        return Ok(());
    }
    let (when, rest) = parse_when(text)?;
    script.steps.push(Step {
        line,
        when,
        action: parse_action(rest)?,
    });
    Ok(())
}

/// Parses a line before the first step. Returns false if the line does not belong there.
fn parse_preamble(script: &mut Script, line: usize, text: &str) -> Result<bool, String> {
    match text.split_once(' ').unwrap_or((text, "")) {
        ("ipv6", "") => script.ipv6 = true,
        ("plain", "") => script.plain = true,
        ("classic", "") => script.classic = true,
        ("config", rest) => script.settings.push((line, parse_setting(rest)?)),
        _ => return Ok(false),
    }
    Ok(true)
}

fn parse_when(text: &str) -> Result<(Option<When>, &str), String> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let make: fn(Span) -> When = match word.as_bytes()[0] {
        b'+' => When::After,
        b'@' => When::At,
        _ => return Ok((None, text)),
    };
    Ok((Some(make(parse_seconds(&word[1..])?)), rest.trim()))
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

/// Parses `key = value`, with the value in TOML.
fn parse_setting(text: &str) -> Result<Setting, String> {
    let fault = || format!("expected `key = value` as in TOML, found `{text}`");
    let table: toml::Table = text.parse().map_err(|_| fault())?;
    let (key, value) = table.into_iter().next().ok_or_else(fault)?;
    Ok(Setting { key, value })
}

fn parse_action(text: &str) -> Result<Action, String> {
    let row = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let count = match text.len() - row.len() {
        0 => Ok(1),
        digits => number(Some(&text[..digits])),
    };
    if let Some(rest) = row.strip_prefix('<') {
        return Ok(Action::Inject(count?, rest.parse()?));
    }
    if let Some(rest) = row.strip_prefix('>') {
        return Ok(Action::Expect(count?, rest.parse()?));
    }
    if let Some(rest) = text.strip_prefix('!') {
        let name = rest.trim();
        return Ok(Action::Event((name != "none").then(|| name.into())));
    }
    if let Some(rest) = text.strip_prefix('?') {
        return parse_check(rest.trim()).map(Action::Check);
    }
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let rest = rest.trim();
    match word {
        "" => Ok(Action::Wait),
        "peer" => number(Some(rest)).map(Action::Peer),
        "icmp" => parse_icmp(rest),
        "accepted" => format!("S 0:0 {rest}").parse().map(Action::Accepted),
        "connected" => format!("S. 0:0 ack 1 {rest}")
            .parse()
            .map(Action::Connected),
        _ => parse_call(word, rest).map(Action::Call),
    }
}

fn parse_icmp(text: &str) -> Result<Action, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (error, seq) = match words.as_slice() {
        ["fragmentation-needed", "mtu", mtu, "seq", seq] => {
            let mtu = number(Some(mtu))?;
            (PathError::FragmentationNeeded { mtu }, seq)
        }
        [name, "seq", seq] => (path_error(name)?, seq),
        _ => {
            return Err(format!(
                "expected `icmp NAME [mtu N] seq N`, found `{text}`"
            ));
        }
    };
    Ok(Action::Icmp {
        error,
        seq: relative(Some(seq))?,
    })
}

fn path_error(name: &str) -> Result<PathError, String> {
    Ok(match name {
        "host-unreachable" => PathError::HostUnreachable,
        "net-unreachable" => PathError::NetUnreachable,
        "port-unreachable" => PathError::PortUnreachable,
        "protocol-unreachable" => PathError::ProtocolUnreachable,
        "admin-prohibited" => PathError::AdminProhibited,
        "time-exceeded" => PathError::TimeExceeded,
        "parameter-problem" => PathError::ParameterProblem,
        _ => {
            return Err(format!(
                "expected the name of an ICMP error, found `{name}`"
            ));
        }
    })
}

fn parse_check(text: &str) -> Result<Check, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let count = |text: &str| number::<usize>(Some(text));
    Ok(match words.as_slice() {
        ["state", name] => Check::State((*name).into()),
        ["refused", reason] => Check::Refused(Some((*reason).into())),
        ["taken"] => Check::Refused(None),
        ["info", field, "=", value] => Check::Info((*field).into(), parse_value(value)?),
        ["stat", field, "=", value] => Check::Stat((*field).into(), parse_value(value)?),
        ["refusals", reason, "=", value] => Check::Refusals((*reason).into(), parse_value(value)?),
        ["unread", len] => Check::Unread(count(len)?),
        ["urgent", "none"] => Check::Urgent(None),
        ["urgent", distance] => Check::Urgent(Some(number(Some(distance))?)),
        ["time", "none"] => Check::TransmitTime(None),
        ["time", stage, key, "=", at] => {
            let report = ((*stage).into(), number(Some(key))?, parse_value(at)?);
            Check::TransmitTime(Some(report))
        }
        ["arrived", "none"] => Check::Arrived(None),
        ["arrived", "=", at] => Check::Arrived(Some(parse_value(at)?)),
        ["not-sent", len] => Check::NotSent(count(len)?),
        ["send-space", len] => Check::SendSpace(count(len)?),
        ["accept-queue", len] => Check::AcceptQueue(count(len)?),
        ["soft-error", "none"] => Check::SoftError(None),
        ["soft-error", name] => Check::SoftError(Some(path_error(name)?)),
        ["limited-by", name @ ..] => Check::LimitedBy(name.join(" ")),
        ["at-rest"] => Check::AtRest(true),
        ["not-at-rest"] => Check::AtRest(false),
        ["time-wait"] => Check::TimeWait,
        ["gone"] => Check::Gone,
        _ => {
            return Err(format!(
                "expected state, refused, taken, info, stat, refusals, unread, urgent, time, arrived, not-sent, send-space, \
                 accept-queue, soft-error, limited-by, at-rest, not-at-rest, time-wait or gone, found `{text}`"
            ));
        }
    })
}

/// Parses a number, or milliseconds as in `200ms`, which are converted to microseconds.
fn parse_value(text: &str) -> Result<u64, String> {
    match text.strip_suffix("ms") {
        Some(ms) => Ok(Span::from_ms(number(Some(ms))?).as_us()),
        None => number(Some(text)),
    }
}

fn parse_call(word: &str, rest: &str) -> Result<Call, String> {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let switch = |text: &str| match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("expected `on` or `off`, found `{text}`")),
    };
    Ok(match (word, words.as_slice()) {
        ("listen", []) => Call::Listen { backlog: 5 },
        ("listen", ["backlog", backlog]) => Call::Listen {
            backlog: number(Some(backlog))?,
        },
        ("unlisten", []) => Call::Unlisten,
        ("backlog", [backlog]) => Call::Backlog(number(Some(backlog))?),
        ("connect", []) => Call::Connect,
        ("connect", ["fastopen", len, rest @ ..]) => Call::ConnectFast {
            len: number(Some(len))?,
            how: match without_cookie(rest)? {
                true => FastOpen::WithoutCookie,
                false => FastOpen::Cookie,
            },
        },
        ("fastopen", ["keys", current, rest @ ..]) => {
            let previous = rest.first().map(|key| number(Some(key)));
            Call::FastOpenKeys(number(Some(current))?, previous.transpose()?)
        }
        ("fastopen", [pending, rest @ ..]) => Call::FastOpen(FastOpenListening {
            pending: number(Some(pending))?,
            without_cookie: without_cookie(rest)?,
        }),
        ("accept", []) => Call::Accept,
        ("write", [_, "=", "closed"]) => Call::WriteClosed,
        ("write", [len, rest @ ..]) => parse_write(len, rest)?,
        ("read", [len]) => Call::Read {
            len: number(Some(len))?,
            consume: true,
        },
        ("take", [len]) => Call::Read {
            len: number(Some(len))?,
            consume: false,
        },
        ("consume", [len]) => Call::Consume(number(Some(len))?),
        ("shutdown", []) => Call::Shutdown,
        ("shutdown", ["read"]) => Call::ShutdownRead,
        ("close", []) => Call::Close,
        ("abort", []) => Call::Abort,
        ("cork", [value]) => Call::Cork(switch(value)?),
        ("defer", [value]) => Call::Defer(switch(value)?),
        ("settle", [value]) => Call::Settle(switch(value)?),
        ("nodelay", [value]) => Call::Nodelay(switch(value)?),
        ("quickack", []) => Call::QuickAck,
        ("arrivals", [value]) => Call::KeepArrivals(switch(value)?),
        ("configure", [_, ..]) => Call::Configure(parse_setting(rest)?),
        ("move", []) => Call::Move,
        ("move", ["away"]) => Call::MoveAway { listening: false },
        ("move", ["away", "listening"]) => Call::MoveAway { listening: true },
        _ => return Err(format!("expected a command, found `{word} {rest}`")),
    })
}

fn without_cookie(words: &[&str]) -> Result<bool, String> {
    match words {
        [] => Ok(false),
        ["nocookie"] => Ok(true),
        _ => Err(format!(
            "expected `nocookie` or nothing, found `{}`",
            words.join(" ")
        )),
    }
}

fn parse_write(len: &str, rest: &[&str]) -> Result<Call, String> {
    let mut write = (false, false, false, None, None);
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        match *word {
            "more" => write.0 = true,
            "record" => write.1 = true,
            "urgent" => write.2 = true,
            "timed" => write.3 = Some(number(words.next().copied())?),
            "=" => write.4 = Some(number(words.next().copied())?),
            other => {
                return Err(format!(
                    "expected `more`, `record`, `urgent`, `timed KEY` or `= N`, found `{other}`"
                ));
            }
        }
    }
    let (more, record, urgent, timed, result) = write;
    Ok(Call::Write {
        len: number(Some(len))?,
        more,
        record,
        urgent,
        timed,
        result,
    })
}
