use super::*;
use baton_wire::Span;
use proptest::prelude::*;

const SMSS: u32 = 1000;

fn window(bytes: u32) -> Window {
    Window {
        bytes,
        threshold: bytes,
    }
}

fn acked(now_ms: u64, bytes: u32) -> Acked {
    Acked {
        now: Moment::default() + Span::from_ms(now_ms),
        bytes,
        smss: SMSS,
        rtt: None,
        srtt: Span::ZERO,
    }
}

fn loss(flight: u32) -> Loss {
    Loss {
        now: Moment::ZERO,
        flight,
        smss: SMSS,
    }
}

proptest! {
    #[test]
    fn a_cube_root_is_the_largest_whose_cube_fits(x: u64) {
        let root = u128::from(cube_root(x));
        prop_assert!(root.pow(3) <= u128::from(x));
        prop_assert!((root + 1).pow(3) > u128::from(x));
    }

    /// Compares RFC 9438 4.2, equations 1 and 2, in floating point with the integer arithmetic.
    #[test]
    fn the_curve_is_that_of_the_rfc(segments in 10u32..100_000, ms in 0u64..60_000) {
        let mut cubic = Cubic::default();
        let top = segments * SMSS;
        let after = cubic.on_loss(window(top), &loss(top));
        cubic.start_epoch(after, &acked(5, SMSS));
        let w_max = f64::from(segments);
        let start = f64::from(after) / f64::from(SMSS);
        let k = ((w_max - start) / 0.4).cbrt();
        prop_assert!((f64::from(cubic.k_ms) / 1000.0 - k).abs() < 0.0011);
        let t = ms as f64 / 1000.0;
        let expected = 0.4 * (t - k).powi(3) + w_max;
        // Effect of an error of a millisecond in K, and of rounding to thousandths of a segment.
        let slack = 1.2 * (t - k).powi(2) * 0.0011 + 0.01;
        let got = cubic.cubic(ms, SMSS.into()) as f64 / f64::from(SMSS);
        prop_assert!((got - expected).abs() <= slack, "{got} instead of {expected}");
    }
}

#[test]
fn known_cube_roots() {
    for (x, root) in [
        (0, 0),
        (1, 1),
        (7, 1),
        (8, 2),
        (26, 2),
        (27, 3),
        (u64::MAX, 2_642_245),
    ] {
        assert_eq!(cube_root(x), root, "{x}");
    }
}

/// RFC 9438 4.6, 4.7.
#[test]
fn a_loss_keeps_seven_tenths_and_fast_convergence_lowers_w_max() {
    let mut cubic = Cubic::default();
    assert_eq!(cubic.on_loss(window(100_000), &loss(100_000)), 70_000);
    assert_eq!((cubic.w_max, cubic.prior), (100_000, 100_000));
    assert_eq!(cubic.on_loss(window(80_000), &loss(80_000)), 56_000);
    assert_eq!(cubic.w_max, 68_000, "fast convergence");
    assert_eq!(cubic.on_loss(window(80_000), &loss(80_000)), 56_000);
    assert_eq!(cubic.w_max, 80_000);
    assert_eq!(cubic.on_loss(window(3000), &loss(100)), 2 * SMSS);
}

/// Acknowledges a whole window each round trip of 100 ms; returns the window after each.
fn rounds(cubic: &mut Cubic, mut bytes: u32, count: u64) -> Vec<u32> {
    let mut sizes = Vec::new();
    for round in 0..count {
        for _ in 0..bytes / SMSS {
            let mut ack = acked(round * 100, SMSS);
            ack.srtt = Span::from_ms(100);
            bytes += cubic.on_growth(window(bytes), &ack);
        }
        sizes.push(bytes);
    }
    sizes
}

#[test]
fn the_window_is_back_where_the_loss_was_after_k() {
    let mut cubic = Cubic::default();
    let bytes = cubic.on_loss(window(1_000_000), &loss(1_000_000));
    let sizes = rounds(&mut cubic, bytes, 150);
    // K = cbrt(300 / 0.4) = 9.086 s.
    assert_eq!(cubic.k_ms, 9085);
    let at_k = sizes[90];
    assert!((985_000..1_010_000).contains(&at_k), "{at_k}");
    let (early, flat, late) = (
        sizes[10] - sizes[9],
        sizes[90] - sizes[89],
        sizes[149] - sizes[148],
    );
    assert!(early > 4 * flat && late > 4 * flat, "{early} {flat} {late}");
}

/// RFC 9438 4.3: with a small window and a short round trip it is as fast as Reno.
#[test]
fn small_windows_grow_as_reno_would_have_them() {
    let mut cubic = Cubic::default();
    let bytes = cubic.on_loss(window(20_000), &loss(20_000));
    let mut bytes_now = bytes;
    for round in 0..40 {
        for _ in 0..bytes_now / SMSS {
            bytes_now += cubic.on_growth(window(bytes_now), &acked(round, SMSS));
        }
    }
    // From 14 segments at 9/17 of a segment a round up to 20, after 11 to 12 rounds, and then at one a round.
    let segments = bytes_now / SMSS;
    assert!((45..=50).contains(&segments), "{segments}");
}

/// RFC 9438 4.8.
#[test]
fn after_a_timeout_the_curve_starts_flat() {
    let mut cubic = Cubic::default();
    assert_eq!(cubic.on_timeout(window(100_000), &loss(100_000)), 70_000);
    cubic.on_growth(window(70_000), &acked(1, SMSS));
    assert_eq!((cubic.k_ms, cubic.w_max), (0, 70_000));
}

/// RFC 9438 5.8.
#[test]
fn idle_time_does_not_count() {
    let mut cubic = Cubic::default();
    let bytes = cubic.on_loss(window(1_000_000), &loss(1_000_000));
    let mut other = cubic;
    cubic.on_growth(window(bytes), &acked(0, SMSS));
    other.on_growth(window(bytes), &acked(0, SMSS));
    other.after_idle(Span::from_secs(60));
    assert_eq!(
        cubic.on_growth(window(bytes), &acked(3_000, SMSS)),
        other.on_growth(window(bytes), &acked(63_000, SMSS))
    );
}
