//! Connections that are opened with data before the handshake is complete (TCP Fast Open, RFC 7413).
//!
//! A server's connection whose SYN had a valid cookie counts its own SYN as acknowledged from the start, so that the code that
//! sends data works before the handshake is complete as it does after. A mark says that the SYN-ACK is due.

use super::output::Run;
use super::{Connection, Context, DEFAULT_MSS_V4, DEFAULT_MSS_V6, Effects, Marks};
use crate::clock::{Past, TIMESTAMP_TICK};
use crate::config::Config;
use crate::fast_open::{FastOpen, Offer, Servers};
use crate::payload::truncate;
use crate::types::{Refusal, State};
use baton_wire::{FastOpenOption, Flags, Header, Options, Payload, Pieces, SeqNr, Time};
use std::net::IpAddr;

/// Bytes of a SYN that are reserved for options, whichever options it has, as in Linux: the maximum length of options.
const OPTION_ROOM: u16 = 40;

impl<P: Payload> Connection<P> {
    // --- server side ---

    /// Opens the connection after a SYN with a valid cookie: takes its data, and lets the application answer at once (RFC 7413 4.2.2).
    pub(crate) fn open_fast(&mut self, now: Time, config: &Config, data: &mut Pieces<P>) {
        self.marks.insert(Marks::FAST_OPENED | Marks::SYN_ACK_DUE);
        self.tx.una = self.tx.iss + 1;
        self.tx.next = self.tx.una;
        self.tx.max = self.tx.una;
        self.tx.partial_end = self.tx.una;
        let initial = self.initial_window(config);
        self.congestion.start(initial, self.tx.una, config);
        self.introduce_controller(now);
        let len = self.take_syn_data(now, config, data, false);
        self.marks.set(Marks::SYN_DATA, len > 0);
        self.rx.edge = self.rx.next;
    }

    /// Takes the data and the FIN that came with the peer's SYN and returns the length of the data. Data beyond the window is not
    /// acknowledged. As in Linux, this data is not taken as evidence of how the peer sends.
    fn take_syn_data(
        &mut self,
        now: Time,
        config: &Config,
        data: &mut Pieces<P>,
        fin: bool,
    ) -> u32 {
        let offered: u32 = data.iter().map(|piece| piece.len() as u32).sum();
        let len = offered.min(self.syn_window(config).into());
        truncate(data, len as usize);
        if len > 0 {
            self.marks.insert(Marks::PEER_SYN_DATA);
            self.note_segment_len(len, config);
            self.counts.bytes_received += u64::from(len);
            self.counts.data_segments_in = self.counts.data_segments_in.wrapping_add(1);
            self.last_data_at = Past::at(now);
        }
        let fin = fin && len == offered;
        self.rx.next = self.receive.deliver(self.rx.next, data, fin).next;
        len
    }

    /// Reports whether data arrived in other segments than the peer's SYN.
    pub(super) fn has_heard_data(&self) -> bool {
        let with_syn = u32::from(self.marks.contains(Marks::PEER_SYN_DATA));
        self.counts.data_segments_in != with_syn
    }

    /// Makes the SYN-ACK hold a cookie, with the option kind that the SYN used.
    pub(crate) fn owe_cookie(&mut self, experimental: bool) {
        self.marks.insert(Marks::COOKIE_DUE);
        self.marks.set(Marks::EXPERIMENTAL, experimental);
    }

    /// Reports whether the connection was opened by Fast Open and its handshake is not complete.
    pub(crate) fn is_opened_fast(&self) -> bool {
        self.marks.contains(Marks::FAST_OPENED)
    }

    /// The handshake is complete, and the stack knows it.
    pub(crate) fn end_fast_open(&mut self) {
        self.marks.remove(Marks::FAST_OPENED);
    }

    /// Reports whether a listener answered the SYN and the application does not know the connection yet.
    pub(crate) fn is_half_open(&self) -> bool {
        self.answers_request() && !self.is_opened_fast()
    }

