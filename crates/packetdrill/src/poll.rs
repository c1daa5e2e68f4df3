//! poll (poll(2)).

use crate::descriptors::File;
use crate::epoll::limit_of;
use crate::errno::{Outcome, Stop};
use crate::sockets::Ready;
use crate::world::World;
use baton_wire::Time;
use libc::c_int;

/// poll(2).
#[derive(Debug)]
pub struct Poll {
    /// Descriptors and requested conditions.
    entries: Vec<(c_int, u32)>,
    timeout_ms: c_int,
    limit: Option<Time>,
}

impl Poll {
    /// Creates the call.
    pub fn new(entries: Vec<(c_int, u32)>, timeout_ms: c_int) -> Self {
        Self {
            entries,
            timeout_ms,
            limit: None,
        }
    }

    /// Returns the conditions of each descriptor, once there are any or the timeout has passed.
    ///
    /// # Errors
    /// The call never fails; it may only have to wait.
    pub fn attempt(&mut self, world: &mut World) -> Outcome<Vec<u32>> {
        let now = world.now();
        let limit = *self
            .limit
            .get_or_insert_with(|| limit_of(now, self.timeout_ms));
        let report = |&(fd, events): &(c_int, u32)| match fd {
            // Entries with a negative descriptor are ignored.
            ..0 => 0,
            _ if world.descriptors.get(fd).is_err() => Ready::INVALID,
            _ => world.readiness(fd) & (events | Ready::ERROR | Ready::HANG_UP),
        };
        let ready: Vec<u32> = self.entries.iter().map(report).collect();
        match ready.iter().all(|&ready| ready == 0) && limit > now {
            true => Err(Stop::Wait(limit)),
            false => Ok(ready),
        }
    }
}

impl World {
    /// The current conditions of the object that `fd` names.
    pub(crate) fn readiness(&mut self, fd: c_int) -> u32 {
        match self.descriptors.get(fd) {
            Ok(File::Socket(id)) => self.socket_readiness(id),
            Ok(File::Epoll(id)) => self.epoll_readiness(id),
            Ok(File::PipeReader(id)) => self.pipes[id].reader_readiness(),
            Ok(File::PipeWriter(id)) => self.pipes[id].writer_readiness(),
            Err(_) => Ready::INVALID,
        }
    }
}
