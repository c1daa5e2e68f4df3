//! Many connections: lookup by four-tuple, listeners, timers, TIME-WAIT.

use crate::config::Config;
use crate::payload::Payload;
use crate::portable::Portable;
use crate::segment::Segment;
use baton_wire::{Endpoint, Flow, Span, Time};
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;

/// A connection's slot in its stack. Slots are reused, last freed first, after [`Event::Closed`] or `export`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConnId(pub u32);

/// A listener's slot in its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListenerId(pub u32);

/// Connection states (RFC 9293 3.3.2). LISTEN and CLOSED are not states of a connection in a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum State {
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CloseReason {
    /// Both directions closed in order.
    Normal,
    /// The peer sent a reset.
    Reset,
    /// The peer refused the connection (reset in answer to a SYN).
    Refused,
    /// Too many retransmissions.
    TimedOut,
    /// This end aborted it.
    Aborted,
}

/// What happened to a connection, for its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An active open succeeded.
    Connected,
    /// A passive open is complete and waits in the listener's accept queue: call [`Stack::accept`].
    Acceptable(ListenerId),
    /// In-order data arrived: call [`Stack::read`].
    Readable,
    /// The peer acknowledged this many bytes of written data, which left the send buffer.
    Acknowledged(u32),
    /// The peer will send no more (its FIN arrived in order).
    PeerClosed,
    /// The connection is over for its owner; its slot is free (TIME-WAIT goes on without one).
    Closed(CloseReason),
}

/// What a segment turned out to be, for counting and cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handled {
    /// The connection it belonged to (or made), if any. May already be closed.
    pub conn: Option<ConnId>,
    /// It opened, or tried to open, a connection.
    pub syn: bool,
    /// Bytes of data it carried.
    pub data_len: u32,
    /// It acknowledged new data.
    pub new_ack: bool,
    /// It was not acceptable (out of window, bad ACK, PAWS, no such connection ...).
    pub refused: Option<Refusal>,
}

/// Why a segment was not taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Refusal {
    /// No connection and no listener for it: answered by a reset.
    NoConnection,
    /// The listener's backlog is full.
    BacklogFull,
    /// Sequence number outside the window (RFC 9293 3.10.7.4).
    OutOfWindow,
    /// Timestamp too old (RFC 7323 5).
    Paws,
    /// Acknowledges what was never sent.
    BadAck,
    /// It belongs to a connection in TIME-WAIT.
    TimeWait,
    /// Any other breach of the protocol.
    Malformed,
}

/// Why a write took nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// This direction is closed.
    #[error("the connection is closed for writing")]
    Closed,
}

/// Totals of a stack since it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Segments taken in.
    pub segments_received: u64,
    /// Segments given out.
    pub segments_sent: u64,
    /// Segments that carried data sent before.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Fast retransmits.
    pub fast_retransmits: u64,
    /// Resets sent.
    pub resets_sent: u64,
}

/// Connections, listeners and timers of one host, NIC or client machine.
///
/// Calling order: after any `handle_*` or mutator, call [`Stack::poll_event`] and [`Stack::poll_transmit`] until each
/// gives nothing; call [`Stack::handle_timeouts`] when [`Stack::poll_timeout`]'s moment has come. Time never goes back.
#[derive(Debug)]
pub struct Stack<P> {
    payload: PhantomData<P>,
}

impl<P: Payload> Stack<P> {
    /// An empty stack. `secret` seeds initial sequence numbers and whatever else must not be guessed.
    pub fn new(config: Config, secret: u64) -> Self {
        let _ = (config, secret);
        todo!()
    }

    // --- getters ---

    /// Its parameters.
    pub fn config(&self) -> &Config {
        todo!()
    }

    /// Totals.
    pub fn stats(&self) -> &Stats {
        todo!()
    }

    /// Connections it holds, TIME-WAIT not counted.
    pub fn len(&self) -> usize {
        todo!()
    }

    /// True when it holds no connection.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The connection of `flow`, if it is here and not in TIME-WAIT.
    pub fn find(&self, flow: &Flow) -> Option<ConnId> {
        let _ = flow;
        todo!()
    }

    /// The connection's four-tuple.
    pub fn flow(&self, id: ConnId) -> Flow {
        let _ = id;
        todo!()
    }

    /// The connection's state.
    pub fn state(&self, id: ConnId) -> State {
        let _ = id;
        todo!()
    }

