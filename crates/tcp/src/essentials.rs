//! The state of a connection that another system's TCP can provide, and take over.

use crate::config::Config;
use crate::connection::Connection;
use crate::portable::{Portable, Signals};
use crate::types::State;
use baton_wire::{Flow, Payload, SeqNr, Span, Time};

/// Scaling of windows (RFC 7323 2): shifts, 0 to 14.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowScaling {
    /// Shift of windows that the peer advertises.
    pub send: u8,
    /// Shift of windows that are advertised to the peer.
    pub receive: u8,
}

/// State of a synchronized connection in another TCP, as Linux provides it with `TCP_REPAIR` and `TCP_INFO`. Numbers are those of RFC
/// 9293 3.3.1, with a FIN counted. The rest of the state is learned anew: which data the peer has beyond a hole, how round-trip times
/// vary, and the state of the congestion controller except for its window.
#[derive(Clone, Debug, PartialEq)]
pub struct Essentials<P> {
    /// The connection.
    pub flow: Flow,
    /// ESTABLISHED, CLOSE-WAIT, FIN-WAIT-1 or FIN-WAIT-2. Connections in other states stay with the TCP that has them.
    pub state: State,
    /// SND.UNA.
    pub send_una: SeqNr,
    /// SND.NXT, or the highest value that it had.
    pub send_next: SeqNr,
    /// All data from SND.UNA on, sent or not.
    pub send_buffer: Vec<P>,
    /// SND.WND: bytes from SND.UNA on.
    pub send_window: u32,
    /// SND.WL1.
    pub send_window_seq: SeqNr,
    /// The largest window that the peer has advertised, bytes.
    pub largest_send_window: u32,
    /// RCV.NXT.
    pub receive_next: SeqNr,
    /// RCV.NXT + RCV.WND, as advertised to the peer.
    pub receive_edge: SeqNr,
    /// Data that arrived in order and was not read.
    pub receive_buffer: Vec<P>,
    /// The MSS option of the peer.
    pub mss: u16,
    /// Shifts, if both ends scale windows.
    pub window_scaling: Option<WindowScaling>,
    /// Whether both ends use SACK.
    pub sack: bool,
    /// TSval of the next segment, if both ends use timestamps.
    pub timestamp: Option<u32>,
    /// Smoothed round-trip time and its variance, if measured.
    pub round_trip: Option<(Span, Span)>,
    /// The congestion window, bytes, if it is known.
    pub congestion_window: Option<u32>,
    /// The slow start threshold (RFC 5681 3.1), bytes, if the window was ever reduced. Linux reports it, but has no call to set it.
    pub slow_start_threshold: Option<u32>,
}

/// Reason why a connection cannot move to another system's TCP now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotEssential {
    /// The connection is opening or closing.
    #[error(
        "the connection is in {0:?}; expected ESTABLISHED, CLOSE-WAIT, FIN-WAIT-1 or FIN-WAIT-2"
    )]
    State(State),
    /// The owner has read data but not freed its buffer space, which another TCP would count as free.
    #[error("{0} bytes of the connection were read and not consumed")]
    NotConsumed(usize),
    /// The connection has ended, and its owner was not notified.
    #[error("the connection has ended")]
    Ended,
    /// The connection's numbers contradict each other: it was deserialized from an untrusted source.
    #[error("the connection's state violates a rule of TCP")]
    Unsound,
}

impl<P: Payload> Essentials<P> {
    /// Converts to a state to import, with the parameters of `config` and buffers that are large enough for the data.
    pub fn into_portable(self, config: &Config) -> Portable<P> {
        let unsent: usize = self.send_buffer.iter().map(Payload::len).sum();
        let unread: usize = self.receive_buffer.iter().map(Payload::len).sum();
        let offered = self.receive_edge.saturating_since(self.receive_next);
        let config = Config {
            send_buffer: config.send_buffer.max(unsent as u32),
            receive_buffer: config.receive_buffer.max(unread as u32 + offered),
            ..config.clone()
        };
        let signals = Signals {
            readable: unread > 0,
            peer_closed: self.state == State::CloseWait,
            ..Signals::default()
        };
        Connection::resumed(self, &config).into_portable(Time::ZERO, config, signals)
    }
}

impl<P: Payload> Portable<P> {
    /// Returns the state that another system's TCP needs. Data that arrived out of order is lost, and the peer sends it again.
    ///
    /// # Errors
    /// The connection is not in a state in which it can be taken over.
    pub fn essentials(&self) -> Result<Essentials<P>, NotEssential> {
        if self.is_over() {
            return Err(NotEssential::Ended);
        }
        let conn = Connection::from_portable(Time::ZERO, self.clone());
        if self.config.check().is_err() || conn.verify(&self.config).is_err() {
            return Err(NotEssential::Unsound);
        }
        let held = self.unconsumed() - self.unread();
        if held > 0 {
            return Err(NotEssential::NotConsumed(held));
        }
        match self.state {
            State::Established | State::CloseWait | State::FinWait1 | State::FinWait2 => {
                Ok(self.tell())
            }
            other => Err(NotEssential::State(other)),
        }
    }
}
