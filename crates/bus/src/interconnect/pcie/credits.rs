//! Limits on what a sender may have in flight: flow-control credits, tags.

use std::collections::VecDeque;

use baton_wire::Time;

/// A stock of header and data credits. Credits that were taken return at a known time, in order.
#[derive(Clone, Debug)]
pub(super) struct Credits {
    headers: Option<u32>,
    data: Option<u32>,
    back: VecDeque<Back>,
}

#[derive(Clone, Copy, Debug)]
struct Back {
    at: Time,
    headers: u32,
    data: u32,
}

impl Credits {
    /// Creates a stock. 0 means infinite.
    pub(super) fn new(headers: u32, data: u32) -> Self {
        Self {
            headers: (headers > 0).then_some(headers),
            data: (data > 0).then_some(data),
            back: VecDeque::new(),
        }
    }

    /// Returns whether senders never wait for these credits.
    pub(super) fn are_infinite(&self) -> bool {
        self.headers.is_none() && self.data.is_none()
    }

    /// Returns whether these credits are available at `at`.
    #[inline]
    pub(super) fn are_available(&self, at: Time, headers: u32, data: u32) -> bool {
        self.available_at(headers, data)
            .is_some_and(|available_at| available_at <= at)
    }

    /// Returns when these credits are available, or `None` if even those on their way back do not suffice.
    #[inline]
    pub(super) fn available_at(&self, headers: u32, data: u32) -> Option<Time> {
        let (have_headers, have_data) = (
            self.headers.unwrap_or(u32::MAX),
            self.data.unwrap_or(u32::MAX),
        );
        if have_headers >= headers && have_data >= data {
            return Some(Time::ZERO);
        }
        self.returned_at(
            headers - have_headers.min(headers),
            data - have_data.min(data),
        )
    }

    /// Returns when this many credits have returned.
    fn returned_at(&self, headers: u32, data: u32) -> Option<Time> {
        let (mut have_headers, mut have_data) = (0_u32, 0_u32);
        let mut at = Time::ZERO;
        let mut back = self.back.iter();
        while have_headers < headers || have_data < data {
            let next = back.next()?;
            have_headers = have_headers.saturating_add(next.headers);
            have_data = have_data.saturating_add(next.data);
            at = next.at;
        }
        Some(at)
    }

    /// Takes credits at `now`, when they must be available. [`Credits::give_back`] returns them.
    #[inline]
    pub(super) fn take(&mut self, now: Time, headers: u32, data: u32) {
        let short = self.headers.is_some_and(|stock| stock < headers)
            || self.data.is_some_and(|stock| stock < data);
        if short {
            self.take_back(now);
        }
        if let Some(stock) = &mut self.headers {
            *stock -= headers;
        }
        if let Some(stock) = &mut self.data {
            *stock -= data;
        }
    }

    /// Adds the credits that have returned by `now` to the stock. Called only when the stock is short, for all of them together.
    fn take_back(&mut self, now: Time) {
        let returned = self.back.partition_point(|back| back.at <= now);
        for Back { headers, data, .. } in self.back.drain(..returned) {
            add(&mut self.headers, headers);
            add(&mut self.data, data);
        }
    }

    /// Returns taken credits at `at`, which must not be before that of earlier calls.
    #[inline]
    pub(super) fn give_back(&mut self, at: Time, headers: u32, data: u32) {
        let counts = (self.headers.is_some() && headers > 0) || (self.data.is_some() && data > 0);
        if !counts {
            return;
        }
        debug_assert!(self.back.back().is_none_or(|last| last.at <= at));
        self.back.push_back(Back { at, headers, data });
    }
}

fn add(stock: &mut Option<u32>, more: u32) {
    if let Some(stock) = stock {
        *stock += more;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credits_return_in_time() {
        let (soon, later) = (Time::from_ps(10), Time::from_ps(20));
        let mut credits = Credits::new(2, 0);
        assert_eq!(credits.available_at(2, 1_000), Some(Time::ZERO));
        credits.take(Time::ZERO, 2, 1_000);
        assert_eq!(credits.available_at(1, 0), None);
        credits.give_back(soon, 1, 500);
        credits.give_back(later, 1, 500);
        assert_eq!(credits.available_at(1, 0), Some(soon));
        assert_eq!(credits.available_at(2, 0), Some(later));
        credits.take(soon, 1, 1);
        assert_eq!(credits.available_at(1, 0), Some(later));
        assert_eq!(credits.available_at(2, 0), None);
    }
}
