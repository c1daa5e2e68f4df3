//! Opening by Fast Open.

use super::{Moves, Scenario, Side, Trace, World, end};
use baton_tcp::{ConnId, Event, FastOpen, FastOpenKey, FastOpenKeys, FastOpenListening, Stack};
use baton_wire::{Flags, Flow, Symbolic, Time};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// What the client knows when it opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// Nothing: it asks for a cookie.
    Asks,
    /// The server's cookie.
    Knows,
    /// A cookie of the key that the server had before.
    KnowsPrevious,
    /// A cookie that the server takes no more.
    KnowsOld,
    /// That none is needed.
    NeedsNone,
    /// The server's cookie; but the server takes no more requests.
    MeetsLimit,
}

const ALL: [Opening; 6] = [
    Opening::Asks,
    Opening::Knows,
    Opening::KnowsPrevious,
    Opening::KnowsOld,
    Opening::NeedsNone,
    Opening::MeetsLimit,
];

impl Scenario {
    pub fn opened_fast(seed: u64, moves: Moves) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(seed ^ 0x6661_7374);
        Self {
            fast_open: Some(ALL[rng.random_range(0..ALL.len())]),
            simultaneous: false,
            ..Self::random(seed, moves)
        }
    }
}

impl Trace {
    /// Data went with the client's SYN, and the server's answer acknowledges it.
    pub fn syn_data_was_taken(&self) -> (bool, bool) {
        let syns = |side| {
            self.segments.iter().filter(move |(_, from, segment)| {
                *from == side && segment.header.flags.contains(Flags::SYN)
            })
        };
        let sent = syns(0).any(|(.., syn)| syn.payload_len() > 0);
        let first = syns(0).next().map(|(.., syn)| syn.header.seq + 1);
        let taken = syns(1).any(|(.., answer)| Some(answer.header.ack) != first);
        (sent, taken)
    }
}

fn keys(current: u8, previous: Option<u8>) -> FastOpenKeys {
    let key = |number| FastOpenKey([number; 16]);
    FastOpenKeys {
        current: key(current),
        previous: previous.map(key),
    }
}

impl World {
    /// The server listens as it is to, and the client has learnt what it is to know from an earlier connection.
    pub(super) fn prepare_fast_open(&mut self, opening: Opening) {
        let now = self.now;
        let [client, server] = &mut self.sides;
        let listener = server.listener.expect("the server listens");
        server.set_keys(keys(1, None));
        server.stacks[0].set_fast_open(
            listener,
            FastOpenListening {
                pending: 4,
                without_cookie: opening == Opening::NeedsNone,
            },
        );
        if opening != Opening::Asks && opening != Opening::NeedsNone {
            learn(now, &mut client.stacks[0], &mut server.stacks[0]);
        }
        match opening {
            Opening::KnowsPrevious => server.set_keys(keys(2, Some(1))),
            Opening::KnowsOld => server.set_keys(keys(3, Some(2))),
            Opening::MeetsLimit => {
                server.stacks[0].set_fast_open(listener, FastOpenListening::default());
            }
            _ => {}
        }
    }
}

/// A connection of another port asks for a cookie, and ends.
fn learn(now: Time, client: &mut Stack<Symbolic>, server: &mut Stack<Symbolic>) {
    let mut flow = Flow {
        local: end(0),
        remote: end(1),
    };
    flow.local.port -= 1;
    let config = client.config().clone();
    let id = client.connect_fast_open(now, flow, &config, FastOpen::Cookie);
    let id = id.expect("a free four-tuple");
    let exchange = |client: &mut Stack<Symbolic>, server: &mut Stack<Symbolic>| {
        loop {
            if let Some((_, segment)) = client.poll_transmit(now) {
                server.handle_segment(now, segment);
            } else if let Some((_, segment)) = server.poll_transmit(now) {
                client.handle_segment(now, segment);
            } else {
                return;
            }
        }
    };
    exchange(client, server);
    client.abort(id);
    exchange(client, server);
    for stack in [client, server] {
        while let Some((_, event)) = stack.poll_event() {
            // The server's was reset before anybody accepted it.
            assert!(matches!(
                event,
                Event::Connected | Event::Acceptable(_) | Event::Closed(_)
            ));
        }
        assert!(stack.is_empty());
    }
}

impl Side {
    fn set_keys(&mut self, keys: FastOpenKeys) {
        for stack in &mut self.stacks {
            stack.set_fast_open_keys(keys);
        }
    }

    pub(super) fn connect_fast(&mut self, now: Time, opening: Opening) -> Option<ConnId> {
        let how = match opening {
            Opening::NeedsNone => FastOpen::WithoutCookie,
            _ => FastOpen::Cookie,
        };
        let config = self.stacks[0].config().clone();
        let id = self.stacks[0].connect_fast_open(now, self.flow, &config, how)?;
        let amount = self.app.rng.random_range(0..3000);
        self.write(id, amount, 0);
        Some(id)
    }

    /// Its connection was opened by Fast Open and nobody accepted it yet.
    pub(super) fn waits_for_accept(&self) -> bool {
        self.holder == 0
            && self
                .listener
                .is_some_and(|listener| self.stacks[0].accept_queue_len(listener) > 0)
    }

    /// A late duplicate of the SYN opens a connection anew once the first one is over: what an owner of Fast Open must put up with
    /// (RFC 7413 2.1).
    pub(super) fn leave_late_duplicate(&mut self, event: Event) {
        if let Event::Acceptable(listener) = event
            && let Some(id) = self.stacks[self.holder].accept(listener)
        {
            self.stacks[self.holder].abort(id);
        }
    }
}
