//! Files that the adapter reads and sends by itself.

use crate::core::{Core, Side};
use crate::driver::Driver;
use crate::host::Host;
use crate::link::HostEnd;
use crate::poll::sealed::Sealed;
use crate::stream::TcpStream;
use crate::waiter::Waiter;
use baton_bus::HostLink;
use baton_bus::descriptor::{FilePlace, MOST_FILE_BYTES};
use baton_host::{Gone, SocketId};
use rustix::fs::Stat;
use std::io::Result;
use std::os::fd::BorrowedFd;

/// A part of an open regular file.
#[derive(Clone, Copy, Debug)]
pub struct FilePart<'a> {
    /// The file.
    pub file: BorrowedFd<'a>,
    /// Metadata of the file as it is now.
    pub about: &'a Stat,
    /// Offset of the first byte.
    pub offset: u64,
    /// Number of bytes, all of which the file has now.
    pub len: usize,
}

impl TcpStream {
    /// Sends the beginning of a part of a file without reading it: the adapter reads the bytes when TCP can send them. They may have
    /// changed by then; if the file has become shorter, the connection is reset. Returns how many bytes, or `None` if the caller has to
    /// read the file: the connection is not on an adapter on this machine, or the adapter cannot read the file or has too many others.
    pub fn send_file(&self, part: &FilePart<'_>) -> Option<Result<usize>> {
        self.send_or_else(|core, waiter| core.send_file(self.socket(), part, waiter))
    }
}

impl Core {
    /// Sends the beginning of a part of a file, or registers `waiter`. Returns `Some(None)` if the caller has to read the file.
    fn send_file(
        &mut self,
        socket: SocketId,
        part: &FilePart<'_>,
        waiter: Option<&Waiter>,
    ) -> Option<Option<Result<usize>>> {
        self.host.look_at_adapter(socket);
        let sent = self.host.send_file(socket, part);
        self.hold_if_held(socket);
        match sent {
            Err(Gone) => Some(Some(Err(self.error(socket)))),
            Ok(Some(0)) => {
                if let Some(waiter) = waiter {
                    self.wait_until(socket, Side::Write, waiter);
                }
                None
            }
            Ok(sent) => Some(sent.map(|len| Ok(len as usize))),
        }
    }
}

impl Host {
    /// Sends the beginning of a part of a file. Returns how many bytes, or `None` if the caller has to read the file.
    fn send_file(
        &mut self,
        socket: SocketId,
        part: &FilePart<'_>,
    ) -> std::result::Result<Option<u32>, Gone> {
        let len = part.len.min(MOST_FILE_BYTES as usize) as u32;
        let last = part.offset.checked_add(len.into());
        let is_near = last.is_some_and(|last| last <= FilePlace::BYTES);
        if self.on_adapter(socket).is_none() || !is_near || len == 0 {
            return Ok(None);
        }
        let Some(first) = self.driver.lend(part) else {
            return Ok(None);
        };
        let address = first + part.offset;
        let now = self.driver.now();
        let sent = match &mut self.kernel {
            Some(kernel) => {
                let mut calls = kernel.calls(now, Some(&mut self.driver));
                calls.send_lent(socket, (address, len))
            }
            None => {
                let sent = self.driver.calls().send_lent(socket, (address, len));
                sent.map(Some)
            }
        };
        if !matches!(sent, Ok(Some(1..))) {
            self.driver.adapter_end().link.free(address);
        }
        sent
    }
}

impl Driver {
    /// Begins a use of a file, if the adapter can read it. Returns the address of its first byte.
    fn lend(&mut self, part: &FilePart<'_>) -> Option<u64> {
        match &mut self.adapter_end().link {
            HostEnd::Attached(link) => link.lend(part.file, part.about),
            HostEnd::Lost(_) => None,
        }
    }
}
