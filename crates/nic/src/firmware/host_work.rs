//! What the host wants done in order: its packets, and the commands of the data cache. And where the NIC's own packets get
//! their data.

use super::{Firmware, HostRead, Outgoing, SENT_BATCH, Upcall, Work};
use crate::cache::assembly::Completed;
use crate::cache::references::Where;
use crate::cache::region::Storable;
use crate::config::Transmit;
use crate::meter::{LINE_BYTES, Meter, Task};
use crate::queues::HostWork;
use crate::stats::CacheRefusal;
use baton_bus::handoff::{CacheCommand, Event, PacketInParts, Part, ToHost, ToNic};
use baton_tcp::{ConnId, Segment};
use baton_wire::{Payload, Pieces, Time};
use smallvec::SmallVec;

/// Bytes of an Ethernet header.
const ETHERNET_BYTES: u32 = 14;

impl<P: Storable> Firmware<P> {
    /// Whether there is room for a descriptor, which is to be given to [`Firmware::handle_accepted`] then. If there is none, that is
    /// counted, and the host's driver keeps it in its ring and tries again.
    #[inline]
    pub fn accepts(&mut self, descriptor: &ToNic<P>) -> bool {
        let has_room = self.has_room_for(descriptor);
        self.stats.descriptors_given_back += u64::from(!has_room);
        has_room
    }

