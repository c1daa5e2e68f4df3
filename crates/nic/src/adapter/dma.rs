//! Data transfers between host memory and the adapter. Only the adapter starts them (batching 2).

use super::session::{Session, Work};
use super::socket::Phase;
use baton_bus::link::{Dma, DmaId, Inline, Violation};
use baton_wire::Payload;

/// A transfer that the link must start.
#[derive(Clone, Debug, PartialEq)]
pub enum DmaRequest<P> {
    /// Fetch data of the host: [`AdapterLink::read`](baton_bus::AdapterLink::read).
    Read {
        /// Identifies the transfer when it completes.
        id: DmaId,
        /// Address in host memory.
        address: u64,
        /// Number of bytes.
        len: u32,
    },
    /// Write data to the host: [`AdapterLink::write`](baton_bus::AdapterLink::write).
    Write {
        /// Identifies the transfer when it completes.
        id: DmaId,
        /// Address in host memory.
        address: u64,
        /// Data to write.
        data: P,
    },
}

/// Purpose of a transfer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Job {
    /// Data of a socket's oldest SEND in progress.
    Read { slot: u32, len: u32 },
    /// Data of the FORWARD with this tag.
    Forward { slot: u32, tag: u32, len: u32 },
    /// Data for a RECV of a socket, identified by its key in the pool.
    Write { slot: u32, receive: u32 },
    /// Data of the oldest INSERT in progress.
    Insert { len: u32 },
    /// Part of the state of a connection that is being imported.
    ReadState { slot: u32, len: u32 },
    /// Part of the state of a connection that is being exported.
    WriteState { slot: u32 },
}

impl<P: Payload + Inline> Session<P> {
    /// Requests a read of `len` bytes from the host, for `job`.
    pub(super) fn ask_read(&mut self, job: Job, address: u64, len: u32) {
        let id = DmaId(self.jobs.insert(job) as u32);
        self.stats.reads += 1;
        self.asked.push_back(DmaRequest::Read { id, address, len });
    }

    /// Requests a write of data to the host, for `job`.
    pub(super) fn ask_write(&mut self, job: Job, address: u64, data: P) {
        let id = DmaId(self.jobs.insert(job) as u32);
        self.stats.writes += 1;
        self.asked
            .push_back(DmaRequest::Write { id, address, data });
    }

    /// Processes a completed transfer.
    pub(super) fn handle_dma(
        &mut self,
        work: &mut Work<'_, P>,
        dma: Dma<P>,
    ) -> Result<(), Violation> {
        let id = match &dma {
            Dma::Read { id, .. } | Dma::Written { id } | Dma::Failed { id } => *id,
        };
        let job = self.jobs.get(id.0 as usize).copied();
        match (dma, job) {
            (
                Dma::Read { data, .. },
                Some(
                    Job::Read { len, .. }
                    | Job::Forward { len, .. }
                    | Job::ReadState { len, .. }
                    | Job::Insert { len },
                ),
            ) if data.len() != len as usize => {
                return Err(Violation::Length(data.len() as u32));
            }
            (Dma::Read { data, .. }, Some(Job::Read { slot, .. })) => {
                self.jobs.remove(id.0 as usize);
                match self.sockets[slot as usize].phase {
                    Phase::Packets => self.part_fetched(work, slot, data),
                    _ => self.fetched(work, slot, data),
                }
            }
            (Dma::Failed { .. }, Some(Job::Read { slot, len })) => {
                self.jobs.remove(id.0 as usize);
                self.not_fetched(work, slot, len);
            }
            (Dma::Read { data, .. }, Some(Job::Forward { slot, tag, .. })) => {
                self.jobs.remove(id.0 as usize);
                self.forward_fetched(work, slot, tag, data);
            }
            (Dma::Read { data, .. }, Some(Job::Insert { .. })) => {
                self.jobs.remove(id.0 as usize);
                self.inserted(work, data);
            }
            (Dma::Read { data, .. }, Some(Job::ReadState { slot, .. })) => {
                self.jobs.remove(id.0 as usize);
                self.state_fetched(work, slot, &data);
            }
            (Dma::Written { .. }, Some(Job::WriteState { slot })) => {
                self.jobs.remove(id.0 as usize);
                self.state_written(work.now, slot);
            }
            (Dma::Written { .. }, Some(Job::Write { slot, receive })) => {
                self.jobs.remove(id.0 as usize);
                self.written(work, slot, receive);
            }
            _ => {
                let (socket, tag) = (0, id.0);
                return Err(Violation::Unasked { socket, tag });
            }
        }
        Ok(())
    }
}
