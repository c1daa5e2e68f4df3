//! Chooses the NIC that answers a connection of the host's own stack (data-caching 6.3).

use super::End;
use baton_host::{Affinity, AffinityView, FileContent, NicId, SocketId};
use baton_kernel::{Meter, footprint};
use baton_tcp::ConnId;
use rustc_hash::{FxHashMap, FxHashSet};

/// Number of blocks of a file that are looked up in each directory.
const BLOCKS_ASKED: u32 = 16;

/// The affinity policy and its choices.
pub(super) struct Answering {
    /// Policy, or `None` if connections are answered on the NIC of arrival.
    policy: Option<Box<dyn Affinity>>,
    /// Sockets whose first response has been seen.
    asked: FxHashSet<SocketId>,
    /// Connections that are answered by another NIC than the one on which they arrived.
    elsewhere: FxHashMap<ConnId, u8>,
    /// Buffer for the number of blocks in each NIC's cache.
    cached: Vec<u32>,
}

impl Answering {
    pub(super) fn new(policy: Option<Box<dyn Affinity>>) -> Self {
        Self {
            policy,
            asked: FxHashSet::default(),
            elsewhere: FxHashMap::default(),
            cached: Vec::new(),
        }
    }

    /// Chooses the answering NIC at a socket's first response, which has `len` bytes of a file. Returns true if it is not the NIC on which
    /// the connection arrived. `in_stack` is the connection with the NIC of arrival; a connection that is or was on an adapter is answered
    /// there.
    pub(super) fn choose<M: Meter>(
        &mut self,
        (socket, in_stack): (SocketId, Option<(ConnId, u8)>),
        (content, len): (&FileContent, u64),
        ends: &[End],
        m: &mut M,
    ) -> bool {
        let Some(policy) = &mut self.policy else {
            return false;
        };
        // After the first response, data in flight might be overtaken.
        let is_first = self.asked.insert(socket);
        let Some((conn, arrival)) = in_stack.filter(|_| is_first) else {
            return false;
        };
        self.cached.clear();
        for (nic, end) in (0..).map(NicId).zip(ends) {
            footprint::directory_lookup(m, nic, content.file.0, None);
            self.cached
                .push(end.os.count_cached(content, len, BLOCKS_ASKED));
        }
        let view = AffinityView {
            arrival: NicId(arrival),
            file: content.file,
            cached: &self.cached,
        };
        let NicId(chosen) = policy.choose(&view);
        debug_assert!(usize::from(chosen) < ends.len(), "the NIC exists");
        if chosen != arrival {
            self.elsewhere.insert(conn, chosen);
        }
        chosen != arrival
    }

    /// Returns the NIC that answers a connection that arrived on `arrival`; packets without a connection are answered there, too.
    #[inline]
    pub(super) fn nic_of(&self, conn: Option<ConnId>, arrival: u8) -> u8 {
        let chosen = match self.elsewhere.is_empty() {
            true => None,
            false => conn.and_then(|conn| self.elsewhere.get(&conn)),
        };
        chosen.copied().unwrap_or(arrival)
    }

    /// Forgets a connection that has left the stack.
    pub(super) fn connection_left(&mut self, conn: ConnId) {
        self.elsewhere.remove(&conn);
    }

    /// Forgets a socket that the application has closed.
    pub(super) fn let_go(&mut self, socket: SocketId) {
        self.asked.remove(&socket);
    }
}
