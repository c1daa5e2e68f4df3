//! Opening connections by Fast Open.

use super::{Moves, Scenario, Side, Trace, end};
use baton_tcp::{ConnId, Event, FastOpen, FastOpenKey, FastOpenKeys, FastOpenListening, Stack};
use baton_testkit::Pair;
use baton_wire::{Flags, Flow, Symbolic, Time};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// What the client knows about Fast Open when it opens a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// Nothing; the client asks for a cookie.
    Asks,
    /// The server's cookie.
    Knows,
    /// A cookie of the server's previous key.
    KnowsPrevious,
    /// A cookie that the server no longer accepts.
    KnowsOld,
    /// That no cookie is needed.
    NeedsNone,
    /// The server's cookie, but the server has reached its limit of requests.
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
    /// Returns whether the client's SYN carried data, and whether the server's SYN-ACK acknowledges the data.
    pub fn syn_data_was_taken(&self) -> (bool, bool) {
        let syns = |side: usize| {
            let segments = self.segments[side].iter().map(|(_, segment)| segment);
            segments.filter(|segment| segment.header.flags.contains(Flags::SYN))
        };
        let sent = syns(0).any(|syn| syn.payload_len() > 0);
        let first = syns(0).next().map(|syn| syn.header.seq + 1);
        let taken = syns(1).any(|answer| Some(answer.header.ack) != first);
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

/// Sets up the server's listener, and lets the client learn what it has to know from an earlier connection.
pub(super) fn prepare(now: Time, [client, server]: &mut [Side; 2], opening: Opening) {
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

/// Requests a cookie on a connection from another port, and aborts the connection.
fn learn(now: Time, client: &mut Stack<Symbolic>, server: &mut Stack<Symbolic>) {
    let mut flow = Flow {
        local: end(0),
        remote: end(1),
    };
    flow.local.port -= 1;
    let config = client.config().clone();
    let id = client.connect_fast_open(now, flow, &config, FastOpen::Cookie);
    let id = id.expect("a free four-tuple");
    let mut pair = Pair::joined([client, server]);
    pair.now = now;
    pair.settle();
    pair.ends[0].abort(id);
    pair.settle();
    for stack in pair.ends {
        while let Some((_, event)) = stack.poll_event() {
            // The server's connection was reset before it was accepted.
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
        self.write(id, amount);
        Some(id)
    }

    /// Returns whether the connection was opened by Fast Open and has not been accepted yet.
    pub(super) fn waits_for_accept(&self) -> bool {
        self.holder == 0
            && self
                .listener
                .is_some_and(|listener| self.stacks[0].accept_queue_len(listener) > 0)
    }

    /// Aborts a connection opened by a late duplicate of the SYN after the first connection ended, which users of Fast Open must tolerate
    /// (RFC 7413 2.1).
    pub(super) fn leave_late_duplicate(&mut self, event: Event) {
        if let Event::Acceptable(listener) = event
            && let Some(id) = self.stacks[self.holder].accept(listener)
        {
            self.stacks[self.holder].abort(id);
        }
    }
}
