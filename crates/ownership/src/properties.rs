//! Properties that must hold in every state.

use crate::Protocol;
use crate::state::*;
use crate::steps::{FAULTS, LIMITS, ORDINARY, Step};
use stateright::{Model, Property};

/// At most one TCP stack can continue the connection.
pub const ONE_OWNER: &str = "one owner";
/// No byte is lost or duplicated, and no end is reported as orderly that is not.
pub const RIGHT_BYTES: &str = "no byte is lost or duplicated";
/// Nobody waits forever: either the connection continues, or both ends learn that it has ended.
pub const MOVES_ON: &str = "each connection ends or continues";

/// What has become of a connection once nothing more can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// All requests were made and answered.
    GoesOn,
    /// Both ends, as far as they are alive, know that the connection has ended.
    BothHear,
    /// An end waits forever.
    StandsStill,
}

fn one_owner(_: &Protocol, state: &State) -> bool {
    let on_adapter = state.adapter.as_ref().map_or(0, |adapter| {
        usize::from(adapter.conn.is_some())
            + usize::from(adapter.claimed.is_some())
            + usize::from(adapter.leaving.is_some())
    });
    on_adapter + usize::from(state.s0.is_some()) + usize::from(state.s1.is_some()) <= 1
}

fn right_bytes(model: &Protocol, state: &State) -> bool {
    let peer = &state.peer;
    let fits = |tcp: &Tcp| tcp.received >= peer.acknowledged && tcp.written >= peer.got;
    let talks = peer.sees == Seen::Open;
    let of_adapter = state.adapter.as_ref().and_then(|adapter| adapter.conn);
    let in_kernel = state
        .s1
        .filter(|(_, repair)| !repair)
        .map(|(tcp, _)| tcp)
        .or(state.s0);
    let is_kernels = state.is_kernels();
    let sockets = in_kernel.filter(|_| is_kernels);
    let app = &state.app;
    // An application that forges requests is responsible for its own side.
    let is_own = !app.alive || model.bounds.forged > 0;
    let sees = |tcp: &Tcp| is_own || tcp.read == app.read;
    let is_same = |tcp: &Tcp| is_own || app.at != At::Host || tcp.written == app.wrote;
    !(talks && [of_adapter, sockets].iter().flatten().any(|tcp| !fits(tcp)))
        && of_adapter.is_none_or(|tcp| sees(&tcp))
        && state.s0.is_none_or(|tcp| sees(&tcp) && is_same(&tcp))
        && (peer.sees != Seen::Closed || !app.alive)
}

fn moves_on(model: &Protocol, state: &State) -> bool {
    let every = ORDINARY.iter().chain(FAULTS).chain(LIMITS);
    let is_last = |step: &Step| model.after(state, *step).is_none();
    if !every.clone().all(is_last) {
        return true;
    }
    let ending = ending(model, state);
    if let Some(first) = state.first {
        let endings = model.endings.lock();
        endings
            .expect("no thread panics")
            .entry(first)
            .or_default()
            .insert(ending);
    }
    model.bounds.forged > 0 || ending != Ending::StandsStill
}

fn ending(model: &Protocol, state: &State) -> Ending {
    let peer = &state.peer;
    // No process knows the connection any longer: an end that waits finds out when it sends.
    let is_forgotten =
        state.lost && (state.forgotten || !state.app.alive || state.broker.is_none());
    let hears = peer.sees != Seen::Open || is_forgotten;
    let is_there = match state.app.at {
        At::Host => state.s0.is_some(),
        At::Adapter => state
            .adapter
            .as_ref()
            .is_some_and(|adapter| adapter.conn.is_some()),
        _ => false,
    };
    match state.app.at {
        _ if !state.app.alive && hears => Ending::BothHear,
        At::Ended if hears => Ending::BothHear,
        _ if is_there && peer.sees == Seen::Open && peer.got == model.bounds.requests => {
            Ending::GoesOn
        }
        _ => Ending::StandsStill,
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(&self.bounds)]
    }

    fn actions(&self, _: &State, actions: &mut Vec<Step>) {
        actions.extend(ORDINARY.iter().chain(FAULTS).chain(LIMITS));
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        self.after(state, step)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONE_OWNER, one_owner),
            Property::always(RIGHT_BYTES, right_bytes),
            Property::always(MOVES_ON, moves_on),
        ]
    }
}
