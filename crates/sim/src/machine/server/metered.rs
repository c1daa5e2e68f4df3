//! Cost of sockets for the host's processor: system calls, requests and responses, copies.

use super::super::application::System;
use super::super::meter::HostMeter;
use super::adapter_calls::number;
use super::answering::Answering;
use super::data::LinkData;
use super::data_cache::DirectoryWork;
use super::file_system::{FileSockets, ToSocket};
use super::host_stack::Around;
use super::link::{HostWork, SimulatedLink};
use baton_apps::{Costs, symbolic};
use baton_host::adapter::FileChange;
use baton_host::{FileContent, FileId, Gone, Receive, SocketId, Sockets, Unread};
use baton_kernel::footprint::{
    self, APP_HALF_BYTES, APP_RECEIVE_OFFSET, APP_SEND_OFFSET, CLUSTER_BYTES,
};
use baton_kernel::{Access, FileSystem, Layer, Meter, NetworkMemory, Op, Owner, Pool};
use baton_tcp::ConnId;
use baton_wire::{Payload, SeqNr, Symbolic};

/// Calls of sockets and files, which are charged as system calls.
pub(super) struct Metered<'a> {
    sockets: &'a mut dyn FileSockets,
    files: &'a mut FileSystem<Symbolic>,
    memory: &'a mut NetworkMemory,
    answering: &'a mut Answering,
    meter: &'a mut HostMeter,
}

impl<'a> Metered<'a> {
    pub(super) fn new(
        sockets: &'a mut dyn FileSockets,
        around: &'a mut Around<'_, HostMeter>,
    ) -> Self {
        Self {
            sockets,
            files: around.files,
            memory: around.memory,
            answering: around.answering,
            meter: around.meter,
        }
    }

    fn begin(&mut self, socket: SocketId, body: Op) {
        footprint::syscall(self.meter, body, Some(socket.0));
    }

    /// Writes to a connection of the host's stack as much as there is buffer space and memory for.
    fn write(
        &mut self,
        socket: SocketId,
        data: Symbolic,
        (conn, from): (ConnId, SeqNr),
    ) -> Result<usize, Gone> {
        let room = self.sockets.send_room(socket)?;
        let fits = room.min(data.len as usize) as u32;
        let buffered = self.memory.write(conn, socket, (from, fits), self.meter);
        let sent = match buffered {
            0 => 0,
            _ => {
                let data = data.slice(0, buffered as usize);
                (self.sockets).send(socket, LinkData::Content(data))?
            }
        };
        // All data that was sent is gone, so wait for memory or buffer space before the rest.
        if buffered < fits {
            self.files.wait_for_memory(socket);
        } else if fits < data.len {
            self.sockets.want_room(socket);
        }
        Ok(sent)
    }

    /// Returns the NIC that answers a socket to which content of a file is sent.
    fn answering_nic(&mut self, socket: SocketId, content: &FileContent, len: u32) -> Option<u8> {
        let arrival = self.sockets.adapter_of(socket)?;
        let conn = self.sockets.in_stack(socket).map(|(conn, _)| conn);
        let is_new = !self.sockets.was_away(socket);
        let of = conn.filter(|_| is_new).map(|conn| (conn, arrival));
        let what = (content, len.into());
        let ends = self.sockets.adapters();
        if (self.answering).choose((socket, of), what, ends, self.meter) {
            self.sockets.answer_elsewhere(socket);
        }
        Some(self.answering.nic_of(conn, arrival))
    }

    /// Frees everything that belongs to a socket that the application has closed.
    fn let_go(&mut self, socket: SocketId) {
        footprint::socket_free(self.meter, socket.0);
        self.files.close(socket);
        self.answering.let_go(socket);
        if let Some((conn, _)) = self.sockets.in_stack(socket) {
            self.memory.closed_by_application(conn);
        }
    }

    /// Charges the application's side of a copy.
    fn touch_application(&mut self, socket: SocketId, offset: u32, bytes: u32, access: Access) {
        let (layer, pool) = (Layer::Syscall, Pool::AppBuffer);
        let bytes = bytes.min(APP_HALF_BYTES);
        self.meter
            .touch(layer, pool, socket.0, offset, bytes, access);
    }
}

