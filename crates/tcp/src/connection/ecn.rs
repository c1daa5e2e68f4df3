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
        /// Our SYN asks for ECN.
        const ASKED = 1;
        /// Both ends want ECN.
        const AGREED = 1 << 1;
        /// A marked packet arrived: each ACK carries ECE until the peer has reduced its window.
        const ECHO = 1 << 2;
        /// The window was reduced, and the peer is to be notified by CWR.
        const REDUCED = 1 << 3;
        /// Each ACK says whether what it acknowledges was marked (RFC 8257 3.2); ECHO is DCTCP.CE.
        const EACH_CHANGE = 1 << 4;
        /// All data is sent as ECN-capable, including retransmissions.
        const CAPABLE_AGAIN = 1 << 5;
    }
}

/// State of ECN on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Notification {
    marks: Marks,
    /// SND.MAX at the last reduction. There is no other reduction until it is acknowledged.
    reduced: SeqNr,
}

impl Notification {
    pub(crate) fn new(iss: SeqNr) -> Self {
        Self {
            marks: Marks::empty(),
            reduced: iss,
        }
    }

    /// Reports whether both ends want ECN.
    pub(crate) fn is_agreed(&self) -> bool {
        self.marks.contains(Marks::AGREED)
    }

    /// Chooses how marks are echoed to the peer, and whether retransmissions are ECN-capable; `each_mark` says that the
    /// congestion control counts marks.
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

    /// Reports whether the ECN field of an arriving segment needs no processing: it is not marked, and neither was the one before.
    #[inline]
    pub(super) fn is_indifferent_to(&self, ecn: Ecn) -> bool {
        let telling = Marks::EACH_CHANGE.union(Marks::ECHO);
        ecn != Ecn::Congested && !self.marks.contains(telling)
    }

    /// The ECN flags of a SYN to be sent. A retransmitted SYN does not ask for ECN, as the request may be why the first one
    /// was lost (RFC 3168 6.1.1.1).
    pub(super) fn syn_flags(&mut self, state: State, again: bool, config: &Config) -> Flags {
        if state == State::SynReceived {
            return match self.is_agreed() {
                true => Flags::ECE,
                false => Flags::empty(),
            };
        }
        // Congestion control that counts marks does not work without ECN.
        let counts = config.ecn == EcnMode::Accept && self.marks.contains(Marks::CAPABLE_AGAIN);
        let asks = (config.ecn == EcnMode::Request || counts) && !again;
        self.marks.set(Marks::ASKED, asks);
        if asks { SETUP } else { Flags::empty() }
    }

    /// Takes the ECN flags of the peer's SYN (RFC 3168 6.1.1). A SYN-ACK with both flags is not consent: a broken host reflected
    /// the flags.
    pub(super) fn take_syn(&mut self, flags: Flags, config: &Config) {
        let setup = flags & SETUP;
        let agreed = if flags.contains(Flags::ACK) {
            self.marks.contains(Marks::ASKED) && setup == Flags::ECE
        } else {
            config.ecn != EcnMode::Off && setup == SETUP
        };
        self.marks.set(Marks::AGREED, agreed);
    }

    /// Takes the ECN flags of a repeated SYN. ECN is off if that does not ask for it (RFC 3168 6.1.1).
    pub(super) fn take_syn_again(&mut self, flags: Flags) {
        if !flags.contains(SETUP) {
            self.marks.remove(Marks::AGREED);
        }
    }

    /// Keeps `reduced` close to SND.UNA, which moved: a number too far behind would compare as ahead.
    pub(super) fn keep_near(&mut self, una: SeqNr) {
        self.reduced = self.reduced.latest(una - 1);
    }

    /// Records that the window was reduced (RFC 3168 6.1.2).
    pub(super) fn reduced(&mut self, max: SeqNr) {
        if self.is_agreed() {
            self.marks.insert(Marks::REDUCED);
            self.reduced = max;
        }
    }

    /// The ECN field and the flags of a segment with ACK. Only data that was never sent before is ECN-capable: no pure ACK, no
    /// retransmission, no window probe (RFC 3168 6.1.4, 6.1.5, 6.1.6). With congestion control that counts marks, retransmissions
    /// are ECN-capable as well (RFC 8311 4.3), because queues drop other packets early.
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
    /// Takes the mark of an acceptable segment with data (RFC 3168 6.1.3). CWR ends the echo of earlier marks, not of a mark on the same segment.
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
            // The sender should learn of the mark without delay.
            self.owe_ack();
        }
    }

    /// Takes the mark if each mark counts: sends an immediate ACK if it differs from that of the previous segment (RFC 8257 3.2).
    fn take_counted_mark(&mut self, cx: &mut Context<'_>, marked: bool) {
        let marks = &mut self.notification.marks;
        let changes = marks.contains(Marks::ECHO) != marked;
        marks.set(Marks::ECHO, marked);
        cx.stats.congestion_marks += u64::from(marked);
        if changes {
            self.owe_ack();
        }
    }

    /// Reduces the window as for a loss after an ACK up to `ack` with ECN-Echo, but only once for each window of data, and not
    /// if a loss has reduced it already (RFC 3168 6.1.2).
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
            // Linux's CWR state: PRR although no loss is known.
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