    /// A descriptor arrived from the host.
    ///
    /// # Errors
    /// Gives the descriptor back when its queue is full; the host's driver keeps it in its ring and tries again. The parts of a
    /// packet after the first always find room.
    #[expect(
        clippy::result_large_err,
        reason = "it goes back whole to the ring it came from"
    )]
    pub fn handle_descriptor(&mut self, now: Time, descriptor: ToNic<P>) -> Result<(), ToNic<P>> {
        if !self.accepts(&descriptor) {
            return Err(descriptor);
        }
        self.handle_accepted(now, descriptor);
        Ok(())
    }

    /// A descriptor arrived from the host that the firmware has just [accepted](Firmware::accepts).
    #[inline]
    pub fn handle_accepted(&mut self, now: Time, descriptor: ToNic<P>) {
        match descriptor {
            ToNic::Packet(segment) => self.enter(HostWork::Packet {
                segment,
                since: now,
            }),
            ToNic::Parts(packet) => self.enter(self.checked(now, packet)),
            ToNic::Cache(command) => self.handle_cache_command(now, command),
            ToNic::Command(command) => {
                self.queues.commands.push(self.next_stamp.take(), command);
            }
        }
    }

    /// Whether there is room for a descriptor and all that belongs to it. What begins something new ends a packet whose last part
    /// has not come.
    fn has_room_for(&mut self, descriptor: &ToNic<P>) -> bool {
        let open = self.assembly.is_open();
        if !descriptor.is_in_packet_order() {
            return !self.queues.commands.is_full();
        }
        if open && descriptor.continues_packet() {
            return true;
        }
        if !self.queues.host_send.has_room_for(1 + usize::from(open)) {
            return false;
        }
        if let Some(reason) = self.assembly.interrupt() {
            self.enter(HostWork::Refused(reason));
        }
        true
    }

    /// Queues work for which there is room.
    #[inline]
    fn enter(&mut self, work: HostWork<P>) {
        self.queues.host_send.push(self.next_stamp.take(), work);
    }

    /// A packet in parts, unless it is too long.
    fn checked(&self, now: Time, packet: PacketInParts<P>) -> HostWork<P> {
        if packet.packet_len() > self.config.cache.packet_bytes as usize {
            HostWork::Refused(CacheRefusal::TooLong)
        } else {
            HostWork::Gather { packet, since: now }
        }
    }

    /// Apart from what is done with packets, which are many times as many.
    #[inline(never)]
    fn handle_cache_command(&mut self, now: Time, command: CacheCommand<P>) {
        let most = self.config.cache.packet_bytes as usize;
        let completed = match command {
            CacheCommand::Init => return self.enter(HostWork::CacheInit),
            CacheCommand::Insert {
                data,
                offset,
                generation,
            } => {
                return self.enter(HostWork::CacheInsert {
                    data,
                    offset,
                    generation,
                });
            }
            CacheCommand::AppendMemory { part, flags } => {
                self.assembly.append_memory(part, flags, most)
            }
            CacheCommand::AppendCache { offset, len, flags } => {
                self.assembly.append_cache(offset, len, flags, most)
            }
        };
        self.enter_completed(now, completed);
    }

    fn enter_completed(&mut self, now: Time, completed: Completed<P>) {
        match completed {
            None => {}
            Some(Ok(packet)) => self.enter(HostWork::Gather { packet, since: now }),
            Some(Err(reason)) => self.enter(HostWork::Refused(reason)),
        }
    }

    /// Does the oldest piece of the host's work.
    pub(super) fn work_for_host(&mut self, meter: &mut impl Meter) -> Option<Work> {
        let work = self.queues.host_send.pop()?;
        let is_packet = work.is_packet();
        match work {
            HostWork::Packet { segment, since } => {
                self.charge(Task::HostSend, meter);
                self.send(segment, since, true);
            }
            HostWork::Gather { packet, since } => self.gather(packet, since, meter),
            HostWork::Refused(reason) => {
                self.charge(Task::HostSend, meter);
                self.stats.cache.refused.count(reason);
            }
            HostWork::CacheInit => self.init_cache(meter),
            HostWork::CacheInsert {
                data,
                offset,
                generation,
            } => self.insert(data, offset, generation, meter),
        }
        self.sent += u32::from(is_packet);
        self.report_sent();
        Some(if is_packet {
            Work::HostSend
        } else {
            Work::Cache
        })
    }

    /// Tells the host which packets the NIC is done with, once it is worth telling.
    pub(super) fn report_sent(&mut self) {
        let worth = self.sent == SENT_BATCH || self.queues.host_send.len() == 0;
        if worth && self.sent > 0 {
            self.upcalls.push(Upcall {
                item: ToHost::Sent(self.sent),
                host_since: None,
            });
            self.sent = 0;
        }
    }

    fn send(&mut self, segment: Segment<P>, since: Time, is_read: bool) {
        self.stats.host_packets_sent += 1;
        self.frames.push(Outgoing {
            segment,
            host_since: Some(since),
            is_read,
        });
    }

    fn note_read(&mut self, headers: u32, data: Pieces<P>) {
        self.reads.push(HostRead {
            headers,
            state: 0,
            data,
        });
    }

    /// Puts a packet together from its parts and sends it.
    fn gather(&mut self, packet: PacketInParts<P>, since: Time, meter: &mut impl Meter) {
        self.charge(Task::HostSend, meter);
        let mut payload: Pieces<P> = packet.data().0.iter().cloned().collect();
        for part in packet.parts() {
            match part {
                Part::Memory(data) => {
                    self.charge(Task::AppendMemory, meter);
                    payload.push(data.clone());
                }
                Part::Cache { offset, len } => {
                    let done = self.append(offset, len, &mut payload, meter);
                    if let Err(reason) = done {
                        self.stats.cache.refused.count(reason);
                        return;
                    }
                }
            }
        }
        let mut segment = packet.into_head();
        let read = std::mem::replace(&mut segment.payload, payload);
        if self.notes_reads {
            self.note_read(headers_of(&segment), read);
        }
        self.send(segment, since, false);
    }

    /// nic_pkt_append_cache: whatever stands there is what is sent.
    fn append(
        &mut self,
        offset: u32,
        len: u32,
        out: &mut Pieces<P>,
        meter: &mut impl Meter,
    ) -> Result<(), CacheRefusal> {
        self.cache.append(offset, len, out)?;
        self.stats.cache.appends += 1;
        self.stats.cache.appended_bytes += u64::from(len);
        self.charge(Task::AppendCache, meter);
        if self.cache.config().transmit == Transmit::Copy {
            self.charge_many(Task::CopyLine, len.div_ceil(LINE_BYTES), meter);
        }
        Ok(())
    }

    fn init_cache(&mut self, meter: &mut impl Meter) {
        self.charge(Task::CacheInsert, meter);
        self.cache.init();
        let bytes = self.cache.config().bytes();
        self.post(Event::CacheReady(bytes), meter);
    }

    fn insert(&mut self, data: P, offset: u32, generation: u32, meter: &mut impl Meter) {
        self.charge(Task::CacheInsert, meter);
        if let Err(reason) = self.cache.insert(offset, &data, generation) {
            self.stats.cache.refused.count(reason);
            return;
        }
        self.stats.cache.inserts += 1;
        self.stats.cache.inserted_bytes += data.len() as u64;
        if self.notes_reads {
            self.note_read(0, std::iter::once(data).collect());
        }
    }

    /// Gets the data of a packet of the NIC's own TCP: from the cache what still stands there, the rest from host memory.
    pub(super) fn fetch_data(
        &mut self,
        conn: Option<ConnId>,
        segment: &mut Segment<P>,
        meter: &mut impl Meter,
    ) {
        if segment.payload.is_empty() {
            return;
        }
        let referenced = conn.filter(|_| self.cache.is_ready()).filter(|&conn| {
            let handle = self.connections.handle(conn);
            let offloaded = handle.and_then(|handle| self.connections.get(handle));
            offloaded.is_some_and(|offloaded| !offloaded.references.is_empty())
        });
        let read = match referenced {
            Some(conn) => self.replace_by_cached(conn, segment, meter),
            None if self.notes_reads => segment.payload.clone(),
            None => return,
        };
        if self.notes_reads && !read.is_empty() {
            self.note_read(0, read);
        }
    }

    /// Puts what stands in the cache into the packet, in the place of what the host refers to; gives the rest.
    fn replace_by_cached(
        &mut self,
        conn: ConnId,
        segment: &mut Segment<P>,
        meter: &mut impl Meter,
    ) -> Pieces<P> {
        let data = std::mem::take(&mut segment.payload);
        let len: usize = data.iter().map(Payload::len).sum();
        let unacknowledged = self.stack.unacknowledged(conn);
        let distance = self.stack.send_offset(conn, segment.header.seq);
        let mut places: SmallVec<[Where; 4]> = SmallVec::new();
        if let Some(offloaded) = self
            .connections
            .handle(conn)
            .and_then(|handle| self.connections.get(handle))
        {
            places.extend(
                offloaded
                    .references
                    .pieces(unacknowledged, distance, len as u32),
            );
        }
        let (mut at, mut read) = (0, Pieces::new());
        for place in places {
            let (Where::Memory { len } | Where::Cache { len, .. }) = place;
            let from_cache = match place {
                Where::Cache { reference, .. } if self.cache.holds(reference, len) => self
                    .append(reference.offset, len, &mut segment.payload, meter)
                    .is_ok(),
                Where::Cache { .. } => {
                    self.stats.cache.overwritten += 1;
                    false
                }
                Where::Memory { .. } => false,
            };
            if !from_cache {
                slice(&data, at, len as usize, |piece| {
                    if self.notes_reads {
                        read.push(piece.clone());
                    }
                    segment.payload.push(piece);
                });
            }
            at += len as usize;
        }
        read
    }
}

/// Bytes of a packet's protocol headers.
fn headers_of<P: Payload>(segment: &Segment<P>) -> u32 {
    ETHERNET_BYTES + segment.header_len() as u32
}

/// Gives the `len` bytes from `start` on, piece by piece.
fn slice<P: Payload>(pieces: &Pieces<P>, start: usize, len: usize, mut take: impl FnMut(P)) {
    let (mut at, end) = (0, start + len);
    for piece in pieces {
        let (from, to) = (start.max(at), end.min(at + piece.len()));
        if from < to {
            take(piece.slice(from - at, to - from));
        }
        at += piece.len();
    }
}
