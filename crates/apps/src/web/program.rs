//! What programs that make content do, for whoever models what that costs.
//!
//! As Flash has it (Pai, Druschel and Zwaenepoel, USENIX 1999, 5.6): a program is a process of its own, which stays for further requests. The
//! server gives it a request through a pipe, and gets the content through another. Each end of a pipe that waits is a change of process.

use super::http::Program;
use baton_host::footprint::APP_SEND_OFFSET;
use baton_host::{Access, FileContent, Op, Pool, SocketId, Sockets};
use baton_wire::Payload;

/// What lies beside the server's own global data, in slots of a page.
const PAGE_BYTES: u32 = 4096;
/// The table of advertisements: SPECweb99's 360 records, a line for each five.
const ADVERTISEMENTS: u32 = 1;
/// What a process that is made for a request writes first: its stack and data.
const PROCESS: u32 = 2;
/// What a program writes its content to, two pages.
const PROGRAM_BUFFER: u32 = 3;
/// The kernel's buffer of the pipe through which it goes, two pages.
const PIPE: u32 = 5;

impl Program {
    /// Begins the work on one request.
    pub(super) fn begin<P: Payload>(self, sockets: &mut impl Sockets<P>) {
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
                // It is entered in the log.
                sockets.work(Op::SyscallEntry, 1);
                sockets.work(Op::SyscallWrite, 1);
            }
        }
    }

    /// Makes a run of content of what stands in the file there, at most two pages of it.
    pub(super) fn produce<P: Payload>(
        self,
        content: &FileContent,
        sockets: &mut impl Sockets<P>,
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
            // Copied into the pipe, and out of it.
            touch(sockets, PROGRAM_BUFFER, len, Access::Read);
            touch(sockets, PIPE, len, Access::Write);
            pass(sockets);
            touch(sockets, PIPE, len, Access::Read);
        }
        let (pool, at) = (Pool::AppBuffer, APP_SEND_OFFSET);
        sockets.touch(pool, socket.0, at, len, Access::Write);
    }
}

/// One process writes to a pipe, another that waited for it reads.
fn pass<P: Payload>(sockets: &mut impl Sockets<P>) {
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

/// Touches `len` bytes from the start of a page on.
fn touch<P: Payload>(sockets: &mut impl Sockets<P>, page: u32, len: u32, access: Access) {
    let pages = len.div_ceil(PAGE_BYTES);
    for number in 0..pages {
        let bytes = (len - number * PAGE_BYTES).min(PAGE_BYTES);
        sockets.touch(Pool::AppGlobal, page + number, 0, bytes, access);
    }
}
