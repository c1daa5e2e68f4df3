use super::*;
use bytes::Bytes;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Push { len: usize },
    Release { part: u8 },
    Copy { from: u8, part: u8 },
    Move,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..50usize).prop_map(|len| Step::Push { len }),
        2 => any::<u8>().prop_map(|part| Step::Release { part }),
        4 => (any::<u8>(), any::<u8>()).prop_map(|(from, part)| Step::Copy { from, part }),
        1 => Just(Step::Move),
    ]
}

/// `part` 255ths of `of`.
fn share(of: usize, part: u8) -> u32 {
    (of * usize::from(part) / 255) as u32
}

proptest! {
    #[test]
    fn any_range_can_be_taken_at_any_time(steps in proptest::collection::vec(step(), 1..80)) {
        let mut buffer = SendBuffer::new();
        let mut model: Vec<u8> = Vec::new();
        let mut next = 0u8;
        for step in steps {
            match step {
                Step::Push { len } => {
                    let data: Vec<u8> = (0..len).map(|index| next.wrapping_add(index as u8)).collect();
                    next = next.wrapping_add(len as u8);
                    model.extend(&data);
                    buffer.push(Bytes::from(data));
                }
                Step::Release { part } => {
                    let count = share(model.len(), part);
                    model.drain(..count as usize);
                    buffer.release(count);
                }
                Step::Copy { from, part } => {
                    let offset = share(model.len(), from);
                    let len = share(model.len() - offset as usize, part);
                    let lent = buffer.lend(offset, len);
                    let parts = lent.parts().map(|(piece, range)| &piece[range]);
                    let got: Vec<u8> = parts.flatten().copied().collect();
                    prop_assert_eq!(lent.len(), got.len());
                    prop_assert_eq!(&lent.to_pieces().concat(), &got);
                    prop_assert_eq!(&got, &model[offset as usize..(offset + len) as usize]);
                }
                Step::Move => buffer = SendBuffer::from_pieces(buffer.into_pieces()),
            }
            prop_assert_eq!(buffer.verify(), Ok(()));
            prop_assert_eq!(buffer.len() as usize, model.len());
        }
    }
}

#[test]
fn a_stream_that_never_ends_does_not_become_one_endless_piece() {
    let mut buffer = SendBuffer::new();
    let mut offset = 0;
    for _ in 0..10_000 {
        buffer.push(baton_wire::Symbolic {
            source: 1,
            offset,
            len: 1 << 20,
        });
        offset += 1 << 20;
        buffer.release(1 << 20);
    }
    assert!(buffer.is_empty());
    assert_eq!(buffer.verify(), Ok(()));
}
