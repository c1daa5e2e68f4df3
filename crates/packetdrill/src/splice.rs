//! splice (splice(2)): between pipes, and between a pipe and a socket.

use crate::descriptors::File;
use crate::errno::{Outcome, fail, wait};
use crate::sockets::{Receive, Send};
use crate::world::World;
use baton_wire::Time;
use libc::{c_int, c_uint};

/// splice(2).
#[derive(Debug)]
pub struct Splice {
    from: c_int,
    to: c_int,
    /// The caller passed positions, which neither pipes nor sockets have.
    has_offsets: bool,
    len: usize,
    flags: c_uint,
}

impl Splice {
    /// Creates the call.
    pub fn new(from: c_int, to: c_int, has_offsets: bool, len: usize, flags: c_uint) -> Self {
        Self {
            from,
            to,
            has_offsets,
            len,
            flags,
        }
    }

    fn has(&self, flag: c_uint) -> bool {
        self.flags & flag != 0
    }

    /// Returns how many bytes were moved; 0 at the end.
    ///
    /// # Errors
    /// As in the manual page.
    pub fn attempt(&mut self, world: &mut World) -> Outcome<usize> {
        let from = world.descriptors.get(self.from)?;
        let to = world.descriptors.get(self.to)?;
        if self.has_offsets {
            return fail(libc::ESPIPE);
        }
        if self.len == 0 {
            return Ok(0);
        }
        match (from, to) {
            (File::PipeReader(from), File::Socket(_)) => self.pipe_to_socket(world, from),
            (File::Socket(_), File::PipeWriter(to)) => self.socket_to_pipe(world, to),
            (File::PipeReader(from), File::PipeWriter(to)) if from != to => {
                self.pipe_to_pipe(world, from, to)
            }
            (File::PipeWriter(_), _) | (_, File::PipeReader(_)) => fail(libc::EBADF),
            _ => fail(libc::EINVAL),
        }
    }

    /// Bytes that may be written to a pipe now, or a wait for space.
    fn room(&self, world: &World, to: usize) -> Outcome<usize> {
        let pipe = &world.pipes[to];
        if !pipe.has_reader {
            return fail(libc::EPIPE);
        }
        let waits = !self.has(libc::SPLICE_F_NONBLOCK) && !pipe.writer_nonblocking;
        match pipe.room() {
            0 => wait(world.now(), waits.then_some(Time::NEVER)),
            room => Ok(room.min(self.len)),
        }
    }

    /// Bytes that may be read from a pipe now, 0 at its end, or a wait for data.
    fn available(&self, world: &World, from: usize) -> Outcome<usize> {
        let pipe = &world.pipes[from];
        let waits = !self.has(libc::SPLICE_F_NONBLOCK) && !pipe.reader_nonblocking;
        match pipe.len() {
            0 if pipe.has_writer => wait(world.now(), waits.then_some(Time::NEVER)),
            len => Ok(len.min(self.len)),
        }
    }

    fn pipe_to_socket(&mut self, world: &mut World, from: usize) -> Outcome<usize> {
        let len = self.available(world, from)?;
        if len == 0 {
            return Ok(0);
        }
        let data = world.pipes[from].peek(len);
        let more = if self.has(libc::SPLICE_F_MORE) {
            libc::MSG_MORE
        } else {
            0
        };
        // Each attempt writes what fits now. The remaining data stays in the pipe.
        let id = world.socket_id(self.to)?;
        let nonblocking = world.sockets[id].nonblocking;
        let outcome = Send::new(self.to, data, more | libc::MSG_DONTWAIT).attempt(world);
        let sent = match outcome {
            Err(crate::errno::Stop::Fail(errno)) if errno.0 == libc::EAGAIN && !nonblocking => {
                return wait(world.now(), Some(Time::NEVER));
            }
            outcome => outcome?,
        };
        world.pipes[from].advance(sent);
        world.pipe_changed(from);
        Ok(sent)
    }

    fn socket_to_pipe(&mut self, world: &mut World, to: usize) -> Outcome<usize> {
        let room = self.room(world, to)?;
        let quick = if self.has(libc::SPLICE_F_NONBLOCK) {
            libc::MSG_DONTWAIT
        } else {
            0
        };
        let socket = &world.sockets[world.socket_id(self.from)?];
        let most = socket.bytes_to_mark().unwrap_or(room).min(room);
        if most == 0 && socket.received.len() > 0 {
            // Stops before urgent data, as in Linux.
            return Ok(0);
        }
        let received = Receive::new(self.from, most.max(1), quick).attempt(world)?;
        if received.len > 0 {
            world.pipes[to].push(received.data.into());
            world.pipe_changed(to);
        }
        Ok(received.len)
    }

    fn pipe_to_pipe(&mut self, world: &mut World, from: usize, to: usize) -> Outcome<usize> {
        let available = self.available(world, from)?;
        if available == 0 {
            return Ok(0);
        }
        let len = self.room(world, to)?.min(available);
        let mut moved = 0;
        while moved < len {
            let Some(piece) = world.pipes[from].take(len - moved) else {
                break;
            };
            moved += piece.len();
            world.pipes[to].push(piece);
        }
        world.pipe_changed(from);
        world.pipe_changed(to);
        Ok(moved)
    }
}
