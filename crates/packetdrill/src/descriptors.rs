//! Descriptors: small numbers for sockets, epoll instances and ends of pipes.

use crate::errno::Errno;
use libc::c_int;

/// What a descriptor names, by its place in the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum File {
    Socket(usize),
    Epoll(usize),
    PipeReader(usize),
    PipeWriter(usize),
}

/// Standard input, output and error are not ours.
const FIRST: usize = 3;

/// Most descriptors at a time (RLIMIT_NOFILE).
const MOST: usize = 65_536;

/// The table.
#[derive(Debug, Default)]
pub(crate) struct Descriptors {
    files: Vec<Option<File>>,
}

impl Descriptors {
    /// The lowest free number for `file`.
    pub(crate) fn add(&mut self, file: File) -> Result<c_int, Errno> {
        let free = self.files.iter().position(Option::is_none);
        let index = free.unwrap_or(self.files.len());
        if index + FIRST >= MOST {
            return Err(Errno(libc::EMFILE));
        }
        if index == self.files.len() {
            self.files.push(None);
        }
        self.files[index] = Some(file);
        Ok((index + FIRST) as c_int)
    }

    /// What `fd` names.
    pub(crate) fn get(&self, fd: c_int) -> Result<File, Errno> {
        let index = usize::try_from(fd)
            .ok()
            .and_then(|fd| fd.checked_sub(FIRST));
        let file = index.and_then(|index| self.files.get(index).copied().flatten());
        file.ok_or(Errno(libc::EBADF))
    }

    /// Frees the number.
    pub(crate) fn remove(&mut self, fd: c_int) -> Result<File, Errno> {
        let file = self.get(fd)?;
        self.files[fd as usize - FIRST] = None;
        Ok(file)
    }

    /// The number of `file`.
    pub(crate) fn find(&self, file: File) -> Option<c_int> {
        let index = self.files.iter().position(|&known| known == Some(file))?;
        Some((index + FIRST) as c_int)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_number_is_given() {
        let mut table = Descriptors::default();
        assert_eq!(table.add(File::Socket(0)), Ok(3));
        assert_eq!(table.add(File::Epoll(0)), Ok(4));
        assert_eq!(table.remove(3), Ok(File::Socket(0)));
        assert_eq!(table.get(3), Err(Errno(libc::EBADF)));
        assert_eq!(table.add(File::Socket(1)), Ok(3));
        assert_eq!(table.find(File::Epoll(0)), Some(4));
        assert_eq!(table.get(-1), Err(Errno(libc::EBADF)));
    }
}
