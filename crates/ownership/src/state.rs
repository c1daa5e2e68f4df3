//! What there is at a moment.

use crate::Bounds;

/// A TCP connection at our end: numbers of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tcp {
    /// Received, and acknowledged when something is sent.
    pub received: u8,
    /// Of these: given to the application.
    pub read: u8,
    /// Got from the application.
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

/// The other end. It asks, waits for the response, and asks again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    /// Requests that it has sent. It sends them again until they are acknowledged.
    pub asked: u8,
    /// Those that were acknowledged.
    pub acknowledged: u8,
    /// Responses that it has got.
    pub got: u8,
    /// How it sees the connection.
    pub sees: Seen,
}

/// Where a state comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// From the kernel.
    Taken,
    /// From the adapter.
    Exported,
}

/// A state as an application has it. Nobody but broker and adapter can make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sealed {
    /// The state itself.
    pub tcp: Tcp,
    /// Where it comes from.
    pub kind: Kind,
    /// Which of the connections it is that have had the place.
    pub number: u8,
}

/// By what an application asks for its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// GIVE_BACK, or RECLAIM where the adapter is gone.
    State(Sealed),
    /// RECOVER: what it has read and written itself.
    Numbers,
}

/// Where the application has its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum At {
    /// In the kernel.
    Host,
    /// TAKE has no answer yet.
    Taking,
    /// TAKE was not answered.
    Doubt,
    /// It has the state.
    Held(Sealed),
    /// IMPORT has no answer yet.
    HandingOff(Sealed),
    /// On the adapter.
    Adapter,
    /// EXPORT has no answer yet.
    Restoring,
    /// It wants it back.
    Back(Wanted),
    /// The broker has not answered that yet.
    Returning(Wanted),
    /// Its user was told that the connection is over.
    Ended,
}

/// What the broker answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The state of a connection that is out of the kernel.
    Taken(Sealed),
    /// It stays in the kernel.
    Refused,
    /// A socket that has the connection.
    Back,
    /// The connection is lost, or not the application's.
    Lost,
}

/// What an application asks the broker for.
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
    /// It was not killed.
    pub alive: bool,
    /// Where it has its connection.
    pub at: At,
    /// Bytes that it has written.
    pub wrote: u8,
    /// Bytes that it has read.
    pub read: u8,
    /// What it has asked for, until the broker begins with it.
    pub asks: Option<Ask>,
    /// An answer that it has not seen yet.
    pub answer: Option<Answer>,
    /// Its link to the adapter is gone, which it has not seen yet.
    pub cut: bool,
    /// The last state that it has had.
    pub old: Option<Sealed>,
}

/// Where packets of the flow go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Map {
    /// To the kernel.
    Absent,
    /// To the adapter; what the kernel sends is dropped.
    Adapter,
    /// Nowhere; what the kernel sends is dropped.
    Hold,
}

/// Who has the connection, by the shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    Application,
    Adapter,
    Broker,
    Over,
}

/// What stands in the shared memory of the connection on the adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Written {
    /// Nothing yet.
    Untouched,
    /// Data is under way.
    Incomplete,
    /// Its state.
    Complete(Tcp),
}

/// The connection's place in the memory that broker and adapter share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Which of the connections it is that have had the place.
    pub number: u8,
    /// Who has it.
    pub owner: Owner,
    /// It has been on the adapter.
    pub legs: u8,
    /// What the adapter has written.
    pub record: Written,
}

/// How far the broker has got with a request, or a reset.
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

/// The broker's entry of the flow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// An application has it. Otherwise the first one of its user that asks.
    pub known: bool,
    /// Its adapter was killed.
    pub gone: bool,
    /// Its adapter has ended in order.
    pub parted: bool,
    /// Its application is gone.
    pub orphan: bool,
}

/// The broker.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Broker {
    /// Its entry of the flow.
    pub entry: Option<Entry>,
    /// What it does.
    pub job: Job,
    /// It has an adapter, as far as it knows.
    pub has_adapter: bool,
    /// The application's request, that it answers when the job is done.
    pub answers: bool,
}

/// The adapter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Adapter {
    /// A connection that it has claimed, and not made yet.
    pub claimed: Option<Tcp>,
    /// The connection.
    pub conn: Option<Tcp>,
    /// A connection that it has taken out of its stack, and not given to the application yet.
    pub leaving: Option<Tcp>,
    /// The record: 0 is as the connection, 1 is older, 2 is marked as being written.
    pub dirty: u8,
    /// The application has the answer of its IMPORT.
    pub answered: bool,
    /// It is with the broker that is there.
    pub linked: bool,
    /// The place is in its memory.
    pub has_place: bool,
}

/// From the application to the adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    Import(Sealed),
    Export,
}

/// From the adapter to the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Response {
    Imported,
    Refused,
    Exported(Sealed),
}

/// Who can be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "they say it")]
pub enum Victim {
    Application,
    Broker,
    Adapter,
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The other end.
    pub peer: Peer,
    /// The application.
    pub app: Application,
    /// The socket that the application has.
    pub s0: Option<Tcp>,
    /// A socket that the broker restores, and whether it is in repair mode.
    pub s1: Option<(Tcp, bool)>,
    /// Where packets go while programs are at the interface.
    pub map: Map,
    /// What broker and adapter share; gone with both.
    pub place: Option<Place>,
    /// The place was lost with both.
    pub lost: bool,
    /// And the application had no connection any more then.
    pub forgotten: bool,
    /// The adapter has reset it while there was no broker.
    pub reset_alone: bool,
    /// The broker, if there is one.
    pub broker: Option<Broker>,
    /// The adapter, if there is one.
    pub adapter: Option<Adapter>,
    /// From the application to the adapter.
    pub request: Option<Request>,
    /// From the adapter to the application.
    pub response: Option<Response>,
    /// Connections that have had the place.
    pub number: u8,
    /// What may still happen.
    pub left: Bounds,
    /// Who was killed first, and where the connection was.
    pub first: Option<(Victim, &'static str)>,
}

impl State {
    /// A connection in the kernel, with broker and adapter.
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

    /// Whether packets of the flow come to the kernel, and what it sends leaves. Programs go with the last of broker and adapter.
    pub(crate) fn is_kernels(&self) -> bool {
        let is_attached = self.broker.is_some() || self.adapter.is_some();
        !is_attached || self.map == Map::Absent
    }

    /// Whether the kernel has a socket that answers.
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
