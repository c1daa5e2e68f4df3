//! Cost of sockets for the host's processor: memory and files behind system calls, requests and responses, copies.

use super::super::application::System;
use super::super::meter::HostMeter;
use super::super::system_calls::{KernelSockets, SystemCalls};
use super::adapter_calls::number;
use super::data::LinkData;
use super::data_cache::DirectoryWork;
use super::file_system::{FileSockets, ToSocket};
use super::host_stack::Around;
use super::link::{HostWork, SimulatedLink};
use baton_apps::symbolic;
use baton_host::adapter::FileChange;
use baton_host::{FileContent, FileId, Gone, Receive, SocketId, Sockets, Unread};
use baton_kernel::footprint::{self, CLUSTER_BYTES};
use baton_kernel::{Layer, Meter, Op, Owner, Pool};
use baton_tcp::ConnId;
use baton_wire::{Payload, SeqNr, Symbolic};

/// System calls of the application.
pub(super) type Metered<'a, 'b> = SystemCalls<OnHost<'a, 'b>>;

/// Sockets on adapters and on the host's own stack, with the host's memory and files.
pub(super) struct OnHost<'a, 'b> {
    pub(super) sockets: &'a mut dyn FileSockets,
    pub(super) around: &'a mut Around<'b, HostMeter>,
}

impl OnHost<'_, '_> {
    /// Writes to a connection of the host's stack as much as there is buffer space and memory for.
    fn write(
        &mut self,
        socket: SocketId,
        data: Symbolic,
        (conn, from): (ConnId, SeqNr),
    ) -> Result<usize, Gone> {
        let room = self.sockets.send_room(socket)?;
        let fits = room.min(data.len as usize) as u32;
        let buffered = self
            .around
            .memory
            .write(conn, socket, (from, fits), self.around.meter);
        let sent = match buffered {
            0 => 0,
            _ => {
                let data = data.slice(0, buffered as usize);
                (self.sockets).send(socket, LinkData::Content(data))?
            }
        };
        // The rest of the data has to wait for memory or for buffer space.
        if buffered < fits {
            self.around.files.wait_for_memory(socket);
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
        if (self.around.answering).choose((socket, of), what, ends, self.around.meter) {
            self.sockets.answer_elsewhere(socket);
        }
        Some(self.around.answering.nic_of(conn, arrival))
    }
}

impl KernelSockets for OnHost<'_, '_> {
    type Data = LinkData;
    type Meter = HostMeter;

    #[inline]
    fn parts(&mut self) -> (&mut dyn Sockets<LinkData>, &mut HostMeter) {
        (self.sockets, self.around.meter)
    }

    fn unread(&self, socket: SocketId) -> Unread {
        self.sockets.unread(socket)
    }

    fn accepted(&mut self, id: SocketId) {
        if let Some((conn, _)) = self.sockets.in_stack(id) {
            self.around.memory.accepted(conn, id, self.around.meter);
        }
    }

    fn receive(&mut self, socket: SocketId, max: usize) -> Receive<Symbolic> {
        let in_stack = self.sockets.in_stack(socket);
        match self.sockets.receive(socket, max) {
            Receive::Data(data) => match data.content() {
                Some(content) => {
                    let bytes = content.len;
                    match in_stack {
                        Some((conn, _)) => {
                            self.around
                                .memory
                                .read(conn, socket, bytes, self.around.meter)
                        }
                        None => self.copy_out(socket, bytes),
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

    fn send(&mut self, socket: SocketId, data: Symbolic) -> Result<usize, Gone> {
        if let Some(in_stack) = self.sockets.in_stack(socket) {
            return self.write(socket, data, in_stack);
        }
        let sent = self.sockets.send(socket, LinkData::Content(data))?;
        self.copy_in(socket, sent as u32);
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
        let adapter = self.answering_nic(socket, &content, data.len);
        let before = DirectoryWork::of(self.sockets.adapters());
        let mut to = ToSocket {
            sockets: &mut *self.sockets,
            socket,
            adapter,
        };
        let len = data.len as usize;
        let buffers = self.around.memory.buffers();
        let sent =
            (self.around.files).send(socket, content, len, &mut to, buffers, self.around.meter);
        if let Some(adapter) = adapter {
            before.charge_since(
                self.sockets.adapters(),
                adapter,
                [content],
                self.around.meter,
            );
        }
        sent
    }

    fn let_go(&mut self, socket: SocketId) {
        footprint::socket_free(self.around.meter, socket.0);
        self.around.files.close(socket);
        self.around.answering.let_go(socket);
        if let Some((conn, _)) = self.sockets.in_stack(socket) {
            self.around.memory.closed_by_application(conn);
        }
    }

    fn read_file(&mut self, content: &FileContent) {
        self.around.files.read_mapped(content, self.around.meter);
    }
}

impl System for Metered<'_, '_> {
    fn edit(&mut self, file: FileId, offset: u64, len: u64) {
        self.0.around.files.edit(file, offset, len);
        let before = DirectoryWork::of(self.0.sockets.adapters());
        let change = FileChange {
            file,
            revision: self.0.around.files.revision(file),
            offset,
            len: Some(len),
        };
        let files = &mut *self.0.around.files;
        let mut block = |offset, most| files.block(file, offset, most).map(LinkData::Content);
        self.0.sockets.file_changed(&change, &mut block);
        before.charge_changes(self.0.sockets.adapters(), self.0.around.meter);
    }

    fn hold(&mut self, file: FileId) {
        self.0.around.files.hold(file);
    }

    fn let_go(&mut self, file: FileId) {
        self.0.around.files.let_go(file);
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
