use super::*;

const SMSS: u32 = 1000;

/// Twenty segments in flight, the first lost, ssthresh 10: every other acknowledgment releases a segment, as in the
/// examples of RFC 6937 4, until the pipe has come down to ssthresh; then every acknowledgment does.
#[test]
fn one_loss_of_twenty_sends_on_every_other_ack() {
    let mut reduction = RateReduction::new(20 * SMSS);
    let mut in_flight = 16 * SMSS;
    let mut sent = Vec::new();
    for ack in 0..16 {
        let delivered = if ack == 0 { 3 * SMSS } else { SMSS };
        if ack > 0 {
            in_flight -= SMSS;
        }
        let window = reduction.on_ack(delivered, in_flight, 10 * SMSS, SMSS, false);
        let segments = (window - in_flight) / SMSS;
        sent.push(segments);
        in_flight += segments * SMSS;
        reduction.sent(segments * SMSS);
    }
    assert_eq!(sent, [1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1]);
    assert!((9 * SMSS..=10 * SMSS).contains(&in_flight), "{in_flight}");
}

/// Fifteen of twenty are lost: the pipe is far below ssthresh, and grows by as much as arrives, or by one segment more
/// while recovery makes good progress (RFC 9937 6.2: PRR-CRB and PRR-SSRB).
#[test]
fn after_heavy_loss_the_window_grows_with_delivered_data() {
    let mut reduction = RateReduction::new(20 * SMSS);
    let window = reduction.on_ack(SMSS, 4 * SMSS, 10 * SMSS, SMSS, false);
    assert_eq!(window, 5 * SMSS);
    reduction.sent(SMSS);
    let window = reduction.on_ack(SMSS, 4 * SMSS, 10 * SMSS, SMSS, false);
    assert_eq!(window, 5 * SMSS, "packet conservation");
    reduction.sent(SMSS);
    let window = reduction.on_ack(SMSS, 4 * SMSS, 10 * SMSS, SMSS, true);
    assert_eq!(window, 6 * SMSS, "slow start");
}

#[test]
fn the_pipe_is_never_filled_beyond_the_threshold() {
    let mut reduction = RateReduction::new(20 * SMSS);
    reduction.sent(SMSS);
    let window = reduction.on_ack(15 * SMSS, 9 * SMSS, 10 * SMSS, SMSS, true);
    assert_eq!(window, 10 * SMSS);
}

#[test]
fn the_fast_retransmit_is_sent_whatever_the_share() {
    let mut reduction = RateReduction::new(100 * SMSS);
    let window = reduction.on_ack(0, 90 * SMSS, 50 * SMSS, SMSS, false);
    assert_eq!(window, 91 * SMSS);
}
