use super::*;
use std::collections::BTreeSet;

const MANY: u32 = 100_000;

#[test]
fn the_same_seed_gives_the_same_packets() {
    for one in StandIn::ALL {
        let trace = one.generate(7, 2_000);
        assert_eq!(trace, one.generate(7, 2_000));
        assert_ne!(trace.packets, one.generate(8, 2_000).packets);
        assert!(trace.name.contains("stand-in"), "{}", trace.name);
        assert!(trace.packets.iter().all(is_forwarded), "{}", trace.name);
        assert!(trace.packets.iter().all(|packet| packet.ttl > 1));
        let hosts: BTreeSet<Ipv4Addr> = trace.packets.iter().map(|packet| packet.dst).collect();
        assert!(hosts.len() > 300, "{}: {} hosts", trace.name, hosts.len());
    }
}

/// The published values are those of CAIDA for the site in 1999.
#[test]
fn sizes_at_ames_are_the_published_ones() {
    let trace = StandIn::Aix.generate(1, MANY);
    let mean = trace.mean_bytes();
    let squares = trace
        .packets
        .iter()
        .map(|packet| (f64::from(packet.len) - mean).powi(2));
    let deviation = (squares.sum::<f64>() / f64::from(MANY)).sqrt();
    assert!((mean / 413.0 - 1.0).abs() < 0.03, "{mean}");
    assert!((deviation / 509.0 - 1.0).abs() < 0.03, "{deviation}");
    let mut lengths: Vec<u16> = trace.packets.iter().map(|packet| packet.len).collect();
    lengths.sort_unstable();
    let percentile = |percent: usize| lengths[lengths.len() * percent / 100];
    assert_eq!([5, 25, 75, 95].map(percentile), [40, 40, 576, 1_500]);
    assert!((88..=98).contains(&percentile(50)), "{}", percentile(50));
}

/// The public excerpt has a mean of 256.8 bytes, and these shares.
#[test]
fn sizes_of_the_excerpt_are_met() {
    let trace = StandIn::Nlanr.generate(1, MANY);
    assert!(
        (trace.mean_bytes() / 256.8 - 1.0).abs() < 0.04,
        "{}",
        trace.mean_bytes()
    );
    for (bytes, share) in [(64, 0.605), (128, 0.738), (576, 0.875), (1_400, 0.921)] {
        let found = trace.share_up_to(bytes);
        assert!((found - share).abs() < 0.01, "{bytes} bytes: {found}");
    }
}

#[test]
fn sizes_are_bimodal() {
    for one in StandIn::ALL {
        let trace = one.generate(1, MANY);
        let (small, medium) = (trace.share_up_to(100), trace.share_up_to(1_399));
        let (medium, full) = (medium - small, 1.0 - medium);
        let ends = if one == StandIn::Aix { 0.55 } else { 0.65 };
        assert!(
            small + full > ends && medium < 0.4,
            "{one:?}: {small}, {medium}, {full}"
        );
    }
}
