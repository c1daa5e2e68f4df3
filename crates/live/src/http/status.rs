//! Status codes (RFC 9110 15).

/// The status of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
#[allow(missing_docs)]
pub enum Status {
    Ok = 200,
    Created = 201,
    NoContent = 204,
    PartialContent = 206,
    MovedPermanently = 301,
    NotModified = 304,
    BadRequest = 400,
    Forbidden = 403,
    NotFound = 404,
    MethodNotAllowed = 405,
    RequestTimeout = 408,
    Conflict = 409,
    ContentTooLarge = 413,
    RangeNotSatisfiable = 416,
    ExpectationFailed = 417,
    FieldsTooLarge = 431,
    ServerError = 500,
    NotImplemented = 501,
    InsufficientStorage = 507,
    VersionNotSupported = 505,
}

impl Status {
    /// All statuses.
    pub const ALL: [Self; 20] = [
        Self::Ok,
        Self::Created,
        Self::NoContent,
        Self::PartialContent,
        Self::MovedPermanently,
        Self::NotModified,
        Self::BadRequest,
        Self::Forbidden,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::RequestTimeout,
        Self::Conflict,
        Self::ContentTooLarge,
        Self::RangeNotSatisfiable,
        Self::ExpectationFailed,
        Self::FieldsTooLarge,
        Self::ServerError,
        Self::NotImplemented,
        Self::VersionNotSupported,
        Self::InsufficientStorage,
    ];

    /// Returns the number of the status.
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// Returns the usual reason phrase.
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Created => "Created",
            Self::NoContent => "No Content",
            Self::PartialContent => "Partial Content",
            Self::MovedPermanently => "Moved Permanently",
            Self::NotModified => "Not Modified",
            Self::BadRequest => "Bad Request",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "Not Found",
            Self::MethodNotAllowed => "Method Not Allowed",
            Self::RequestTimeout => "Request Timeout",
            Self::Conflict => "Conflict",
            Self::ContentTooLarge => "Content Too Large",
            Self::RangeNotSatisfiable => "Range Not Satisfiable",
            Self::ExpectationFailed => "Expectation Failed",
            Self::FieldsTooLarge => "Request Header Fields Too Large",
            Self::ServerError => "Internal Server Error",
            Self::NotImplemented => "Not Implemented",
            Self::VersionNotSupported => "HTTP Version Not Supported",
            Self::InsufficientStorage => "Insufficient Storage",
        }
    }
}