    /// Bytes that [`Stack::write`] would take now.
    pub fn send_space(&self, id: ConnId) -> usize {
        let _ = id;
        todo!()
    }

    /// Bytes written and not yet acknowledged.
    pub fn unacknowledged(&self, id: ConnId) -> usize {
        let _ = id;
        todo!()
    }

    /// Asserts every invariant of the stack and of each connection in it.
    pub fn check(&self) {
        todo!()
    }

    // --- events in ---

    /// Takes in one segment addressed to this stack.
    pub fn handle_segment(&mut self, now: Time, segment: Segment<P>) -> Handled {
        let _ = (now, segment);
        todo!()
    }

    /// Runs the timers that are due. Returns how many connections had one (for cost accounting).
    pub fn handle_timeouts(&mut self, now: Time) -> usize {
        let _ = now;
        todo!()
    }

    // --- mutators ---

    /// Accepts connections to `local` with room for `backlog` that are not yet accepted.
    pub fn listen(&mut self, local: Endpoint, backlog: usize) -> ListenerId {
        let _ = (local, backlog);
        todo!()
    }

    /// Takes the oldest established connection off the accept queue.
    pub fn accept(&mut self, listener: ListenerId) -> Option<ConnId> {
        let _ = listener;
        todo!()
    }

    /// Opens a connection. `None` when one with this four-tuple exists (TIME-WAIT included).
    pub fn connect(&mut self, now: Time, flow: Flow) -> Option<ConnId> {
        let _ = (now, flow);
        todo!()
    }

    /// Appends data to be sent, all of it or as much as fits; returns how many bytes were taken.
    pub fn write(&mut self, id: ConnId, data: P) -> Result<usize, WriteError> {
        let _ = (id, data);
        todo!()
    }

    /// Takes at most `max` bytes of received data. Does *not* open the window: see [`Stack::consume`].
    pub fn read(&mut self, id: ConnId, max: usize) -> Option<P> {
        let _ = (id, max);
        todo!()
    }

    /// Says that the application is done with `len` bytes it was given by `read`; the window opens by as much.
    pub fn consume(&mut self, id: ConnId, len: usize) {
        let _ = (id, len);
        todo!()
    }

    /// Turns Nagle's algorithm off (`true`) or on.
    pub fn set_nodelay(&mut self, id: ConnId, nodelay: bool) {
        let _ = (id, nodelay);
        todo!()
    }

    /// Holds partial segments back while set (TCP_NOPUSH, TCP_CORK); clearing it sends what is held.
    pub fn set_cork(&mut self, id: ConnId, cork: bool) {
        let _ = (id, cork);
        todo!()
    }

    /// Closes this end for writing: a FIN follows what was written (half close).
    pub fn shutdown(&mut self, id: ConnId) {
        let _ = id;
        todo!()
    }

    /// Closes both directions: like `shutdown`, and data that still arrives is answered by a reset (RFC 9293 3.6.1).
    pub fn close(&mut self, id: ConnId) {
        let _ = id;
        todo!()
    }

    /// Ends the connection at once with a reset.
    pub fn abort(&mut self, id: ConnId) {
        let _ = id;
        todo!()
    }

    /// Takes a connection out, buffers and all. Nothing is sent; its slot is free; no event follows.
    pub fn export(&mut self, now: Time, id: ConnId) -> Portable<P> {
        let _ = (now, id);
        todo!()
    }

    /// Puts a connection in, as if it had always been here. Pending output follows from `poll_transmit`.
    ///
    /// # Errors
    /// Gives the state back when its four-tuple is already here or it breaks an invariant.
    pub fn import(&mut self, now: Time, state: Portable<P>) -> Result<ConnId, Box<Portable<P>>> {
        let _ = (now, state);
        todo!()
    }

    // --- effects out ---

    /// The next segment to send, if any may be sent now.
    pub fn poll_transmit(&mut self, now: Time) -> Option<(Option<ConnId>, Segment<P>)> {
        let _ = now;
        todo!()
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<(ConnId, Event)> {
        todo!()
    }

    /// When [`Stack::handle_timeouts`] must next be called, if ever. May be early, never late.
    pub fn poll_timeout(&self) -> Option<Time> {
        todo!()
    }

    /// Shortest time a timer of this stack can run; the granularity of `poll_timeout`.
    pub fn tick(&self) -> Span {
        todo!()
    }
}
