//! Explicit congestion notification (RFC 3168).

use super::{Connection, Context};
use crate::config::{Config, EcnEcho, EcnMode};
use crate::congestion::{Loss, Phase, Reduction};
use crate::types::State;
use baton_wire::{Ecn, Flags, Payload, SeqNr};
use serde::{Deserialize, Serialize};

/// Both flags of an ECN-setup SYN (RFC 3168 6.1.1).
const SETUP: Flags = Flags::ECE.union(Flags::CWR);

bitflags::bitflags! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    struct Marks: u8 {
        /// Our SYN asks for it.
        const ASKED = 1;
        /// Both ends want it.
        const AGREED = 1 << 1;
        /// What arrived was marked: said in each ACK until the peer has reduced its window.
        const ECHO = 1 << 2;
        /// The window was reduced, and the peer is to be told.
        const REDUCED = 1 << 3;
        /// Each ACK says whether what it acknowledges was marked (RFC 8257 3.2); ECHO is DCTCP.CE.
        const EACH_CHANGE = 1 << 4;
        /// All data is sent as ECN-capable.
        const CAPABLE_AGAIN = 1 << 5;
    }
}

/// What a connection remembers of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Notification {
    marks: Marks,
    /// SND.MAX at the last reduction: until it is acknowledged there is no other.
    reduced: SeqNr,
}

impl Notification {
    pub(crate) fn new(iss: SeqNr) -> Self {
        Self {
            marks: Marks::empty(),
            reduced: iss,
        }
    }

    /// Both ends want it.
    pub(crate) fn is_agreed(&self) -> bool {
        self.marks.contains(Marks::AGREED)
    }

    /// What the peer is told of marks, and whether what is sent again is ECN-capable; `each_mark` says that the congestion
    /// control counts marks.
    pub(super) fn choose(&mut self, each_mark: bool, config: &Config) {
        let usual = match each_mark {
            true => EcnEcho::EachChange,
            false => EcnEcho::UntilReduced,
        };
        let echo = config.ecn_echo.unwrap_or(usual);
        self.marks
            .set(Marks::EACH_CHANGE, echo == EcnEcho::EachChange);
        self.marks.set(Marks::CAPABLE_AGAIN, each_mark);
    }

    /// Nothing follows from the field of an arriving segment: it is not marked, and it is not the first that is not.
    #[inline]
    pub(super) fn is_indifferent_to(&self, ecn: Ecn) -> bool {
        let telling = Marks::EACH_CHANGE.union(Marks::ECHO);
        ecn != Ecn::Congested && !self.marks.contains(telling)
    }

    /// The flags of a SYN to be sent. One that is sent again does not ask any more: what asks may have been why it was
    /// lost (RFC 3168 6.1.1.1).
    pub(super) fn syn_flags(&mut self, state: State, again: bool, config: &Config) -> Flags {
        if state == State::SynReceived {
            return match self.is_agreed() {
                true => Flags::ECE,
                false => Flags::empty(),
            };
        }
        // Without it, congestion control that counts marks is none.
        let counts = config.ecn == EcnMode::Accept && self.marks.contains(Marks::CAPABLE_AGAIN);
        let asks = (config.ecn == EcnMode::Request || counts) && !again;
        self.marks.set(Marks::ASKED, asks);
        if asks { SETUP } else { Flags::empty() }
    }

    /// The peer's SYN arrived (RFC 3168 6.1.1). A SYN-ACK with both flags set is a reflection by something broken, and
    /// no consent.
    pub(super) fn take_syn(&mut self, flags: Flags, config: &Config) {
        let setup = flags & SETUP;
        let agreed = if flags.contains(Flags::ACK) {
            self.marks.contains(Marks::ASKED) && setup == Flags::ECE
        } else {
            config.ecn != EcnMode::Off && setup == SETUP
        };
        self.marks.set(Marks::AGREED, agreed);
    }

    /// The peer's SYN arrived once more. One that does not ask counts (RFC 3168 6.1.1).
    pub(super) fn take_syn_again(&mut self, flags: Flags) {
        if !flags.contains(SETUP) {
            self.marks.remove(Marks::AGREED);
        }
    }

