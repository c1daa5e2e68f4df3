//! The NICs of one kernel: each has an address, a driver with its rings, and its own limits. A connection belongs to the NIC on
//! which it came.

use crate::driver::Driver;
use crate::kernel::Kernel;
use crate::nic_cache::NicCache;
use baton_bus::Fifo;
use baton_bus::handoff::ToNic;
use baton_wire::Payload;
use std::net::IpAddr;
use std::ops::{Index, IndexMut};

/// A NIC of the kernel, in the order in which they were attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NicId(pub u8);

/// What the kernel knows of one NIC.
#[derive(Debug)]
pub(crate) struct Nic {
    pub(crate) address: IpAddr,
    pub(crate) driver: Driver,
    /// Soft_Limit, as the NIC told it last.
    pub(crate) soft_limit: u32,
    /// Connections that its memory could still hold, as it told last.
    pub(crate) memory: u32,
    /// Connections that are on it, or on their way to or from it.
    pub(crate) connections: u32,
    /// Packets and commands that wait in the driver for a place on the ring; of a packet in parts each command counts.
    pub(crate) queued: usize,
    /// Its data cache, if it is used.
    pub(crate) cache: Option<Box<NicCache>>,
}

/// All NICs, and what is for them, in the order in which it was posted.
#[derive(Debug)]
pub(crate) struct Nics<P> {
    nics: Vec<Nic>,
    queue: Fifo<(NicId, ToNic<P>)>,
}

impl<P: Payload> Nics<P> {
    pub(crate) fn new() -> Self {
        Self {
            nics: Vec::new(),
            queue: Fifo::new(),
        }
    }

    /// Adds a NIC.
    ///
    /// # Panics
    /// When there are 256 already.
    pub(crate) fn attach(&mut self, nic: Nic) -> NicId {
        let id = u8::try_from(self.nics.len()).expect("a kernel has at most 256 NICs");
        self.nics.push(nic);
        NicId(id)
    }

    /// The NIC with this address; the first one for an address that none has.
    pub(crate) fn of_address(&self, address: IpAddr) -> NicId {
        if self.nics.len() == 1 {
            return NicId(0);
        }
        let found = self.nics.iter().position(|nic| nic.address == address);
        NicId(found.unwrap_or(0) as u8)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (NicId, &Nic)> {
        (0..).map(NicId).zip(&self.nics)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (NicId, &mut Nic)> {
        (0..).map(NicId).zip(&mut self.nics)
    }

    pub(crate) fn len(&self) -> usize {
        self.nics.len()
    }

    /// Posts something for a NIC.
    #[inline]
    pub(crate) fn post(&mut self, id: NicId, descriptor: ToNic<P>) {
        self[id].queued += descriptor.commands();
        self.queue.push((id, descriptor));
    }

    /// The oldest thing that is for a NIC.
    pub(crate) fn poll(&mut self) -> Option<(NicId, ToNic<P>)> {
        let (id, descriptor) = self.queue.front()?;
        self.nics[id.0 as usize].queued -= descriptor.commands();
        self.queue.pop()
    }

    pub(crate) fn check(&self) {
        for (id, nic) in self.iter() {
            let queued = self.queue.iter().filter(|(of, _)| *of == id);
            let commands: usize = queued.map(|(_, descriptor)| descriptor.commands()).sum();
            assert_eq!(commands, nic.queued, "{id:?}: what waits is counted");
        }
    }
}

impl<P> Index<NicId> for Nics<P> {
    type Output = Nic;
    fn index(&self, id: NicId) -> &Nic {
        &self.nics[id.0 as usize]
    }
}

impl<P> IndexMut<NicId> for Nics<P> {
    fn index_mut(&mut self, id: NicId) -> &mut Nic {
        &mut self.nics[id.0 as usize]
    }
}

impl<P: Payload> Kernel<P> {
    /// Attaches a NIC; there must be one before anything else happens. `address` is the kernel's on the NIC's subnet; what comes
    /// and goes there uses this NIC. `connections` is what the NIC says that it holds at most (its Hard_Limit);
    /// [`u32::MAX`] while it has not said so: then the host finds out by being refused.
    ///
    /// # Panics
    /// When there are 256 NICs already.
    pub fn attach_nic(&mut self, address: IpAddr, connections: u32) -> NicId {
        let first_entry = self.nics.len() as u32;
        let driver = Driver::new(&self.config, first_entry, &mut self.buffers);
        let id = self.nics.attach(Nic {
            address,
            driver,
            soft_limit: connections,
            memory: u32::MAX,
            connections: 0,
            queued: 0,
            cache: None,
        });
        self.start_cache(id);
        id
    }

    /// NICs attached.
    pub fn nics(&self) -> impl Iterator<Item = NicId> + use<P> {
        (0..self.nics.len()).map(|index| NicId(index as u8))
    }

    /// Soft_Limit of a NIC, as it told it last.
    pub fn nic_soft_limit(&self, nic: NicId) -> u32 {
        self.nics[nic].soft_limit
    }

    /// Whether a packet, or a command that may be refused, still finds room in a NIC's driver.
    pub(crate) fn has_room(&self, nic: NicId) -> bool {
        self.nics[nic].queued < self.config.transmit_queue_entries as usize
    }
}
