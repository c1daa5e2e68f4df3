//! Every entry as one descriptor of 32 bytes, so that handoff commands, packets and data-cache commands travel in the same rings as the
//! requests of sockets. What does not fit is attached.

#![allow(clippy::result_large_err, reason = "what finds no room is given back")]

mod codes;
#[cfg(test)]
mod tests;
mod to_host;
mod to_nic;

use super::attachments::{Attachment, Attachments};
use super::{CachedRun, ToHost, ToNic};
use baton_bus::Descriptor;
use baton_bus::descriptor::{Fields, Malformed};
use baton_bus::link::Violation;
use baton_tcp::{Payload, Portable, Segment};

impl<P: Payload> ToNic<P> {
    /// Appends its descriptors to `ring`: one for each of its [commands](ToNic::commands).
    ///
    /// # Errors
    /// Gives it back when there is no room for what must be attached.
    pub fn encode(
        self,
        attachments: &mut Attachments<P>,
        ring: &mut impl Extend<Descriptor>,
    ) -> Result<(), Self> {
        if !attachments.has_room_for(self.attachments()) {
            return Err(self);
        }
        to_nic::fields(self, |fields| ring.extend([fields.encode()]), attachments);
        Ok(())
    }

    /// The entry of a descriptor that the host has written.
    ///
    /// # Errors
    /// It is none, or refers to what is not there. An attachment that does not belong to it stays.
    pub fn decode(
        descriptor: &Descriptor,
        attachments: &mut Attachments<P>,
    ) -> Result<Self, Violation> {
        let fields = fields_from(descriptor, false)?;
        to_nic::entry(&fields, attachments)
    }
}

impl<P: Payload> ToHost<P> {
    /// Its descriptor.
    ///
    /// # Errors
    /// Gives it back when there is no room for what must be attached.
    pub fn encode(self, attachments: &mut Attachments<P>) -> Result<Descriptor, Self> {
        if self.is_long() && attachments.is_full() {
            return Err(self);
        }
        Ok(to_host::fields(self, attachments).encode())
    }

    /// The entry of a descriptor that the NIC has written.
    ///
    /// # Errors
    /// It is none, or refers to what is not there. An attachment that does not belong to it stays.
    pub fn decode(
        descriptor: &Descriptor,
        attachments: &mut Attachments<P>,
    ) -> Result<Self, Violation> {
        let fields = fields_from(descriptor, true)?;
        to_host::entry(&fields, attachments)
    }
}

/// The fields of a descriptor of the adapter, or of the host.
fn fields_from(descriptor: &Descriptor, adapter: bool) -> Result<Fields, Malformed> {
    let fields = Fields::decode(descriptor)?;
    if fields.from_adapter != adapter {
        return Err(Malformed::Direction(fields.opcode));
    }
    Ok(fields)
}

/// Attaches data to `fields`.
fn attach_data<P: Payload>(fields: &mut Fields, data: P, attachments: &mut Attachments<P>) {
    fields.len = data.len() as u32;
    fields.address = attachments.put(Attachment::Data(data));
}

/// Attaches a segment.
fn attach_segment<P: Payload>(
    fields: &mut Fields,
    segment: Segment<P>,
    attachments: &mut Attachments<P>,
) {
    fields.len = segment.payload_len() as u32;
    fields.address = attachments.put(Attachment::Segment(segment));
}

/// Attaches the state of a connection.
fn attach_state<P: Payload>(
    fields: &mut Fields,
    state: Box<Portable<P>>,
    cached: Vec<CachedRun>,
    attachments: &mut Attachments<P>,
) {
    fields.len = cached.len() as u32;
    fields.address = attachments.put(Attachment::State { state, cached });
}

/// The data that `fields` refer to; as long as they say.
fn take_data<P: Payload>(
    fields: &Fields,
    attachments: &mut Attachments<P>,
) -> Result<P, Violation> {
    let (address, len) = (fields.address, fields.len);
    attachments.take(address, len, |attachment| match attachment {
        Attachment::Data(data) if data.len() == len as usize => Ok(data),
        other => Err(other),
    })
}

fn take_segment<P: Payload>(
    fields: &Fields,
    attachments: &mut Attachments<P>,
) -> Result<Segment<P>, Violation> {
    let (address, len) = (fields.address, fields.len);
    attachments.take(address, len, |attachment| match attachment {
        Attachment::Segment(segment) if segment.payload_len() == len as usize => Ok(segment),
        other => Err(other),
    })
}

type StateAndRuns<P> = (Box<Portable<P>>, Vec<CachedRun>);

fn take_state<P: Payload>(
    fields: &Fields,
    attachments: &mut Attachments<P>,
) -> Result<StateAndRuns<P>, Violation> {
    let (address, len) = (fields.address, fields.len);
    attachments.take(address, len, |attachment| match attachment {
        Attachment::State { state, cached } if cached.len() == len as usize => Ok((state, cached)),
        other => Err(other),
    })
}