    /// SND.UNA moved: keeps the mark near it, for one far behind would be ahead.
    pub(super) fn keep_near(&mut self, una: SeqNr) {
        self.reduced = self.reduced.latest(una - 1);
    }

    /// The window was reduced (RFC 3168 6.1.2).
    pub(super) fn reduced(&mut self, max: SeqNr) {
        if self.is_agreed() {
            self.marks.insert(Marks::REDUCED);
            self.reduced = max;
        }
    }

    /// The field of the IP header and the flags of a segment that acknowledges. Only data that was never sent before is
    /// ECN-capable: no pure ACK, no retransmission, no window probe (RFC 3168 6.1.4, 6.1.5, 6.1.6). Where marks are counted
    /// queues drop what is not ECN-capable early, and retransmissions are as well (RFC 8311 4.3).
    pub(super) fn of_segment(&mut self, new_data: bool, data: bool) -> (Ecn, Flags) {
        if !self.is_agreed() {
            return (Ecn::NotCapable, Flags::empty());
        }
        let mut flags = Flags::empty();
        flags.set(Flags::ECE, self.marks.contains(Marks::ECHO));
        if !new_data {
            let capable = data && self.marks.contains(Marks::CAPABLE_AGAIN);
            let ecn = match capable {
                true => Ecn::Capable0,
                false => Ecn::NotCapable,
            };
            return (ecn, flags);
        }
        flags.set(Flags::CWR, self.marks.contains(Marks::REDUCED));
        self.marks.remove(Marks::REDUCED);
        (Ecn::Capable0, flags)
    }
}

impl<P: Payload> Connection<P> {
    /// An acceptable segment with data arrived (RFC 3168 6.1.3). CWR ends the echo of marks before it, not of its own.
    pub(super) fn take_congestion_mark(&mut self, cx: &mut Context<'_>, ecn: Ecn, flags: Flags) {
        if !self.notification.is_agreed() {
            return;
        }
        let marks = &mut self.notification.marks;
        if marks.contains(Marks::EACH_CHANGE) {
            self.take_counted_mark(cx, ecn == Ecn::Congested);
            return;
        }
        if flags.contains(Flags::CWR) {
            marks.remove(Marks::ECHO);
        }
        if ecn == Ecn::Congested {
            cx.stats.congestion_marks += 1;
            marks.insert(Marks::ECHO);
            // The sender should know soon.
            self.owe_ack();
        }
    }

    /// The same where each mark counts: an ACK at once when one follows what was none or the other way (RFC 8257 3.2).
    fn take_counted_mark(&mut self, cx: &mut Context<'_>, marked: bool) {
        let marks = &mut self.notification.marks;
        let changes = marks.contains(Marks::ECHO) != marked;
        marks.set(Marks::ECHO, marked);
        cx.stats.congestion_marks += u64::from(marked);
        if changes {
            self.owe_ack();
        }
    }

    /// An ACK up to `ack` with ECN-Echo arrived: the window is reduced as for a loss, but only once for each window of
    /// data, and not when a loss did it (RFC 3168 6.1.2).
    pub(super) fn take_congestion_echo(&mut self, cx: &mut Context<'_>, ack: SeqNr) {
        if !self.notification.is_agreed() {
            return;
        }
        cx.stats.congestion_echoes += 1;
        let again = self.notification.reduced.at_or_after(ack);
        if again || self.congestion.phase != Phase::Open || self.flight() == 0 {
            return;
        }
        cx.stats.congestion_reductions += 1;
        let loss = Loss {
            now: self.clock.moment(cx.now),
            flight: self.flight().min(self.congestion.window()),
            smss: self.smss(),
        };
        let max = self.tx.max;
        let gradually = self.congestion.counts_as_linux() && !self.congestion.is_governed();
        if gradually && self.keeps_times() {
            // Linux's CWR state: PRR although nothing is known to be lost.
            self.start_episode();
            self.congestion
                .enter_recovery(&loss, max, Reduction::Gradual, true);
            let reduction = self.congestion.rate_reduction(loss.flight, loss.smss);
            if let Some(episode) = &mut self.repair.episode {
                episode.reduction = Some(reduction);
            }
        } else {
            self.congestion.reduce_once(&loss, true);
        }
        self.notification.reduced(max);
    }
}