    /// Reports whether a listener answered the SYN and the handshake is not complete.
    pub(super) fn answers_request(&self) -> bool {
        self.state == State::SynReceived && self.marks.contains(Marks::PASSIVE)
    }

    /// Returns the cookie that the first SYN-ACK holds. Retransmissions hold none, because the option may be why the first was
    /// lost.
    pub(super) fn cookie_due(
        &mut self,
        cx: &mut Context<'_>,
        again: bool,
    ) -> Option<FastOpenOption> {
        if !self.marks.contains(Marks::COOKIE_DUE) {
            return None;
        }
        self.marks.remove(Marks::COOKIE_DUE);
        if again {
            return None;
        }
        cx.stats.fast_open_cookies_sent += 1;
        Some(FastOpenOption {
            cookie: cx.fast_open.cookie(&self.flow),
            experimental: self.marks.contains(Marks::EXPERIMENTAL),
        })
    }

    /// Sends our SYN again, which the peer did not get.
    pub(super) fn send_syn_again(&mut self) {
        match self.is_opened_fast() {
            true => self.marks.insert(Marks::SYN_ACK_DUE),
            false => self.tx.next = self.tx.iss,
        }
    }

    // --- client side ---

    /// Makes the SYN request a cookie, or carry a cookie and data.
    pub(crate) fn ask_fast_open(&mut self, how: FastOpen) {
        self.marks.insert(Marks::FAST_OPEN);
        self.marks
            .set(Marks::WITHOUT_COOKIE, how == FastOpen::WithoutCookie);
    }

    /// Reports whether the connection asks for Fast Open and its SYN was not answered yet.
    pub(super) fn asks_fast_open(&self) -> bool {
        self.marks.contains(Marks::FAST_OPEN) && self.state == State::SynSent
    }

    /// Returns how many bytes of data the SYN may hold, and its option.
    fn syn_data_room(
        &self,
        now: Time,
        config: &Config,
        servers: &mut Servers,
    ) -> (u32, Option<FastOpenOption>) {
        if !self.asks_fast_open() {
            return (0, None);
        }
        let (option, mss) = match servers.offer(now, &self.flow) {
            Offer::Nothing => return (0, None),
            Offer::Option(..) if self.marks.contains(Marks::WITHOUT_COOKIE) => {
                (None, servers.mss(&self.flow))
            }
            Offer::Option(option, _) if option.cookie.is_request() => return (0, Some(option)),
            Offer::Option(option, mss) => (Some(option), mss),
        };
        // The MSS that any host accepts, unless the server is known to accept more (RFC 7413 4.1.3).
        let default_mss = match self.flow.remote.addr {
            IpAddr::V4(_) => DEFAULT_MSS_V4,
            IpAddr::V6(_) => DEFAULT_MSS_V6,
        };
        let mss = mss.unwrap_or(default_mss).min(config.mss);
        let mss = mss.min(self.options.path_mss);
        (mss.saturating_sub(OPTION_ROOM).into(), option)
    }

    /// Bytes of data that fit into the first SYN, as long as that was not sent.
    pub(crate) fn first_syn_room(&self, now: Time, config: &Config, servers: &mut Servers) -> u32 {
        match self.tx.max == self.tx.iss {
            true => self.syn_data_room(now, config, servers).0,
            false => 0,
        }
    }

