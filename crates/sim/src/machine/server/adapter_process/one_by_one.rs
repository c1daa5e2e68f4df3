//! Small pieces of work, as the firmware of the handoff papers does them: one frame, one request, one host packet.
//!
//! Packets of the host cost what they cost that firmware, descriptors and transfers included: there is no more to be charged for these.

use super::super::super::capture::Taps;
use super::super::super::nic_processor::NicProcessor;
use super::super::link::SimulatedLink;
use super::Received;
use super::engine::{Engine, charge_link};
use baton_bus::link::LinkError;
use baton_nic::adapter::{Dispatch, Piece, Ready, Transferred};
use baton_nic::{Meter, Task};
use baton_wire::Time;

/// What a piece of work was about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Done {
    /// There was nothing to it.
    Nothing,
    /// A packet of the host.
    ForHost,
    /// The data cache.
    ForCache,
    /// Connections on the adapter; so many descriptors of requests were carried out.
    ForConnections { requests: u32 },
}

impl Engine {
    /// Does one piece of work, as the scheduler says; false when there is none.
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
        // What turns out to be nothing costs nothing.
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

    /// What may be done now for the host.
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
            // If its connection has left since it was looked up, it goes on to the host.
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

    /// Where a connection has left for the host, what waits for it here goes after it.
    fn sort_again(&mut self, now: Time, dispatch: &mut Dispatch<Received>, nic: &mut NicProcessor) {
        let exported = self.adapter.exported();
        if std::mem::replace(&mut self.exported, exported) != exported {
            let moved = dispatch.sort_again(|(_, packet)| self.host_of(now, packet).is_some());
            nic.meter.run_many(Task::Lookup, moved);
        }
    }

    /// Load control runs when a connection was imported or has left, as it does when a packet has arrived (handoff-policies 3.2).
    fn control_load(&mut self, now: Time, dispatch: &Dispatch<Received>, nic: &NicProcessor) {
        let imported = self.adapter.imported();
        if std::mem::replace(&mut self.imported, imported) != imported {
            let busy = Some(nic.busy(now));
            self.adapter.control_load(now, dispatch.qlen(), busy);
        }
    }
}
