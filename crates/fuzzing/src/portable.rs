//! States of connections as bytes, whole and damaged.

use crate::conversation::{Conversation, Step};
use arbitrary::{Arbitrary, Unstructured};
use baton_tcp::Portable;
use baton_wire::Symbolic;

/// A flipped bit pattern somewhere in a state.
#[derive(Debug, Arbitrary)]
struct Damage {
    place: u16,
    pattern: u8,
}

/// Most places that are damaged.
const MOST_DAMAGE: usize = 4;

/// Leads a connection to some state, takes it out, damages its bytes, and puts it in again if that can be done: then it
/// keeps every invariant, whatever comes.
pub fn portable(data: &[u8]) {
    let _ = Portable::<Symbolic>::from_bytes(data);
    let mut input = Unstructured::new(data);
    let Ok(mut conversation) = Conversation::begin(&mut input) else {
        return;
    };
    let lead = input.int_in_range(0..=8).unwrap_or(0);
    conversation.go_on(&mut input, lead);
    let Some(mut bytes) = conversation.take_out() else {
        return;
    };
    for _ in 0..input.int_in_range(0..=MOST_DAMAGE).unwrap_or(0) {
        let Ok(Damage { place, pattern }) = Damage::arbitrary(&mut input) else {
            break;
        };
        let place = usize::from(place) % bytes.len();
        bytes[place] ^= pattern;
    }
    let Ok(state) = Portable::from_bytes(&bytes) else {
        return;
    };
    // Another system's TCP may be given it instead.
    let _ = state.essentials();
    if conversation.put_in(state) {
        conversation.go_on(&mut input, 100);
        conversation.step(Step::Wait { ms: u32::MAX });
    }
}
