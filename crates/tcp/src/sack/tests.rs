use super::*;
use proptest::prelude::*;

const UNA: SeqNr = SeqNr(u32::MAX - 200);
const FLIGHT: usize = 400;
const SMSS: u32 = 30;
const RULE: LossRule = LossRule {
    smss: SMSS,
    threshold: 3,
};

/// The definitions of RFC 6675, byte by byte.
struct Model {
    sacked: [bool; FLIGHT],
    high_retransmitted: usize,
}

impl Model {
    /// IsLost.
    fn is_lost(&self, at: usize) -> bool {
        let above = &self.sacked[at..];
        let bytes = above.iter().filter(|&&sacked| sacked).count();
        let runs = (0..above.len())
            .filter(|&index| above[index] && (index == 0 || !above[index - 1]))
            .count();
        runs >= 3 || bytes as u32 > 2 * SMSS
    }

    /// SetPipe.
    fn pipe(&self) -> u32 {
        let mut pipe = 0;
        for at in 0..FLIGHT {
            if !self.sacked[at] {
                pipe += u32::from(!self.is_lost(at)) + u32::from(at < self.high_retransmitted);
            }
        }
        pipe
    }

    /// NextSeg, rules 1 and 3: the first number to send again.
    fn next_again(&self, lost_only: bool) -> Option<usize> {
        (self.high_retransmitted..FLIGHT).find(|&at| {
            let reported_above = self.sacked[at..].iter().any(|&sacked| sacked);
            !self.sacked[at] && reported_above && (!lost_only || self.is_lost(at))
        })
    }
}

fn number(at: usize) -> SeqNr {
    UNA + at as u32
}

proptest! {
    #[test]
    fn the_scoreboard_follows_the_definitions(
        blocks in proptest::collection::vec((1..FLIGHT - 1, 1..80usize), 0..25),
        retransmitted in 0..FLIGHT,
    ) {
        let mut board = Scoreboard::default();
        let mut model = Model { sacked: [false; FLIGHT], high_retransmitted: 0 };
        board.start_recovery(UNA);
        let max = number(FLIGHT);
        for (start, len) in blocks {
            let end = (start + len).min(FLIGHT);
            let before = model.sacked.iter().filter(|&&sacked| sacked).count();
            model.sacked[start..end].fill(true);
            let after = model.sacked.iter().filter(|&&sacked| sacked).count();
            let new = board.record(SackBlock { start: number(start), end: number(end) }, UNA, max, |_, _| ());
            prop_assert_eq!(new as usize, after - before);
            prop_assert_eq!(board.verify(UNA, max), Ok(()));
        }
        board.retransmitted(number(retransmitted), false, max);
        model.high_retransmitted = retransmitted;
        for at in 0..FLIGHT {
            if !model.sacked[at] {
                let lost = number(at).before(board.lost_below(UNA, RULE));
                prop_assert_eq!(lost, model.is_lost(at), "number {}", at);
            }
        }
        prop_assert_eq!(board.pipe(UNA, max, RULE), model.pipe());
        let seq_of = |next| match next {
            NextSegment::Again { seq, rescue: false, .. } => Some((seq - UNA) as usize),
            _ => None,
        };
        prop_assert_eq!(seq_of(board.next_segment(UNA, RULE, max, true)), model.next_again(true));
        prop_assert_eq!(seq_of(board.next_segment(UNA, RULE, max, false)), model.next_again(false));
    }

    #[test]
    fn acknowledged_data_leaves_the_scoreboard(
        blocks in proptest::collection::vec((1..FLIGHT - 1, 1..80usize), 0..25),
        acked in 0..FLIGHT,
    ) {
        let mut board = Scoreboard::default();
        let mut sacked = [false; FLIGHT];
        let max = number(FLIGHT);
        for (start, len) in blocks {
            let end = (start + len).min(FLIGHT);
            sacked[start..end].fill(true);
            board.record(SackBlock { start: number(start), end: number(end) }, UNA, max, |_, _| ());
        }
        board.advance(number(acked));
        prop_assert_eq!(board.verify(number(acked), max), Ok(()));
        let left = sacked[acked..].iter().filter(|&&sacked| sacked).count();
        prop_assert_eq!(board.sacked_below(max) as usize, left);
    }
}

#[test]
fn the_rescue_retransmission_is_sent_once_with_the_last_byte() {
    let mut board = Scoreboard::default();
    board.start_recovery(UNA);
    board.record(
        SackBlock {
            start: number(30),
            end: number(330),
        },
        UNA,
        number(FLIGHT),
        |_, _| (),
    );
    board.retransmitted(number(30), false, number(FLIGHT));
    let rescue = NextSegment::Again {
        seq: number(370),
        end: number(400),
        rescue: true,
    };
    assert_eq!(board.next_segment(UNA, RULE, number(FLIGHT), false), rescue);
    board.retransmitted(number(400), true, number(FLIGHT));
    assert_eq!(
        board.next_segment(UNA, RULE, number(FLIGHT), false),
        NextSegment::Nothing
    );
    let mut reported = Scoreboard::default();
    reported.start_recovery(UNA);
    reported.record(
        SackBlock {
            start: number(30),
            end: number(FLIGHT),
        },
        UNA,
        number(FLIGHT),
        |_, _| (),
    );
    reported.retransmitted(number(30), false, number(FLIGHT));
    assert_eq!(
        reported.next_segment(UNA, RULE, number(FLIGHT), false),
        NextSegment::Nothing
    );
}
