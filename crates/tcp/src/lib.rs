//! A sans-I/O TCP engine.
//!
//! A [`Stack`] holds connections and listeners. It has no clock, no I/O, no threads and no entropy of
//! its own: time and segments are arguments, segments and events are results.
//! A connection can be taken out of one stack and put into another at any moment ([`Stack::export`],
//! [`Stack::import`]), which is not visible on the wire.
//!
//! | to find | look in |
//! |---|---|
//! | where an arriving segment goes | `src/stack/arrival.rs`, then `src/connection/input.rs`; the fast path is `prediction.rs` beside it |
//! | what is sent, and when | `src/connection/output.rs`, `src/connection/timers.rs` |
//! | acknowledgments, losses and their repair | `acknowledgment.rs`, `recovery.rs`, `time_recovery.rs`, `spurious.rs` in `src/connection/` |
//! | a congestion controller | [`Congestion`], [`Controller`], `src/congestion/` |
//! | listeners, SYN cookies, Fast Open, TIME-WAIT | `src/stack/listening.rs`, `src/stack/cookies.rs`, `src/stack/fast_open.rs`, `src/time_wait.rs` |
//! | a connection's state, moved or serialized | [`Moved`], [`Portable`], `src/stack/moving.rs`, `src/connection/moving.rs` |
//! | parameters, state for tools, counters, reasons for refusals | [`Config`], [`Info`], [`Stats`], [`Refusal`] |
//! | each rule at work, segment by segment | `tests/dialogues/` |
//!
//! The stack implements RFC 9293 with window scaling, timestamps and PAWS (7323), SACK (2018) with reports of duplicates
//! (2883), detection of losses by time and probes for lost tails (8985) or by counting (6675, 5681, 6582), limited transmit
//! (3042), proportional rate reduction (9937), detection of spurious losses by timestamps (3522, 4015), duplicates and F-RTO
//! (5682), NewReno (5681, 3465), CUBIC (9438), HyStart++ (9406), DCTCP (8257), BBR (draft-ietf-ccwg-bbr-06) with pacing, and
//! any other [`Controller`], explicit congestion notification (3168),
//! retransmission timeouts (6298), user timeouts (5482) and keepalive, resets and challenge ACKs (5961), initial sequence
//! numbers (6528), SYN cookies (4987), Fast Open (7413), path MTU and other ICMP errors (1191, 8201, 5927), probing for
//! the path's MTU (4821), urgent data (9293 3.8.5, 6093), TIME-WAIT (1337, 6191). Each rule is cited where it is applied, and
//! [`Config`] has a switch for most; where RFCs leave a choice, the default is what Linux does.

mod challenge;
mod clock;
mod config;
mod congestion;
mod connection;
mod cookie;
mod delivery_rate;
mod essentials;
mod fast_open;
mod flight;
mod flow_table;
mod info;
mod isn;
mod listener;
mod memory;
mod moved;
mod mtu_search;
mod path_error;
mod path_mtus;
mod payload;
mod portable;
mod profiles;
mod rack;
mod rate_sampler;
mod receive_buffer;
mod remembered;
mod rtt;
mod sack;
mod segment;
mod send_buffer;
mod stack;
mod time_wait;
mod transmit_times;
mod types;
mod wheel;

pub use clock::Moment;
pub use config::{
    Config, ConfigError, Congestion, EcnEcho, EcnMode, Keepalive, LinuxRules, MtuProbing,
    NagleRule, ProbePathMtu, RtoFloor, SynCookies, WindowCounting, WindowProbe, WindowUpdate,
};
pub use congestion::{
    Ack, Acked, CloneController, Controller, Custom, Factory, Loss, Lost, Needs, RateSample, Start,
    Window,
};
pub use essentials::{Essentials, NotEssential, WindowScaling};
pub use fast_open::{FastOpen, FastOpenKey, FastOpenKeys, FastOpenListening};
pub use info::{CongestionPhase, Info, Limit, Timer, TimerKind};
pub use memory::{Holding, MemoryUse};
pub use moved::Moved;
pub use path_error::PathError;
pub use portable::{DecodeError, Portable, Seal};
pub use segment::{Outgoing, OutgoingRun, RunLimit, Segment};
pub use send_buffer::Lent;
pub use stack::Stack;
pub use transmit_times::TransmitTime;
pub use types::{
    CloseReason, ConnId, Event, Handled, ListenerId, Refusal, Refused, State, Stats, WriteError,
    WriteFlags,
};