    /// Returns how many bytes of data go with the first SYN, and its option (RFC 7413 4.2.1).
    pub(super) fn first_syn(&mut self, cx: &mut Context<'_>) -> (u32, Option<FastOpenOption>) {
        if !self.asks_fast_open() {
            return (0, None);
        }
        let servers = &mut cx.fast_open.servers;
        let (room, option) = self.syn_data_room(cx.now, cx.config, servers);
        if room == 0 && option.is_none() {
            cx.stats.fast_open_back_offs += 1;
            self.marks.remove(Marks::FAST_OPEN);
        }
        let experimental = option.is_some_and(|option| option.experimental);
        self.marks.set(Marks::EXPERIMENTAL, experimental);
        let first = self.tx.iss + 1;
        let record = self.boundaries.record_end(first);
        let record = record.map_or(u32::MAX, |end| end - first);
        let len = self.send.len().min(room).min(record);
        if len > 0 {
            self.counts.bytes_sent += u64::from(len);
            self.counts.data_segments_out = self.counts.data_segments_out.wrapping_add(1);
            cx.stats.fast_open_data_sent += 1;
        }
        (len, option)
    }

    /// Reports whether a SYN-ACK echoes a timestamp that none of our SYNs had: it then belongs to another connection, as do its data
    /// and its cookie.
    pub(super) fn is_strange_answer(&self, now: Time, header: &Header) -> bool {
        let Some(timestamps) = header.options.timestamps else {
            return false;
        };
        let age = self.clock.value(now).wrapping_sub(timestamps.echo);
        let most = self.waiting_since.elapsed(now).as_ps() / TIMESTAMP_TICK.as_ps() + 1;
        self.asks_fast_open() && self.options.timestamps && u64::from(age) > most
    }

    /// Remembers what the SYN-ACK says about Fast Open, and releases the data of the SYN that it acknowledges from the send buffer.
    /// Returns how many bytes of that data it does not acknowledge.
    pub(super) fn take_fast_open_answer(
        &mut self,
        cx: &mut Context<'_>,
        header: &Header,
        effects: &mut Effects,
    ) -> u32 {
        let first = self.tx.iss + 1;
        let sent = self.tx.max.saturating_since(first);
        let acked = header.ack.saturating_since(first).min(sent);
        let asked = self.marks.contains(Marks::FAST_OPEN);
        if asked && self.send.len() > sent {
            // Pending data travels with the ACK and counts as an answer.
            self.marks.insert(Marks::INTERACTIVE);
        }
        self.tx.max = first + acked;
        if acked > 0 {
            // The window of this segment counts from what it acknowledges.
            let window = self.tx.window;
            self.advance_una(cx, first + acked, acked, effects);
            self.tx.window = window;
            self.tx.next = self.tx.una;
            self.marks.set(Marks::SYN_DATA, acked == sent);
        }
        if asked {
            if acked > 0 {
                cx.fast_open.servers.worked(&self.flow);
                cx.stats.fast_open_data_acknowledged += 1;
            } else if sent > 0 {
                cx.stats.fast_open_data_refused += 1;
            }
            if self.state == State::SynSent {
                self.remember_server(cx, &header.options, sent, acked);
            }
            let asked = Marks::FAST_OPEN | Marks::WITHOUT_COOKIE | Marks::EXPERIMENTAL;
            self.marks.remove(asked);
        }
        sent - acked
    }

    /// Sends the data of the SYN again that the SYN-ACK did not acknowledge (RFC 7413 4.2.1). Keeps the congestion window, as the
    /// network did not lose the data. Data beyond the peer's window counts as never sent.
    pub(super) fn send_syn_data_again(&mut self, cx: &mut Context<'_>, len: u32) {
        let len = len.min(self.tx.window);
        if len == 0 {
            return;
        }
        let una = self.tx.una;
        let run = Run {
            seq: una,
            len,
            fin: false,
        };
        self.marks.insert(Marks::SYN_DATA_REFUSED);
        self.note_sent(cx, run, false);
        self.tx.max = run.end();
        self.tx.next = self.tx.max;
        if self.feedback.is_some() {
            self.tell_sent(cx, run, false, 0);
        }
        self.repeat_in_smaller_pieces();
        self.restart_retransmit(cx);
    }

    /// Reports whether a retransmission may hold data of the SYN, whose length says nothing about how the owner writes.
    pub(super) fn syn_data_was_refused(&self) -> bool {
        self.marks.contains(Marks::SYN_DATA_REFUSED)
    }

