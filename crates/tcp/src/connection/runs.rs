//! Runs of segments that differ only in their numbers are sent together, and processed together (as by segmentation and receive
//! offload below a stack). This changes neither the resulting state of the connection nor what is acknowledged and when, which the
//! tests verify.

use super::output::{Departure, Run};
use super::{Connection, Context, Effects, Marks};
use crate::segment::{RunLimit, Segment, header_len};
use baton_wire::{Flags, Payload};

impl<P: Payload> Connection<P> {
    /// Fills in the next segment to send, and how many more like it are sent now. Returns false if none may be sent now.
    pub(crate) fn poll_run(
        &mut self,
        cx: &mut Context<'_>,
        limit: RunLimit,
        out: &mut Departure,
    ) -> bool {
        (out.more, out.pushes) = (0, false);
        let sends = self.poll_transmit(cx, out);
        if sends && limit.segments > 1 && !out.is_last && self.is_first_of_run(out) {
            let packet_len = header_len(self.flow.remote, &out.header) + out.len as usize;
            // If segments are too long for the link, one of them suffices to find out.
            if packet_len <= limit.packet_len {
                self.extend_run(cx, limit.segments - 1, out);
            }
        }
        sends
    }

    /// Reports whether the segment that was just sent may start a run: it is full, its header would do for the next one too, and no
    /// record ends after it. Never true for controllers with feedback, which need a report of each segment.
    fn is_first_of_run(&self, sent: &Departure) -> bool {
        self.feedback.is_none()
            && sent.header.flags.difference(Flags::ECE) == Flags::ACK
            && sent.header.options.sack.is_empty()
            && !self.marks.contains(Marks::URGENT)
            && sent.len > 0
            && sent.len == self.data_room()
            && self.sends_only_new()
            && self.boundaries.record_end(self.tx.next).is_none()
    }

    /// Sends at most `most` more segments like the one that was just sent, as long as both windows and the data last, and up to
    /// the end of a write that is to be pushed.
    fn extend_run(&mut self, cx: &Context<'_>, most: u32, out: &mut Departure) {
        let (len, next) = (out.len, self.tx.next);
        let limit = self.tx.window.min(self.congestion.window());
        let room = limit.saturating_sub(next - self.tx.una);
        let available = self.data_end() - next;
        let mut more = (room.min(available) / len).min(most);
        if let Some(end) = self.boundaries.next_push(next) {
            let until = (end - next).div_ceil(len);
            out.pushes = until <= more;
            more = more.min(until);
        }
        if more == 0 {
            return;
        }
        out.pushes |= cx.config.linux.push_bursts;
        for _ in 0..more {
            let seq = self.tx.next;
            let fin = false;
            self.note_sent(cx, Run { seq, len, fin }, false);
            self.tx.next = seq + len;
            self.tx.max = self.tx.next;
            self.congestion
                .sent(self.tx.max - self.tx.una, self.tx.una, self.tx.max);
        }
        self.counts.bytes_sent += u64::from(more) * u64::from(len);
        self.counts.data_segments_out = self.counts.data_segments_out.wrapping_add(more);
        self.counts.segments_out = self.counts.segments_out.wrapping_add(more);
        // Each segment settles one ACK that is due.
        self.rx.acks_owed = self
            .rx
            .acks_owed
            .saturating_sub(more.min(u8::MAX.into()) as u8);
        self.restart_probe(cx);
        out.more = more;
        out.is_last = self.has_sent_it_all();
    }

    /// Reports whether all segments that were merged into this one, with `len` bytes of data, are predicted: the first is, and it
    /// acknowledges everything that was sent, so that the others acknowledge nothing.
    pub(crate) fn predicts_run(&self, merged: &Segment<P>, len: u32) -> bool {
        merged.header.ack == self.tx.max && self.is_predicted(merged, len)
    }

    /// Processes merged segments as predicted. Each piece of the data is that of one segment.
    pub(crate) fn take_run(
        &mut self,
        cx: &mut Context<'_>,
        merged: &mut Segment<P>,
        effects: &mut Effects,
    ) {
        let [first, .., last] = &merged.payload[..] else {
            debug_assert!(false, "a run has more than one segment");
            return;
        };
        let first_len = first.len() as u32;
        let more = merged.payload.len() as u32 - 1;
        let last_len = last.len() as u32;
        let header = &mut merged.header;
        self.counts.segments_in = self.counts.segments_in.wrapping_add(more + 1);
        self.take_predicted(cx, header, first_len, effects);
        let rest = self.receive.append(&mut merged.payload) - first_len;
        // The window of the last segment counts, and the data of all.
        header.seq += first_len + rest - last_len;
        let window = u32::from(header.window) << self.options.send_shift;
        self.update_window(header, window);
        self.counts.data_segments_in = self.counts.data_segments_in.wrapping_add(more);
        self.counts.bytes_received += u64::from(rest);
        self.rx.next += rest;
        self.acknowledge_text(cx, false);
    }
}
