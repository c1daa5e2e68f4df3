//! Actions that an input may select: events, segments of a peer, calls of the owner.

use arbitrary::Arbitrary;
use baton_wire::SeqNr;

use super::rules::Rules;

/// An event, for one connection or for the whole stack.
#[derive(Debug, Arbitrary)]
pub(super) enum Happening {
    /// Steps for the connection of the current peer.
    Steps([Step; 6]),
    /// Selects the current peer.
    Peer(u16),
    Connect,
    /// Connects with Fast Open, after writing `len` bytes.
    ConnectFast {
        len: u16,
        without_cookie: bool,
    },
    /// Sets how the listener handles Fast Open.
    FastOpen {
        pending: u8,
        without_cookie: bool,
    },
    /// Sets whether the owner accepts pending connections.
    Accepts(bool),
    Backlog(u8),
    /// Replaces the listener.
    Listen(Rules),
    Configure(Rules),
}

/// A number, given by its distance from the correct one, or arbitrary.
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

/// A segment of a peer.
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

/// Content of a peer's Fast Open option.
#[derive(Debug, Arbitrary)]
pub(crate) enum Presented {
    Request,
    /// The last cookie that the stack issued.
    Given,
    Any([u8; 16], u8),
}

/// The next action.
#[derive(Debug, Arbitrary)]
pub(crate) enum Step {
    Segment(Box<Sent>),
    /// A pure acknowledgment of everything that was sent.
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

/// A change of the configuration by the owner.
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

/// An error reported by the network.
#[derive(Debug, Arbitrary)]
pub(crate) enum Reported {
    FragmentationNeeded(u16),
    HostUnreachable,
    PortUnreachable,
    TimeExceeded,
}

/// State into which the connection is brought before the input takes over.
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
    /// The peer's SYN carried data, and the handshake is not complete.
    FastOpened,
    /// The stack's SYN carried data.
    FastSynSent,
}
