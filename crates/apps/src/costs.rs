//! Reports of an application's own work, for a system that models its cost.

use baton_host::adapter::Calls;
use baton_host::layer::LayerCalls;
use baton_host::{FileContent, SocketId, Sockets};
use baton_kernel::{Access, Op, Pool};

/// Receives the reports. By default, ignores them.
pub trait Costs {
    /// Reports that the application performed `count` operations of its own.
    fn work(&mut self, op: Op, count: u32) {
        let _ = (op, count);
    }

    /// Reports that the application read a part of a file that is mapped into its memory.
    fn read_file(&mut self, content: &FileContent) {
        let _ = content;
    }

    /// Reports that the application read a part of a file into its buffer for `socket`, by a system call.
    fn read(&mut self, socket: SocketId, content: &FileContent) {
        let _ = (socket, content);
    }

    /// Reports that the application accessed `len` bytes, starting at `offset`, in `slot` of its own `pool`.
    fn touch(&mut self, pool: Pool, slot: u32, offset: u32, len: u32, access: Access) {
        let _ = (pool, slot, offset, len, access);
    }
}

/// Sockets of an application that reports its own work.
pub trait MeteredSockets<P>: Sockets<P> + Costs {}

impl<P, S: Sockets<P> + Costs> MeteredSockets<P> for S {}

impl<P, L> Costs for Calls<'_, P, L> {}

impl<P, L, S> Costs for LayerCalls<'_, P, L, S> {}
