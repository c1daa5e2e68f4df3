//! Sequence numbers wrap several times in a long transfer; all comparisons must handle that.

use baton_tcp::{Config, ConnId, Event, Stack};
use baton_testkit::{endpoint, symbolic};
use baton_wire::{Flow, Span, Symbolic, Time};

/// More than twice the sequence number space.
const TOTAL: u64 = 9 << 30;
/// One of this many segments is lost.
const LOSE_EVERY: u64 = 5000;

fn refill(stack: &mut Stack<Symbolic>, id: ConnId, written: &mut u64) {
    let len = stack.send_space(id).min((TOTAL - *written) as usize) as u32;
    if len > 0 {
        let data = symbolic(0, *written, len);
        *written += stack.write(id, data).expect("it is open") as u64;
    }
}

/// Sends 9 GiB in one direction and returns how many timeouts the losses caused.
fn transfer(sack: bool) -> u64 {
    let config = Config {
        mss: 60_000,
        send_buffer: 4 << 20,
        receive_buffer: 4 << 20,
        sack,
        ..Config::default()
    };
    let mut sender: Stack<Symbolic> = Stack::new(config.clone(), 1);
    let mut receiver: Stack<Symbolic> = Stack::new(config, 2);
    receiver.listen(endpoint(1, 80), 1);
    let mut now = Time::ZERO;
    sender.connect(
        now,
        Flow {
            local: endpoint(2, 5000),
            remote: endpoint(1, 80),
        },
    );
    let (mut written, mut read, mut sent) = (0, 0, 0);
    while read < TOTAL {
        let mut moved = false;
        while let Some((_, segment)) = sender.poll_transmit(now) {
            moved = true;
            sent += 1;
            now += Span::from_us(5);
            if sent % LOSE_EVERY != 0 {
                receiver.handle_segment(now, segment);
            }
            while let Some((id, event)) = receiver.poll_event() {
                match event {
                    Event::Acceptable(listener) => assert!(receiver.accept(listener).is_some()),
                    Event::Readable => {
                        while let Some(piece) = receiver.read(id, usize::MAX) {
                            assert_eq!(piece.offset, read);
                            read += u64::from(piece.len);
                            receiver.consume(id, piece.len as usize);
                        }
                    }
                    other => panic!("{other:?} is not expected"),
                }
            }
        }
        while let Some((_, segment)) = receiver.poll_transmit(now) {
            moved = true;
            sender.handle_segment(now, segment);
            while let Some((id, event)) = sender.poll_event() {
                assert!(
                    matches!(event, Event::Connected | Event::Acknowledged(_)),
                    "{event:?}"
                );
                refill(&mut sender, id, &mut written);
            }
        }
        if !moved {
            let timers = [sender.poll_timeout(), receiver.poll_timeout()];
            now = timers
                .into_iter()
                .flatten()
                .min()
                .expect("a timer runs")
                .max(now);
        }
        sender.handle_timeouts(now);
        receiver.handle_timeouts(now);
    }
    sender.check();
    receiver.check();
    assert!(
        sender.stats().fast_retransmits >= 20,
        "{:?}",
        sender.stats()
    );
    sender.stats().timeouts
}

#[test]
fn losses_are_repaired_without_timeouts_in_long_transfers() {
    assert_eq!(transfer(true), 0);
    assert_eq!(transfer(false), 0);
}
