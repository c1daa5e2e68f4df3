//! A connection on its way between host and adapter.

use crate::portable::{self, DecodeError, Portable};
use baton_wire::Payload;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What IMPORT and EXPORT carry: a connection's portable state, and what its owner had taken for it that TCP does not know of yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moved<P> {
    /// TCP's state, data included.
    pub state: Portable<P>,
    /// Data that follows what is in the send buffer, for which that had no room.
    pub unsent: Vec<P>,
    /// Nothing more will be sent after that; TCP has not been told.
    pub shut: bool,
}

impl<P: Payload + Serialize + DeserializeOwned> Moved<P> {
    /// Nothing but TCP's state.
    pub fn new(state: Portable<P>) -> Self {
        Self {
            state,
            unsent: Vec::new(),
            shut: false,
        }
    }

    /// As bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        portable::to_bytes(self, &self.state)
    }

    /// Reads what [`Moved::to_bytes`] wrote. Whether the state makes sense is for [`Stack::import`](crate::Stack::import) to say.
    ///
    /// # Errors
    /// The bytes are not one whole state of this version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        Portable::<P>::check_version(bytes)?;
        portable::from_bytes(bytes, |moved: &mut Self| &mut moved.state)
    }
}
