//! Attaches a program to the sent packets of an interface, for kernels without links there (before Linux 6.6): as a filter of the qdisc
//! `clsact`, which is created if necessary (rtnetlink(7), and the structures of linux/rtnetlink.h and linux/pkt_cls.h).
//!
//! A filter survives the process. The next process replaces a filter that was left behind; until then the filter must do no harm.

use super::bpf::Program;
use crate::netlink::{self, Attributes};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Kinds of messages.
const NEW_QDISC: u16 = 36;
const NEW_FILTER: u16 = 44;
const DELETE_FILTER: u16 = 45;
/// Flags of messages.
const ACKNOWLEDGE: u16 = 0x004;
const REPLACE: u16 = 0x100;
const EXCLUSIVE: u16 = 0x200;
const CREATE: u16 = 0x400;

/// Parent and handle of the qdisc, and parent of its filters of sent packets.
const CLSACT: u32 = 0xffff_fff1;
const CLSACT_HANDLE: u32 = 0xffff_0000;
const EGRESS: u32 = 0xffff_fff3;
/// Priority of the filter, its protocol (all) and its handle.
const PRIORITY: u32 = 49_152;
const ALL_PROTOCOLS: u16 = 3;
const HANDLE: u32 = 1;

/// Attributes of both, and of a filter with a program.
const KIND: u16 = 1;
const OPTIONS: u16 = 2;
const PROGRAM: u16 = 6;
const NAME: u16 = 7;
const FLAGS: u16 = 8;
/// The result of the program is the action.
const DIRECT_ACTION: u32 = 1;

/// A filter; dropping it removes the filter.
#[derive(Debug)]
pub(super) struct Filter {
    socket: OwnedFd,
    interface: u32,
}

impl Filter {
    /// Attaches the program to the packets that the interface sends.
    ///
    /// # Errors
    /// The process lacks the permission, or the kernel does not support such filters.
    pub(super) fn new(interface: u32, program: &Program) -> io::Result<Self> {
        let socket = netlink::socket()?;
        let qdisc = Message::new(NEW_QDISC, CREATE | EXCLUSIVE, interface)
            .at(CLSACT_HANDLE, CLSACT, 0)
            .attribute(KIND, b"clsact\0");
        match qdisc.ask(&socket) {
            // The qdisc belongs to another program, which may have filters there.
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {}
            outcome => outcome?,
        }
        let options = Attributes::default()
            .with(PROGRAM, &program.as_fd().as_raw_fd().to_ne_bytes())
            .with(NAME, b"baton_guard\0")
            .with(FLAGS, &DIRECT_ACTION.to_ne_bytes());
        Self::message(NEW_FILTER, CREATE | REPLACE, interface)
            .attribute(OPTIONS, &options.0)
            .ask(&socket)?;
        Ok(Self { socket, interface })
    }

    fn message(kind: u16, flags: u16, interface: u32) -> Message {
        let information = PRIORITY << 16 | u32::from(ALL_PROTOCOLS.to_be());
        Message::new(kind, flags, interface)
            .at(HANDLE, EGRESS, information)
            .attribute(KIND, b"bpf\0")
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        // The filter may have disappeared with the interface.
        let _ = Self::message(DELETE_FILTER, 0, self.interface).ask(&self.socket);
    }
}

/// A message about traffic control: header, `struct tcmsg`, attributes.
#[derive(Debug)]
struct Message {
    kind: u16,
    flags: u16,
    interface: u32,
    place: [u32; 3],
    attributes: Attributes,
}

impl Message {
    fn new(kind: u16, flags: u16, interface: u32) -> Self {
        Self {
            kind,
            flags: flags | ACKNOWLEDGE,
            interface,
            place: [0; 3],
            attributes: Attributes::default(),
        }
    }

    fn at(mut self, handle: u32, parent: u32, information: u32) -> Self {
        self.place = [handle, parent, information];
        self
    }

    fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        self.attributes = self.attributes.with(kind, value);
        self
    }

    /// Sends the message and waits for the answer.
    fn ask(&self, socket: &OwnedFd) -> io::Result<()> {
        let mut body = vec![0; 4];
        body.extend(self.interface.to_ne_bytes());
        body.extend(self.place.iter().flat_map(|number| number.to_ne_bytes()));
        body.extend(&self.attributes.0);
        let request = netlink::request(self.kind, self.flags, &body);
        send(socket, &request, SendFlags::empty())?;
        let mut answer = [0; 4096];
        let (len, _) = recv(socket, &mut answer, RecvFlags::empty())?;
        let outcome = netlink::outcome(&answer[..len]);
        outcome.unwrap_or_else(|| Err(io::ErrorKind::InvalidData.into()))
    }
}
