//! The work of programs that generate content, for systems that model its cost.
//!
//! The model follows Flash (Pai, Druschel and Zwaenepoel, USENIX 1999, 5.6): a program is a separate process, which is reused for further
//! requests. The server passes a request to the program through a pipe, and gets the content through another. Each wait for the other end
//! of a pipe is a context switch.

use super::http::Program;
use crate::MeteredSockets;
use baton_host::{FileContent, SocketId};
use baton_kernel::footprint::APP_SEND_OFFSET;
use baton_kernel::{Access, Op, Pool};
use baton_wire::Payload;

/// Unit in which the areas after the server's own global data are numbered.
const PAGE_BYTES: u32 = 4096;
/// The table of advertisements: SPECweb99's 360 records, five per line.
const ADVERTISEMENTS: u32 = 1;
/// Memory that a process created for a request writes first: its stack and data.
const PROCESS: u32 = 2;
/// Buffer for a program's content, two pages.
const PROGRAM_BUFFER: u32 = 3;
/// The kernel's buffer of the pipe for the content, two pages.
const PIPE: u32 = 5;

impl Program {
    /// Starts the work on one request.
    pub(super) fn begin<P: Payload>(self, sockets: &mut impl MeteredSockets<P>) {
        if self == Self::Answer {
            return;
        }
        pass(sockets);
        sockets.work(Op::AppProgram, 1);
        match self {
            Self::Answer | Self::Page => {}
            Self::Cgi => {
                sockets.work(Op::AppProcess, 1);
                touch(sockets, PROCESS, PAGE_BYTES, Access::Write);
            }
            Self::Advertisement => {
                sockets.work(Op::AppAdvertisement, 1);
                touch(sockets, ADVERTISEMENTS, PAGE_BYTES, Access::Read);
            }
            Self::Post => {
                sockets.work(Op::AppForm, 1);
                // Append the form to the log.
                sockets.work(Op::SyscallEntry, 1);
                sockets.work(Op::SyscallWrite, 1);
            }
        }
    }

    /// Generates a run of content from the content of the file, at most two pages.
    pub(super) fn produce<P: Payload>(
        self,
        content: &FileContent,
        sockets: &mut impl MeteredSockets<P>,
        socket: SocketId,
    ) {
        let len = content.len as u32;
        let kib = len.div_ceil(1024);
        sockets.work(Op::AppDynamic, kib);
        if self != Self::Answer {
            sockets.read_file(content);
            if self == Self::Advertisement {
                sockets.work(Op::AppSearch, kib);
            }
            touch(sockets, PROGRAM_BUFFER, len, Access::Write);
            // The run is copied into the pipe, and out of it.
            touch(sockets, PROGRAM_BUFFER, len, Access::Read);
            touch(sockets, PIPE, len, Access::Write);
            pass(sockets);
            touch(sockets, PIPE, len, Access::Read);
        }
        let (pool, at) = (Pool::AppBuffer, APP_SEND_OFFSET);
        sockets.touch(pool, socket.0, at, len, Access::Write);
    }
}

/// One process writes to a pipe, and another process that waited for the data reads.
fn pass<P: Payload>(sockets: &mut impl MeteredSockets<P>) {
    let calls = [
        (Op::SyscallEntry, 3),
        (Op::SyscallWrite, 1),
        (Op::ContextSwitch, 1),
        (Op::SyscallWait, 1),
        (Op::SyscallRead, 1),
    ];
    for (op, count) in calls {
        sockets.work(op, count);
    }
}

/// Touches `len` bytes from the start of page `page` on.
fn touch<P: Payload>(sockets: &mut impl MeteredSockets<P>, page: u32, len: u32, access: Access) {
    let pages = len.div_ceil(PAGE_BYTES);
    for number in 0..pages {
        let bytes = (len - number * PAGE_BYTES).min(PAGE_BYTES);
        sockets.touch(Pool::AppGlobal, page + number, 0, bytes, access);
    }
}
