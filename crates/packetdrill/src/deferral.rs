//! Deferral of data that could be sent, until a larger super-segment fits the window (tcp_tso_should_defer of Linux).

use crate::flags::Gso;
use crate::gso::window_segments;
use crate::network::Link;
use crate::world::World;
use baton_tcp::{CongestionPhase, ConnId, Info};
use baton_wire::{Span, Time};

/// A connection does not wait if it has sent nothing for this time, or if the next acknowledgment will take longer to arrive.
const LONG: Span = Span::from_ms(1);

/// The window divided by this number is worth a packet of its own (tcp_tso_win_divisor).
const WINDOW_DIVISOR: u32 = 3;

impl World {
    /// Decides for each connection whether its next data waits. A burst that is `open` continues.
    pub(crate) fn defer_bursts(&mut self, open: Option<ConnId>) {
        if self.settings.gso == Gso::Off {
            return;
        }
        let now = self.now;
        for (&conn, link) in &self.links {
            if Some(conn) == open || link.queue.unsent_len() == 0 {
                continue;
            }
            let info = self.stack.info(now, conn);
            let owner = self.owners.get(&conn).and_then(|&id| self.sockets.get(id));
            let ends = owner.is_none_or(|socket| socket.send_shut);
            let most = link.pacing.segments(&info, self.settings.min_tso_segs);
            let waits = waits(now, &info, link, most * info.send_mss, ends);
            self.stack.set_deferred(conn, waits);
        }
    }
}

/// Reports whether the next packet, which holds at most `largest` bytes, waits; `ends` says that a FIN follows the written data.
fn waits(now: Time, info: &Info, link: &Link, largest: u32, ends: bool) -> bool {
    let (Some(next), Some(oldest)) = (link.queue.next(), link.queue.oldest_sent()) else {
        return false;
    };
    let repairs = matches!(
        info.phase,
        CongestionPhase::Recovery | CongestionPhase::Loss
    );
    if repairs || next.len <= info.send_mss || info.last_data_sent > LONG {
        return false;
    }
    let window = window_segments(info) * info.send_mss;
    let gone = info.sacked + info.lost;
    let in_flight = info.unacked_segments * info.send_mss + info.retransmitted;
    let allowed = window.saturating_sub(in_flight.saturating_sub(gone));
    let offered = info.send_window.saturating_sub(link.queue.sent_len());
    let room = allowed.min(offered);
    if room == 0 {
        return false;
    }
    let whole = !next.is_last && room >= next.len;
    if room >= largest || whole || room >= info.send_window.min(window) / WINDOW_DIVISOR {
        return false;
    }
    let srtt = info.srtt.unwrap_or(Span::ZERO);
    if oldest + srtt > now + LONG.min(srtt / 2) {
        return false;
    }
    // A buffer to which no more data is added does not wait for a window that is larger than the buffer.
    let full = next.is_last && ends || !next.takes_more;
    room <= next.len || !full
}
