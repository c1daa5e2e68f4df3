//! Serialized states of connections, intact and damaged.

use crate::conversation::{Conversation, Step};
use arbitrary::{Arbitrary, Unstructured};
use baton_tcp::Portable;
use baton_wire::Symbolic;

/// A bit pattern to flip at some position in a state.
#[derive(Debug, Arbitrary)]
struct Damage {
    place: u16,
    pattern: u8,
}

/// Maximum number of damaged positions.
const MOST_DAMAGE: usize = 4;

/// Brings a connection into some state, exports it, damages the bytes of its state, and imports it again if they can be decoded. The stack
/// must then keep every invariant, whatever happens.
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
    // Another system's TCP may receive the state instead.
    let _ = state.essentials();
    if conversation.put_in(state) {
        conversation.go_on(&mut input, 100);
        conversation.step(Step::Wait { ms: u32::MAX });
    }
}
