//! A connection on its way between host and adapter.

use crate::portable::{self, DecodeError, Portable};
use baton_wire::Payload;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Content of IMPORT and EXPORT: a connection's portable state, and what its owner accepted from the application but has not passed to TCP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moved<P> {
    /// TCP's state, data included.
    pub state: Portable<P>,
    /// Data that follows the send buffer's content and did not fit into the send buffer.
    pub unsent: Vec<P>,
    /// The sending direction is to be closed after the unsent data. TCP has not been notified of this.
    pub shut: bool,
}

impl<P: Payload + Serialize + DeserializeOwned> Moved<P> {
    /// Creates a value with nothing but TCP's state.
    pub fn new(state: Portable<P>) -> Self {
        Self {
            state,
            unsent: Vec::new(),
            shut: false,
        }
    }

    /// Serializes the value.
    pub fn to_bytes(&self) -> Vec<u8> {
        portable::to_bytes(self, &self.state)
    }

    /// Reads what [`Moved::to_bytes`] wrote. [`Stack::import`](crate::Stack::import) checks whether the state is valid.
    ///
    /// # Errors
    /// The bytes are not one whole state of this version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        Portable::<P>::check_version(bytes)?;
        portable::from_bytes(bytes, |moved: &mut Self| &mut moved.state)
    }
}
