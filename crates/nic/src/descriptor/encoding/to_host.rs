//! From NIC to host.

use super::super::{Event, Handle, ToHost};
use super::{Attachments, attach_data, attach_segment, attach_state, codes};
use super::{take_data, take_segment, take_state};
use baton_bus::descriptor::{Fields, Malformed, Opcode};
use baton_bus::link::Violation;
use baton_tcp::Payload;

/// The fields of an entry for which there is room.
pub(super) fn fields<P: Payload>(entry: ToHost<P>, attachments: &mut Attachments<P>) -> Fields {
    match entry {
        ToHost::Packet(segment) => {
            let mut fields = Fields::new(Opcode::Packet, true);
            attach_segment(&mut fields, segment, attachments);
            fields
        }
        ToHost::Sent(count) => Fields {
            len: count,
            ..Fields::new(Opcode::PacketsSent, true)
        },
        ToHost::Event(event) => of_event(event, attachments),
    }
}

fn of_event<P: Payload>(event: Event<P>, attachments: &mut Attachments<P>) -> Fields {
    let about = |opcode, handle: Handle| Fields {
        handle: handle.0,
        ..Fields::new(opcode, true)
    };
    let count = |opcode, count| Fields {
        len: count,
        ..Fields::new(opcode, true)
    };
    match event {
        Event::Handoff { handle, result } => {
            let mut fields = about(Opcode::Handoff, handle);
            if let Err((refusal, state)) = result {
                fields.kind = codes::refusal(Some(refusal));
                attach_state(&mut fields, state, Vec::new(), attachments);
            }
            fields
        }
        Event::Restored { handle, state } => {
            let mut fields = about(Opcode::Restore, handle);
            attach_state(&mut fields, state, Vec::new(), attachments);
            fields
        }
        Event::Receive { handle, data } => {
            let mut fields = about(Opcode::Received, handle);
            attach_data(&mut fields, data, attachments);
            fields
        }
        Event::Acknowledged { handle, len } => Fields {
            len,
            ..about(Opcode::Acknowledged, handle)
        },
        Event::PeerClosed { handle } => about(Opcode::PeerClosed, handle),
        Event::Closed { handle, reason } => {
            let (kind, len) = codes::reason(reason);
            Fields {
                kind,
                len,
                ..about(Opcode::Closed, handle)
            }
        }
        Event::Relief { handle } => about(Opcode::Relief, handle),
        Event::SoftLimit(limit) => count(Opcode::SoftLimit, limit),
        Event::Memory(connections) => count(Opcode::Memory, connections),
        Event::CacheReady(bytes) => count(Opcode::CacheInit, bytes),
        Event::Reset => Fields::new(Opcode::Reset, true),
    }
}

/// The entry of these fields.
pub(super) fn entry<P: Payload>(
    fields: &Fields,
    attachments: &mut Attachments<P>,
) -> Result<ToHost<P>, Violation> {
    let (handle, len) = (Handle(fields.handle), fields.len);
    let event = match fields.opcode {
        Opcode::Packet => return Ok(ToHost::Packet(take_segment(fields, attachments)?)),
        Opcode::PacketsSent => return Ok(ToHost::Sent(len)),
        Opcode::Handoff => {
            let result = match codes::read_refusal(fields.kind)? {
                None => Ok(()),
                Some(refusal) => Err((refusal, take_state(fields, attachments)?.0)),
            };
            Event::Handoff { handle, result }
        }
        Opcode::Restore => {
            let (state, _) = take_state(fields, attachments)?;
            Event::Restored { handle, state }
        }
        Opcode::Received => Event::Receive {
            handle,
            data: take_data(fields, attachments)?,
        },
        Opcode::Acknowledged => Event::Acknowledged { handle, len },
        Opcode::PeerClosed => Event::PeerClosed { handle },
        Opcode::Closed => Event::Closed {
            handle,
            reason: codes::read_reason(fields.kind, len)?,
        },
        Opcode::Relief => Event::Relief { handle },
        Opcode::SoftLimit => Event::SoftLimit(len),
        Opcode::Memory => Event::Memory(len),
        Opcode::CacheInit => Event::CacheReady(len),
        Opcode::Reset => Event::Reset,
        other => return Err(Malformed::Direction(other).into()),
    };
    Ok(ToHost::Event(event))
}
