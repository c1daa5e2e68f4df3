//! How a request ended.

use super::Malformed;

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// How a request ended, or why a connection is over.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
        #[repr(u16)]
        pub enum Status {
            $($(#[$doc])* #[error($text)] $name = $number,)*
        }

        impl Status {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The status of this number.
            ///
            /// # Errors
            /// There is none.
            pub fn from_number(number: u16) -> Result<Self, Malformed> {
                match number {
                    $($number => Ok(Self::$name),)*
                    _ => Err(Malformed::Status(number)),
                }
            }
        }
    };
}

statuses! {
    /// Done.
    Ok = 0, "done";
    /// The socket's number is in use.
    SocketInUse = 1, "the socket exists already";
    /// There is no such socket.
    NoSuchSocket = 2, "there is no such socket";
    /// There are as many sockets as one application may have.
    TooManySockets = 3, "too many sockets";
    /// There are as many requests of this kind as one socket may have.
    TooManyRequests = 4, "too many requests of this kind wait on the socket";
    /// Not in this state: connect of a listener, send before connect, and the like.
    WrongState = 5, "the socket is in the wrong state for this";
    /// Somebody listens there already.
    AddressInUse = 6, "the address is in use";
    /// Not an address of the adapter.
    AddressNotAvailable = 7, "the adapter does not have this address";
    /// No port is free for the connection.
    NoPort = 8, "no local port is free";
    /// The peer refused the connection.
    Refused = 9, "connection refused";
    /// The peer reset it.
    Reset = 10, "connection reset by the peer";
    /// The peer does not answer.
    TimedOut = 11, "connection timed out";
    /// There is no way to the peer.
    Unreachable = 12, "the peer cannot be reached";
    /// This side reset it.
    Aborted = 13, "connection aborted";
    /// It was cancelled.
    Cancelled = 14, "cancelled";
    /// There is no such request to cancel.
    NoSuchRequest = 15, "there is no such request";
    /// The peer sends no more.
    EndOfStream = 16, "end of stream";
    /// The value of an option is out of bounds.
    BadValue = 17, "the value is out of bounds";
    /// The sending direction has been closed.
    Shut = 18, "the socket has been shut down for sending";
    /// Some connections of a bulk accept did not come in time; the rest of the reserved sockets is free again.
    Partial = 19, "fewer connections came in time";
    /// An IMPORT: as many connections are on the adapter as Soft_Limit allows.
    SoftLimit = 20, "the adapter's soft limit is reached";
    /// An IMPORT: as many connections are on the adapter as it can ever hold (Hard_Limit).
    HardLimit = 21, "the adapter's hard limit is reached";
    /// An IMPORT: the state is longer than the adapter has memory for.
    Memory = 22, "the adapter has no memory for the connection";
    /// An IMPORT: a state in which a connection cannot be taken over, or none at all.
    BadState = 23, "the connection is in a state that cannot be taken over";
    /// An IMPORT: the adapter has a connection of this four-tuple.
    Duplicate = 24, "the adapter has a connection of this four-tuple";
    /// There is no data cache, or it was not started.
    NoCache = 25, "there is no data cache, or it was not started";
    /// The range does not lie within the data cache.
    OutsideCache = 26, "the range does not lie within the data cache";
    /// Not all of the range stands in the data cache.
    NotCached = 27, "not all of the range stands in the data cache";
    /// The times of bytes: they would be of a clock that the host cannot read.
    NoClock = 28, "the adapter has no clock in common with the application";
    /// The adapter serves connections that it takes over, and no others.
    ImportsOnly = 29, "the adapter serves connections that it takes over, and no others";
    /// An IMPORT: the connection was not taken out of the kernel for this application.
    NotYours = 30, "the connection was not taken out of the kernel for this application";
}
