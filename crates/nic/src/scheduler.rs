//! Which piece of work is done next (handoff-policies 3.1).

use crate::config::Scheduler;
use crate::queues::Stamp;
use std::fmt::Debug;

/// Where work waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Transfers of data between host and adapter that are over; they count as arrived with what began them.
    Transfers,
    /// Received packets that wait for lookup.
    Arrivals,
    /// Received packets for the host.
    HostReceive,
    /// Packets of the host to be sent, and what else it asks of a socket for packets.
    HostSend,
    /// Received packets of connections on the NIC.
    NicReceive,
    /// Commands of the host.
    Commands,
    /// Segments that the NIC's TCP may send; they count as arrived with what triggered them.
    Transmit,
    /// TCP timers that are due.
    Timers,
    /// Connections to be relieved of.
    Relief,
}

/// When the oldest work of each source arrived; `None` where there is none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heads {
    /// Transfers of data that are over.
    pub transfers: Option<Stamp>,
    /// Received packets that wait for lookup.
    pub arrivals: Option<Stamp>,
    /// Received packets for the host.
    pub host_receive: Option<Stamp>,
    /// Packets of the host to be sent.
    pub host_send: Option<Stamp>,
    /// Received packets of connections on the NIC.
    pub nic_receive: Option<Stamp>,
    /// Commands of the host.
    pub commands: Option<Stamp>,
    /// Segments that the NIC's TCP may send.
    pub transmit: Option<Stamp>,
    /// TCP timers that are due.
    pub timers: Option<Stamp>,
    /// Connections to be relieved of.
    pub relief: Option<Stamp>,
}

impl Heads {
    /// That of one source.
    pub(crate) fn of(&self, source: Source) -> Option<Stamp> {
        match source {
            Source::Transfers => self.transfers,
            Source::Arrivals => self.arrivals,
            Source::HostReceive => self.host_receive,
            Source::HostSend => self.host_send,
            Source::NicReceive => self.nic_receive,
            Source::Commands => self.commands,
            Source::Transmit => self.transmit,
            Source::Timers => self.timers,
            Source::Relief => self.relief,
        }
    }

    /// Of which nobody knows whose they are before a little work has been done.
    fn unknown(&self) -> [(Option<Stamp>, Source); 2] {
        [
            (self.transfers, Source::Transfers),
            (self.arrivals, Source::Arrivals),
        ]
    }

    /// Packets that pass through to or from the host: little work each.
    fn host(&self) -> [(Option<Stamp>, Source); 2] {
        [
            (self.host_receive, Source::HostReceive),
            (self.host_send, Source::HostSend),
        ]
    }

    /// TCP and handoff. `Transmit` stands first: at equal stamps, output of the past goes before new input.
    fn nic(&self) -> [(Option<Stamp>, Source); 5] {
        [
            (self.transmit, Source::Transmit),
            (self.nic_receive, Source::NicReceive),
            (self.commands, Source::Commands),
            (self.timers, Source::Timers),
            (self.relief, Source::Relief),
        ]
    }
}

/// Says which piece of work is done next (handoff-policies 3.1). [`Scheduler`](crate::Scheduler) names the paper's two.
pub trait Schedule: Debug + Send {
    /// The source whose oldest work is done next. If that has none, or for `None`, it is the paper's scheduler that says.
    fn next(&self, heads: &Heads) -> Option<Source>;

    /// Whether lookup is done as soon as a packet arrives. If not, all that waits for it counts in Qlen.
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

/// One of the paper's schedulers, or the caller's own.
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

/// The source whose oldest work is to be done next, if there is any work.
///
/// Under host first commands go before NIC packets: so work in excess waits where load control looks for it, on the receive
/// queue (handoff-policies 3.2), and a NIC short of time still takes connections back.
///
/// Host first needs lookup before anything else: until it is done nobody knows whose packet it is, nor whose a transfer that is over. First
/// come, first served has no use for that, so a packet waits where it arrived and is looked up when its turn comes.
fn pick(scheduler: Scheduler, heads: &Heads) -> Option<Source> {
    let lookup = || oldest(heads.unknown());
    let commands = || oldest([(heads.commands, Source::Commands)]);
    let host = || oldest(heads.host());
    let nic = || oldest(heads.nic());
    let next = match scheduler {
        Scheduler::HostFirst => lookup().or_else(host).or_else(commands).or_else(nic),
        Scheduler::Fcfs => [host(), nic(), lookup()]
            .into_iter()
            .flatten()
            .min_by_key(|(stamp, _)| *stamp),
    };
    next.map(|(_, source)| source)
}

/// The source with the lowest stamp; the first named one at equal stamps.
fn oldest<const N: usize>(heads: [(Option<Stamp>, Source); N]) -> Option<(Stamp, Source)> {
    heads
        .into_iter()
        .filter_map(|(stamp, source)| Some((stamp?, source)))
        .min_by_key(|(stamp, _)| *stamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Heads stamped in the order of `sources`.
    fn heads(sources: &[Source]) -> Heads {
        let mut clock = Stamp::default();
        let mut heads = Heads::default();
        for source in sources {
            *slot(&mut heads, *source) = Some(clock.take());
        }
        heads
    }

    fn slot(heads: &mut Heads, source: Source) -> &mut Option<Stamp> {
        match source {
            Source::Transfers => &mut heads.transfers,
            Source::Arrivals => &mut heads.arrivals,
            Source::HostReceive => &mut heads.host_receive,
            Source::HostSend => &mut heads.host_send,
            Source::NicReceive => &mut heads.nic_receive,
            Source::Commands => &mut heads.commands,
            Source::Transmit => &mut heads.transmit,
            Source::Timers => &mut heads.timers,
            Source::Relief => &mut heads.relief,
        }
    }

    /// Nothing is left undone because somebody's own scheduler does not see it.
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

    /// The order in which one entry of each source is served.
    fn served(scheduler: Scheduler, mut heads: Heads) -> Vec<Source> {
        let mut order = Vec::new();
        while let Some(source) = pick(scheduler, &heads) {
            *slot(&mut heads, source) = None;
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
    fn first_come_first_served_over_everything() {
        assert_eq!(served(Scheduler::Fcfs, heads(&MIXED)), MIXED);
    }

    #[test]
    fn host_packets_first_then_commands() {
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
    fn host_packets_among_themselves_by_arrival() {
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
        let heads = Heads {
            transmit: stamp,
            nic_receive: stamp,
            ..Heads::default()
        };
        for scheduler in [Scheduler::Fcfs, Scheduler::HostFirst] {
            assert_eq!(pick(scheduler, &heads), Some(Source::Transmit));
        }
    }

    #[test]
    fn nothing_to_do() {
        assert_eq!(pick(Scheduler::Fcfs, &Heads::default()), None);
        assert_eq!(pick(Scheduler::HostFirst, &Heads::default()), None);
    }
}
