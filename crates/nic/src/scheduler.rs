//! Selects the next piece of work (handoff-policies 3.1).

use crate::config::Scheduler;
use crate::queues::Stamp;
use std::fmt::Debug;

/// A kind of pending work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Completed data transfers between host and adapter. Each has the arrival time of the request that started it.
    Transfers,
    /// Received packets that wait for lookup.
    Arrivals,
    /// Received packets for the host.
    HostReceive,
    /// Packets of the host to be sent, and its other requests to packet sockets.
    HostSend,
    /// Received packets of connections on the NIC.
    NicReceive,
    /// Commands of the host.
    Commands,
    /// Segments that the NIC's TCP may send. Each has the arrival time of the event that triggered it.
    Transmit,
    /// TCP timers that are due.
    Timers,
    /// Connections that load control asks to leave.
    Relief,
}

const SOURCES: usize = 9;

/// Work whose owner is unknown until a little processing has been done.
const UNKNOWN: [Source; 2] = [Source::Transfers, Source::Arrivals];

/// Packets that pass through to or from the host, each of which needs little work.
const HOST: [Source; 2] = [Source::HostReceive, Source::HostSend];

/// TCP and handoff. `Transmit` comes first: at equal stamps, output for earlier input goes before new input.
const NIC: [Source; 5] = [
    Source::Transmit,
    Source::NicReceive,
    Source::Commands,
    Source::Timers,
    Source::Relief,
];

/// All sources, in the order of service at equal stamps.
const ANY: [Source; SOURCES] = [
    HOST[0], HOST[1], NIC[0], NIC[1], NIC[2], NIC[3], NIC[4], UNKNOWN[0], UNKNOWN[1],
];

/// Arrival of the oldest work of each source.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heads([Option<Stamp>; SOURCES]);

impl Heads {
    /// Returns the arrival of the oldest work of a source, or `None` if the source has no work.
    #[inline]
    pub fn of(&self, source: Source) -> Option<Stamp> {
        self.0[source as usize]
    }

    /// Sets the arrival of a source.
    #[inline]
    pub(crate) fn with(mut self, source: Source, stamp: Option<Stamp>) -> Self {
        self.0[source as usize] = stamp;
        self
    }

    /// Sets the arrival of a source to `stamp` if that is earlier than the current one.
    #[inline]
    pub(crate) fn with_sooner(self, source: Source, stamp: Option<Stamp>) -> Self {
        match (self.of(source), stamp) {
            (Some(known), Some(other)) if known <= other => self,
            (_, None) => self,
            (_, Some(_)) => self.with(source, stamp),
        }
    }

    /// Returns the source in `sources` with the lowest stamp. Of sources with equal stamps, the first one in `sources` wins.
    #[inline]
    fn oldest(&self, sources: &[Source]) -> Option<Source> {
        let turn = |source: Source| self.of(source).map_or(u64::MAX, Stamp::place);
        let first = sources.iter().copied().min_by_key(|&source| turn(source));
        first.filter(|&source| self.of(source).is_some())
    }
}

/// Selects the next piece of work (handoff-policies 3.1). [`Scheduler`](crate::Scheduler) implements the two schedulers of the paper.
pub trait Schedule: Debug + Send {
    /// Returns the source whose oldest work is done next. If that source has no work, or for `None`, the configured scheduler of the paper
    /// decides.
    fn next(&self, heads: &Heads) -> Option<Source>;

    /// Returns whether lookup is done as soon as a packet arrives. If not, all packets that wait for lookup count in Qlen.
    fn looks_up_first(&self) -> bool;
}

impl Schedule for Scheduler {
    fn next(&self, heads: &Heads) -> Option<Source> {
        pick(*self, heads)
    }

    fn looks_up_first(&self) -> bool {
        *self == Self::HostFirst
    }
}

/// One of the paper's schedulers, optionally preceded by a schedule of the caller.
#[derive(Debug)]
pub(crate) struct Order {
    known: Scheduler,
    own: Option<Box<dyn Schedule>>,
}

impl Order {
    pub(crate) fn new(known: Scheduler) -> Self {
        Self { known, own: None }
    }

    pub(crate) fn set_own(&mut self, own: Option<Box<dyn Schedule>>) {
        self.own = own;
    }

    #[inline]
    pub(crate) fn next(&self, heads: &Heads) -> Option<Source> {
        let own = self.own.as_ref().and_then(|own| own.next(heads));
        own.filter(|&source| heads.of(source).is_some())
            .or_else(|| pick(self.known, heads))
    }

