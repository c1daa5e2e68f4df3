//! IMPORT: takes over connections that the host hands off (handoff-policies 2).

use super::dma::Job;
use super::session::{Session, Work};
use super::socket::{Moving, Phase};
use baton_bus::descriptor::{Opcode, Outcome, Status};
use baton_bus::link::Inline;
use baton_tcp::{ConnId, Moved, Portable, State};
use baton_wire::Payload;
use std::collections::VecDeque;

/// A connection whose state is being fetched.
#[derive(Debug, Default)]
pub(super) struct Importing {
    /// Tags of the parts that are being fetched, oldest first.
    parts: VecDeque<u32>,
    /// Whether the last part has been requested.
    is_whole: bool,
    /// The state fetched so far, or `None` once it has exceeded a limit.
    state: Option<Vec<u8>>,
}

impl Importing {
    /// Returns the number of parts that are being fetched.
    pub(super) fn transfers(&self) -> usize {
        self.parts.len()
    }

    pub(super) fn state_bytes(&self) -> u32 {
        self.state.as_ref().map_or(0, |state| state.len() as u32)
    }
}

/// A part of a connection's state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) tag: u32,
    pub(super) address: u64,
    pub(super) len: u32,
    pub(super) more: bool,
}

impl<P: Payload + Inline> Session<P> {
    /// Executes IMPORT. The first part creates the socket.
    pub(super) fn import(
        &mut self,
        work: &Work<'_, P>,
        number: u32,
        slot: Option<u32>,
        part: Part,
    ) -> Result<(), Status> {
        if part.len == 0 {
            return Err(Status::BadValue);
        }
        let slot = match slot {
            Some(slot) => slot,
            None => self.begin_import(work, number)?,
        };
        let Some(Moving::Import(importing)) = self.sockets[slot as usize].moving.as_deref_mut()
        else {
            return Err(Status::SocketInUse);
        };
        if importing.is_whole {
            return Err(Status::WrongState);
        }
        importing.is_whole = !part.more;
        importing.parts.push_back(part.tag);
        self.ask_read(
            Job::ReadState {
                slot,
                len: part.len,
            },
            part.address,
            part.len,
        );
        Ok(())
    }

    fn begin_import(&mut self, work: &Work<'_, P>, number: u32) -> Result<u32, Status> {
        self.may_add(work)?;
        let slot = self.insert(number, Phase::Importing);
        let importing = Importing {
            state: Some(Vec::new()),
            ..Importing::default()
        };
        self.sockets[slot as usize].moving = Some(Box::new(Moving::Import(importing)));
        Ok(slot)
    }

    /// Processes a fetched part of a state.
    pub(super) fn state_fetched(&mut self, work: &mut Work<'_, P>, slot: u32, data: &P) {
        let most = work.shared.config.most_state_bytes as usize;
        let socket = &mut self.sockets[slot as usize];
        let number = socket.number;
        let Some(Moving::Import(importing)) = socket.moving.as_deref_mut() else {
            return debug_assert!(false, "it is being imported");
        };
        let before = importing.state_bytes();
        let has_memory = work.stack.has_memory_for(self.user, data.len());
        let fits = importing.state.as_mut().zip(data.as_bytes());
        let fits = fits.filter(|(state, bytes)| has_memory && state.len() + bytes.len() <= most);
        match fits {
            Some((state, bytes)) => state.extend_from_slice(bytes),
            None => importing.state = None,
        }
        self.states = self.states - before + importing.state_bytes();
        let Some(tag) = importing.parts.pop_front() else {
            return debug_assert!(false, "a part is being fetched");
        };
        let is_last = importing.is_whole && importing.parts.is_empty();
        let mut status = Status::Ok;
        if is_last {
            let state = importing.state.take();
            self.states -= state.as_ref().map_or(0, |state| state.len() as u32);
            socket.moving = None;
            match self.take_over(work, slot, state) {
                Ok(()) => self.stats.imported += 1,
                Err(refusal) => {
                    status = refusal;
                    self.stats.imports_refused += 1;
                    self.free(slot);
                }
            }
        }
        let done = Outcome::Done(Opcode::Import);
        self.respond(work.now, number, tag, status, done);
        if is_last && status == Status::Ok {
            self.go_on(work, slot);
        }
    }

