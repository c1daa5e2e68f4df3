//! From host to NIC.

use super::super::{CacheCommand, Command, Handle, MainMemory, ToNic};
use super::{Attachments, attach_data, attach_segment, attach_state, codes};
use super::{take_data, take_segment, take_state};
use baton_bus::descriptor::{Fields, Malformed, Opcode};
use baton_bus::link::Violation;
use baton_tcp::Payload;

/// Gives the fields of each command of an entry for which there is room.
pub(super) fn fields<P: Payload>(
    entry: ToNic<P>,
    mut give: impl FnMut(Fields),
    attachments: &mut Attachments<P>,
) {
    match entry {
        ToNic::Packet(segment) => {
            let mut fields = Fields::new(Opcode::Packet, false);
            attach_segment(&mut fields, segment, attachments);
            give(fields);
        }
        ToNic::Parts(packet) => {
            for command in packet.into_commands() {
                give(of_cache_command(command, attachments));
            }
        }
        ToNic::Command(command) => give(of_command(command, attachments)),
        ToNic::Cache(command) => give(of_cache_command(command, attachments)),
    }
}

fn of_command<P: Payload>(command: Command<P>, attachments: &mut Attachments<P>) -> Fields {
    let about = |opcode, handle: Handle| Fields {
        handle: handle.0,
        ..Fields::new(opcode, false)
    };
    match command {
        Command::Handoff {
            handle,
            state,
            cached,
        } => {
            let mut fields = about(Opcode::Handoff, handle);
            attach_state(&mut fields, state, cached, attachments);
            fields
        }
        Command::Restore { handle } => about(Opcode::Restore, handle),
        Command::Send {
            handle,
            data,
            cached,
        } => {
            let (kind, value) = codes::reference(cached);
            let mut fields = Fields {
                kind,
                value,
                ..about(Opcode::HandoffSend, handle)
            };
            attach_data(&mut fields, data, attachments);
            fields
        }
        Command::PostReceive { handle, len } => Fields {
            len,
            ..about(Opcode::PostReceive, handle)
        },
        Command::Received { handle, len } => Fields {
            len,
            ..about(Opcode::Received, handle)
        },
        Command::Control { handle, control } => Fields {
            kind: codes::control(control),
            ..about(Opcode::Control, handle)
        },
        Command::Forward { handle, segment } => {
            let mut fields = about(Opcode::Forward, handle);
            attach_segment(&mut fields, segment, attachments);
            fields
        }
        Command::Release { handle } => about(Opcode::Release, handle),
    }
}

fn of_cache_command<P: Payload>(
    command: CacheCommand<P>,
    attachments: &mut Attachments<P>,
) -> Fields {
    match command {
        CacheCommand::Init => Fields::new(Opcode::CacheInit, false),
        CacheCommand::Insert {
            data,
            offset,
            generation,
        } => {
            let mut fields = Fields {
                tag: generation,
                value: offset.into(),
                ..Fields::new(Opcode::CacheInsert, false)
            };
            attach_data(&mut fields, data, attachments);
            fields
        }
        CacheCommand::AppendMemory { part, flags } => {
            let mut fields = Fields::new(Opcode::AppendMemory, false);
            fields.kind = codes::part(flags);
            match part {
                MainMemory::Headers(segment) => {
                    fields.kind |= codes::HEADERS;
                    attach_segment(&mut fields, segment, attachments);
                }
                MainMemory::Data(data) => attach_data(&mut fields, data, attachments),
            }
            fields
        }
        CacheCommand::AppendCache { offset, len, flags } => Fields {
            kind: codes::part(flags),
            len,
            value: offset.into(),
            ..Fields::new(Opcode::AppendCache, false)
        },
    }
}

/// The entry of these fields.
pub(super) fn entry<P: Payload>(
    fields: &Fields,
    attachments: &mut Attachments<P>,
) -> Result<ToNic<P>, Violation> {
    let (handle, len) = (Handle(fields.handle), fields.len);
    let command = match fields.opcode {
        Opcode::Packet => return Ok(ToNic::Packet(take_segment(fields, attachments)?)),
        Opcode::CacheInit | Opcode::CacheInsert | Opcode::AppendMemory | Opcode::AppendCache => {
            return cache_command(fields, attachments).map(ToNic::Cache);
        }
        Opcode::Handoff => {
            let (state, cached) = take_state(fields, attachments)?;
            Command::Handoff {
                handle,
                state,
                cached,
            }
        }
        Opcode::Restore => Command::Restore { handle },
        Opcode::HandoffSend => {
            let cached = codes::read_reference(fields.kind, fields.value)?;
            let data = take_data(fields, attachments)?;
            Command::Send {
                handle,
                data,
                cached,
            }
        }
        Opcode::PostReceive => Command::PostReceive { handle, len },
        Opcode::Received => Command::Received { handle, len },
        Opcode::Control => Command::Control {
            handle,
            control: codes::read_control(fields.kind)?,
        },
        Opcode::Forward => Command::Forward {
            handle,
            segment: take_segment(fields, attachments)?,
        },
        Opcode::Release => Command::Release { handle },
        other => return Err(Malformed::Direction(other).into()),
    };
    Ok(ToNic::Command(command))
}

fn cache_command<P: Payload>(
    fields: &Fields,
    attachments: &mut Attachments<P>,
) -> Result<CacheCommand<P>, Violation> {
    let (offset, kind) = (fields.value as u32, fields.kind);
    Ok(match fields.opcode {
        Opcode::CacheInsert => CacheCommand::Insert {
            data: take_data(fields, attachments)?,
            offset,
            generation: fields.tag,
        },
        Opcode::AppendMemory => {
            let flags = codes::read_part(kind, codes::HEADERS)?;
            let part = match kind & codes::HEADERS {
                0 => MainMemory::Data(take_data(fields, attachments)?),
                _ => MainMemory::Headers(take_segment(fields, attachments)?),
            };
            CacheCommand::AppendMemory { part, flags }
        }
        Opcode::AppendCache => CacheCommand::AppendCache {
            offset,
            len: fields.len,
            flags: codes::read_part(kind, 0)?,
        },
        _ => CacheCommand::Init,
    })
}
