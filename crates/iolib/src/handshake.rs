//! The handshake that precedes a link: the host's wishes and the adapter's answer, which are the same on every transport.
//!
//! A frame consists of `BATON`, a byte for the version, two bytes (little-endian) for the length of the rest, and the rest in postcard's
//! format.

use crate::connect::ConnectError;
use baton_bus::descriptor::MOST_INLINE_BYTES;
use baton_bus::link::Violation;
use baton_bus::{Batching, Descriptor};
use rustix::process::getuid;
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind, Read, Write};

/// Version of the whole protocol, including the layout of shared memory.
pub const VERSION: u8 = 8;
/// Start of every frame, before the version.
const MAGIC: &[u8; 5] = b"BATON";
const HEADER_BYTES: usize = 8;
/// Maximum length of a frame, bytes.
const MOST_FRAME_BYTES: usize = 256;
/// Maximum length of an application's name, bytes; longer names are truncated.
const MOST_NAME_BYTES: usize = 32;

/// Sizes of rings and buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Geometry {
    /// Number of descriptors in each ring, a power of two.
    pub ring_depth: u32,
    /// Number of the host's buffers.
    pub buffers: u32,
    /// Size of each buffer, bytes, which is also the maximum of one transfer.
    pub buffer_bytes: u32,
    /// Maximum number of SENDs per connection that wait until the adapter fetches them.
    pub most_sends: u32,
}

/// Rings of 128 descriptors (batching 3.1), and 2048 buffers of the size of the largest transfer: 8 MiB.
impl Default for Geometry {
    fn default() -> Self {
        Self {
            ring_depth: 128,
            buffers: 2048,
            buffer_bytes: Batching::default().max_transfer_bytes,
            most_sends: 32,
        }
    }
}

impl Geometry {
    /// Returns the size of all buffers together, bytes.
    pub fn pool_bytes(&self) -> u64 {
        u64::from(self.buffers) * u64::from(self.buffer_bytes)
    }

    /// Returns whether an adapter may grant this for `wishes`.
    fn fits(&self, wishes: &Self) -> bool {
        let granted = Limits::NONE.grant(wishes);
        let fewer_sends = (1..=wishes.most_sends).contains(&self.most_sends);
        granted.is_ok_and(|granted| {
            let most_sends = self.most_sends;
            Self {
                most_sends,
                ..granted
            } == *self
                && fewer_sends
        })
    }

    /// Returns the offset of `len` bytes at `address`, if they may be transferred.
    pub(crate) fn check_range(&self, address: u64, len: u32) -> Result<usize, Violation> {
        if len > self.buffer_bytes {
            return Err(Violation::Length(len));
        }
        match address.checked_add(len.into()) {
            Some(end) if end <= self.pool_bytes() => Ok(address as usize),
            _ => Err(Violation::Range { address, len }),
        }
    }
}

/// Upper limits of what an adapter grants to one application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Maximum number of attached applications.
    pub applications: u32,
    /// Maximum number of applications of one user; does not apply to root and the adapter's own user.
    pub applications_of_user: u32,
    /// Number of the `applications` that are reserved for root and the adapter's own user.
    pub reserved_applications: u32,
    /// Maximum number of descriptors in a ring.
    pub ring_depth: u32,
    /// Maximum size of a buffer, bytes.
    pub buffer_bytes: u32,
    /// Maximum size of all buffers together, bytes.
    pub pool_bytes: u64,
    /// Maximum number of SENDs per connection that wait until the adapter fetches them.
    pub most_sends: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            applications: 128,
            applications_of_user: 64,
            reserved_applications: 4,
            ring_depth: 4096,
            buffer_bytes: 64 * 1024,
            pool_bytes: 1 << 30,
            most_sends: 128,
        }
    }
}

impl Limits {
    /// Limits that allow everything that can be encoded.
    const NONE: Self = Self {
        applications: u32::MAX,
        applications_of_user: u32::MAX,
        reserved_applications: 0,
        ring_depth: u32::MAX,
        buffer_bytes: u32::MAX,
        pool_bytes: u64::MAX,
        most_sends: u32::MAX,
    };

    /// Checks whether another application of `user` may attach. `attached` has the users of the attached applications; `None` stands for
    /// applications on other machines.
    pub(crate) fn check_attached(
        &self,
        user: Option<u32>,
        attached: &[Option<u32>],
    ) -> Result<(), Refusal> {
        let is_trusted = user.is_some_and(|user| user == 0 || user == getuid().as_raw());
        let most = match is_trusted {
            true => self.applications,
            false => self.applications.saturating_sub(self.reserved_applications),
        };
        if attached.len() >= most as usize {
            return Err(Refusal::TooMany { most });
        }
        let most = self.applications_of_user;
        let of_user = || attached.iter().filter(|other| **other == user).count();
        match is_trusted || of_user() < most as usize {
            true => Ok(()),
            false => Err(Refusal::TooManyOfUser { most }),
        }
    }

