//! What the host's half counts.

use serde::Serialize;

/// Totals since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OsLayerStats {
    /// Requests of all kinds.
    pub requests: u64,
    /// Responses and news of all kinds.
    pub responses: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections opened.
    pub connected: u64,
    /// Connections that could not be opened.
    pub connects_failed: u64,
    /// ACCEPTs that the adapter refused, other than because they were cancelled.
    pub accepts_refused: u64,
    /// Connections that ended by an error.
    pub ended_abnormally: u64,
    /// SENDs, with data in buffers or in descriptors.
    pub sends: u64,
    /// Of these, with data in descriptors.
    pub inline_sends: u64,
    /// Of these, from the adapter's data cache.
    pub cached_sends: u64,
    /// Bytes of SENDs.
    pub sent_bytes: u64,
    /// Of these, from the adapter's data cache.
    pub cached_bytes: u64,
    /// SENDs that were not carried out.
    pub sends_failed: u64,
    /// SENDs that were completed by the completion of a later one.
    pub completed_by_later: u64,
    /// RECVs answered with data.
    pub receives: u64,
    /// Bytes of these.
    pub received_bytes: u64,
    /// Bytes that came after the application had closed.
    pub dropped_bytes: u64,
    /// Times that a cork held data back until its timer fired.
    pub corks_fired: u64,
    /// Sends that found no room, by what there was none of.
    pub no_room: NoRoomCounts,
    /// Options that the adapter refused.
    pub options_refused: u64,
    /// Times of bytes that were sent or acknowledged.
    pub times_told: u64,
    /// The same that were dropped because too many waited to be taken.
    pub times_dropped: u64,
    /// Links that were lost.
    pub links_lost: u64,
    /// Connections that the adapter has taken over.
    pub imported: u64,
    /// Connections that it has not.
    pub imports_refused: u64,
    /// Connections taken back from it.
    pub exported: u64,
    /// Connections that it asked to be relieved of.
    pub relief_asked: u64,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets forwarded to connections that had moved to the adapter.
    pub packets_forwarded: u64,
    /// Packets that were not sent for want of room.
    pub packets_dropped: u64,
}

/// Why a send found no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// As many sends of the connection wait as may.
    Sends,
    /// No buffer is free that is not kept for others.
    Buffers,
    /// The ring of requests is full.
    Ring,
    /// The connection is not yet open.
    Opening,
}

/// How often a send found no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NoRoomCounts {
    /// [`NoRoom::Sends`].
    pub sends: u64,
    /// [`NoRoom::Buffers`].
    pub buffers: u64,
    /// [`NoRoom::Ring`].
    pub ring: u64,
    /// [`NoRoom::Opening`].
    pub opening: u64,
}

impl NoRoomCounts {
    pub(super) fn count(&mut self, why: NoRoom) {
        *match why {
            NoRoom::Sends => &mut self.sends,
            NoRoom::Buffers => &mut self.buffers,
            NoRoom::Ring => &mut self.ring,
            NoRoom::Opening => &mut self.opening,
        } += 1;
    }
}
