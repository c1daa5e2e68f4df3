//! Counts the traffic of a link: middleware around either end.

use super::{AdapterLink, Dma, DmaId, HostLink, LinkError, Violation};
use crate::descriptor::{Descriptor, entries};
use crate::{Accounting, Category, Direction, EntriesPerTransfer};
use baton_wire::{Payload, Time};

/// One end of a link, with the traffic that has crossed it. Each transfer of descriptors or data counts as one DMA operation. Descriptors
/// that did not fit and refused transfers do not count. At the host's end only descriptors are visible: the adapter moves the data.
#[derive(Debug, Default)]
pub struct Counted<L> {
    link: L,
    traffic: Traffic,
}

/// Traffic that has crossed a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// DMA operations and bytes by category. Requests are [`Category::Descriptor`], responses [`Category::Event`], data
    /// [`Category::Content`], including inline data.
    pub account: Accounting,
    /// Number of descriptors in each transfer of requests.
    pub requests: EntriesPerTransfer,
    /// Number of descriptors in each transfer of responses.
    pub responses: EntriesPerTransfer,
}

impl Traffic {
    fn descriptors(&mut self, direction: Direction, transfer: &[Descriptor]) {
        if transfer.is_empty() {
            return;
        }
        let (histogram, category) = match direction {
            Direction::ToNic => (&mut self.requests, Category::Descriptor),
            Direction::ToHost => (&mut self.responses, Category::Event),
        };
        histogram.record(transfer.len() as u64);
        let bytes = transfer.len() as u64 * u64::from(Descriptor::BYTES);
        let heads = entries(transfer).map_while(|entry| entry.ok()?.first());
        let inline = heads.map(|head| head.inline_bytes() as u64).sum();
        self.account.cross(direction, category, bytes - inline);
        self.account.add_bytes(direction, Category::Content, inline);
    }

    fn data(&mut self, direction: Direction, bytes: usize) {
        self.account
            .cross(direction, Category::Content, bytes as u64);
    }
}

impl<L> Counted<L> {
    /// Counts the traffic of `link` from now on.
    pub fn new(link: L) -> Self {
        let traffic = Traffic::default();
        Self { link, traffic }
    }

    /// Returns the traffic so far.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Returns the underlying link.
    pub fn link(&self) -> &L {
        &self.link
    }

    /// Returns the underlying link mutably; its direct use is not counted.
    pub fn link_mut(&mut self) -> &mut L {
        &mut self.link
    }
}

impl<L: AdapterLink> AdapterLink for Counted<L>
where
    L::Data: Payload,
{
    type Data = L::Data;

    fn get(
        &mut self,
        now: Time,
        most: usize,
        requests: &mut Vec<Descriptor>,
    ) -> Result<(), LinkError> {
        let before = requests.len();
        self.link.get(now, most, requests)?;
        self.traffic
            .descriptors(Direction::ToNic, &requests[before..]);
        Ok(())
    }

    fn put(&mut self, now: Time, responses: &[Descriptor]) -> Result<usize, LinkError> {
        let taken = self.link.put(now, responses)?;
        self.traffic
            .descriptors(Direction::ToHost, &responses[..taken]);
        Ok(taken)
    }

    fn put_lazily(&mut self, now: Time, responses: &[Descriptor]) -> Result<usize, LinkError> {
        let taken = self.link.put_lazily(now, responses)?;
        self.traffic
            .descriptors(Direction::ToHost, &responses[..taken]);
        Ok(taken)
    }

    fn read(&mut self, now: Time, id: DmaId, address: u64, len: u32) -> Result<(), LinkError> {
        self.link.read(now, id, address, len)?;
        self.traffic.data(Direction::ToNic, len as usize);
        Ok(())
    }

    fn write(
        &mut self,
        now: Time,
        id: DmaId,
        address: u64,
        data: L::Data,
    ) -> Result<(), LinkError> {
        let bytes = data.len();
        self.link.write(now, id, address, data)?;
        self.traffic.data(Direction::ToHost, bytes);
        Ok(())
    }

    fn poll_dma(&mut self, now: Time) -> Result<Option<Dma<L::Data>>, LinkError> {
        self.link.poll_dma(now)
    }
}

impl<L: HostLink> HostLink for Counted<L> {
    type Data = L::Data;

    fn put(&mut self, now: Time, requests: &[Descriptor]) -> Result<usize, LinkError> {
        let taken = self.link.put(now, requests)?;
        self.traffic
            .descriptors(Direction::ToNic, &requests[..taken]);
        Ok(taken)
    }

    fn mask_lazy(&mut self, masked: bool) {
        self.link.mask_lazy(masked);
    }

    fn get(&mut self, now: Time, responses: &mut Vec<Descriptor>) -> Result<(), LinkError> {
        let before = responses.len();
        self.link.get(now, responses)?;
        self.traffic
            .descriptors(Direction::ToHost, &responses[before..]);
        Ok(())
    }

    fn buffer_bytes(&self) -> u32 {
        self.link.buffer_bytes()
    }

    fn free_buffers(&self) -> usize {
        self.link.free_buffers()
    }

    fn place(&mut self, data: L::Data) -> Result<u64, L::Data> {
        self.link.place(data)
    }

    fn append(&mut self, address: u64, used: u32, data: &L::Data) -> bool {
        self.link.append(address, used, data)
    }

    fn reserve(&mut self) -> Option<u64> {
        self.link.reserve()
    }

    fn take(&mut self, address: u64, len: u32) -> Result<L::Data, Violation> {
        self.link.take(address, len)
    }

    fn free(&mut self, address: u64) {
        self.link.free(address);
    }
}
