//! Seals on states that pass through applications: broker and adapter accept only states that one of them has made.
//!
//! A seal names the connection's place in the shared memory and its number there, and contains a message authentication code over these
//! two, the direction of the move, and the state itself. The key is in that memory, which applications do not have.

use super::memory::{Stage, Table};
use baton_tcp::{Portable, Seal};
use bytes::Bytes;
use siphasher::sip128::{Hasher128, SipHasher24};
use std::hash::Hasher;
use std::sync::atomic::Ordering;

const TAG: usize = 8;

/// Identifies a connection among all that have had the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) place: u32,
    pub(crate) number: u32,
}

/// Seals a state. `stage` says who gives the state to the application.
pub(crate) fn seal(
    table: &Table,
    stage: Stage,
    ticket: Ticket,
    state: Portable<Bytes>,
) -> Portable<Bytes> {
    let state = state.with_seal(None);
    let mut seal: Seal = Default::default();
    seal[..4].copy_from_slice(&ticket.place.to_ne_bytes());
    seal[4..TAG].copy_from_slice(&ticket.number.to_ne_bytes());
    let tag = tag(table, stage, ticket, &state);
    seal[TAG..].copy_from_slice(&tag);
    state.with_seal(Some(seal))
}

/// Returns which connection a state belongs to, if its seal is valid for this stage.
pub(crate) fn ticket_of(table: &Table, stage: Stage, state: &Portable<Bytes>) -> Option<Ticket> {
    let seal = state.seal()?;
    let word = |at: usize| Some(u32::from_ne_bytes(*seal[at..].first_chunk()?));
    let ticket = Ticket {
        place: word(0)?,
        number: word(4)?,
    };
    let expected = tag(table, stage, ticket, &state.clone().with_seal(None));
    // Compares all bytes, so that the time does not depend on how many match.
    let differs = seal[TAG..]
        .iter()
        .zip(expected)
        .fold(0, |differs, (one, other)| differs | (one ^ other));
    (differs == 0).then_some(ticket)
}

fn tag(table: &Table, stage: Stage, ticket: Ticket, state: &Portable<Bytes>) -> [u8; 16] {
    let [k0, k1] = table
        .key
        .each_ref()
        .map(|word| word.load(Ordering::Relaxed));
    let mut hasher = SipHasher24::new_with_keys(k0, k1);
    hasher.write_u32(stage as u32);
    hasher.write_u32(ticket.place);
    hasher.write_u32(ticket.number);
    hasher.write(&state.to_bytes());
    hasher.finish128().as_bytes()
}
