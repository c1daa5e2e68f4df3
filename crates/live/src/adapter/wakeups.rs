//! Wakes the loop on behalf of applications: a single descriptor to wait on, however many applications there are.

use rustix::event::{PollFlags, Timespec, epoll};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Maximum number of applications that one call reports. The next call reports the rest.
const MOST_EVENTS: usize = 64;

/// An epoll set. Each descriptor in it carries the number of an application.
pub struct Wakeups {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

impl Wakeups {
    /// Creates an empty set.
    ///
    /// # Errors
    /// The system cannot create another epoll set.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            events: Vec::with_capacity(MOST_EVENTS),
        })
    }

    /// Starts waiting for `fd`.
    ///
    /// # Errors
    /// The system has no space for another descriptor.
    pub fn add(&self, fd: BorrowedFd<'_>, interest: PollFlags, number: u32) -> io::Result<()> {
        let data = epoll::EventData::new_u64(u64::from(number));
        Ok(epoll::add(&self.epoll, fd, data, flags(interest))?)
    }

    /// Changes the events of `fd` that wake up the loop.
    ///
    /// # Errors
    /// `fd` is not in the set.
    pub fn change(&self, fd: BorrowedFd<'_>, interest: PollFlags, number: u32) -> io::Result<()> {
        let data = epoll::EventData::new_u64(u64::from(number));
        Ok(epoll::modify(&self.epoll, fd, data, flags(interest))?)
    }

    /// Stops waiting for `fd`. Closing `fd` is not enough: the other side has the doorbell open as well and could ring it forever.
    pub fn remove(&self, fd: BorrowedFd<'_>) {
        // Removing a descriptor that is not in the set is harmless.
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// Returns the numbers of the applications whose descriptors are ready.
    ///
    /// # Errors
    /// The system cannot report them.
    pub fn ready(&mut self) -> io::Result<impl Iterator<Item = u32> + '_> {
        self.events.clear();
        let room = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(&self.epoll, room, Some(&Timespec::default())) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.events.iter().map(|event| event.data.u64() as u32))
    }
}

impl AsFd for Wakeups {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

fn flags(interest: PollFlags) -> epoll::EventFlags {
    // Both types use the same bits.
    epoll::EventFlags::from_bits_truncate(u32::from(interest.bits()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, PollFd, eventfd, poll};

    #[test]
    fn ready_descriptors_are_reported_by_number_until_removed() {
        let mut wakeups = Wakeups::new().expect("a set");
        let bells: Vec<OwnedFd> = (0..3)
            .map(|_| eventfd(0, EventfdFlags::CLOEXEC).expect("a doorbell"))
            .collect();
        for (number, bell) in (0..).zip(&bells) {
            wakeups
                .add(bell.as_fd(), PollFlags::IN, number)
                .expect("room");
        }
        assert_eq!(wakeups.ready().expect("an answer").count(), 0);
        for bell in [0, 2] {
            rustix::io::write(&bells[bell], &1_u64.to_ne_bytes()).expect("a ring");
        }
        let mut set = [PollFd::new(&wakeups, PollFlags::IN)];
        assert_eq!(poll(&mut set, Some(&Timespec::default())), Ok(1));
        let ready: Vec<u32> = wakeups.ready().expect("an answer").collect();
        assert_eq!(ready, [0, 2]);
        wakeups.remove(bells[0].as_fd());
        let out = PollFlags::OUT;
        wakeups
            .change(bells[1].as_fd(), out, 7)
            .expect("it is there");
        let mut ready: Vec<u32> = wakeups.ready().expect("an answer").collect();
        ready.sort_unstable();
        assert_eq!(ready, [2, 7]);
    }
}
