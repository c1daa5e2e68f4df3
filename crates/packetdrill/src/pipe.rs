//! Pipes (pipe(7)), which splice needs.

use crate::descriptors::File;
use crate::errno::{Errno, Outcome, fail, wait};
use crate::receive_queue::ReceiveQueue;
use crate::sockets::Ready;
use crate::world::World;
use baton_wire::Time;
use bytes::Bytes;
use libc::c_int;

/// Capacity of a pipe, bytes.
const CAPACITY: usize = 65_536;

/// Writes up to this length are not split (PIPE_BUF).
const ATOMIC: usize = 4096;

/// One pipe.
#[derive(Debug)]
pub(crate) struct Pipe {
    queue: ReceiveQueue,
    pub(crate) has_reader: bool,
    pub(crate) has_writer: bool,
    pub(crate) reader_nonblocking: bool,
    pub(crate) writer_nonblocking: bool,
}

impl Pipe {
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn room(&self) -> usize {
        CAPACITY - self.queue.len()
    }

    pub(crate) fn push(&mut self, piece: Bytes) {
        self.queue.push(piece, Time::ZERO);
    }

    pub(crate) fn take(&mut self, most: usize) -> Option<Bytes> {
        self.queue.take(most)
    }

    /// Returns the first bytes without taking them.
    pub(crate) fn peek(&self, most: usize) -> Bytes {
        let mut bytes = vec![0; most.min(self.queue.len())];
        self.queue.peek(0, &mut bytes);
        bytes.into()
    }

    pub(crate) fn advance(&mut self, count: usize) {
        self.queue.advance(count);
    }

    pub(crate) fn reader_readiness(&self) -> u32 {
        let readable = if self.len() > 0 { Ready::READABLE } else { 0 };
        let hung_up = if self.has_writer { 0 } else { Ready::HANG_UP };
        readable | hung_up
    }

    pub(crate) fn writer_readiness(&self) -> u32 {
        let writable = if self.room() > 0 { Ready::WRITABLE } else { 0 };
        let broken = if self.has_reader { 0 } else { Ready::ERROR };
        writable | broken
    }
}

impl World {
    /// pipe(2): returns the reading end and the writing end.
    ///
    /// # Errors
    /// EMFILE.
    pub fn pipe(&mut self) -> Result<[c_int; 2], Errno> {
        let id = self.pipes.insert(Pipe {
            queue: ReceiveQueue::default(),
            has_reader: true,
            has_writer: true,
            reader_nonblocking: false,
            writer_nonblocking: false,
        });
        let reader = self
            .descriptors
            .add(File::PipeReader(id))
            .inspect_err(|_| {
                self.pipes.remove(id);
            })?;
        let writer = self
            .descriptors
            .add(File::PipeWriter(id))
            .inspect_err(|_| {
                let _ = self.descriptors.remove(reader);
                self.pipes.remove(id);
            })?;
        Ok([reader, writer])
    }

    /// Closes an end; the pipe is removed with the second one.
    pub(crate) fn close_pipe(&mut self, id: usize, end: impl FnOnce(&mut Pipe)) {
        let pipe = &mut self.pipes[id];
        end(pipe);
        if !pipe.has_reader && !pipe.has_writer {
            self.pipes.remove(id);
            return;
        }
        self.pipe_changed(id);
    }

    /// Wakes watchers after a pipe was written, read or closed.
    pub(crate) fn pipe_changed(&mut self, id: usize) {
        self.changed();
        for file in [File::PipeReader(id), File::PipeWriter(id)] {
            if let Some(fd) = self.descriptors.find(file) {
                self.wake_watchers(fd, Ready::ALL);
            }
        }
    }
}

/// read(2) from a pipe.
#[derive(Debug)]
pub(crate) struct PipeRead {
    pub(crate) id: usize,
    pub(crate) want: usize,
}

impl PipeRead {
    /// Returns the available data, or none at the end.
    pub(crate) fn attempt(&mut self, world: &mut World) -> Outcome<Vec<u8>> {
        let now = world.now();
        let pipe = &mut world.pipes[self.id];
        if self.want == 0 || (pipe.len() == 0 && !pipe.has_writer) {
            return Ok(Vec::new());
        }
        if pipe.len() == 0 {
            return wait(now, (!pipe.reader_nonblocking).then_some(Time::NEVER));
        }
        let bytes = pipe.peek(self.want);
        pipe.advance(bytes.len());
        world.pipe_changed(self.id);
        Ok(bytes.into())
    }
}

/// write(2) to a pipe.
#[derive(Debug)]
pub(crate) struct PipeWrite {
    pub(crate) id: usize,
    pub(crate) data: Bytes,
    pub(crate) written: usize,
}

impl PipeWrite {
    /// Writes what fits. Returns the number of bytes once all are written or no more can be.
    pub(crate) fn attempt(&mut self, world: &mut World) -> Outcome<usize> {
        let now = world.now();
        let pipe = &mut world.pipes[self.id];
        if !pipe.has_reader {
            return match self.written {
                0 => fail(libc::EPIPE),
                written => Ok(written),
            };
        }
        let rest = self.data.len() - self.written;
        let fits = match pipe.room() {
            room if rest <= ATOMIC && room < rest => 0,
            room => room.min(rest),
        };
        if fits > 0 {
            pipe.push(self.data.slice(self.written..self.written + fits));
            self.written += fits;
            world.pipe_changed(self.id);
        }
        let nonblocking = world.pipes[self.id].writer_nonblocking;
        match self.written {
            written if written == self.data.len() || (nonblocking && written > 0) => Ok(written),
            _ => wait(now, (!nonblocking).then_some(Time::NEVER)),
        }
    }
}