    pub(crate) fn looks_up_first(&self) -> bool {
        match &self.own {
            None => self.known.looks_up_first(),
            Some(own) => own.looks_up_first(),
        }
    }
}

/// Returns the source whose oldest work is done next, if there is any work.
///
/// Under host first, commands go before NIC packets. Excess work therefore waits on the receive queue, where load control looks for it
/// (handoff-policies 3.2), and an overloaded NIC still takes commands that hand connections back.
///
/// Host first needs lookup before anything else, because only lookup reveals to whom a packet or a completed transfer belongs. First come,
/// first served does not need that, so a packet stays in the arrival queue and is looked up when its turn comes.
#[inline]
fn pick(scheduler: Scheduler, heads: &Heads) -> Option<Source> {
    match scheduler {
        Scheduler::HostFirst => (heads.oldest(&UNKNOWN))
            .or_else(|| heads.oldest(&HOST))
            .or_else(|| heads.oldest(&[Source::Commands]))
            .or_else(|| heads.oldest(&NIC)),
        Scheduler::Fcfs => heads.oldest(&ANY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns heads stamped in the order of `sources`.
    fn heads(sources: &[Source]) -> Heads {
        let mut clock = Stamp::default();
        let mut heads = Heads::default();
        for source in sources {
            heads = heads.with(*source, Some(clock.take()));
        }
        heads
    }

    /// Work is done even if the caller's schedule ignores its source.
    #[test]
    fn a_schedule_that_names_a_source_without_work_is_not_followed() {
        #[derive(Debug)]
        struct Always(Option<Source>);

        impl Schedule for Always {
            fn next(&self, _heads: &Heads) -> Option<Source> {
                self.0
            }

            fn looks_up_first(&self) -> bool {
                false
            }
        }

        let heads = heads(&[Source::Arrivals, Source::Commands]);
        for (named, next) in [
            (Some(Source::Commands), Source::Commands),
            (Some(Source::Timers), Source::Arrivals),
            (None, Source::Arrivals),
        ] {
            let mut order = Order::new(Scheduler::Fcfs);
            order.set_own(Some(Box::new(Always(named))));
            assert_eq!(order.next(&heads), Some(next));
        }
    }

    /// Returns the order in which one entry of each source is served.
    fn served(scheduler: Scheduler, mut heads: Heads) -> Vec<Source> {
        let mut order = Vec::new();
        while let Some(source) = pick(scheduler, &heads) {
            heads = heads.with(source, None);
            order.push(source);
        }
        order
    }

    const MIXED: [Source; 9] = [
        Source::NicReceive,
        Source::HostSend,
        Source::Commands,
        Source::Timers,
        Source::HostReceive,
        Source::Relief,
        Source::Transmit,
        Source::Arrivals,
        Source::Transfers,
    ];

    #[test]
    fn fcfs_serves_all_sources_in_order_of_arrival() {
        assert_eq!(served(Scheduler::Fcfs, heads(&MIXED)), MIXED);
    }

    #[test]
    fn host_first_serves_host_packets_before_commands() {
        use Source::*;
        let order = served(Scheduler::HostFirst, heads(&MIXED));
        assert_eq!(
            order,
            [
                Arrivals,
                Transfers,
                HostSend,
                HostReceive,
                Commands,
                NicReceive,
                Timers,
                Relief,
                Transmit
            ]
        );
    }

    #[test]
    fn host_first_serves_host_packets_in_order_of_arrival() {
        use Source::*;
        let order = served(
            Scheduler::HostFirst,
            heads(&[NicReceive, HostReceive, HostSend]),
        );
        assert_eq!(order, [HostReceive, HostSend, NicReceive]);
    }

    #[test]
    fn output_goes_before_input_of_the_same_stamp() {
        let stamp = Some(Stamp::default());
        let heads = Heads::default()
            .with(Source::Transmit, stamp)
            .with(Source::NicReceive, stamp);
        for scheduler in [Scheduler::Fcfs, Scheduler::HostFirst] {
            assert_eq!(pick(scheduler, &heads), Some(Source::Transmit));
        }
    }

    #[test]
    fn without_work_nothing_is_picked() {
        assert_eq!(pick(Scheduler::Fcfs, &Heads::default()), None);
        assert_eq!(pick(Scheduler::HostFirst, &Heads::default()), None);
    }
}
