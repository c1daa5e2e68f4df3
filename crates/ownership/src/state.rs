//! The state of the model at one moment.

use crate::Bounds;

/// A TCP connection at our end, as numbers of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tcp {
    /// Bytes received; acknowledged by the next packet sent.
    pub received: u8,
    /// Number of received bytes that the application has read.
    pub read: u8,
    /// Bytes taken from the application.
    pub written: u8,
}

/// How the peer sees the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Seen {
    /// It is open.
    Open,
    /// It was reset.
    Reset,
    /// Our end has closed it in order.
    Closed,
}

/// The other end. It sends a request, waits for the response, and sends the next request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    /// Number of requests sent. They are retransmitted until they are acknowledged.
    pub asked: u8,
    /// Number of requests that were acknowledged.
    pub acknowledged: u8,
    /// Number of responses received.
    pub got: u8,
    /// How the peer sees the connection.
    pub sees: Seen,
}

/// Origin of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// From the kernel.
    Taken,
    /// From the adapter.
    Exported,
}

/// A state in the form that an application has. Only broker and adapter can create one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sealed {
    /// The state itself.
    pub tcp: Tcp,
    /// Origin of the state.
    pub kind: Kind,
    /// Number of the connection among those that have had the place.
    pub number: u8,
}

/// The basis on which an application asks for its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// A state: GIVE_BACK, or RECLAIM if the adapter is gone.
    State(Sealed),
    /// RECOVER: the numbers of bytes that it has read and written.
    Numbers,
}

/// Where the connection is, as the application sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum At {
    /// In the kernel.
    Host,
    /// Waiting for the answer to TAKE.
    Taking,
    /// TAKE was not answered.
    Doubt,
    /// The application holds the state.
    Held(Sealed),
    /// Waiting for the answer to IMPORT.
    HandingOff(Sealed),
    /// On the adapter.
    Adapter,
    /// Waiting for the answer to EXPORT.
    Restoring,
    /// The application wants the connection back.
    Back(Wanted),
    /// Waiting for the broker's answer to the request for the connection.
    Returning(Wanted),
    /// The connection has ended, and the application's user knows.
    Ended,
}

/// An answer of the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The connection is out of the kernel; this is its state.
    Taken(Sealed),
    /// The connection stays in the kernel.
    Refused,
    /// A socket that has the connection.
    Back,
    /// The connection is lost, or does not belong to the application.
    Lost,
}

/// A request of an application to the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// TAKE.
    Take,
    /// GIVE_BACK, RECLAIM or RECOVER.
    Back(Wanted),
}

/// The application, and its connection to the broker.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Application {
    /// Whether it was not killed.
    pub alive: bool,
    /// Where the connection is.
    pub at: At,
    /// Number of bytes written.
    pub wrote: u8,
    /// Number of bytes read.
    pub read: u8,
    /// The request to the broker, until the broker begins with it.
    pub asks: Option<Ask>,
    /// An answer that the application has not read yet.
    pub answer: Option<Answer>,
    /// Whether its link to the adapter is gone, and it has not noticed yet.
    pub cut: bool,
    /// The latest state that it has had.
    pub old: Option<Sealed>,
}

/// Where packets of the flow go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Map {
    /// To the kernel.
    Absent,
    /// To the adapter; packets that the kernel sends are dropped.
    Adapter,
    /// Nowhere; packets that the kernel sends are dropped.
    Hold,
}

/// The owner of the connection, according to the shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    Application,
    Adapter,
    Broker,
    Over,
}

/// The record of the connection on the adapter, in the shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Written {
    /// Nothing yet.
    Untouched,
    /// Data is in flight.
    Incomplete,
    /// The connection's state.
    Complete(Tcp),
}

/// The connection's place in the memory that broker and adapter share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Number of the connection among those that have had the place.
    pub number: u8,
    /// Owner of the connection.
    pub owner: Owner,
    /// 1 if the connection has been on the adapter, otherwise 0.
    pub legs: u8,
    /// Record that the adapter has written.
    pub record: Written,
}

/// Progress of the broker with a request or a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the steps have the names")]
pub enum Job {
    Idle,
    Captured,
    Read(Tcp),
    Killed(Tcp),
    Claimed(Tcp),
    Repaired,
    Removed,
    RepairOff,
    Vacated,
    ResetClaimed,
    ResetRemoved,
    ResetAsked,
}