    /// Adds the connection to the stack.
    fn take_over(
        &mut self,
        work: &mut Work<'_, P>,
        slot: u32,
        state: Option<Vec<u8>>,
    ) -> Result<(), Status> {
        let state = state.ok_or(Status::Memory)?;
        work.shared.limits.may_import()?;
        let moved: Moved<P> = Moved::from_bytes(&state).map_err(|_| Status::BadState)?;
        self.check_state(work, &moved)?;
        let flow = moved.state.flow;
        if let Some(custody) = &mut work.shared.custody {
            custody.claim(self.user, &moved.state)?;
        }
        let is_shut = is_shut(&moved.state);
        let conn = put_in(work, self.user, moved.state).inspect_err(|_| {
            if let Some(custody) = &mut work.shared.custody {
                custody.unclaim(&flow);
            }
        })?;
        let place = self.place(slot);
        work.shared.owners.give(conn, place);
        work.shared.limits.imported();
        let socket = &mut self.sockets[slot as usize];
        socket.phase = Phase::Connected(conn);
        socket.imported = true;
        socket.closing.shut = is_shut;
        socket.receiving.peer_closed = work.stack.peer_closed(conn);
        Ok(())
    }

    /// Validates a state. States come from other processes and are not trusted.
    fn check_state(&self, work: &Work<'_, P>, moved: &Moved<P>) -> Result<(), Status> {
        let state = &moved.state;
        let is_open = matches!(state.state, State::Established | State::CloseWait);
        if !(is_open || is_shut(state))
            || state.unaccepted
            || !moved.unsent.is_empty()
            || moved.shut
        {
            return Err(Status::BadState);
        }
        if !work.shared.ports.is_own(state.flow.local.addr) {
            return Err(Status::AddressNotAvailable);
        }
        if work.stack.find(&state.flow).is_some() {
            return Err(Status::Duplicate);
        }
        let config = state.config();
        let most = work.shared.config.most_buffer_bytes;
        if config.send_buffer.max(config.receive_buffer) > most || holds_too_much(state, most) {
            return Err(Status::Memory);
        }
        Ok(())
    }

    /// Delivers data that came with the connection or that its peer has sent meanwhile, and sends pending data.
    fn go_on(&mut self, work: &mut Work<'_, P>, slot: u32) {
        self.deliver(work, slot);
        self.feed(work, slot);
    }
}

/// Reserves memory for a connection and adds the connection to the stack.
fn put_in<P: Payload>(
    work: &mut Work<'_, P>,
    user: Option<u32>,
    state: Portable<P>,
) -> Result<ConnId, Status> {
    let on_board = &mut work.shared.on_board;
    let data = state.unread() + state.unacknowledged();
    if !work.stack.has_memory_for(user, data) {
        // Memory counts as short only if it is exhausted for all users.
        on_board.is_short |= !work.stack.has_memory_for(None, 0);
        return Err(Status::Memory);
    }
    if let Err(no_memory) = on_board.take_connection() {
        on_board.is_short = true;
        return Err(no_memory);
    }
    let Ok(conn) = work.stack.import(work.now, state) else {
        work.shared.on_board.free_connection();
        return Err(Status::BadState);
    };
    if let Some(user) = user {
        work.stack.set_user(conn, user);
    }
    Ok(conn)
}

/// Returns whether the host has closed its sending direction while the peer may still send.
fn is_shut<P>(state: &Portable<P>) -> bool {
    matches!(state.state, State::FinWait1 | State::FinWait2)
}

fn holds_too_much<P: Payload>(state: &Portable<P>, most: u32) -> bool {
    state.unread().max(state.unacknowledged()) > most as usize
}
