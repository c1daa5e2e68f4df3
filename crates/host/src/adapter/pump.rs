//! Transfers everything that can be transferred between the sockets and the link.

use super::OsLayer;
use baton_bus::HostLink;
use baton_bus::link::{Inline, LinkError};
use baton_wire::{Span, Time};

/// Time after which requests are offered again to a full link, which does not report when it has space.
const RETRY: Span = Span::from_us(20);

impl<P: Inline> OsLayer<P> {
    /// Ends a unit of work: transfers the requests that are due, then handles the responses that have arrived. Returns true if anything
    /// happened; something may then have become ready or due.
    ///
    /// # Errors
    /// The link is unusable: continue with [`OsLayer::handle_link_lost`].
    pub fn pump<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        link: &mut L,
    ) -> Result<bool, LinkError> {
        let sent = self.transmit(now, link)?;
        let received = self.gather(now, link)?;
        self.acceptable |= self.has_untaken();
        Ok(sent || received)
    }

    /// Submits what waits to be submitted, and transfers the requests that are due. Returns true if there was anything.
    ///
    /// # Errors
    /// The link is unusable.
    pub fn transmit<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        link: &mut L,
    ) -> Result<bool, LinkError> {
        self.now = now;
        let requests = self.stats.requests;
        self.start_cache(now);
        let mut moved = self.fire_corks(now);
        loop {
            self.submit_all(now, link);
            self.begin_opening(now, link);
            self.post_accepts(now, link);
            if !self.put(now, link)? {
                break;
            }
            moved = true;
        }
        moved |= self.wake_waiting(link);
        moved |= self.wake_fetching(link);
        self.room_for_imports = self.room_for_pledges(link);
        Ok(moved || self.stats.requests != requests)
    }

    /// Transfers the requests that are due. Returns true if the link took some.
    fn put<L: HostLink<Data = P>>(&mut self, now: Time, link: &mut L) -> Result<bool, LinkError> {
        let mut moved = false;
        self.retry_at = None;
        while !self.queue.is_empty() {
            let transfer = self.queue.next_transfer(now);
            let offered = transfer.len();
            if offered == 0 {
                break;
            }
            let taken = link.put(now, transfer)?;
            self.queue.transferred(taken, offered);
            moved |= taken > 0;
            if taken < offered {
                self.retry_at = Some(now + RETRY);
                break;
            }
        }
        Ok(moved)
    }

    /// Takes and handles the responses that have arrived. Returns true if there were any.
    ///
    /// # Errors
    /// The link is unusable.
    pub fn gather<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        link: &mut L,
    ) -> Result<bool, LinkError> {
        let mut responses = std::mem::take(&mut self.responses);
        responses.clear();
        let got = link.get(now, &mut responses);
        let handled = self.handle_responses(now, link, &responses);
        let any = !responses.is_empty();
        self.responses = responses;
        self.room_for_imports = self.room_for_pledges(link);
        // Responses that arrived before the link was lost still count.
        handled?;
        got?;
        Ok(any)
    }

    /// Returns when [`OsLayer::pump`] has work even if nothing arrives: at a batching or cork timer, or immediately.
    pub fn poll_timeout(&self) -> Option<Time> {
        let has_room = self.queue.room() > self.room_in_vain;
        let is_due = self.queue.is_due(self.now) && !self.queue.is_held_up();
        if has_room && !self.submitting.is_empty() || is_due {
            return Some(self.now);
        }
        let timers = [self.queue.poll_timeout(), self.corks.next(), self.retry_at];
        let first = timers.map(|timer| timer.unwrap_or(Time::NEVER));
        let first = first.into_iter().fold(Time::NEVER, Time::min);
        (first < Time::NEVER).then_some(first)
    }
}
