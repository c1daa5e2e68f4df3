//! The adapter's end of a link through shared memory.

use super::end::ShmEnd;
use crate::application::Application;
use crate::counters::LinkCounters;
use crate::handshake::Geometry;
use crate::live_link::LiveLink;
use baton_bus::Descriptor;
use baton_bus::link::{AdapterLink, Dma, DmaId, LinkError};
use baton_wire::Time;
use bytes::Bytes;
use rustix::event::PollFlags;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};

/// The adapter's end of shared memory. Transfers are copied at once; `poll_dma` reports their completion as for any other link.
#[derive(Debug)]
pub struct ShmAdapter {
    end: ShmEnd,
    /// Transfers that are done but not reported yet; at most as many as the adapter has begun.
    done: VecDeque<Dma<Bytes>>,
    application: Application,
}

impl ShmAdapter {
    pub(super) fn new(end: ShmEnd, application: Application) -> Self {
        Self {
            end,
            done: VecDeque::new(),
            application,
        }
    }

    /// Returns the application at the other end.
    pub fn application(&self) -> &Application {
        &self.application
    }

    /// Returns the sizes of rings and buffers.
    pub fn geometry(&self) -> &Geometry {
        &self.end.geometry
    }
}

impl AdapterLink for ShmAdapter {
    type Data = Bytes;

    fn get(
        &mut self,
        now: Time,
        most: usize,
        requests: &mut Vec<Descriptor>,
    ) -> Result<(), LinkError> {
        self.end.get(now, most, requests)
    }

    fn put(&mut self, now: Time, responses: &[Descriptor]) -> Result<usize, LinkError> {
        self.end.put(now, responses)
    }

    fn put_lazily(&mut self, now: Time, responses: &[Descriptor]) -> Result<usize, LinkError> {
        self.end.put_lazily(now, responses)
    }

    fn read(&mut self, _: Time, id: DmaId, address: u64, len: u32) -> Result<(), LinkError> {
        let offset = self.end.geometry.check_range(address, len)?;
        let data = self.end.read(offset, len);
        self.done.push_back(Dma::Read { id, data });
        Ok(())
    }

    fn write(&mut self, _: Time, id: DmaId, address: u64, data: Bytes) -> Result<(), LinkError> {
        let len = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let offset = self.end.geometry.check_range(address, len)?;
        self.end.write(offset, &data);
        self.done.push_back(Dma::Written { id });
        Ok(())
    }

    fn poll_dma(&mut self, _: Time) -> Result<Option<Dma<Bytes>>, LinkError> {
        Ok(self.done.pop_front())
    }
}

impl LiveLink for ShmAdapter {
    fn has_news(&mut self) -> Result<bool, LinkError> {
        Ok(!self.done.is_empty() || self.end.has_news()?)
    }

    fn prepare_to_sleep(&mut self) -> Result<bool, LinkError> {
        Ok(self.done.is_empty() && self.end.prepare_to_sleep()?)
    }

    fn prepare_to_sleep_for_room(&mut self) -> Result<bool, LinkError> {
        Ok(self.done.is_empty() && self.end.prepare_to_sleep_for_room()?)
    }

    fn interest(&self) -> PollFlags {
        PollFlags::IN
    }

    fn counters(&self) -> &LinkCounters {
        &self.end.counters
    }
}

impl AsFd for ShmAdapter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }
}
