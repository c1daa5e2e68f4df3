use super::*;
use proptest::prelude::*;

fn name(source: u64, offset: u64, len: u32) -> Symbolic {
    Symbolic {
        source,
        offset,
        len,
    }
}

fn load<P: Payload>(region: &mut impl Region<P>, offset: u32, len: u32) -> Vec<P> {
    let mut out = Pieces::new();
    region.load(offset, len, &mut out);
    region.check();
    out.to_vec()
}

#[test]
fn memory_answers_with_what_was_stored_last() {
    let mut region = SymbolicRegion::new(16384);
    region.store(0, &name(1, 0, 4096));
    region.store(4096, &name(1, 4096, 4096));
    assert_eq!(
        load(&mut region, 4000, 200),
        [name(1, 4000, 200)],
        "neighbours join"
    );
    region.store(4000, &name(2, 7, 10));
    assert_eq!(
        load(&mut region, 3990, 30),
        [name(1, 3990, 10), name(2, 7, 10), name(1, 4010, 10)]
    );
    assert_eq!(load(&mut region, 8192, 3), [name(NOTHING, 0, 3)]);
    region.clear();
    assert_eq!(load(&mut region, 0, 2), [name(NOTHING, 0, 2)]);
}

#[test]
fn what_is_loaded_is_not_joined_to_what_came_from_elsewhere() {
    let mut region = SymbolicRegion::new(4096);
    region.store(0, &name(1, 100, 50));
    let mut out: Pieces<Symbolic> = Pieces::new();
    out.push(name(1, 0, 100));
    region.load(0, 50, &mut out);
    assert_eq!(out.to_vec(), [name(1, 0, 100), name(1, 100, 50)]);
}

/// Each byte of a range is its source; what was never stored is zero.
fn render(data: &Symbolic, out: &mut Vec<u8>) {
    out.resize(out.len() + data.len(), data.source as u8);
}

#[test]
#[should_panic(expected = "memory holds the bytes that its names stand for")]
fn a_mirror_notices_names_that_lie() {
    let mut region = SymbolicRegion::new(4096);
    region.mirror(render);
    region.store(0, &name(1, 0, 100));
    region.cells[0][0].data.source = 2;
    load(&mut region, 0, 100);
}

proptest! {
    /// Names, real bytes and the names' mirror agree, wherever stores and loads begin and end.
    #[test]
    fn names_and_bytes_agree(stores in prop::collection::vec((0u32..12_000, 1u32..9000, 1u64..200), 1..40), loads in prop::collection::vec((0u32..12_000, 1u32..9000), 1..10)) {
        let len = 16_384;
        let (mut names, mut bytes) = (SymbolicRegion::new(len), ByteRegion::new(len));
        names.mirror(render);
        for (offset, want, source) in stores {
            let run = want.min(len - offset);
            names.store(offset, &name(source, 0, run));
            bytes.store(offset, &Bytes::from(vec![source as u8; run as usize]));
            names.check();
        }
        for (offset, want) in loads {
            let run = want.min(len - offset);
            let mut rendered = Vec::new();
            load(&mut names, offset, run).iter().for_each(|piece| render(piece, &mut rendered));
            let stored: Vec<u8> = load(&mut bytes, offset, run).concat();
            prop_assert_eq!(rendered, stored);
        }
    }
}
