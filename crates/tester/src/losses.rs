//! Where frames were lost: the missing frames, attributed to places by the counters of the interfaces.
//!
//! Sequence numbers give the exact number of missing frames. Counters of interfaces may include other traffic, and may count the same frame
//! twice. So each place is attributed at most as many frames as are still missing, the most reliable counter first; the rest is not
//! attributed.

use crate::counts::Counts;
use crate::task::Outcome;
use baton_microbench::{Losses, Place, Stream};

/// Names, or parts of names, of drivers' counters, by what they count.
const NO_DESCRIPTOR: [&str; 5] = ["no_buf", "no_dma", "out_of_buffer", "no_desc", "nobuf"];
const FIFO: [&str; 4] = ["rx_fifo", "rx_over", "rx_discards", "rx_no_fifo"];

/// Returns the counts of a stream. Frames lost between the interfaces count as lost at `between`.
pub fn placed(sender: &Outcome, receiver: &Outcome, between: Place) -> Stream {
    let (Some(departures), Some(arrivals)) = (sender.departures, receiver.arrivals) else {
        return Stream::default();
    };
    let mut losses = Losses::default();
    losses.add(Place::Sender, departures.late);
    losses.add(Place::DriverRing, departures.refused);
    let mut missing = departures.handed.saturating_sub(arrivals.delivered);
    let mut lost_by_sender = 0;
    for (place, counted) in counted(&sender.counts, &receiver.counts, between) {
        let here = counted.min(missing);
        missing -= here;
        losses.add(place, here);
        if place.is_at_sender() {
            lost_by_sender += here;
        }
    }
    losses.add(Place::Unplaced, missing);
    Stream {
        offered: departures.offered,
        sent: departures.handed - lost_by_sender,
        delivered: arrivals.delivered,
        losses,
    }
}

/// Returns the counts for each place, the most reliable first.
fn counted(sender: &Counts, receiver: &Counts, between: Place) -> Vec<(Place, u64)> {
    let mut places = vec![
        (
            Place::Socket,
            receiver.of_port("port.dropped.receive_ring_full"),
        ),
        (
            Place::TransmitBuffer,
            sender.of_port("port.dropped.transmit_refused")
                + sender.of_port("port.dropped.link_down"),
        ),
    ];
    if !receiver.is_far_end {
        let link = &receiver.link;
        let no_descriptor = link
            .rx_missed_errors
            .max(receiver.of_driver(&NO_DESCRIPTOR));
        let fifo = link.rx_fifo_errors.max(link.rx_over_errors);
        places.extend([
            (Place::Crc, link.rx_crc_errors.max(link.rx_frame_errors)),
            (Place::NoDescriptor, no_descriptor),
            (Place::ReceiveFifo, fifo.max(receiver.of_driver(&FIFO))),
            (Place::KernelQueue, link.rx_dropped),
        ]);
    }
    if !sender.is_far_end {
        let link = &sender.link;
        places.extend([
            (Place::TransmitBuffer, link.tx_fifo_errors),
            (Place::DriverRing, link.tx_dropped),
            (Place::Wire, link.tx_carrier_errors),
        ]);
    }
    // Between two interfaces, compare their counters. At a far end, the device counts the frames that the kernel's end could not send.
    match (sender.is_far_end, receiver.is_far_end) {
        (false, false) => {
            let left = sender.link.tx_packets;
            let lost = left.saturating_sub(receiver.link.rx_packets);
            places.push((between, lost));
        }
        (_, true) => places.push((Place::ReceiveFifo, receiver.link.tx_dropped)),
        (true, false) => {}
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{Arrivals, Departures};
    use proptest::prelude::*;

    fn ends(handed: u64, delivered: u64) -> (Outcome, Outcome) {
        let departures = Departures {
            offered: handed + 7,
            handed,
            refused: 3,
            late: 4,
            ..Departures::default()
        };
        let sender = Outcome {
            departures: Some(departures),
            ..Outcome::default()
        };
        let arrivals = Arrivals {
            delivered,
            ..Arrivals::default()
        };
        let receiver = Outcome {
            arrivals: Some(arrivals),
            ..Outcome::default()
        };
        (sender, receiver)
    }

    proptest! {
        #[test]
        fn losses_add_up_whatever_was_counted(
            handed in 0_u64..1_000, lost in 0_u64..1_000, counters in proptest::array::uniform8(0_u64..500), tap: bool,
        ) {
            let delivered = handed.saturating_sub(lost);
            let (mut sender, mut receiver) = ends(handed, delivered);
            receiver.counts.port.insert("port.dropped.receive_ring_full".into(), counters[0]);
            receiver.counts.driver.insert("rx0_no_buf".into(), counters[1]);
            receiver.counts.is_far_end = tap;
            let link = &mut receiver.counts.link;
            (link.rx_missed_errors, link.rx_dropped, link.rx_packets) = (counters[2], counters[3], counters[4]);
            let link = &mut sender.counts.link;
            (link.tx_dropped, link.tx_packets, link.tx_fifo_errors) = (counters[5], counters[6], counters[7]);
            let stream = placed(&sender, &receiver, Place::Wire);
            prop_assert_eq!(stream.offered, stream.delivered + stream.losses.total());
            let at_sender: u64 = stream.losses.iter().filter(|(place, _)| place.is_at_sender()).map(|(_, frames)| frames).sum();
            prop_assert_eq!(stream.offered, stream.sent + at_sender);
        }
    }

    #[test]
    fn each_counter_explains_at_most_the_missing_frames() {
        let (mut sender, mut receiver) = ends(100, 60);
        let link = &mut receiver.counts.link;
        (link.rx_missed_errors, link.rx_dropped) = (5, 10);
        receiver
            .counts
            .driver
            .insert("rx_queue_0_no_dma_resources".into(), 6);
        sender.counts.link.tx_dropped = 10;
        let stream = placed(&sender, &receiver, Place::Wire);
        let expected = [
            (Place::Sender, 4),
            (Place::DriverRing, 13),
            (Place::NoDescriptor, 6),
            (Place::KernelQueue, 10),
            (Place::Unplaced, 14),
        ];
        assert_eq!(stream.losses.iter().collect::<Vec<_>>(), expected);
        assert_eq!(
            (stream.offered, stream.sent, stream.delivered),
            (107, 90, 60)
        );
    }
}
