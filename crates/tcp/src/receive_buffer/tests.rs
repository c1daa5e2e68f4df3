use super::*;
use bytes::Bytes;
use proptest::prelude::*;
use smallvec::smallvec;

/// Data in which every byte is a function of its position in the stream.
fn data(start: usize, len: usize) -> Pieces<Bytes> {
    let bytes: Vec<u8> = (start..start + len)
        .map(|at| (at * 7 % 251) as u8)
        .collect();
    let cut = len / 3;
    // Sometimes in two pieces.
    match len % 2 {
        0 => smallvec![Bytes::from(bytes)],
        _ => smallvec![
            Bytes::copy_from_slice(&bytes[..cut]),
            Bytes::copy_from_slice(&bytes[cut..])
        ],
    }
}

fn without_empty(pieces: Pieces<Bytes>) -> Pieces<Bytes> {
    pieces
        .into_iter()
        .filter(|piece| !piece.is_empty())
        .collect()
}

const STREAM: usize = 200;
/// The peer's first sequence number, close to the wrap.
const FIRST: SeqNr = SeqNr(u32::MAX - 90);

/// A stream of 200 bytes and a FIN, of which arbitrary parts arrive in arbitrary order.
struct Model {
    arrived: [bool; STREAM + 1],
    next: usize,
}

impl Model {
    fn advance(&mut self) {
        while self.next <= STREAM && self.arrived[self.next] {
            self.next += 1;
        }
    }

    /// Runs of arrived numbers beyond `next`.
    fn ranges(&self) -> Vec<(usize, usize)> {
        let mut ranges = Vec::new();
        let mut at = self.next;
        while at <= STREAM {
            if self.arrived[at] {
                let end = (at..=STREAM)
                    .find(|&end| !self.arrived[end])
                    .unwrap_or(STREAM + 1);
                ranges.push((at, end));
                at = end;
            }
            at += 1;
        }
        ranges
    }
}

fn number(at: usize) -> SeqNr {
    FIRST + at as u32
}

proptest! {
    #[test]
    fn data_in_any_order_is_delivered_once(
        segments in proptest::collection::vec((0..STREAM, 1..60usize, any::<bool>()), 1..60),
    ) {
        let mut buffer: ReceiveBuffer<Bytes> = ReceiveBuffer::new();
        let mut model = Model { arrived: [false; STREAM + 1], next: 0 };
        let mut read = 0;
        for (start, len, moves) in segments {
            let end = (start + len).min(STREAM);
            let fin = start + len > STREAM;
            // As the connection does, cut what is old.
            let start = start.max(model.next);
            if start > end || (start == end && !fin) || model.next > STREAM {
                continue;
            }
            let mut payload = without_empty(data(start, end - start));
            if start == model.next {
                let delivered = buffer.deliver(number(start), &mut payload, fin);
                model.arrived[start..end].fill(true);
                model.arrived[STREAM] |= fin;
                model.advance();
                prop_assert_eq!(delivered, Delivered { next: number(model.next), fin: model.next > STREAM });
            } else {
                prop_assert!(buffer.keep(number(start), payload, fin));
                model.arrived[start..end].fill(true);
                model.arrived[STREAM] |= fin;
                let blocks = buffer.sack_blocks(4);
                prop_assert!(blocks[0].start.at_or_before(number(start)) && blocks[0].end.at_or_after(number(end)));
            }
            let ranges = buffer.behind.iter().flat_map(|behind| &behind.ranges);
            let blocks: Vec<_> = ranges.map(|range| SackBlock { start: range.start, end: range.end }).collect();
            let expected: Vec<_> = model.ranges().into_iter().map(|(start, end)| SackBlock { start: number(start), end: number(end) }).collect();
            prop_assert_eq!(blocks, expected);
            prop_assert_eq!(buffer.verify(number(model.next), number(STREAM)), Ok(()));
            if moves {
                let (ready, rest) = buffer.into_portable();
                buffer = ReceiveBuffer::from_portable(ready, rest);
            }
            while let Some(piece) = buffer.read(17) {
                let expected: Vec<u8> = (read..read + piece.len()).map(|at| (at * 7 % 251) as u8).collect();
                prop_assert_eq!(piece.as_ref(), expected.as_slice());
                read += piece.len();
                buffer.consume(piece.len() as u32);
            }
            prop_assert_eq!(read, model.next.min(STREAM));
            prop_assert_eq!((buffer.ready_len(), buffer.unconsumed()), (0, 0));
        }
    }
}

#[test]
fn the_latest_arrivals_are_reported_first() {
    let mut buffer: ReceiveBuffer<Bytes> = ReceiveBuffer::new();
    for start in [10, 30, 50, 70, 90] {
        assert!(buffer.keep(number(start), data(start, 10), false));
    }
    assert!(buffer.keep(number(40), data(40, 2), false));
    let starts = |most| {
        buffer
            .sack_blocks(most)
            .iter()
            .map(|block| block.start - FIRST)
            .collect::<Vec<_>>()
    };
    assert_eq!(starts(4), [30, 90, 70, 50]);
    assert_eq!(starts(3), [30, 90, 70]);
}

#[test]
fn data_behind_a_fin_is_not_accepted() {
    let mut buffer: ReceiveBuffer<Bytes> = ReceiveBuffer::new();
    assert!(buffer.keep(number(10), data(10, 10), true));
    assert!(!buffer.keep(number(20), data(20, 10), false));
    assert!(
        buffer.keep(number(5), data(5, 40), false),
        "only what lies before it counts"
    );
    let delivered = buffer.deliver(number(0), &mut data(0, 6), false);
    assert_eq!(
        delivered,
        Delivered {
            next: number(21),
            fin: true
        }
    );
    assert_eq!(buffer.ready_len(), 20);
}

#[test]
fn the_number_of_holes_is_limited() {
    let mut buffer: ReceiveBuffer<Bytes> = ReceiveBuffer::new();
    for index in 0..MOST_RANGES {
        assert!(buffer.keep(FIRST + 2 + 4 * index as u32, data(0, 2), false));
    }
    assert!(!buffer.keep(FIRST + 2 + 4 * MOST_RANGES as u32, data(0, 2), false));
    assert!(
        buffer.keep(FIRST + 4, data(0, 2), false),
        "what fills a hole is taken"
    );
}