    /// Returns the geometry to grant for `wishes`. Rounds the ring depth up to a power of two, and the buffer size up to a multiple of a
    /// cache line; limits the sends to what both sides support.
    pub(crate) fn grant(&self, wishes: &Geometry) -> Result<Geometry, Refusal> {
        let ring_depth = wishes.ring_depth.checked_next_power_of_two();
        let buffer_bytes = wishes.buffer_bytes.checked_next_multiple_of(64);
        // The longest entry has to fit.
        let least = 1 + MOST_INLINE_BYTES as u32 / Descriptor::BYTES;
        let bounded = |value: Option<u32>, least: u32, most: u32| {
            value.filter(|value| (least..=most).contains(value))
        };
        let granted = Geometry {
            ring_depth: bounded(ring_depth, least, self.ring_depth).ok_or(Refusal::RingDepth {
                wished: wishes.ring_depth,
                least,
                most: self.ring_depth,
            })?,
            buffer_bytes: bounded(buffer_bytes, 64, self.buffer_bytes).ok_or(
                Refusal::BufferBytes {
                    wished: wishes.buffer_bytes,
                    most: self.buffer_bytes,
                },
            )?,
            buffers: wishes.buffers,
            most_sends: wishes.most_sends.clamp(1, self.most_sends),
        };
        let pool_bytes = granted.pool_bytes();
        if pool_bytes == 0 || pool_bytes > self.pool_bytes {
            return Err(Refusal::PoolBytes {
                wished: pool_bytes,
                most: self.pool_bytes,
            });
        }
        Ok(granted)
    }
}

/// The reason why an application is not attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// The application does not speak this protocol.
    #[error("the application does not speak Baton's protocol")]
    NoHello,
    /// The application speaks another version.
    #[error(
        "the application speaks version {spoken} of the protocol, the adapter version {known}; use the same release of both"
    )]
    Version {
        /// Version of the application.
        spoken: u8,
        /// Version of the adapter.
        known: u8,
    },
    /// The adapter serves its maximum number of applications.
    #[error("the adapter already serves {most} applications, its maximum")]
    TooMany {
        /// Maximum number of applications.
        most: u32,
    },
    /// The ring is too short or too long.
    #[error("rings of {wished} descriptors: expected {least} to {most}")]
    RingDepth {
        /// Requested depth.
        wished: u32,
        /// Minimum depth.
        least: u32,
        /// Maximum depth.
        most: u32,
    },
    /// The buffers are too large or empty.
    #[error("buffers of {wished} bytes: expected 1 to {most}")]
    BufferBytes {
        /// Requested size, bytes.
        wished: u32,
        /// Maximum size, bytes.
        most: u32,
    },
    /// All buffers together are too large or empty.
    #[error("{wished} bytes for all buffers: expected 1 to {most}")]
    PoolBytes {
        /// Requested size, bytes.
        wished: u64,
        /// Maximum size, bytes.
        most: u64,
    },
    /// The adapter could not create the shared memory or the doorbells.
    #[error("the adapter has no memory or file descriptors for another application")]
    NoMemory,
    /// The adapter serves its maximum number of this user's applications.
    #[error("the adapter already serves {most} applications of this user, the maximum per user")]
    TooManyOfUser {
        /// Maximum number of applications of a user.
        most: u32,
    },
    /// The user had too many connections without a hello, so the oldest of them was closed.
    #[error("too many applications of this user have connected and sent no hello message")]
    TooManySilent,
}

/// The host's first message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// Name that the application gives itself.
    pub name: String,
    /// Sizes that the application would like.
    pub wishes: Geometry,
}

impl Hello {
    /// Returns the hello of this process, with the name of the program.
    pub fn new(wishes: &Geometry) -> Self {
        let program = std::env::args_os().next().unwrap_or_default();
        let name = std::path::Path::new(&program).file_name();
        Self {
            name: presentable(&name.unwrap_or_default().to_string_lossy()),
            wishes: *wishes,
        }
    }
}

/// Makes a name safe to display: limits its length, and removes control characters, which a terminal would obey.
fn presentable(name: &str) -> String {
    let shown = name.chars().filter(|char| !char.is_control());
    let mut name = String::new();
    for char in shown {
        if name.len() + char.len_utf8() > MOST_NAME_BYTES {
            break;
        }
        name.push(char);
    }
    name
}

