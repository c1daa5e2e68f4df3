//! Statuses of requests.

use super::Malformed;

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// How a request ended, or why a connection ended.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
        #[repr(u16)]
        pub enum Status {
            $($(#[$doc])* #[error($text)] $name = $number,)*
        }

        impl Status {
            /// All statuses.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Returns the status with this number.
            ///
            /// # Errors
            /// Fails if the status does not exist.
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
    SocketInUse = 1, "the socket already exists";
    /// There is no such socket.
    NoSuchSocket = 2, "there is no such socket";
    /// The application has the maximum number of sockets.
    TooManySockets = 3, "too many sockets";
    /// The socket has the maximum number of requests of this kind.
    TooManyRequests = 4, "too many requests of this kind wait on the socket";
    /// The socket is in the wrong state: connect on a listener, send before connect, and the like.
    WrongState = 5, "the socket is in the wrong state for this";
    /// Another socket listens at the address.
    AddressInUse = 6, "the address is in use";
    /// The address does not belong to the adapter.
    AddressNotAvailable = 7, "the adapter does not have this address";
    /// No port is free for the connection.
    NoPort = 8, "no local port is free";
    /// The peer refused the connection.
    Refused = 9, "connection refused";
    /// The peer reset the connection.
    Reset = 10, "connection reset by the peer";
    /// The peer does not answer.
    TimedOut = 11, "connection timed out";
    /// The peer cannot be reached.
    Unreachable = 12, "the peer cannot be reached";
    /// This side reset the connection.
    Aborted = 13, "connection aborted";
    /// The request was cancelled.
    Cancelled = 14, "cancelled";
    /// The request to cancel does not exist.
    NoSuchRequest = 15, "there is no such request";
    /// The peer has closed its sending direction.
    EndOfStream = 16, "end of stream";
    /// The value is out of bounds.
    BadValue = 17, "the value is out of bounds";
    /// The sending direction has been closed.
    Shut = 18, "the socket has been shut down for sending";
    /// Some connections of a bulk accept did not arrive in time; the other reserved sockets are free again.
    Partial = 19, "fewer connections than requested arrived in time";
    /// IMPORT: the number of connections on the adapter has reached Soft_Limit.
    SoftLimit = 20, "the adapter's soft limit is reached";
    /// IMPORT: the number of connections on the adapter has reached the maximum (Hard_Limit).
    HardLimit = 21, "the adapter's hard limit is reached";
    /// The adapter does not have enough memory for the connection.
    Memory = 22, "the adapter has no memory for the connection";
    /// IMPORT: the state is invalid, or not one in which a connection can be taken over.
    BadState = 23, "the connection is in a state that cannot be handed off";
    /// IMPORT: the adapter already has a connection with this four-tuple.
    Duplicate = 24, "the adapter already has a connection with this four-tuple";
    /// There is no data cache, or it was not initialised.
    NoCache = 25, "the adapter has no data cache, or the cache was not initialised";
    /// The range does not lie within the data cache.
    OutsideCache = 26, "the range does not lie within the data cache";
    /// The data cache does not hold all of the range.
    NotCached = 27, "the data cache does not contain the whole range";
    /// Timestamps: adapter and application share no clock.
    NoClock = 28, "the adapter and the application share no clock";
    /// The adapter serves only connections that it imports.
    ImportsOnly = 29, "the adapter serves only connections that are handed off to it";
    /// IMPORT: the connection was not taken out of the kernel for this application.
    NotYours = 30, "the connection was not taken out of the kernel for this application";
    /// SEND of a file: the file is shorter by now, or the adapter cannot read it.
    NotReadable = 31, "the file is shorter by now, or the adapter cannot read it";
}
