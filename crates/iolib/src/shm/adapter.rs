//! The adapter's end of a link through shared memory.

use super::end::ShmEnd;
use super::files::{Files, read_cached};
use super::reader::Reader;
use crate::application::Application;
use crate::arena::Arena;
use crate::counters::LinkCounters;
use crate::handshake::Geometry;
use crate::live_link::LiveLink;
use baton_bus::Descriptor;
use baton_bus::descriptor::FilePlace;
use baton_bus::link::{AdapterLink, Dma, DmaId, LinkError, Violation};
use baton_wire::Time;
use bytes::Bytes;
use rustix::event::PollFlags;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Maximum number of chunks of memory for data of files: 32 MiB in flight.
const FILE_CHUNKS: usize = 512;

/// The adapter's end of shared memory. Transfers are copied immediately, if the data is in memory; `poll_dma` reports their completion as
/// for any other link.
#[derive(Debug)]
pub struct ShmAdapter {
    end: ShmEnd,
    /// Transfers that are not reported yet; at most as many as the adapter has begun.
    begun: VecDeque<Begun>,
    files: Files,
    /// Memory for data of files.
    arena: Arena,
    application: Application,
}

/// A transfer.
#[derive(Debug)]
enum Begun {
    Done(Dma<Bytes>),
    /// The reader thread will provide the data.
    Awaited(DmaId),
}

impl ShmAdapter {
    pub(super) fn new(end: ShmEnd, application: Application, stream: UnixStream) -> Self {
        Self {
            end,
            begun: VecDeque::new(),
            files: Files::new(stream),
            arena: Arena::of_chunks(FILE_CHUNKS),
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

    /// Begins to read from a file of the host.
    fn read_file(&mut self, id: DmaId, place: FilePlace, len: u32) -> Result<Begun, Violation> {
        let address = place.address();
        let passed = self.files.get(place.file);
        let Some(file) = passed.ok_or(Violation::Range { address, len })? else {
            return Ok(Begun::Done(Dma::Failed { id }));
        };
        let read = self.arena.fill(len as usize, |room| {
            Ok(read_cached(file.as_fd(), place.offset, room)?)
        });
        let is_late = match read {
            Ok(data) if data.len() == len as usize => {
                self.end.counters.bytes_in += u64::from(len);
                return Ok(Begun::Done(Dma::Read { id, data }));
            }
            Ok(_) => true,
            Err(error) => Errno::from_io_error(&error) == Some(Errno::AGAIN),
        };
        if is_late && self.files.reader.is_none() {
            self.files.reader = Reader::start().ok();
        }
        Ok(match self.files.reader.as_ref().filter(|_| is_late) {
            Some(reader) => {
                reader.order(Arc::clone(&file), place.offset, len);
                Begun::Awaited(id)
            }
            None => Begun::Done(Dma::Failed { id }),
        })
    }

    /// Returns whether the oldest transfer is complete.
    fn has_completed(&mut self) -> bool {
        match (self.begun.front(), &mut self.files.reader) {
            (Some(Begun::Awaited(_)), Some(reader)) => reader.has_result(),
            (first, _) => first.is_some(),
        }
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
        if let Some(place) = FilePlace::at(address) {
            let begun = self.read_file(id, place, len)?;
            self.begun.push_back(begun);
            return Ok(());
        }
        let offset = self.end.geometry.check_range(address, len)?;
        let data = self.end.read(offset, len);
        self.begun.push_back(Begun::Done(Dma::Read { id, data }));
        Ok(())
    }

    fn write(&mut self, _: Time, id: DmaId, address: u64, data: Bytes) -> Result<(), LinkError> {
        let len = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let offset = self.end.geometry.check_range(address, len)?;
        self.end.write(offset, &data);
        self.begun.push_back(Begun::Done(Dma::Written { id }));
        Ok(())
    }

    fn poll_dma(&mut self, _: Time) -> Result<Option<Dma<Bytes>>, LinkError> {
        if !self.has_completed() {
            return Ok(None);
        }
        let reader = &mut self.files.reader;
        Ok(self.begun.pop_front().map(|begun| match begun {
            Begun::Done(dma) => dma,
            Begun::Awaited(id) => match reader.as_mut().and_then(Reader::take) {
                Some(data) => Dma::Read { id, data },
                None => Dma::Failed { id },
            },
        }))
    }
}

impl LiveLink for ShmAdapter {
    fn has_news(&mut self) -> Result<bool, LinkError> {
        Ok(self.has_completed() || self.end.has_news()?)
    }

    fn prepare_to_sleep(&mut self) -> Result<bool, LinkError> {
        Ok(!self.has_completed() && self.end.prepare_to_sleep()?)
    }

    fn prepare_to_sleep_for_room(&mut self) -> Result<bool, LinkError> {
        Ok(!self.has_completed() && self.end.prepare_to_sleep_for_room()?)
    }

    fn interest(&self) -> PollFlags {
        PollFlags::IN
    }

    fn other_fd(&self) -> Option<BorrowedFd<'_>> {
        self.files.reader.as_ref().map(AsFd::as_fd)
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