/// The broker's entry for the flow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Whether the entry belongs to a known application. Otherwise, the first application of its user that asks gets it.
    pub known: bool,
    /// Whether its adapter was killed.
    pub gone: bool,
    /// Whether its adapter has ended in order.
    pub parted: bool,
    /// Whether its application is gone.
    pub orphan: bool,
}

/// The broker.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Broker {
    /// Its entry for the flow.
    pub entry: Option<Entry>,
    /// What it is doing.
    pub job: Job,
    /// Whether it has an adapter, as far as it knows.
    pub has_adapter: bool,
    /// Whether the job is for a request of the application, to be answered when the job is done.
    pub answers: bool,
}

/// The adapter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Adapter {
    /// A connection that it has claimed and not created yet.
    pub claimed: Option<Tcp>,
    /// The connection.
    pub conn: Option<Tcp>,
    /// A connection that it has taken out of its stack and not given to the application yet.
    pub leaving: Option<Tcp>,
    /// The record: 0 is up to date, 1 is out of date, 2 is marked as being written.
    pub dirty: u8,
    /// Whether IMPORT was answered.
    pub answered: bool,
    /// Whether it is attached to the current broker.
    pub linked: bool,
    /// Whether its memory contains the place.
    pub has_place: bool,
}

/// A request of the application to the adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    Import(Sealed),
    Export,
}

/// A response of the adapter to the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Response {
    Imported,
    Refused,
    Exported(Sealed),
}

/// A process that can be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "they say it")]
pub enum Victim {
    Application,
    Broker,
    Adapter,
}

/// The state of all processes and of what they share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The other end.
    pub peer: Peer,
    /// The application.
    pub app: Application,
    /// The application's socket.
    pub s0: Option<Tcp>,
    /// A socket that the broker restores, and whether it is in repair mode.
    pub s1: Option<(Tcp, bool)>,
    /// Where packets go while the eBPF programs are attached to the interface.
    pub map: Map,
    /// The place in memory that broker and adapter share; it is lost once both are gone.
    pub place: Option<Place>,
    /// Whether the place was lost with broker and adapter.
    pub lost: bool,
    /// Whether the application no longer had the connection when the place was lost.
    pub forgotten: bool,
    /// Whether the adapter has reset the connection while there was no broker.
    pub reset_alone: bool,
    /// The broker, if there is one.
    pub broker: Option<Broker>,
    /// The adapter, if there is one.
    pub adapter: Option<Adapter>,
    /// A request of the application to the adapter.
    pub request: Option<Request>,
    /// A response of the adapter to the application.
    pub response: Option<Response>,
    /// Number of connections that have had the place.
    pub number: u8,
    /// What may still happen.
    pub left: Bounds,
    /// The first victim, and the location of the connection at that time.
    pub first: Option<(Victim, &'static str)>,
}

impl State {
    /// Returns a connection in the kernel, with broker and adapter.
    pub(crate) fn new(bounds: &Bounds) -> Self {
        Self {
            peer: Peer {
                asked: 0,
                acknowledged: 0,
                got: 0,
                sees: Seen::Open,
            },
            app: Application {
                alive: true,
                at: At::Host,
                wrote: 0,
                read: 0,
                asks: None,
                answer: None,
                cut: false,
                old: None,
            },
            s0: Some(Tcp::default()),
            s1: None,
            map: Map::Absent,
            place: None,
            lost: false,
            forgotten: false,
            reset_alone: false,
            broker: Some(Broker::new(true)),
            adapter: Some(Adapter::new()),
            request: None,
            response: None,
            number: 0,
            left: bounds.clone(),
            first: None,
        }
    }

    /// Returns whether packets of the flow reach the kernel, and the kernel's packets leave. The eBPF programs are detached with the last
    /// of broker and adapter.
    pub(crate) fn is_kernels(&self) -> bool {
        let is_attached = self.broker.is_some() || self.adapter.is_some();
        !is_attached || self.map == Map::Absent
    }

    /// Returns whether the kernel has a socket that answers.
    pub(crate) fn has_socket(&self) -> bool {
        self.s0.is_some() || self.s1.is_some()
    }
}

impl Broker {
    pub(crate) fn new(has_adapter: bool) -> Self {
        Self {
            entry: None,
            job: Job::Idle,
            has_adapter,
            answers: false,
        }
    }
}

impl Adapter {
    pub(crate) fn new() -> Self {
        Self {
            claimed: None,
            conn: None,
            leaving: None,
            dirty: 0,
            answered: false,
            linked: true,
            has_place: false,
        }
    }
}
