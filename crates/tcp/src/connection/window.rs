//! The receive window that is advertised to the peer (RFC 9293 3.8.6.2.2, RFC 7323 2).

use super::Connection;
use crate::config::{Config, WindowUpdate};
use baton_wire::{Payload, SeqNr};

impl<P: Payload> Connection<P> {
    /// The window of a SYN, which is never scaled (RFC 7323 2.2).
    pub(super) fn syn_window(&self, config: &Config) -> u16 {
        let held = self.receive.unconsumed();
        let most = config.receive_buffer.saturating_sub(held);
        most.min(config.window_clamp).min(u16::MAX.into()) as u16
    }

    /// The connection's share of a memory limit, if there is one; never less than one unit of the scaled window.
    fn receive_share(&self) -> Option<u32> {
        let share = self.charge.share()?;
        Some(share.max(1 << self.options.receive_shift))
    }

    /// Most received data that may wait, as limited by the buffer and by the stack's memory.
    fn receive_limit(&self, config: &Config) -> u32 {
        let share = self.receive_share().unwrap_or(u32::MAX);
        config.receive_buffer.min(share)
    }

    /// Bytes that may still be received.
    fn receive_space(&self, config: &Config) -> u32 {
        let of_buffer = config
            .receive_buffer
            .saturating_sub(self.receive.unconsumed());
        self.receive_share().map_or(of_buffer, |share| {
            of_buffer.min(share.saturating_sub(self.receive.unread_memory()))
        })
    }

    /// The right edge that could be advertised, with the receiver's silly window avoidance (RFC 9293 3.8.6.2.2).
    fn possible_edge(&self, config: &Config) -> SeqNr {
        let space = self.receive_space(config);
        let silly = space < self.receive_limit(config) / 4 && space < u32::from(config.mss);
        let space = if silly {
            0
        } else {
            space.min(config.window_clamp)
        };
        let field = (space >> self.options.receive_shift).min(u16::MAX.into());
        self.rx.next + (field << self.options.receive_shift)
    }

    /// Returns the window field to send and moves the advertised edge.
    pub(super) fn advertise(&mut self, config: &Config) -> u16 {
        let (next, shift) = (self.rx.next, self.options.receive_shift);
        let edge = self.possible_edge(config).latest(self.rx.edge);
        // A FIN at the window's edge leaves RCV.NXT one beyond it.
        let field = (edge.saturating_since(next) >> shift).min(u16::MAX.into());
        self.rx.edge = self.rx.edge.latest(next + (field << shift));
        let space = self.receive_space(config);
        let untold = (next + space).saturating_since(self.rx.edge);
        self.rx.given_back = self.rx.given_back.min(untold);
        field as u16
    }

    /// Reports whether the window opened enough since it was last advertised (RFC 9293 3.8.6.2.2). Only space that the
    /// application freed counts: a SYN cannot advertise all of a large window, which is no reason for an update at once.
    pub(super) fn owes_window_update(&self, config: &Config) -> bool {
        if self.rx.given_back == 0 || !self.receives() {
            return false;
        }
        let possible = self.possible_edge(config);
        if config.window_update == WindowUpdate::Doubled {
            let known = self.rx.edge.saturating_since(self.rx.next);
            let new = possible.saturating_since(self.rx.next);
            return new > known && new >= known.saturating_mul(2);
        }
        let opened = possible.saturating_since(self.rx.edge);
        let two_segments = 2 * u32::from(config.mss);
        let enough = two_segments.min(self.receive_limit(config) / 2).max(1);
        self.rx.given_back.min(opened) >= enough
    }
}
