//! What an input may ask for: what happens, what a peer sends, what the owner calls.

use arbitrary::Arbitrary;
use baton_wire::SeqNr;

use super::rules::Rules;

/// What may happen beside one connection.
#[derive(Debug, Arbitrary)]
pub(super) enum Happening {
    /// To the connection of the current peer.
    Steps([Step; 6]),
    /// From here on it is this one.
    Peer(u16),
    Connect,
    /// The same by Fast Open, with so many bytes written before.
    ConnectFast {
        len: u16,
        without_cookie: bool,
    },
    /// How the listener takes it.
    FastOpen {
        pending: u8,
        without_cookie: bool,
    },
    /// The owner takes connections that wait, or not.
    Accepts(bool),
    Backlog(u8),
    /// Another listener takes the place of the one there is.
    Listen(Rules),
    Configure(Rules),
}

/// A number given by its distance from the one that would be right, or freely.
#[derive(Debug, Arbitrary)]
pub(crate) enum Number {
    Right,
    Near(i16),
    Any(u32),
}

impl Number {
    pub(super) fn from(&self, right: SeqNr) -> SeqNr {
        match *self {
            Self::Right => right,
            Self::Near(distance) => SeqNr(right.0.wrapping_add_signed(distance.into())),
            Self::Any(number) => SeqNr(number),
        }
    }
}

/// What a peer may send.
#[derive(Debug, Arbitrary)]
pub(crate) struct Sent {
    pub(super) seq: Number,
    pub(super) ack: Number,
    pub(super) flags: u8,
    pub(super) window: u16,
    pub(super) len: u16,
    pub(super) congested: bool,
    pub(super) mss: Option<u16>,
    pub(super) window_scale: Option<u8>,
    pub(super) sack_permitted: bool,
    pub(super) timestamps: Option<i16>,
    pub(super) sack: [Option<(Number, i16)>; 3],
    pub(super) fast_open: Option<(Presented, bool)>,
}

/// What a peer's Fast Open option holds.
#[derive(Debug, Arbitrary)]
pub(crate) enum Presented {
    Request,
    /// The last cookie that the stack gave.
    Given,
    Any([u8; 16], u8),
}

/// What may happen next.
#[derive(Debug, Arbitrary)]
pub(crate) enum Step {
    Segment(Box<Sent>),
    /// A plain acknowledgment of all that was sent.
    Acknowledge,
    /// The next data in order.
    Data(u16),
    Write {
        len: u16,
        more: bool,
        end_of_record: bool,
    },
    Read(u16),
    Consume(u16),
    Shutdown,
    Close,
    Abort,
    NoDelay(bool),
    Cork(bool),
    QuickAck,
    ShutdownReceive,
    Configure(Change),
    PathError {
        seq: Number,
        error: Reported,
    },
    Wait {
        ms: u32,
    },
    Move,
}

/// What an owner may change.
#[derive(Debug, Arbitrary)]
pub(crate) enum Change {
    SendBuffer(u16),
    ReceiveBuffer(u16),
    Keepalive(Option<(u16, u16, u8)>),
    UserTimeout(Option<u16>),
    DelayedAck(u16),
    QuickAcks(u8),
    WindowClamp(u16),
    Mss(u16),
    Congestion(u8),
    MtuProbing {
        when: u8,
        base_mss: u16,
        interval_s: u8,
        threshold: u8,
    },
}

/// What the network may say.
#[derive(Debug, Arbitrary)]
pub(crate) enum Reported {
    FragmentationNeeded(u16),
    HostUnreachable,
    PortUnreachable,
    TimeExceeded,
}

/// How far the connection is led before the input takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub(super) enum Start {
    Listen,
    SynSent,
    SynReceived,
    SimultaneousOpen,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
    /// Data came with the SYN, and the handshake is not complete.
    FastOpened,
    /// Data went with the SYN.
    FastSynSent,
}
