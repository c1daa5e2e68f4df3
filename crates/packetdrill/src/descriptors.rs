//! Descriptors: numbers for sockets, epoll instances and ends of pipes. Each is the number of a real descriptor of the process,
//! held as long as the number is in use, so that no number has two meanings and close(2) does no harm.

use crate::errno::Errno;
use libc::c_int;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

/// The object that a descriptor names, by its index in the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum File {
    Socket(usize),
    Epoll(usize),
    PipeReader(usize),
    PipeWriter(usize),
}

/// A number, reserved by a duplicate of the instance's own file.
#[derive(Debug)]
struct Reserved {
    duplicate: Option<fs::File>,
    inode: u64,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let Some(duplicate) = self.duplicate.take() else {
            return;
        };
        let is_ours = duplicate
            .metadata()
            .is_ok_and(|found| found.ino() == self.inode);
        if !is_ours {
            // The process closed the descriptor itself, and may have another file with this number.
            let _ = duplicate.into_raw_fd();
        }
    }
}

/// The table of descriptors.
#[derive(Debug, Default)]
pub(crate) struct Descriptors {
    /// A file of the instance's own: an end of a pipe, created with the first number.
    own: Option<fs::File>,
    files: BTreeMap<c_int, (File, Reserved)>,
}

impl Descriptors {
    /// Assigns the lowest free number of the process to `file`, except those of standard input, output and error.
    pub(crate) fn add(&mut self, file: File) -> Result<c_int, Errno> {
        loop {
            let (duplicate, inode) = self.duplicate().map_err(|error| {
                let known = error.raw_os_error();
                Errno(known.unwrap_or(libc::EMFILE))
            })?;
            let fd = duplicate.as_raw_fd();
            if self.files.contains_key(&fd) {
                // The process closed one of our numbers. The number is reserved again, and keeps its meaning.
                let _ = duplicate.into_raw_fd();
                continue;
            }
            let duplicate = Some(duplicate);
            self.files.insert(fd, (file, Reserved { duplicate, inode }));
            return Ok(fd);
        }
    }

    /// Returns a duplicate of the own file, and its inode.
    fn duplicate(&mut self) -> io::Result<(fs::File, u64)> {
        let own = match self.own.take() {
            Some(own) => own,
            None => fs::File::from(OwnedFd::from(io::pipe()?.0)),
        };
        let own = self.own.insert(own);
        Ok((own.try_clone()?, own.metadata()?.ino()))
    }

    /// The object that `fd` names.
    pub(crate) fn get(&self, fd: c_int) -> Result<File, Errno> {
        let found = self.files.get(&fd).map(|(file, _)| *file);
        found.ok_or(Errno(libc::EBADF))
    }

    /// Frees the number.
    pub(crate) fn remove(&mut self, fd: c_int) -> Result<File, Errno> {
        let (file, _) = self.files.remove(&fd).ok_or(Errno(libc::EBADF))?;
        Ok(file)
    }

    /// The number of `file`.
    pub(crate) fn find(&self, file: File) -> Option<c_int> {
        let mut numbers = self.files.iter();
        numbers
            .find(|(_, (known, _))| *known == file)
            .map(|(fd, _)| *fd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The process's descriptors of the file with this inode.
    fn held(inode: u64) -> usize {
        let all = fs::read_dir("/proc/self/fd").expect("the process's descriptors");
        let files = all.filter_map(|entry| fs::metadata(entry.ok()?.path()).ok());
        files.filter(|file| file.ino() == inode).count()
    }

    #[test]
    fn descriptor_numbers_are_real_and_are_released() {
        let (mut table, mut other) = (Descriptors::default(), Descriptors::default());
        let first = table.add(File::Socket(0)).expect("a number");
        let second = table.add(File::Epoll(0)).expect("a number");
        let strange = other.add(File::Socket(0)).expect("a number");
        assert!(first != second && first != strange && second != strange);
        assert_eq!(table.get(strange), Err(Errno(libc::EBADF)));
        assert_eq!(table.find(File::Epoll(0)), Some(second));
        let own = table.own.as_ref().expect("made with the first number");
        let inode = own.metadata().expect("it is open").ino();
        assert_eq!(held(inode), 3);
        assert_eq!(table.remove(first), Ok(File::Socket(0)));
        assert_eq!(table.get(first), Err(Errno(libc::EBADF)));
        assert_eq!(held(inode), 2);
        drop(table);
        assert_eq!(held(inode), 0);
    }
}
