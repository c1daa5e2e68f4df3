//! Where applications come to the adapter.

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

/// The socket at which an adapter waits for applications. Nothing here blocks, whatever they do or do not.
#[derive(Debug)]
pub struct AdapterListener {
    socket: SocketFile,
    limits: Limits,
    pending: Pending<UnixStream>,
}

/// What an application is given: the memory, its bell, the adapter's button.
type Files = [OwnedFd; FILES];

impl AdapterListener {
    /// Listens at `path`. A file that a killed process has left is replaced.
    ///
    /// # Errors
    /// A running process has it, the file is no socket, or it cannot be made; says what to do.
    pub fn bind(path: &Path, limits: Limits) -> Result<Self, BindError> {
        Ok(Self {
            socket: SocketFile::bind(path)?,
            limits,
            pending: Pending::default(),
        })
    }

    /// The next application that has said what it wants, if it can be had beside the applications of these users, none for
    /// those of other machines. What is refused is counted.
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
                    let made = make(geometry, application).map_err(|_| Refusal::NoMemory)?;
                    Ok((geometry, made))
                });
            match attempt {
                Ok((geometry, (link, files))) => {
                    // If it is gone, nobody is attached.
                    if send(&stream, &Ok(geometry), Some(&files)).is_ok() {
                        return Some(link);
                    }
                }
                Err(refusal) => {
                    self.pending.count(&refusal);
                    // If it is gone, it need not know.
                    let _ = send(&stream, &Err(refusal), None);
                }
            }
        }
        None
    }

    /// What it waits for.
    pub fn fds(&self) -> SmallVec<[(BorrowedFd<'_>, PollFlags); 4]> {
        self.pending.fds(self.socket.listener().as_fd())
    }

    /// Refusals, by reason as it was told last.
    pub fn refusals(&self) -> &[(Refusal, u64)] {
        self.pending.refusals()
    }
}

fn user_of(stream: &UnixStream) -> Option<u32> {
    socket_peercred(stream).ok().map(|known| known.uid.as_raw())
}

/// Who it is, as the system knows it.
fn application(stream: &UnixStream, hello: &Hello) -> Application {
    let credentials = socket_peercred(stream).ok();
    Application {
        name: hello.name.clone(),
        pid: credentials.map(|known| known.pid.as_raw_nonzero().get().cast_unsigned()),
        uid: credentials.map(|known| known.uid.as_raw()),
        peer: None,
    }
}

/// Makes a link: the adapter's end of it, and what the host gets.
fn make(geometry: Geometry, application: Application) -> io::Result<(ShmAdapter, Files)> {
    let file = memory::create(&geometry)?;
    let mapping = Mapping::new(file.as_fd(), Layout::new(&geometry))?;
    let (host_button, host_bell) = doorbell()?;
    let (adapter_button, adapter_bell) = doorbell()?;
    let end = ShmEnd::new(mapping, Side::Adapter, geometry, adapter_bell, host_button);
    let link = ShmAdapter::new(end, application);
    Ok((link, [file, host_bell.into_fd(), adapter_button.into_fd()]))
}

/// A link within one process, for an adapter that runs there on a thread, and the file of its memory.
///
/// # Errors
/// There is no memory, or there are no files, for it.
pub fn pair(geometry: Geometry) -> io::Result<(ShmHost, ShmAdapter, OwnedFd)> {
    let (adapter, files) = make(geometry, Application::default())?;
    let file = files[0].try_clone()?;
    let host = ShmHost::from_files(geometry, files).map_err(io::Error::other)?;
    Ok((host, adapter, file))
}

/// Answers; the files go with the answer's first byte.
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
    // A socket that has not been written to takes a short frame whole.
    if sent == bytes.len() {
        Ok(())
    } else {
        Err(io::ErrorKind::WriteZero.into())
    }
}
