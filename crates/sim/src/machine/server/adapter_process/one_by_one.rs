//! Small pieces of work, like those of the firmware of the handoff papers: one frame, one request, one host packet.
//!
//! Packets of the host cost what they cost that firmware, including descriptors and transfers, so nothing else is charged for them.

use super::super::super::capture::Taps;
use super::super::super::nic_processor::NicProcessor;
use super::super::link::SimulatedLink;
use super::Received;
use super::engine::{Engine, charge_link};
use baton_bus::link::LinkError;
use baton_nic::adapter::{Dispatch, Piece, Ready, Transferred};
use baton_nic::{Meter, Task};
use baton_wire::Time;

/// Subject of a piece of work.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Done {
    /// There was nothing to do.
    Nothing,
    /// A packet of the host.
    ForHost,
    /// The data cache.
    ForCache,
    /// Connections on the adapter; requests with this number of descriptors were processed.
    ForConnections { requests: u32 },
}

impl Engine {
    /// Does one piece of work that the scheduler chooses. Returns false if there is none.
    pub(super) fn do_one(
        &mut self,
        now: Time,
        dispatch: &mut Dispatch<Received>,
        link: &mut SimulatedLink,
        nic: &mut NicProcessor,
        taps: &mut Taps,
    ) -> Result<bool, LinkError> {
        if self.poll_timeout().is_some_and(|due| due <= now) || self.may_put(link) {
            dispatch.handle_timers();
        }
        // A piece that turns out to be empty costs nothing.
        while let Some(piece) = self.next_piece(dispatch, link) {
            let is_for_tcp = !matches!(piece, Piece::Lookup(_) | Piece::Transmit);
            let done = self.do_piece(now, piece, dispatch, link, (nic, taps))?;
            let (requests, cache_commands) = match done {
                Done::Nothing => continue,
                Done::ForHost => (0, 0),
                Done::ForCache => (0, 1),
                Done::ForConnections { requests } => (requests, 0),
            };
            self.handle_events(now);
            if is_for_tcp && self.stack.may_transmit() {
                dispatch.handle_output();
            }
            self.sort_again(now, dispatch, nic);
            self.control_load(now, dispatch, nic);
            dispatch.end_piece(now, &mut self.adapter, self.session, link)?;
            let mut tally = link.take_adapter_tally();
            (tally.requests, tally.cache_commands) = (requests, cache_commands);
            if done == Done::ForHost {
                tally.dmas = 0;
            }
            charge_link(tally, nic);
            return Ok(true);
        }
        Ok(false)
    }

    fn next_piece(
        &self,
        dispatch: &mut Dispatch<Received>,
        link: &SimulatedLink,
    ) -> Option<Piece<Received>> {
        dispatch.next_piece(|_| self.readiness(link), self.stack.may_transmit())
    }

    /// Returns the operations that may be done for the host now.
    #[inline]
    pub(super) fn readiness(&self, link: &SimulatedLink) -> Ready {
        Ready {
            requests: self.room_for_requests(link),
            is_over: link.has_moved_data(),
        }
    }

    fn do_piece(
        &mut self,
        now: Time,
        piece: Piece<Received>,
        dispatch: &mut Dispatch<Received>,
        link: &mut SimulatedLink,
        (nic, taps): (&mut NicProcessor, &mut Taps),
    ) -> Result<Done, LinkError> {
        let mut done = Done::ForConnections { requests: 0 };
        match piece {
            Piece::Lookup((since, packet)) => {
                let host = self.host_of(now, &packet);
                let bytes = packet.frame_len() as u32;
                if let Err((reason, (_, packet))) = dispatch.sort((since, packet), host.is_none()) {
                    taps.lost(now, packet.src, reason.name());
                    self.adapter.free_packet(bytes);
                    self.adapter.settle_memory(now, &mut self.stack);
                }
                if !self.adapter.passes_packets() {
                    return Ok(Done::Nothing);
                }
                nic.meter.run(Task::Lookup);
                let busy = Some(nic.busy(now));
                self.adapter.control_load(now, dispatch.qlen(), busy);
                return Ok(done);
            }
            Piece::HostReceive((since, packet)) => {
                self.free_packet(now, &packet);
                let host = self.adapter.host_for(packet.dst);
                self.hand_on(now, since, packet, host, nic);
                done = Done::ForHost;
            }
            // If the packet's connection has left since the lookup, the packet is passed to the host.
            Piece::Receive((since, packet)) => {
                self.free_packet(now, &packet);
                let host = self.host_of(now, &packet);
                self.hand_on(now, since, packet, host, nic);
            }
            Piece::HostRequest => {
                dispatch.carry_out(now, &mut self.adapter, &mut self.stack)?;
                done = Done::ForHost;
            }
            Piece::CacheCommand => {
                dispatch.carry_out(now, &mut self.adapter, &mut self.stack)?;
                done = Done::ForCache;
            }
            Piece::Request(requests) => {
                dispatch.carry_out(now, &mut self.adapter, &mut self.stack)?;
                done = Done::ForConnections { requests };
            }
            Piece::Transfer => {
                let (adapter, stack) = (&mut self.adapter, &mut self.stack);
                let since = match dispatch.finish_transfer(now, adapter, stack, link)? {
                    None | Some(Transferred::Connection) => None,
                    Some(Transferred::ToHost) => {
                        done = Done::ForHost;
                        None
                    }
                    Some(Transferred::FromHost(since)) => {
                        done = Done::ForHost;
                        Some(since)
                    }
                };
                self.take_packets(now, since, nic);
            }
            Piece::Transmit => {
                for sent in 0..self.burst {
                    if !self.transmit(now, nic) {
                        dispatch.handle_quiet();
                        return Ok(if sent > 0 { done } else { Done::Nothing });
                    }
                }
                return Ok(done);
            }
            Piece::Timers => {
                let ran = self.run_timers(now);
                nic.meter.run_many(Task::Timer, ran as u32);
            }
        }
        Ok(done)
    }

    /// After a connection has left for the host, forwards the waiting packets of that connection to the host.
    fn sort_again(&mut self, now: Time, dispatch: &mut Dispatch<Received>, nic: &mut NicProcessor) {
        let exported = self.adapter.exported();
        if std::mem::replace(&mut self.exported, exported) != exported {
            let moved = dispatch.sort_again(|(_, packet)| self.host_of(now, packet).is_some());
            nic.meter.run_many(Task::Lookup, moved);
        }
    }

    /// Runs load control after a connection was imported or has left, in addition to its runs after packets arrive (handoff-policies 3.2).
    fn control_load(&mut self, now: Time, dispatch: &Dispatch<Received>, nic: &NicProcessor) {
        let imported = self.adapter.imported();
        if std::mem::replace(&mut self.imported, imported) != imported {
            let busy = Some(nic.busy(now));
            self.adapter.control_load(now, dispatch.qlen(), busy);
        }
    }
}
