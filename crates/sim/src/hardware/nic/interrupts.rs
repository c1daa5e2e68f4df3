//! The interrupt of a queue.

use super::NicHardware;
use super::coalescing::Coalescing;
use baton_wire::Time;

/// State of an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The driver polls, so that the NIC never interrupts.
    Polled,
    /// There is no reason to interrupt.
    None,
    /// A message has to be sent.
    Wanted,
    /// The message is on its way.
    Coming,
    /// The interrupt is pending at the processor.
    Here,
    /// The driver is running and looks for work by itself.
    Masked,
}

/// The interrupt of a queue, which coalesces frames sent and received.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt {
    state: State,
    /// Whether the interrupt crosses to the processor by a transfer of its own.
    is_message: bool,
    sent: Coalescing,
    received: Coalescing,
}

impl Interrupt {
    pub(crate) fn new(profile: &NicHardware, is_polled: bool, is_message: bool) -> Self {
        Self {
            state: match is_polled {
                true => State::Polled,
                false => State::None,
            },
            is_message,
            sent: Coalescing::new(profile.send_interrupts),
            received: Coalescing::new(profile.receive_interrupts),
        }
    }

    /// Records that a frame was sent. `others` descriptors of the ring do not wait to be reclaimed.
    pub(crate) fn handle_sent(&mut self, now: Time, others: u32) {
        let is_enough = self.sent.add(now, others);
        self.interrupt_if(is_enough);
    }

    /// Records that a frame or a response has reached the host's memory.
    pub(crate) fn handle_received(&mut self, now: Time) {
        let is_enough = self.received.add(now, u32::MAX);
        self.interrupt_if(is_enough);
    }

    /// Interrupts if a coalescing time has passed.
    pub(crate) fn handle_timer(&mut self, now: Time) {
        self.interrupt_if(self.sent.is_due(now) || self.received.is_due(now));
    }

    fn interrupt_if(&mut self, is_enough: bool) {
        if is_enough && self.state == State::None {
            self.state = match self.is_message {
                true => State::Wanted,
                false => State::Here,
            };
        }
    }

    /// Returns whether a message is to be sent now.
    pub(crate) fn poll_message(&mut self) -> bool {
        self.advance(State::Wanted, State::Coming)
    }

    /// Handles the arrival of the message.
    pub(crate) fn handle_message(&mut self) {
        self.state = State::Here;
    }

    /// Returns whether the processor is interrupted. No other interrupt follows until the driver [ends](Self::end) this one.
    pub(crate) fn take(&mut self) -> bool {
        self.advance(State::Here, State::Masked)
    }

    fn advance(&mut self, from: State, to: State) -> bool {
        let is_there = self.state == from;
        if is_there {
            self.state = to;
        }
        is_there
    }

    /// Ends an interrupt that was taken: the driver has handled all but this many sent and received frames. `others` descriptors of the
    /// send ring do not wait to be reclaimed.
    pub(crate) fn end(&mut self, now: Time, (sent, others): (u32, u32), received: u32) {
        if self.advance(State::Masked, State::None) {
            let of_sent = self.sent.restart(now, sent, others);
            let of_received = self.received.restart(now, received, u32::MAX);
            self.interrupt_if(of_sent || of_received);
        }
    }

    /// Returns when the processor is interrupted if nothing else happens, or [`Time::NEVER`].
    pub(crate) fn due(&self) -> Time {
        let is_free = self.state == State::None;
        let times = [self.sent.due(), self.received.due()].into_iter().flatten();
        times.filter(|_| is_free).min().unwrap_or(Time::NEVER)
    }

    /// Returns the times at which coalescing ends, each only once.
    pub(crate) fn next_dues(&mut self) -> impl Iterator<Item = Time> {
        let is_polled = self.state == State::Polled;
        let times = [&mut self.sent, &mut self.received].map(Coalescing::next_due);
        times.into_iter().flatten().filter(move |_| !is_polled)
    }
}

#[cfg(test)]
mod tests {
    use super::super::CoalescingRule;
    use super::*;
    use baton_wire::Span;

    #[test]
    fn received_frames_are_announced_together_until_the_driver_ends() {
        let at = |us| Time::ZERO + Span::from_us(us);
        let mut interrupt = Interrupt::new(
            &NicHardware {
                receive_interrupts: CoalescingRule {
                    time_ns: Some(50_000),
                    frames: Some(3),
                    other_descriptors: None,
                },
                ..NicHardware::default()
            },
            false,
            true,
        );
        let receive = |interrupt: &mut Interrupt, us, count| {
            (0..count).for_each(|_| interrupt.handle_received(at(us)));
            interrupt.poll_message()
        };
        assert_eq!(interrupt.due(), Time::NEVER);
        assert!(!receive(&mut interrupt, 10, 2));
        assert_eq!(interrupt.due(), at(60));
        assert!(receive(&mut interrupt, 20, 1), "the third");
        assert_eq!(interrupt.due(), Time::NEVER, "it is on its way");
        interrupt.handle_message();
        assert!(interrupt.take() && !interrupt.take());
        assert!(!receive(&mut interrupt, 30, 9), "the driver runs");
        interrupt.end(at(40), (0, 0), 0);
        assert!(!receive(&mut interrupt, 50, 1));
        interrupt.handle_timer(at(99));
        assert!(!interrupt.poll_message());
        interrupt.handle_timer(at(100));
        assert!(interrupt.poll_message());
        interrupt.end(at(101), (0, 0), 0);
        assert!(!receive(&mut interrupt, 102, 3), "still on its way");
    }
}