impl Sockets<Symbolic> for Metered<'_> {
    fn accept(&mut self) -> Option<SocketId> {
        footprint::syscall(self.meter, Op::SyscallAccept, None);
        let id = self.sockets.accept()?;
        footprint::socket_create(self.meter, id.0);
        footprint::accept(self.meter, id.0);
        if let Some((conn, _)) = self.sockets.in_stack(id) {
            self.memory.accepted(conn, id, self.meter);
        }
        Some(id)
    }

    fn receive(&mut self, socket: SocketId, max: usize) -> Receive<Symbolic> {
        self.begin(socket, Op::SyscallRead);
        let in_stack = self.sockets.in_stack(socket);
        match self.sockets.receive(socket, max) {
            Receive::Data(data) => match data.content() {
                Some(content) => {
                    let bytes = content.len;
                    match in_stack {
                        Some((conn, _)) => self.memory.read(conn, socket, bytes, self.meter),
                        None => {
                            footprint::receive_drop(self.meter, socket.0);
                            let (at, access) = (APP_RECEIVE_OFFSET, Access::Write);
                            self.touch_application(socket, at, bytes, access);
                        }
                    }
                    Receive::Data(content)
                }
                None => Receive::Gone,
            },
            Receive::WouldBlock => Receive::WouldBlock,
            Receive::EndOfStream => Receive::EndOfStream,
            Receive::Gone => Receive::Gone,
        }
    }

    fn unread(&self, socket: SocketId) -> Unread {
        self.sockets.unread(socket)
    }

    fn send(&mut self, socket: SocketId, data: Symbolic) -> Result<usize, Gone> {
        self.begin(socket, Op::SyscallWrite);
        if let Some(in_stack) = self.sockets.in_stack(socket) {
            return self.write(socket, data, in_stack);
        }
        let sent = self.sockets.send(socket, LinkData::Content(data))?;
        footprint::send_append(self.meter, socket.0);
        self.touch_application(socket, APP_SEND_OFFSET, sent as u32, Access::Read);
        Ok(sent)
    }

    /// Sends from pages, as the kernel does, also for content in the adapter's data cache: a page that was partly sent is completed
    /// unchanged.
    fn send_file(
        &mut self,
        socket: SocketId,
        content: FileContent,
        data: Symbolic,
    ) -> Result<usize, Gone> {
        self.begin(socket, Op::SyscallSendfile);
        footprint::file_lookup(self.meter, content.file.0);
        let adapter = self.answering_nic(socket, &content, data.len);
        let before = DirectoryWork::of(self.sockets.adapters());
        let mut to = ToSocket {
            sockets: &mut *self.sockets,
            socket,
            adapter,
        };
        let len = data.len as usize;
        let buffers = self.memory.buffers();
        let sent = (self.files).send(socket, content, len, &mut to, buffers, self.meter);
        if let Some(adapter) = adapter {
            before.charge_since(self.sockets.adapters(), adapter, [content], self.meter);
        }
        let sent = sent?;
        if sent > 0 {
            footprint::send_append(self.meter, socket.0);
        }
        Ok(sent)
    }

    fn set_cork(&mut self, socket: SocketId, cork: bool) {
        self.begin(socket, Op::SyscallOption);
        self.sockets.set_cork(socket, cork);
    }

    fn shutdown(&mut self, socket: SocketId) -> bool {
        self.begin(socket, Op::SyscallClose);
        self.sockets.shutdown(socket)
    }

    fn close(&mut self, socket: SocketId) {
        self.begin(socket, Op::SyscallClose);
        self.let_go(socket);
        self.sockets.close(socket);
    }

    fn abort(&mut self, socket: SocketId) {
        self.begin(socket, Op::SyscallClose);
        self.let_go(socket);
        self.sockets.abort(socket);
    }
}

impl Costs for Metered<'_> {
    fn work(&mut self, op: Op, count: u32) {
        self.meter.run(op, count);
    }

    fn read_file(&mut self, content: &FileContent) {
        self.files.read_mapped(content, self.meter);
    }

    fn touch(&mut self, pool: Pool, slot: u32, offset: u32, len: u32, access: Access) {
        let layer = Layer::Application;
        self.meter.touch(layer, pool, slot, offset, len, access);
    }
}