/// The adapter's answer.
pub(crate) type Answer = Result<Geometry, Refusal>;

/// Sends the hello on a blocking stream, and waits for the answer.
///
/// # Errors
/// There is no answer, or the adapter refuses.
pub(crate) fn shake_hands(
    mut stream: impl Read + Write,
    wishes: &Geometry,
) -> Result<Geometry, ConnectError> {
    let mut reader = FrameReader::default();
    let answer = stream
        .write_all(&frame(&Hello::new(wishes)))
        .and_then(|()| reader.read::<Answer>(&mut stream))
        .and_then(|answer| answer.ok_or_else(|| ErrorKind::TimedOut.into()))
        .map_err(ConnectError::NoAnswer)?;
    let geometry = answer.map_err(|_| ConnectError::NoAdapter("its answer is malformed"))??;
    if !geometry.fits(wishes) {
        return Err(ConnectError::NoAdapter(
            "it granted other sizes than requested",
        ));
    }
    Ok(geometry)
}

/// Encodes a value as a frame.
pub(crate) fn frame<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = [&MAGIC[..], &[VERSION, 0, 0]].concat();
    bytes = postcard::to_extend(value, bytes).expect("memory takes everything");
    debug_assert!(bytes.len() <= MOST_FRAME_BYTES);
    let len = ((bytes.len() - HEADER_BYTES) as u16).to_le_bytes();
    bytes[6..HEADER_BYTES].copy_from_slice(&len);
    bytes
}

/// A frame that arrives in pieces.
#[derive(Debug, Default)]
pub(crate) struct FrameReader {
    bytes: Vec<u8>,
}

impl FrameReader {
    /// Returns the number of bytes known to be missing; 0 if the frame is complete.
    fn missing(&self) -> Result<usize, Refusal> {
        let expected = if self.bytes.len() < HEADER_BYTES {
            HEADER_BYTES
        } else {
            let (spoken, known) = (self.bytes[5], VERSION);
            let len = usize::from(u16::from_le_bytes([self.bytes[6], self.bytes[7]]));
            if &self.bytes[..5] != MAGIC {
                return Err(Refusal::NoHello);
            }
            if spoken != known {
                return Err(Refusal::Version { spoken, known });
            }
            if HEADER_BYTES + len > MOST_FRAME_BYTES {
                return Err(Refusal::NoHello);
            }
            HEADER_BYTES + len
        };
        Ok(expected - self.bytes.len())
    }

