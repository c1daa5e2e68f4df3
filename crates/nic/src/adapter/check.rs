//! Invariants of an adapter.

use super::Adapter;
use super::dma::Job;
use super::owners::Owner;
use super::session::{Session, Shared};
use super::socket::{Moving, Phase, Socket};
use baton_bus::Chain;
use baton_bus::link::Inline;
use baton_wire::Payload;

impl<P: Payload + Inline> Adapter<P> {
    /// Asserts every invariant of the adapter and of each session. Takes time in proportion to the number of sessions, sockets and
    /// requests.
    pub fn check(&self) {
        for place in self.shared.owners.places() {
            let session = self.sessions.get(place.session as usize);
            let socket = session.and_then(|session| session.sockets.get(place.slot as usize));
            assert!(socket.is_some(), "an owner is an existing socket");
        }
        for (id, session) in &self.sessions {
            assert_eq!(session.id as usize, id, "a session knows its slot");
            session.check(&self.shared);
        }
        self.shared.limits.check();
        let connections = self.shared.owners.connections() as u64;
        self.shared.on_board.check(connections);
        let imported = |session: &Session<P>| {
            let sockets = session.sockets.iter();
            let is_here = |socket: &Socket| matches!(socket.phase, Phase::Connected(_));
            sockets
                .filter(|(_, socket)| socket.imported && is_here(socket))
                .count()
        };
        let imported: usize = self
            .sessions
            .iter()
            .map(|(_, session)| imported(session))
            .sum();
        assert_eq!(
            imported,
            self.shared.limits.connections() as usize,
            "Cnum counts imported connections"
        );
    }
}

impl<P: Payload + Inline> Session<P> {
    fn check(&self, shared: &Shared<P>) {
        let most = shared.config.most_sockets as usize;
        assert!(self.sockets.len() <= most, "sockets are limited");
        let mut reserved = 0;
        for (slot, socket) in &self.sockets {
            let slot = slot as u32;
            assert_eq!(self.numbers.get(socket.number), Some(slot));
            self.check_socket(shared, slot, socket);
            if let Phase::Listening(listening) = socket.phase {
                let accepts = self.accepts.iter(&listening.accepts);
                reserved += accepts
                    .map(|accept| usize::from(accept.count))
                    .sum::<usize>();
            }
        }
        let sockets = self.sockets.iter().map(|(_, socket)| socket);
        let are_reserved = sockets.filter(|socket| matches!(socket.phase, Phase::Reserved));
        assert_eq!(
            are_reserved.count(),
            reserved,
            "each reserved socket is that of an ACCEPT"
        );
        self.check_pools();
        assert!(
            self.responses.outside() == 0 || self.responses.room() == 0,
            "no request is taken while responses wait outside"
        );
        assert!(self.asked.len() <= self.jobs.len());
        assert!(self.cache.inserts() <= shared.config.most_inserts as usize);
        self.cache.check();
    }

    fn check_socket(&self, shared: &Shared<P>, slot: u32, socket: &Socket) {
        let place = self.place(slot);
        if let Some(conn) = socket.conn() {
            assert_eq!(shared.owners.of(conn), Owner::Socket(place));
        }
        let (sending, receiving, config) = (&socket.sending, &socket.receiving, &shared.config);
        let (most_sends, most_receives) = match socket.phase {
            Phase::Packets => (config.most_packets, config.most_packets),
            _ => (config.most_sends, config.most_receives),
        };
        let taken = match socket.phase {
            Phase::Packets => sending.unwritten.len(),
            _ => sending.waiting.len(),
        };
        assert!(taken + sending.fetching.len() <= most_sends);
        assert!(receiving.posted.len() + receiving.filling.len() <= most_receives);
        match socket.phase {
            Phase::Idle | Phase::Listening(_) => {
                assert!(sending.is_done() && receiving.posted.is_empty());
            }
            Phase::Reserved => assert!(sending.is_done()),
            Phase::Importing | Phase::Exported => {
                assert!(sending.is_done() && receiving.posted.is_empty());
                assert!(socket.moving.is_some());
            }
            Phase::Packets => {
                assert!(sending.waiting.is_empty());
                assert!(
                    sending.unwritten.is_empty()
                        || sending.more_follows
                        || !sending.fetching.is_empty()
                );
                assert!(shared.wanted.iter().any(|wanted| wanted.place == place));
            }
            Phase::Connecting { .. } => {
                assert!(sending.fetching.is_empty() && sending.unwritten.is_empty());
            }
            Phase::Connected(_) => {
                assert!(
                    !receiving.end_reported || receiving.posted.is_empty(),
                    "after the end nothing waits for data"
                );
            }
            Phase::Ending(_) => assert!(
                !sending.fetching.is_empty()
                    || socket.forwarding > 0
                    || !receiving.filling.is_empty(),
                "only transfers keep a socket whose connection is over"
            ),
        }
        if let Phase::Listening(listening) = socket.phase {
            let mut sharers = shared.owners.of_listener(listening.id);
            assert!(sharers.any(|sharer| sharer == place));
            assert!(listening.accepts.len() <= config.most_accepts);
        }
        if !matches!(
            socket.phase,
            Phase::Connected(_) | Phase::Ending(_) | Phase::Packets
        ) {
            assert!(sending.fetching.is_empty() && receiving.filling.is_empty());
        }
        let jobs = self.jobs.iter();
        let reading = jobs.filter_map(|(_, job)| match *job {
            Job::Read { slot: of, len } if of == slot => Some(len),
            _ => None,
        });
        assert_eq!(
            sending.fetching_bytes,
            reading.sum::<u32>(),
            "bytes that are being fetched are counted"
        );
    }

    /// Asserts that every entry of a pool is in the chain of one socket, and that every transfer belongs to one of these entries.
    fn check_pools(&self) {
        let count = |chains: fn(&Socket) -> u32| {
            let sockets = self.sockets.iter();
            sockets.map(|(_, socket)| chains(socket) as usize).sum()
        };
        let sends: usize = count(|socket| {
            let sending = &socket.sending;
            sending.waiting.len() + sending.fetching.len() + sending.unwritten.len()
        });
        assert_eq!(self.sends.len(), sends, "SENDs belong to sockets");
        let receives: usize =
            count(|socket| socket.receiving.posted.len() + socket.receiving.filling.len());
        assert_eq!(self.receives.len(), receives, "RECVs belong to sockets");
        let accepts: usize = count(|socket| match socket.phase {
            Phase::Listening(listening) => listening.accepts.len(),
            _ => 0,
        });
        assert_eq!(self.accepts.len(), accepts, "ACCEPTs belong to listeners");
        let filling = |chain: &Chain| {
            let receives = self.receives.iter(chain);
            receives.map(|receive| receive.under_way).sum::<u32>()
        };
        // A part of a packet may have no transfer and only wait for its turn.
        let fetching = |chain: &Chain| {
            let sends = self.sends.iter(chain);
            sends.filter(|send| send.is_in_memory()).count() as u32
        };
        let transfers: u32 = self
            .sockets
            .iter()
            .map(|(_, socket)| {
                let moving = socket.moving.as_deref().map_or(0, Moving::transfers);
                let sends = fetching(&socket.sending.fetching) + socket.forwarding;
                sends + filling(&socket.receiving.filling) + moving as u32
            })
            .sum();
        let transfers = transfers as usize + self.cache.inserts();
        assert_eq!(self.jobs.len(), transfers, "transfers are counted");
    }
}
