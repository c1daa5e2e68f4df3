//! Urgent data (RFC 9293 3.8.5): in either direction a place in the sequence of bytes that is told before the data is there. As
//! with all stacks (RFC 6093 3.1, 3.2) the pointer is to what follows the urgent byte, and it is one byte that is urgent: the
//! last one. Whether that is read with the others or by itself is a matter of sockets.

use super::{Connection, Effects, Marks};
use baton_wire::{Flags, Header, Payload, SeqNr};

impl<P: Payload> Connection<P> {
    /// The sequence number of the next byte that is to be read.
    pub(crate) fn read_next(&self) -> SeqNr {
        let fin = u32::from(self.peer_closed());
        self.rx.next - fin - self.receive.ready_len()
    }

    /// Bytes that are to be read before the peer's urgent one; none without any, and once it was read.
    pub(crate) fn urgent_distance(&self) -> Option<u32> {
        let told = self.marks.contains(Marks::URGENT_TOLD);
        told.then(|| self.receive.urgent() - self.read_next())
    }

    /// Takes received data, of which some is urgent or will be.
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

    /// What was written up to `end` is urgent.
    pub(super) fn write_urgent(&mut self, end: SeqNr) {
        self.boundaries.urgent_end = end;
        self.marks.insert(Marks::URGENT);
    }

    /// SND.UNA moved.
    pub(super) fn urgent_acknowledged(&mut self) {
        if self.boundaries.urgent_end.at_or_before(self.tx.una) {
            self.marks.remove(Marks::URGENT);
        }
    }

    /// Sets the pointer of a segment before the end of urgent data, as far as it reaches; beyond that the last segments sent say
    /// at least that there is some, as Linux has it.
    pub(super) fn point_to_urgent(&self, header: &mut Header) {
        let (seq, end) = (header.seq, self.boundaries.urgent_end);
        let farthest = seq + u32::from(u16::MAX);
        if end.after(seq) && (end.at_or_before(farthest) || farthest.after(self.tx.max)) {
            header.options.urgent = (end.earliest(farthest) - seq) as u16;
            header.flags |= Flags::URG;
        }
    }

    /// The peer says that the byte before `end` is urgent. It counts if that has not arrived, and is later than what was urgent
    /// before.
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

/// The number after the byte that a segment says is urgent. A pointer to its own number can only mean its first byte.
pub(super) fn urgent_end(header: &Header) -> Option<SeqNr> {
    let has_pointer = header.flags.contains(Flags::URG);
    has_pointer.then(|| header.seq + u32::from(header.options.urgent.max(1)))
}
