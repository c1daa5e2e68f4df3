//! The listener at which applications attach to the adapter.

use super::adapter::ShmAdapter;
use super::doorbell::doorbell;
use super::end::ShmEnd;
use super::host::{FILES, ShmHost};
use super::mapping::Mapping;
use super::memory::{self, Layout};
use crate::application::Application;
use crate::handshake::{Answer, Geometry, Hello, Limits, Refusal, frame};
use crate::pending::{Greeted, Pending};
use crate::unix_socket::{BindError, SocketFile};
use baton_bus::shared::Side;
use rustix::event::PollFlags;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use smallvec::SmallVec;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// The socket at which an adapter waits for applications. It never blocks, whatever the applications do.
#[derive(Debug)]
pub struct AdapterListener {
    socket: SocketFile,
    limits: Limits,
    pending: Pending<UnixStream>,
}

/// The files that an application gets: the memory, its bell, the adapter's button.
type Files = [OwnedFd; FILES];

impl AdapterListener {
    /// Listens at `path`. Replaces a file that a killed process has left behind.
    ///
    /// # Errors
    /// A running process uses the path, the file is not a socket, or it cannot be created. The error says what to do about it.
    pub fn bind(path: &Path, limits: Limits) -> Result<Self, BindError> {
        Ok(Self {
            socket: SocketFile::bind(path)?,
            limits,
            pending: Pending::default(),
        })
    }

    /// Returns the next application that has sent its hello and may attach. `attached` has the users of the attached applications; `None`
    /// stands for applications on other machines. Counts refusals.
    pub fn accept(&mut self, attached: &[Option<u32>]) -> Option<ShmAdapter> {
        let listener = self.socket.listener();
        let accept = || Ok(listener.accept()?.0);
        while let Some(Greeted { stream, hello }) = self.pending.next(accept, user_of) {
            let attempt = hello
                .and_then(|hello| {
                    let user = user_of(&stream);
                    self.limits.check_attached(user, attached).map(|()| hello)
                })
                .and_then(|hello| {
                    let geometry = self.limits.grant(&hello.wishes)?;
                    let application = application(&stream, &hello);
                    let made = make(geometry).map_err(|_| Refusal::NoMemory)?;
                    Ok((geometry, application, made))
                });
            match attempt {
                Ok((geometry, application, (end, files))) => {
                    // If the application is gone, nobody attaches.
                    if send(&stream, &Ok(geometry), Some(&files)).is_ok() {
                        return Some(ShmAdapter::new(end, application, stream));
                    }
                }
                Err(refusal) => {
                    self.pending.count(&refusal);
                    // If the application is gone, it does not need the answer.
                    let _ = send(&stream, &Err(refusal), None);
                }
            }
        }
        None
    }

    /// Returns the events to wait for.
    pub fn fds(&self) -> SmallVec<[(BorrowedFd<'_>, PollFlags); 4]> {
        self.pending.fds(self.socket.listener().as_fd())
    }

    /// Returns the number of refusals by reason, with the details of the latest.
    pub fn refusals(&self) -> &[(Refusal, u64)] {
        self.pending.refusals()
    }
}

fn user_of(stream: &UnixStream) -> Option<u32> {
    socket_peercred(stream).ok().map(|known| known.uid.as_raw())
}

/// Describes the application, as the system knows it.
fn application(stream: &UnixStream, hello: &Hello) -> Application {
    let credentials = socket_peercred(stream).ok();
    Application {
        name: hello.name.clone(),
        pid: credentials.map(|known| known.pid.as_raw_nonzero().get().cast_unsigned()),
        uid: credentials.map(|known| known.uid.as_raw()),
        peer: None,
    }
}

/// Creates a link: the adapter's end, and the files for the host.
fn make(geometry: Geometry) -> io::Result<(ShmEnd, Files)> {
    let file = memory::create(&geometry)?;
    let mapping = Mapping::new(file.as_fd(), Layout::new(&geometry))?;
    let (host_button, host_bell) = doorbell()?;
    let (adapter_button, adapter_bell) = doorbell()?;
    let end = ShmEnd::new(mapping, Side::Adapter, geometry, adapter_bell, host_button);
    Ok((end, [file, host_bell.into_fd(), adapter_button.into_fd()]))
}

/// Creates a link within one process, for an adapter that runs on a thread. Also returns the file of the shared memory.
///
/// # Errors
/// The system lacks memory or descriptors for the link.
pub fn pair(geometry: Geometry) -> io::Result<(ShmHost, ShmAdapter, OwnedFd)> {
    let (end, files) = make(geometry)?;
    let file = files[0].try_clone()?;
    let (far, near) = UnixStream::pair()?;
    let host = ShmHost::from_files(geometry, files, far).map_err(io::Error::other)?;
    let adapter = ShmAdapter::new(end, Application::default(), near);
    Ok((host, adapter, file))
}

/// Sends the answer; the files go with its first byte.
fn send(stream: &UnixStream, answer: &Answer, files: Option<&Files>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let borrowed = files.map(|files| files.each_ref().map(AsFd::as_fd));
    if let Some(borrowed) = &borrowed {
        let pushed = control.push(SendAncillaryMessage::ScmRights(borrowed));
        debug_assert!(pushed, "there is room");
    }
    let bytes = frame(answer);
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let sent = sendmsg(stream, &[IoSlice::new(&bytes)], &mut control, flags)?;
    // A socket that was not written to before accepts a short frame as a whole.
    if sent == bytes.len() {
        Ok(())
    } else {
        Err(io::ErrorKind::WriteZero.into())
    }
}
