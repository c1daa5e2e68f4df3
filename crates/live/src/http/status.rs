//! Status codes (RFC 9110 15).

baton_named::named! {
    /// The status of a response, named by its usual reason phrase.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u16)]
    #[allow(missing_docs)]
    pub enum Status {
        Ok = 200 => "OK",
        Created = 201 => "Created",
        NoContent = 204 => "No Content",
        PartialContent = 206 => "Partial Content",
        MovedPermanently = 301 => "Moved Permanently",
        NotModified = 304 => "Not Modified",
        BadRequest = 400 => "Bad Request",
        Forbidden = 403 => "Forbidden",
        NotFound = 404 => "Not Found",
        MethodNotAllowed = 405 => "Method Not Allowed",
        RequestTimeout = 408 => "Request Timeout",
        Conflict = 409 => "Conflict",
        ContentTooLarge = 413 => "Content Too Large",
        RangeNotSatisfiable = 416 => "Range Not Satisfiable",
        ExpectationFailed = 417 => "Expectation Failed",
        FieldsTooLarge = 431 => "Request Header Fields Too Large",
        ServerError = 500 => "Internal Server Error",
        NotImplemented = 501 => "Not Implemented",
        VersionNotSupported = 505 => "HTTP Version Not Supported",
        InsufficientStorage = 507 => "Insufficient Storage",
    }
}

impl Status {
    /// Returns the number of the status.
    pub const fn code(self) -> u16 {
        self as u16
    }
}