    /// Reads more of the frame, but never beyond its end. Returns the value once it is complete, or `None` if the stream would block.
    ///
    /// # Errors
    /// Errors of the stream.
    pub fn read<T: for<'a> Deserialize<'a>>(
        &mut self,
        mut stream: impl Read,
    ) -> io::Result<Option<Result<T, Refusal>>> {
        loop {
            let missing = match self.missing() {
                Ok(0) => break,
                Ok(missing) => missing,
                Err(refusal) => return Ok(Some(Err(refusal))),
            };
            let mut piece = [0; MOST_FRAME_BYTES];
            match stream.read(&mut piece[..missing]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(len) => self.bytes.extend_from_slice(&piece[..len]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        let value = postcard::from_bytes(&self.bytes[HEADER_BYTES..]);
        Ok(Some(value.map_err(|_| Refusal::NoHello)))
    }

    /// Reads a host's hello, as [`FrameReader::read`] does.
    ///
    /// # Errors
    /// Errors of the stream.
    pub fn read_hello(&mut self, stream: impl Read) -> io::Result<Option<Result<Hello, Refusal>>> {
        let hello = self.read::<Hello>(stream)?;
        Ok(hello.map(|hello| {
            hello.map(|hello| Hello {
                name: presentable(&hello.name),
                ..hello
            })
        }))
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_in_pieces(bytes: &[u8], piece: usize) -> io::Result<Option<Result<Hello, Refusal>>> {
        let mut reader = FrameReader::default();
        for part in bytes.chunks(piece) {
            let mut part = part;
            match reader.read_hello(&mut part) {
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {}
                result => return result,
            }
        }
        Ok(None)
    }

    #[test]
    fn a_hello_arrives_in_pieces_of_any_size() {
        let hello = Hello {
            name: "server".to_owned(),
            wishes: Geometry::default(),
        };
        let bytes = frame(&hello);
        for piece in 1..=bytes.len() {
            let read = read_in_pieces(&bytes, piece).expect("no error");
            assert_eq!(read, Some(Ok(hello.clone())));
        }
    }

    #[test]
    fn invalid_hellos_are_refused_with_a_reason() {
        let refusal = |bytes: &[u8]| {
            let read = read_in_pieces(bytes, bytes.len()).expect("no error");
            read.expect("a frame").expect_err("no hello")
        };
        assert_eq!(refusal(b"GET / HTTP/1.1\r\n"), Refusal::NoHello);
        let (spoken, known) = (9, VERSION);
        assert_eq!(
            refusal(b"BATON\x09\0\0"),
            Refusal::Version { spoken, known }
        );
        let spoken_well = |rest: &[u8]| [&MAGIC[..], &[VERSION], rest].concat();
        assert_eq!(refusal(&spoken_well(b"\xff\xff")), Refusal::NoHello);
        assert_eq!(refusal(&spoken_well(b"\x01\0\xff")), Refusal::NoHello);
    }

    #[test]
    fn a_user_at_its_limit_leaves_places_to_others() {
        let limits = Limits {
            applications: 10,
            applications_of_user: 4,
            reserved_applications: 2,
            ..Limits::default()
        };
        let own = getuid().as_raw();
        let [hostile, other] = [1, 2].map(|user| Some(own + 40_000 + user));
        let mut attached = Vec::new();
        for _ in 0..4 {
            assert_eq!(limits.check_attached(hostile, &attached), Ok(()));
            attached.push(hostile);
        }
        let refused = Err(Refusal::TooManyOfUser { most: 4 });
        assert_eq!(limits.check_attached(hostile, &attached), refused);
        for _ in 0..4 {
            assert_eq!(limits.check_attached(other, &attached), Ok(()));
            attached.push(other);
        }
        let refused = Err(Refusal::TooMany { most: 8 });
        assert_eq!(limits.check_attached(None, &attached), refused);
        for trusted in [own, 0] {
            assert_eq!(limits.check_attached(Some(trusted), &attached), Ok(()));
            attached.push(Some(trusted));
        }
        let refused = Err(Refusal::TooMany { most: 10 });
        assert_eq!(limits.check_attached(Some(0), &attached), refused);
    }

    #[test]
    fn requested_sizes_are_granted_within_limits() {
        let limits = Limits::default();
        let wishes = Geometry {
            ring_depth: 100,
            buffers: 3,
            buffer_bytes: 1000,
            most_sends: 1000,
        };
        let granted = Geometry {
            ring_depth: 128,
            buffers: 3,
            buffer_bytes: 1024,
            most_sends: 128,
        };
        assert_eq!(limits.grant(&wishes), Ok(granted));
        assert!(granted.fits(&wishes));
        let most_sends = 1001;
        assert!(
            !Geometry {
                most_sends,
                ..granted
            }
            .fits(&wishes)
        );
        let refused = |wishes| limits.grant(&wishes).expect_err("refused").to_string();
        let all = Geometry::default();
        let ring_depth = u32::MAX;
        assert_eq!(
            refused(Geometry { ring_depth, ..all }),
            "rings of 4294967295 descriptors: expected 8 to 4096"
        );
        let buffer_bytes = 0;
        assert_eq!(
            refused(Geometry {
                buffer_bytes,
                ..all
            }),
            "buffers of 0 bytes: expected 1 to 65536"
        );
        let buffers = u32::MAX;
        assert_eq!(
            refused(Geometry { buffers, ..all }),
            "17592186040320 bytes for all buffers: expected 1 to 1073741824"
        );
    }

    #[test]
    fn names_are_made_safe_to_display() {
        assert_eq!(presentable("a\x1b[2Jb\n"), "a[2Jb");
        assert_eq!(presentable(&"ä".repeat(40)), "ä".repeat(16));
    }

    proptest! {
        #[test]
        fn reading_any_hello_does_not_panic(bytes: Vec<u8>, known_start: bool) {
            let bytes = if known_start { [&MAGIC[..], &[VERSION], &bytes].concat() } else { bytes };
            let _ = FrameReader::default().read_hello(&bytes[..]);
        }

        #[test]
        fn ranges_are_accepted_only_inside_the_pool(address: u64, len: u32, small: bool) {
            let geometry = Geometry::default();
            let (address, len) = if small { (address % (10 << 20), len % 5000) } else { (address, len) };
            let inside = u128::from(address) + u128::from(len) <= u128::from(geometry.pool_bytes());
            let result = geometry.check_range(address, len);
            prop_assert_eq!(result.is_ok(), inside && len <= geometry.buffer_bytes);
        }
    }
}
