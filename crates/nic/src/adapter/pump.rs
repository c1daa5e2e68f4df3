//! Moves requests, responses and data between one application and its link.

use super::{Adapter, DmaRequest, SessionId};
use baton_bus::link::{AdapterLink, Inline, LinkError};
use baton_tcp::Stack;
use baton_wire::{Payload, Time};

/// Maximum number of rounds per call. An application that is faster than the adapter must not keep it from other work.
const MOST_ROUNDS: usize = 4;

/// Moves everything that can be moved between one session and its link: completed transfers, requests, new transfers and, last, due
/// responses. Returns whether it moved anything.
///
/// Afterwards, the stack may have segments to send and events to report. The caller must call this when the link reports that the
/// application has acted (added requests, or taken responses out of a full queue), after events of the stack, and at the time that
/// [`Adapter::poll_timeout`] returns.
///
/// # Errors
/// Fails if the application has gone or violated the protocol. The caller must then [detach](Adapter::detach) the application.
pub fn pump<P: Payload + Inline>(
    now: Time,
    adapter: &mut Adapter<P>,
    stack: &mut Stack<P>,
    session: SessionId,
    link: &mut impl AdapterLink<Data = P>,
) -> Result<bool, LinkError> {
    adapter.handle_session_timeouts(now, stack, session);
    let mut did = false;
    for _ in 0..MOST_ROUNDS {
        let moved = move_transfers(now, adapter, stack, session, link)?
            | take_requests(now, adapter, stack, session, link)?;
        if !moved {
            break;
        }
        did = true;
    }
    Ok(put_responses(now, adapter, session, link)? | did)
}

/// Processes completed transfers and starts requested ones.
fn move_transfers<P: Payload + Inline>(
    now: Time,
    adapter: &mut Adapter<P>,
    stack: &mut Stack<P>,
    session: SessionId,
    link: &mut impl AdapterLink<Data = P>,
) -> Result<bool, LinkError> {
    let mut did = begin_transfers(now, adapter, session, link)? > 0;
    while finish_transfer(now, adapter, stack, session, link)? {
        did = true;
    }
    Ok(did)
}

/// Starts the requested transfers. Returns how many there were.
#[inline]
pub(super) fn begin_transfers<P: Payload + Inline>(
    now: Time,
    adapter: &mut Adapter<P>,
    session: SessionId,
    link: &mut impl AdapterLink<Data = P>,
) -> Result<usize, LinkError> {
    let mut begun = 0;
    while let Some(request) = adapter.poll_dma(session) {
        begun += 1;
        match request {
            DmaRequest::Read { id, address, len } => link.read(now, id, address, len)?,
            DmaRequest::Write { id, address, data } => link.write(now, id, address, data)?,
        }
    }
    Ok(begun)
}

/// Processes one completed transfer. Returns false if there is none.
pub(super) fn finish_transfer<P: Payload + Inline>(
    now: Time,
    adapter: &mut Adapter<P>,
    stack: &mut Stack<P>,
    session: SessionId,
    link: &mut impl AdapterLink<Data = P>,
) -> Result<bool, LinkError> {
    let Some(dma) = link.poll_dma(now)? else {
        return Ok(false);
    };
    adapter.handle_dma(now, stack, session, dma)?;
    Ok(true)
}

/// Takes as many requests as can be answered.
fn take_requests<P: Payload + Inline>(
    now: Time,
    adapter: &mut Adapter<P>,
    stack: &mut Stack<P>,
    session: SessionId,
    link: &mut impl AdapterLink<Data = P>,
) -> Result<bool, LinkError> {
    let room = adapter.room_for_requests(session);
    if room == 0 {
        return Ok(false);
    }
    let mut requests = adapter.take_scratch();
    let got = link.get(now, room, &mut requests);
    let handled = got.and_then(|()| {
        let handled = adapter.handle_requests(now, stack, session, &requests);
        handled.map_err(LinkError::from)
    });
    let did = !requests.is_empty();
    adapter.return_scratch(requests);
    handled.map(|()| did)
}

/// Sends the due responses to the host.
#[inline]
pub(super) fn put_responses<P: Payload + Inline>(
    now: Time,
    adapter: &mut Adapter<P>,
    session: SessionId,
    link: &mut impl AdapterLink<Data = P>,
) -> Result<bool, LinkError> {
    let mut did = false;
    while !adapter.is_silent(session) {
        let (transfer, is_awaited) = adapter.next_transfer(now, session);
        let offered = transfer.len();
        if offered == 0 {
            break;
        }
        let taken = match is_awaited {
            true => link.put(now, transfer)?,
            false => link.put_lazily(now, transfer)?,
        };
        adapter.transferred(now, session, taken, offered);
        did |= taken > 0;
        if taken < offered {
            break;
        }
    }
    Ok(did)
}
