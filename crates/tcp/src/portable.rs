//! A connection's portable state: everything needed to continue the connection elsewhere.

use crate::config::{Config, LinuxRules, MtuProbing};
use crate::connection::PortableInner;
use crate::types::State;
use baton_wire::{Flow, Payload, SeqNr};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The format written by this version.
const FORMAT_VERSION: u16 = 3;

/// Adds Linux's rules, those of probing for the path's MTU, and the state of that search at the end, for a connection that uses
/// any of these.
const WITH_MORE_RULES: u16 = 4;

/// Also adds the end of urgent data, for a connection that had any.
const WITH_URGENT: u16 = 5;

/// Also adds the MSS of the route, for a connection whose route allows less than its interface.
const WITH_ROUTE: u16 = 6;

/// Also adds a seal.
const WITH_SEAL: u16 = 7;

/// A code by which the importer of a connection knows that its state comes from a trusted source and was not changed. TCP ignores it.
pub type Seal = [u8; 24];

/// The format version of the state of a connection with these parameters, which had `urgent` data or not.
pub(crate) fn version_for(config: &Config, urgent: bool) -> u16 {
    let usual = config.linux == LinuxRules::NONE && config.mtu_probing == MtuProbing::default();
    match (urgent, usual) {
        _ if config.route_mss.is_some() => WITH_ROUTE,
        (true, _) => WITH_URGENT,
        (false, true) => FORMAT_VERSION,
        (false, false) => WITH_MORE_RULES,
    }
}

/// Versioned state of one connection, buffers included. Times are *remaining* times, so the state is valid on any clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Portable<P> {
    /// Format version.
    pub version: u16,
    /// The connection, as its owner names it.
    pub flow: Flow,
    /// State of RFC 9293 3.3.2.
    pub state: State,
    /// Data that was written and is not yet acknowledged, in order.
    pub send_buffer: Vec<P>,
    /// Data that was received in order and is not yet read, in order.
    pub receive_buffer: Vec<P>,
    /// A listener created the connection, and it is not yet accepted.
    pub unaccepted: bool,
    /// The connection's parameters, which need not be those of the destination stack.
    pub(crate) config: Config,
    /// Events that were not yet reported to the owner.
    pub(crate) signals: Signals,
    pub(crate) inner: PortableInner<P>,
    #[serde(skip)]
    pub(crate) seal: Option<Seal>,
}

/// Events that were pending when a connection was exported. The destination stack reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Signals {
    pub(crate) connected: bool,
    pub(crate) readable: bool,
    pub(crate) acknowledged: u32,
    pub(crate) peer_closed: bool,
}

/// Reason why bytes are not accepted as a connection's state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Another version of the format.
    #[error("the state has format version {found}; this program reads versions up to {expected}")]
    Version {
        /// Version that the bytes have.
        found: u16,
        /// Last version that can be read.
        expected: u16,
    },
    /// The bytes are not a complete state.
    #[error("the bytes are not a connection's state: {0}")]
    Malformed(String),
    /// Further bytes follow the state.
    #[error("{0} bytes follow the connection's state; expected none")]
    Trailing(usize),
}

impl<P: Payload + Serialize + DeserializeOwned> Portable<P> {
    /// Converts the state to bytes, which begin with the format version.
    pub fn to_bytes(&self) -> Vec<u8> {
        to_bytes(self, self)
    }

    /// Reads what [`Portable::to_bytes`] wrote. [`Stack::import`](crate::Stack::import) checks whether the state is valid.
    ///
    /// # Errors
    /// The bytes are not exactly one state of a known version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::check_version(bytes)?;
        from_bytes(bytes, |state| state)
    }

    /// Checks that the bytes begin with a format version that can be read.
    ///
    /// # Errors
    /// The bytes begin with another version, or with none.
    pub fn check_version(bytes: &[u8]) -> Result<(), DecodeError> {
        let malformed = |error: postcard::Error| DecodeError::Malformed(error.to_string());
        let (found, _) = postcard::take_from_bytes::<u16>(bytes).map_err(malformed)?;
        if !(FORMAT_VERSION..=WITH_SEAL).contains(&found) {
            return Err(DecodeError::Version {
                found,
                expected: WITH_SEAL,
            });
        }
        Ok(())
    }
}