    /// Takes the data and the FIN that a SYN-ACK may hold (RFC 9293 3.10.7.3, fourth).
    pub(super) fn take_answer_text(
        &mut self,
        cx: &Context<'_>,
        header: &Header,
        data: &mut Pieces<P>,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        if !data.is_empty() && self.wants_no_data() {
            return Err(self.refuse_data(header, effects));
        }
        let (before, fin) = (self.rx.next, header.flags.contains(Flags::FIN));
        let len = self.take_syn_data(cx.now, cx.config, data, fin);
        effects.readable = len > 0;
        if self.rx.next != before + len {
            self.take_fin(effects);
        }
        Ok(())
    }

    /// Keeps the data of a simultaneous SYN until the connection is open (RFC 9293 3.10.7.3, fourth; 3.5). If this end asked for Fast
    /// Open, drops the data as Linux does, so that the peer sends it again.
    pub(super) fn keep_text_of_syn(&mut self, cx: &Context<'_>, data: &mut Pieces<P>) {
        if !self.asks_fast_open() && !self.wants_no_data() {
            self.take_syn_data(cx.now, cx.config, data, false);
            self.rx.edge = self.rx.next;
        }
    }

    /// Reports whether data of the peer's SYN waits for the connection to open.
    pub(super) fn holds_syn_text(&self) -> bool {
        self.state == State::SynReceived && self.marks.contains(Marks::PEER_SYN_DATA)
    }

    fn remember_server(&self, cx: &mut Context<'_>, options: &Options, sent: u32, acked: u32) {
        let given = options
            .fast_open
            .filter(|option| !option.cookie.is_request());
        let asked = !self.marks.contains(Marks::WITHOUT_COOKIE);
        let servers = &mut cx.fast_open.servers;
        servers.learn(&self.flow, given.filter(|_| asked), options.mss);
        // A retransmitted SYN asked for nothing, and the outcome of the first is known already.
        if given.is_some() || acked > 0 || self.counts.total_retransmissions > 0 {
            return;
        }
        if sent > 0 {
            servers.failed(cx.now, &self.flow);
        } else if asked {
            servers.request_ignored(&self.flow, self.marks.contains(Marks::EXPERIMENTAL));
        }
    }

    /// Records that a SYN with Fast Open was not answered, or that an ICMP error came for it: the next SYN does not ask, and nor do
    /// those of other connections for a while (RFC 7413 4.1.3.1). `by_chance`: the first loss of a SYN without data is not held against
    /// the server.
    pub(super) fn fast_open_failed(&self, cx: &mut Context<'_>, by_chance: bool) {
        if !self.asks_fast_open() || self.timers.retries > 0 {
            return;
        }
        cx.stats.fast_open_timeouts += 1;
        let servers = &mut cx.fast_open.servers;
        match by_chance && self.tx.max == self.tx.iss + 1 {
            true => servers.suspect(cx.now, &self.flow),
            false => servers.failed(cx.now, &self.flow),
        }
    }

    // --- invariants ---

    /// Returns the violated invariant about data sent and received before the handshake is complete, if any.
    pub(super) fn verify_opening(&self) -> Result<(), &'static str> {
        if self.is_opened_fast() {
            return match self.answers_request() {
                true => Ok(()),
                false => Err("a handshake that is pending after Fast Open is not complete"),
            };
        }
        if self.is_synchronized() {
            return Ok(());
        }
        let first: SeqNr = self.tx.iss + 1;
        let passive = self.marks.contains(Marks::PASSIVE);
        if self.tx.una != self.tx.iss || (passive && self.tx.max.after(first)) {
            return Err("before the handshake is complete only the SYN was sent");
        }
        let next = self.rx.irs + 1;
        if self.state == State::SynReceived && !self.holds_syn_text() && self.rx.next != next {
            return Err("before the handshake is complete only a SYN was received");
        }
        Ok(())
    }
}
