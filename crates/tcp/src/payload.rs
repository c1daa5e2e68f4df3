//! Queues of pieces of data.

use baton_wire::{Payload, Pieces};
use std::collections::VecDeque;

/// Longest piece that results from joining, so that processed data can be freed.
const LONGEST_JOINED: usize = 1 << 20;

/// Appends `piece` to a queue, joined to the last one where that costs nothing.
pub(crate) fn push_joined<P: Payload>(queue: &mut VecDeque<P>, piece: P) {
    if let Some(last) = queue.back_mut()
        && last.len() + piece.len() <= LONGEST_JOINED
        && last.try_append(&piece)
    {
        return;
    }
    queue.push_back(piece);
}

/// Longest piece that is created by copying, bytes.
const LONGEST_COPIED: usize = 4096;

/// Appends `next` to `last` by a copy if both are short. Returns false otherwise.
pub(crate) fn join_short<P: Payload>(last: &mut P, next: &P) -> bool {
    next.len() < LONGEST_COPIED / 8 && last.len() + next.len() <= LONGEST_COPIED && last.join(next)
}

/// Does the same as [`push_joined`], but also copies short pieces together to save memory.
pub(crate) fn push_short<P: Payload>(queue: &mut VecDeque<P>, piece: P) {
    if !queue
        .back_mut()
        .is_some_and(|last| join_short(last, &piece))
    {
        push_joined(queue, piece);
    }
}

/// Drops the first `count` bytes.
pub(crate) fn cut_front<P: Payload>(pieces: &mut Pieces<P>, mut count: usize) {
    while count > 0 {
        let len = pieces[0].len();
        if len > count {
            pieces[0] = pieces[0].slice(count, len - count);
            return;
        }
        pieces.remove(0);
        count -= len;
    }
}

/// Keeps the first `len` bytes.
pub(crate) fn truncate<P: Payload>(pieces: &mut Pieces<P>, len: usize) {
    let mut kept = 0;
    let mut whole = 0;
    for piece in pieces.iter_mut() {
        if kept >= len {
            break;
        }
        if kept + piece.len() > len {
            *piece = piece.slice(0, len - kept);
        }
        kept += piece.len();
        whole += 1;
    }
    pieces.truncate(whole);
}
