//! Changes of parameters during the life of a connection.

use super::{Connection, Marks};
use crate::config::Config;
use baton_wire::{Payload, Time};

impl<P: Payload> Connection<P> {
    /// Adapts the connection after its parameters changed from `old` to `new`.
    pub(crate) fn reconfigured(&mut self, now: Time, old: &Config, new: &Config) {
        if self.ended.is_some() {
            return;
        }
        if old.nagle != new.nagle {
            self.set_nodelay(!new.nagle);
        }
        if new.mss < self.options.mss && self.is_synchronized() {
            self.options.mss = new.mss.max(super::LEAST_MSS);
        }
        if old.route_mss != new.route_mss {
            self.change_route(new);
        }
        if new.receive_buffer < old.receive_buffer || new.send_buffer < old.send_buffer {
            self.marks.insert(Marks::BUFFERS_SHRANK);
        }
        if old.keepalive != new.keepalive {
            self.start_keepalive(now, new);
        }
        if self.is_synchronized() {
            self.choose_mtu_probing(self.clock.moment(now), new);
        }
        // Segments may have become longer.
        self.congestion.make_room(self.smss());
        self.restart_user_timeout(now, old, new);
        self.switch_recovery(now, new);
    }

    /// Turns Nagle's algorithm off or on. When it is turned off, pending data is sent immediately, even if corked (tcp(7) of Linux,
    /// TCP_NODELAY); the cork holds data that is written later.
    pub(crate) fn set_nodelay(&mut self, nodelay: bool) {
        self.marks.set(Marks::NODELAY, nodelay);
        if nodelay && self.not_sent() > 0 {
            self.marks.insert(Marks::PUSHED);
        }
    }

    /// Starts or stops holding new data back. While data is held back, the congestion window counts as used up.
    pub(crate) fn set_deferred(&mut self, deferred: bool) {
        self.marks.set(Marks::DEFERRED, deferred);
        let window = self.congestion.window();
        if deferred && window < self.tx.window {
            self.congestion.sent(window, self.tx.una, self.tx.max);
        }
    }

    /// Starts or stops settling, in which no new data is sent.
    pub(crate) fn set_settling(&mut self, settling: bool) {
        self.marks.set(Marks::SETTLING, settling);
        if settling {
            self.try_no_new_data();
        }
    }

    /// Delays ACKs from now on (TCP_QUICKACK off).
    pub(crate) fn delay_acks(&mut self) {
        self.marks.insert(Marks::INTERACTIVE);
    }

    /// Acknowledges immediately, now and for a number of segments (TCP_QUICKACK).
    pub(crate) fn quick_ack(&mut self, config: &Config) {
        self.start_quick_acks(config);
        self.marks.remove(Marks::INTERACTIVE);
        if self.rx.next != self.rx.last_ack {
            self.owe_ack();
        }
    }
}