/// Serializes a value that holds a connection's state, followed by the fields that the state's version adds.
pub(crate) fn to_bytes<P>(value: &impl Serialize, state: &Portable<P>) -> Vec<u8> {
    let bytes = postcard::to_stdvec(value);
    let Config {
        linux,
        mtu_probing,
        route_mss,
        ..
    } = &state.config;
    let rules = (linux, mtu_probing, state.inner.mtu_search());
    let urgent = state.inner.urgent();
    let all = match state.version {
        WITH_SEAL => bytes.and_then(|bytes| {
            postcard::to_extend(&(rules, urgent, route_mss, state.seal()), bytes)
        }),
        WITH_ROUTE => {
            bytes.and_then(|bytes| postcard::to_extend(&(rules, urgent, route_mss), bytes))
        }
        WITH_URGENT => bytes.and_then(|bytes| postcard::to_extend(&(rules, urgent), bytes)),
        WITH_MORE_RULES => bytes.and_then(|bytes| postcard::to_extend(&rules, bytes)),
        _ => bytes,
    };
    all.expect("any state can be serialized to memory")
}

/// Reads what `to_bytes` wrote. `state` returns the connection's state in the value.
pub(crate) fn from_bytes<T: DeserializeOwned, P>(
    bytes: &[u8],
    state: impl FnOnce(&mut T) -> &mut Portable<P>,
) -> Result<T, DecodeError> {
    let malformed = |error: postcard::Error| DecodeError::Malformed(error.to_string());
    let (mut value, mut rest) = postcard::take_from_bytes::<T>(bytes).map_err(malformed)?;
    let moved = state(&mut value);
    if moved.version != FORMAT_VERSION {
        let search;
        let config = &mut moved.config;
        ((config.linux, config.mtu_probing, search), rest) =
            postcard::take_from_bytes(rest).map_err(malformed)?;
        moved.inner.set_mtu_search(search);
    }
    if moved.version >= WITH_URGENT {
        let urgent;
        (urgent, rest) = postcard::take_from_bytes(rest).map_err(malformed)?;
        moved.inner.set_urgent(urgent);
    }
    if moved.version >= WITH_ROUTE {
        (moved.config.route_mss, rest) = postcard::take_from_bytes(rest).map_err(malformed)?;
    }
    if moved.version >= WITH_SEAL {
        (moved.seal, rest) = postcard::take_from_bytes(rest).map_err(malformed)?;
    }
    match rest.len() {
        0 => Ok(value),
        len => Err(DecodeError::Trailing(len)),
    }
}

impl<P> Portable<P> {
    /// The state's seal, if any.
    pub fn seal(&self) -> Option<&Seal> {
        self.seal.as_ref()
    }
}

impl<P: Payload> Portable<P> {
    /// Returns the state with this seal.
    #[must_use]
    pub fn with_seal(mut self, seal: Option<Seal>) -> Self {
        self.seal = seal;
        self.version = self.needed_version();
        self
    }

    /// The connection's parameters.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The sequence number after the last byte that was written.
    pub fn written_to(&self) -> SeqNr {
        self.inner.tx.una + self.unacknowledged() as u32
    }

    /// The sequence number of the first byte that was not read.
    pub fn read_to(&self) -> SeqNr {
        self.inner.rx.next - self.unread() as u32
    }

    /// Bytes written and not yet acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.send_buffer.iter().map(Payload::len).sum()
    }

    /// The format version that the state needs.
    pub(crate) fn needed_version(&self) -> u16 {
        match self.seal {
            Some(_) => WITH_SEAL,
            None => version_for(&self.config, self.inner.has_urgent()),
        }
    }

    /// Bytes received in order and not yet read.
    pub fn unread(&self) -> usize {
        self.receive_buffer.iter().map(Payload::len).sum()
    }
}
