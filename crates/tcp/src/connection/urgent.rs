//! Urgent data (RFC 9293 3.8.5): a position in the byte stream of either direction that is announced before its data arrives. As
//! in all stacks (RFC 6093 3.1, 3.2) the pointer points to the byte after the urgent one, and only one byte is urgent: the last.
//! Sockets decide whether that byte is read in line or separately.

use super::{Connection, Effects, Marks};
use baton_wire::{Flags, Header, Payload, SeqNr};

impl<P: Payload> Connection<P> {
    /// The sequence number of the next byte to read.
    pub(crate) fn read_next(&self) -> SeqNr {
        let fin = u32::from(self.peer_closed());
        self.rx.next - fin - self.receive.ready_len()
    }

    /// Number of bytes to read before the peer's urgent byte, or `None` if there is none or it was read.
    pub(crate) fn urgent_distance(&self) -> Option<u32> {
        let told = self.marks.contains(Marks::URGENT_TOLD);
        told.then(|| self.receive.urgent() - self.read_next())
    }

    /// Takes received data while an urgent byte is announced.
    #[cold]
    #[inline(never)]
    pub(super) fn read_to_urgent(&mut self, max: usize) -> Option<P> {
        self.marks.remove(Marks::READABLE_TOLD);
        let piece = self.receive.read(max);
        if self.receive.urgent().before(self.read_next()) {
            self.marks.remove(Marks::URGENT_TOLD);
        }
        piece
    }

    /// Marks the data written up to `end` as urgent.
    pub(super) fn write_urgent(&mut self, end: SeqNr) {
        self.boundaries.urgent_end = end;
        self.marks.insert(Marks::URGENT);
    }

    /// Clears the mark once SND.UNA has reached the end of urgent data.
    pub(super) fn urgent_acknowledged(&mut self) {
        if self.boundaries.urgent_end.at_or_before(self.tx.una) {
            self.marks.remove(Marks::URGENT);
        }
    }

    /// Sets the urgent pointer of a segment before the end of urgent data, if it reaches that far. Otherwise the last segments sent
    /// announce at least that there is urgent data, as in Linux.
    pub(super) fn point_to_urgent(&self, header: &mut Header) {
        let (seq, end) = (header.seq, self.boundaries.urgent_end);
        let farthest = seq + u32::from(u16::MAX);
        if end.after(seq) && (end.at_or_before(farthest) || farthest.after(self.tx.max)) {
            header.options.urgent = (end.earliest(farthest) - seq) as u16;
            header.flags |= Flags::URG;
        }
    }

    /// Takes the peer's announcement that the byte before `end` is urgent. Ignores it if that byte has arrived, or is not later than
    /// the last urgent one.
    pub(super) fn take_urgent(&mut self, end: SeqNr, effects: &mut Effects) {
        let last = end - 1;
        if !self.receives() || last.before(self.rx.next) {
            return;
        }
        let known = self.marks.contains(Marks::URGENT_TOLD);
        if !known || last.after(self.receive.urgent()) {
            self.receive.set_urgent(last);
            self.marks.insert(Marks::URGENT_TOLD);
            effects.urgent = true;
        }
    }
}

/// The number after the byte that a segment marks as urgent. A pointer of zero can only mean the segment's first byte.
#[inline]
pub(super) fn urgent_end(header: &Header) -> Option<SeqNr> {
    let has_pointer = header.flags.contains(Flags::URG);
    has_pointer.then(|| header.seq + u32::from(header.options.urgent.max(1)))
}
