//! Serialized states of connections, intact and damaged.

use crate::conversation::Conversation;
use baton_tcp::Portable;
use baton_testkit::Random;
use baton_wire::{Span, Symbolic};

/// Brings a connection into some state, exports it, damages the bytes of its state, and imports it again if they can be decoded. The stack
/// must then keep every invariant, whatever happens.
pub fn portable(data: &[u8]) {
    let _ = Portable::<Symbolic>::from_bytes(data);
    let mut conversation = Conversation::begin(Random::beginning_with(data));
    let lead = conversation.random.below(9);
    conversation.steps(lead);
    let Some(mut bytes) = conversation.take_out() else {
        return;
    };
    let random = &mut conversation.random;
    for _ in 0..random.below(5) {
        let place = random.below(1 << 16) as usize % bytes.len();
        bytes[place] ^= random.below(256) as u8;
    }
    let Ok(state) = Portable::from_bytes(&bytes) else {
        return;
    };
    // Another system's TCP may receive the state instead.
    let _ = state.essentials();
    if conversation.put_in(state) {
        conversation.steps(100);
        conversation.wait(Span::from_ms(u32::MAX.into()));
    }
}