impl System for Metered<'_> {
    fn edit(&mut self, file: FileId, offset: u64, len: u64) {
        self.files.edit(file, offset, len);
        let before = DirectoryWork::of(self.sockets.adapters());
        let change = FileChange {
            file,
            revision: self.files.revision(file),
            offset,
            len: Some(len),
        };
        let files = &mut *self.files;
        let mut block = |offset, most| files.block(file, offset, most).map(LinkData::Content);
        self.sockets.file_changed(&change, &mut block);
        before.charge_changes(self.sockets.adapters(), self.meter);
    }

    fn hold(&mut self, file: FileId) {
        self.files.hold(file);
    }

    fn let_go(&mut self, file: FileId) {
        self.files.let_go(file);
    }
}

/// Charges the host's operations on one of its links. The rings, buffers and sockets of the links are laid out one after the other.
#[derive(Debug)]
pub(super) struct LinkMeter {
    adapter: usize,
    adapters: usize,
    ring_depth: u32,
    /// Number of clusters before those of the first link.
    first_cluster: u32,
    /// Size of all buffers of a link, in bytes.
    buffer_space: u64,
    /// Next entries of the rings.
    request_slot: u32,
    response_slot: u32,
    /// Copied bytes that were not yet charged: less than one KiB.
    copied: u32,
}

impl LinkMeter {
    /// Creates the meter for one of several adapters.
    pub(super) fn new(
        (adapter, adapters): (usize, usize),
        ring_depth: u32,
        (first_cluster, buffer_space): (u32, u64),
    ) -> Self {
        Self {
            adapter,
            adapters,
            ring_depth,
            first_cluster,
            buffer_space,
            request_slot: 0,
            response_slot: 0,
            copied: 0,
        }
    }

    /// Returns the number of a ring entry among the entries of all rings.
    fn entry(&self, slot: u32) -> u32 {
        self.adapter as u32 * self.ring_depth + slot
    }

    fn number(&self, socket: u32) -> u32 {
        number(self.adapters, self.adapter, socket)
    }

    /// Returns the cluster that models an address. Buffers are consecutive, like clusters.
    fn place(&self, address: u64) -> (u32, u32) {
        let address = self.adapter as u64 * self.buffer_space + address;
        let cluster = u64::from(CLUSTER_BYTES);
        let slot = self.first_cluster + (address / cluster) as u32;
        (slot, (address % cluster) as u32)
    }

    /// Charges the operations since the last call.
    #[inline]
    pub(super) fn charge(&mut self, link: &mut SimulatedLink, meter: &mut HostMeter) {
        if link.has_host_work() {
            self.charge_work(link, meter);
        }
    }

    fn charge_work(&mut self, link: &mut SimulatedLink, meter: &mut HostMeter) {
        for work in link.host_work() {
            match work {
                HostWork::Request {
                    socket,
                    descriptors,
                } => {
                    meter.owner(Owner::Nic);
                    footprint::bypass_request(meter, self.number(socket));
                    for _ in 0..descriptors {
                        footprint::driver_command(meter, self.entry(self.request_slot));
                        self.request_slot = (self.request_slot + 1) % self.ring_depth;
                    }
                }
                HostWork::Transfer => meter.run(Op::DriverDoorbell, 1),
                HostWork::Response {
                    socket,
                    descriptors,
                } => {
                    meter.owner(Owner::Nic);
                    for _ in 0..descriptors {
                        footprint::ring_read(meter, self.entry(self.response_slot));
                        footprint::driver_event(meter);
                        self.response_slot = (self.response_slot + 1) % self.ring_depth;
                    }
                    footprint::bypass_event(meter, self.number(socket));
                }
                HostWork::Copy {
                    address,
                    bytes,
                    access,
                } => {
                    let (slot, offset) = self.place(address);
                    meter.touch(Layer::Syscall, Pool::Cluster, slot, offset, bytes, access);
                    self.copied += bytes;
                    meter.run(Op::CopyKilobyte, self.copied / 1024);
                    self.copied %= 1024;
                }
                HostWork::Dma {
                    address,
                    bytes,
                    access,
                } => {
                    let (slot, offset) = self.place(address);
                    meter.dma(Pool::Cluster, slot, offset, bytes, access);
                }
                HostWork::DmaOfPages(content) => {
                    let file = symbolic::file(&content);
                    let offset = symbolic::offset(&content);
                    footprint::file_read_by_dma(meter, file, offset, content.len);
                }
            }
        }
    }
}
