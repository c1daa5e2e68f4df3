//! The Fast Open option as a value (RFC 7413 4.1.1).

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Deref;

/// Minimum and maximum length of a cookie, bytes (RFC 7413 4.1.1).
const LEAST: usize = 4;
const MOST: usize = 16;

/// A Fast Open cookie: the bytes that a server issued, or no bytes, which requests a cookie (RFC 7413 4.1.1). Dereferences to a slice.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<u8>", into = "Vec<u8>")]
pub struct FastOpenCookie {
    bytes: [u8; MOST],
    len: u8,
}

/// The option: a cookie, or a request for a cookie, with one of its two kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FastOpenOption {
    /// The cookie.
    pub cookie: FastOpenCookie,
    /// Whether the option has the experimental kind that was used before its own kind was assigned (RFC 6994, experiment 0xF989).
    pub experimental: bool,
}

impl FastOpenOption {
    /// Requests a cookie.
    pub const REQUEST: Self = Self::new(FastOpenCookie::REQUEST);

    /// Creates an option with the assigned kind.
    pub const fn new(cookie: FastOpenCookie) -> Self {
        Self {
            cookie,
            experimental: false,
        }
    }

    /// Returns the length of the option without padding, bytes.
    pub(crate) fn len(&self) -> usize {
        let experiment = if self.experimental { 2 } else { 0 };
        2 + experiment + self.cookie.len()
    }
}

/// The error of bytes that are not a valid cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a Fast Open cookie has 4 to 16 bytes, an even number, or none; not {0}")]
pub struct NoCookie(pub usize);

impl FastOpenCookie {
    /// Requests a cookie.
    pub const REQUEST: Self = Self {
        bytes: [0; MOST],
        len: 0,
    };

    /// Creates a cookie from these bytes; no bytes request a cookie.
    ///
    /// # Errors
    /// The number of bytes is invalid.
    pub fn new(bytes: &[u8]) -> Result<Self, NoCookie> {
        let len = bytes.len();
        if len != 0 && (!(LEAST..=MOST).contains(&len) || !len.is_multiple_of(2)) {
            return Err(NoCookie(len));
        }
        let mut cookie = Self::REQUEST;
        cookie.bytes[..len].copy_from_slice(bytes);
        cookie.len = len as u8;
        Ok(cookie)
    }

    /// Returns whether this is only a request for a cookie.
    pub fn is_request(&self) -> bool {
        self.len == 0
    }
}

impl Deref for FastOpenCookie {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl TryFrom<Vec<u8>> for FastOpenCookie {
    type Error = NoCookie;
    fn try_from(bytes: Vec<u8>) -> Result<Self, NoCookie> {
        Self::new(&bytes)
    }
}

impl From<FastOpenCookie> for Vec<u8> {
    fn from(cookie: FastOpenCookie) -> Self {
        cookie.to_vec()
    }
}

/// Formats the cookie in hexadecimal.
impl fmt::Debug for FastOpenCookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_has_4_to_16_bytes_an_even_number() {
        for len in 0..=20_usize {
            let bytes = vec![7; len];
            let taken = [0, 4, 6, 8, 10, 12, 14, 16].contains(&len);
            assert_eq!(FastOpenCookie::new(&bytes).is_ok(), taken, "{len}");
        }
        let cookie = FastOpenCookie::new(&[0, 1, 0xfe, 0xff]).unwrap();
        assert_eq!(format!("{cookie:?}"), "0001feff");
        assert!(!cookie.is_request() && FastOpenCookie::REQUEST.is_request());
    }
}
