//! Counters of the host's half.

use serde::Serialize;

/// Counters since the layer was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OsLayerStats {
    /// Requests of all kinds.
    pub requests: u64,
    /// Responses and events of all kinds.
    pub responses: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections opened.
    pub connected: u64,
    /// Connections that could not be opened.
    pub connects_failed: u64,
    /// ACCEPTs that the adapter refused, except for cancelled ones.
    pub accepts_refused: u64,
    /// Connections that ended with an error.
    pub ended_abnormally: u64,
    /// SENDs, with data in buffers or in descriptors.
    pub sends: u64,
    /// SENDs with data in descriptors.
    pub inline_sends: u64,
    /// SENDs from the adapter's data cache.
    pub cached_sends: u64,
    /// SENDs of files that the adapter reads.
    pub lent_sends: u64,
    /// Bytes of SENDs.
    pub sent_bytes: u64,
    /// Bytes of SENDs from the adapter's data cache.
    pub cached_bytes: u64,
    /// Bytes of SENDs of files that the adapter reads.
    pub lent_bytes: u64,
    /// SENDs that the adapter refused.
    pub sends_failed: u64,
    /// SENDs that were completed by the completion of a later one.
    pub completed_by_later: u64,
    /// RECVs answered with data.
    pub receives: u64,
    /// Bytes received by these RECVs.
    pub received_bytes: u64,
    /// Bytes that arrived after the application had closed the socket.
    pub dropped_bytes: u64,
    /// Times that a cork held data back until its timer expired.
    pub corks_fired: u64,
    /// Sends for which there was no space, by what was missing.
    pub no_room: NoRoomCounts,
    /// Options that the adapter refused.
    pub options_refused: u64,
    /// Reported times of bytes that were sent or acknowledged.
    pub times_told: u64,
    /// Reported times that were dropped because too many waited to be taken.
    pub times_dropped: u64,
    /// Links that were lost.
    pub links_lost: u64,
    /// Connections that the adapter has imported.
    pub imported: u64,
    /// Connections that the adapter has refused to import.
    pub imports_refused: u64,
    /// Connections taken back from the adapter.
    pub exported: u64,
    /// Connections that the adapter asked the host to take back.
    pub relief_asked: u64,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets forwarded to connections that had moved to the adapter.
    pub packets_forwarded: u64,
    /// Packets that were dropped for lack of space.
    pub packets_dropped: u64,
}

/// Why there was no space for a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// The connection already has the maximum number of sends in flight.
    Sends,
    /// The connection has as many sends in flight as there are free buffers.
    Buffers,
    /// The ring of requests is full.
    Ring,
    /// The connection is not established yet.
    Opening,
}

/// How often there was no space for a send.
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
