//! Injected packets: TCP segments for the engine, and ICMP errors about segments that it sent.

use crate::errno::Errno;
use crate::icmp;
use crate::network::Link;
use crate::world::World;
use baton_abi::address::Family;
use baton_tcp::{ConnId, Segment, State};
use baton_wire::{Flags, Flow, Timestamps, decode_packet};
use bytes::Bytes;
use std::net::IpAddr;

impl World {
    /// Processes an arriving raw IP packet. Drops damaged packets and packets for other hosts, as an interface does.
    ///
    /// # Errors
    /// EINVAL if it is not an IP packet.
    pub fn inject(&mut self, packet: &[u8]) -> Result<(), Errno> {
        match packet.first().map(|byte| byte >> 4) {
            Some(4 | 6) => {}
            _ => return Err(Errno(libc::EINVAL)),
        }
        if let Some(report) = icmp::read(packet) {
            self.take_report(&report);
        } else if let Ok((decoded, payload)) = decode_packet(packet) {
            let mut segment = Segment {
                src: decoded.src,
                dst: decoded.dst,
                ecn: decoded.ecn,
                header: decoded.header,
                payload: Default::default(),
            };
            // An interface merges segments that differ only in their numbers.
            let merged = self.settings.merged_segment.filter(|_| {
                let flags = segment.header.flags;
                flags.difference(Flags::PSH) == Flags::ACK
            });
            let piece_len = merged.unwrap_or(payload.len()).max(1);
            let pieces = payload.chunks(piece_len).map(Bytes::copy_from_slice);
            segment.payload.extend(pieces);
            self.take_segment(segment);
        }
        self.pump();
        Ok(())
    }

    fn take_segment(&mut self, mut segment: Segment<Bytes>) {
        let flow = segment.flow_at_receiver();
        self.learn_address(flow.local.addr);
        let len = segment.payload_len();
        let stamp = segment.header.options.timestamps;
        let known = self.stack.find(&flow);
        let handled = match segment.payload.len() {
            0 | 1 => self.stack.handle_segment(self.now(), segment),
            _ => self.stack.handle_merged(self.now(), &mut segment),
        };
        self.changed();
        let Some(conn) = handled.conn else { return };
        if known.is_none() {
            self.begin_link(conn, &flow);
        }
        if self.stack.find(&flow) != Some(conn) {
            return;
        }
        // The engine no longer reports this once the connection has ended.
        let syn_data = self.stack.info(self.now(), conn).syn_data;
        self.link(conn).syn_data = syn_data;
        if let (None, Some(&id)) = (handled.refused, self.owners.get(&conn)) {
            // The peer was heard from, which clears earlier ICMP errors (tcp_ack of Linux).
            self.sockets[id].soft_error = None;
        }
        if handled.refused.is_none() {
            self.measure_receiver(conn, stamp, len);
        }
        if handled.refused.is_none() && len > 0 {
            self.grow_window(conn, len);
        }
        // Linux knows no rate before its SYN is acknowledged.
        if self.stack.state(conn) != State::SynReceived {
            let info = self.stack.info(self.now(), conn);
            let link = self.link(conn);
            link.pacing.update(&info);
            link.largest_window = link.largest_window.max(info.send_window);
        }
    }

    /// Measures the receiver's round-trip time by the timestamps of a segment. Only full segments count, because their
    /// sender did not delay them.
    fn measure_receiver(&mut self, conn: ConnId, stamp: Option<Timestamps>, len: usize) {
        let now = self.now();
        let Some(stamp) = stamp else { return };
        let link = self.link(conn);
        link.heard = Some(stamp.value);
        let age = link.age_of(now, stamp.echo);
        let full = len > 0 && len >= self.stack.info(now, conn).receive_mss as usize;
        if let (true, Some(age), Some(&id)) = (full, age, self.owners.get(&conn)) {
            self.sockets[id].window.measured(age);
        }
    }

    /// Makes unbound sockets use the address at which packets arrive.
    pub(crate) fn learn_address(&mut self, addr: IpAddr) {
        match addr {
            IpAddr::V4(addr) => self.settings.local4 = addr,
            IpAddr::V6(addr) => self.settings.local6 = addr,
        }
    }

    /// Sets up the link of a connection that a listener created, with the listener's options.
    fn begin_link(&mut self, conn: ConnId, flow: &Flow) {
        let listener = self.sockets.iter().find(|(_, socket)| {
            socket.listening.is_some() && socket.bound.is_some_and(|at| at.port == flow.local.port)
        });
        let mut link = Link::default();
        if let Some((_, socket)) = listener {
            link.service = socket.options.service(Family::of(flow.local.addr));
            link.may_fragment = socket.options.may_fragment();
        }
        self.links.insert(conn, link);
    }

    fn take_report(&mut self, report: &icmp::Report) {
        let Some(conn) = self.stack.find(&report.flow) else {
            return;
        };
        let opening = self.stack.state(conn) == State::SynSent;
        let outcome =
            self.stack
                .handle_path_error(self.now(), &report.flow, report.seq, report.error);
        // The engine counts refusals. Nothing else needs to be done.
        if outcome.is_ok() {
            self.note_report(conn, report, opening);
        }
        self.changed();
    }
}
