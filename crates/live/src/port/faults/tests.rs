use super::*;
use crate::port::{MemoryPort, memory_pair};
use baton_wire::Span;
use baton_wire::impairment::Share;

const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

fn pipe(spec: &str, seed: u64) -> Pipe {
    let spec: FaultSpec = spec.parse().expect("a description");
    Pipe::new(spec.receive, seed)
}

/// Sends numbered frames through a pipe, one per microsecond; returns the frames that leave it, with their times.
fn run(pipe: &mut Pipe, frames: u32) -> Vec<(Time, u32)> {
    let mut out = Vec::new();
    let mut now = Time::ZERO;
    let mut take = |pipe: &mut Pipe, now| {
        while let Some(frame) = pipe.pop(now) {
            let number = u32::from_be_bytes(frame[..4].try_into().expect("four bytes"));
            out.push((now, number));
        }
    };
    for number in 0..frames {
        let mut frame = vec![0; 100];
        frame[..4].copy_from_slice(&number.to_be_bytes());
        pipe.push(now, frame.into());
        take(pipe, now);
        now += Span::from_us(1);
    }
    while let Some(due) = pipe.next_due() {
        take(pipe, due);
    }
    out
}

#[test]
fn a_perfect_link_changes_nothing() {
    let mut pipe = pipe("loss=0%", 1);
    let out = run(&mut pipe, 1000);
    assert!(out.iter().map(|&(_, number)| number).eq(0..1000));
    assert_eq!(pipe.counts().get(FaultKind::Passed), 1000);
    assert_eq!(pipe.counts().get(FaultKind::Delayed), 0);
}

#[test]
fn faults_occur_at_the_configured_rate() {
    let spec = "loss=1%,duplicate=2%,reorder=3%,corrupt=4%";
    let mut pipe = pipe(spec, 7);
    let frames = 100_000;
    let out = run(&mut pipe, frames);
    let counts = *pipe.counts();
    for (kind, percent) in [
        (FaultKind::Lost, 1),
        (FaultKind::Duplicated, 2),
        (FaultKind::Reordered, 3),
        (FaultKind::Corrupted, 4),
    ] {
        let expected = u64::from(frames) * percent / 100;
        let count = counts.get(kind);
        // Six standard deviations of a binomial distribution.
        let slack = 6 * (expected as f64).sqrt() as u64;
        assert!(count.abs_diff(expected) < slack, "{kind:?}: {count}");
    }
    let lost = counts.get(FaultKind::Lost);
    let expected = u64::from(frames) - lost + counts.get(FaultKind::Duplicated);
    assert_eq!(out.len() as u64, expected, "every frame is accounted for");
}

#[test]
fn a_reordered_frame_is_overtaken_by_others() {
    let mut pipe = pipe("reorder=1%", 3);
    let out = run(&mut pipe, 10_000);
    let mut numbers: Vec<u32> = out.iter().map(|&(_, number)| number).collect();
    let late = numbers.windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert!((60..150).contains(&late), "{late} frames are late");
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..10_000), "none is lost");
}

#[test]
fn losses_in_bursts_come_together() {
    let mut pipe = pipe("burst=1%/20%", 11);
    let out = run(&mut pipe, 100_000);
    let lost = pipe.counts().get(FaultKind::BurstLost);
    // The link is bad for a share of 1 / (1 + 20) of all frames.
    assert!((4_000..5_600).contains(&lost), "{lost}");
    let bursts = out
        .windows(2)
        .filter(|pair| pair[1].1 > pair[0].1 + 1)
        .count() as u64;
    let mean = lost as f64 / bursts as f64;
    assert!((4.3..5.8).contains(&mean), "a burst has {mean} frames");
}

#[test]
fn delay_and_rate_take_the_time_they_should() {
    let mut delayed = pipe("delay=10ms,jitter=2ms", 1);
    for (at, number) in run(&mut delayed, 900) {
        let sent = Time::ZERO + Span::from_us(u64::from(number));
        let took = at - sent;
        assert!(
            took >= Span::from_ms(10) && took <= Span::from_ms(12),
            "{took:?}"
        );
    }
    // 100 frames of 800 bits at 8 Mbit/s take 10 ms.
    let mut limited = pipe("rate=8mbit", 1);
    let out = run(&mut limited, 100);
    assert_eq!(
        out.last().map(|&(at, _)| at),
        Some(Time::ZERO + Span::from_ms(10))
    );
    let mut short = pipe("rate=8mbit,queue=10", 1);
    let out = run(&mut short, 100);
    let dropped = short.counts().get(FaultKind::QueueFull);
    assert!(dropped > 80 && out.len() as u64 + dropped == 100);
}

#[test]
fn the_same_seed_gives_the_same_bits() {
    let spec = "loss=5%,burst=1%/25%,duplicate=5%,reorder=5%,corrupt=5%,jitter=1ms";
    let runs: Vec<_> = [1, 1, 2]
        .map(|seed| run(&mut pipe(spec, seed), 5000))
        .into();
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], runs[2]);
}

#[test]
fn each_direction_has_its_own_faults() {
    let (left, mut right) = memory_pair(MACS, 1500);
    let spec = "rx:loss=100%;tx:duplicate=100%"
        .parse()
        .expect("a description");
    let mut left = Faults::new(left, &spec, 5);
    let mut batch = Batch::default();
    batch.push(b"out");
    left.send(Time::ZERO, &mut batch).expect("memory takes it");
    let mut frames = Vec::new();
    right.receive(Time::ZERO, &mut frames).expect("memory");
    assert_eq!(frames, [&b"out"[..], b"out"]);
    batch.push(b"in");
    right.send(Time::ZERO, &mut batch).expect("memory takes it");
    frames.clear();
    left.receive(Time::ZERO, &mut frames).expect("memory");
    assert!(frames.is_empty());
    assert_eq!(left.received().get(FaultKind::Lost), 1);
    assert_eq!(left.sent().get(FaultKind::Duplicated), 1);
}

#[test]
fn a_description_is_parsed() {
    let spec: FaultSpec = "rx:loss=1%,reorder=2.5%; tx: duplicate=0.01,rate=1.5gbit,delay=200us"
        .parse()
        .expect("a description");
    assert_eq!(
        Some(spec.receive.impairment.loss),
        Share::from_ppb(10_000_000)
    );
    assert_eq!(
        Some(spec.receive.impairment.reorder),
        Share::from_ppb(25_000_000)
    );
    assert_eq!(spec.receive.rate_bps, None);
    assert_eq!(spec.transmit.impairment.loss, Share::NONE);
    assert_eq!(
        Some(spec.transmit.impairment.duplicate),
        Share::from_ppb(10_000_000)
    );
    assert_eq!(spec.transmit.rate_bps, Some(1_500_000_000));
    assert_eq!(spec.transmit.delay, Span::from_us(200));
    let both: FaultSpec = "loss=1%".parse().expect("a description");
    assert_eq!(both.receive, both.transmit);
}

#[test]
fn an_invalid_description_is_refused_with_the_position() {
    for (text, message) in [
        (
            "loss=101%",
            r#"at "101%" (character 6): expected a share such as 1% or 0.01"#,
        ),
        (
            "rx:loss=1%,lose=2%",
            r#"at "lose" (character 12): no such fault;"#,
        ),
        (
            "up:loss=1%",
            r#"at "up" (character 1): expected rx, tx or both"#,
        ),
        ("loss", r#"at "loss" (character 1): expected NAME=VALUE"#),
        (
            "rx:loss=1%;tx:delay=5",
            r#"at "5" (character 21): expected a time"#,
        ),
        (
            "burst=1%/2%/3%/4%",
            r#"at "1%/2%/3%/4%" (character 7): expected ENTER/LEAVE"#,
        ),
        ("burst=1%/x", r#"at "x" (character 10): expected a share"#),
        ("rate=0bit", r#"at "0bit" (character 6): expected a rate"#),
        (
            "queue=0",
            r#"at "0" (character 7): expected a number of frames"#,
        ),
        ("delay=2h", r#"at "2h" (character 7): expected a time"#),
        ("", r#"at "" (character 1): expected NAME=VALUE"#),
    ] {
        let error = text.parse::<FaultSpec>().expect_err(text);
        assert!(error.to_string().starts_with(message), "{text}: {error}");
    }
}

/// Records how many frames it is given together, which a real port could merge.
struct Merging(MemoryPort, Vec<usize>);

impl Port for Merging {
    fn receive(&mut self, now: Time, frames: &mut Vec<Bytes>) -> io::Result<()> {
        self.0.receive(now, frames)
    }
    fn send(&mut self, now: Time, batch: &mut Batch) -> io::Result<()> {
        self.1.push(batch.len());
        self.0.send(now, batch)
    }
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    fn link(&self) -> &LinkInfo {
        self.0.link()
    }
    fn counters(&self, sink: &mut dyn CounterSink) {
        self.0.counters(sink);
    }
}

#[test]
fn frames_are_not_merged_behind_a_port_that_may_corrupt_them() {
    for (spec, together) in [("tx:corrupt=1%", 1), ("tx:loss=1%", 30)] {
        let spec = spec.parse().expect("a description");
        let (port, mut far) = memory_pair(MACS, 1500);
        let mut faults = Faults::new(Merging(port, Vec::new()), &spec, 1);
        let mut batch = Batch::default();
        (0..40_u8).for_each(|number| batch.push(&[number; 100]));
        faults.send(Time::ZERO, &mut batch).expect("memory");
        let most = faults.inner.1.iter().copied().max();
        assert!(most == Some(1) || together > 1, "{most:?}");
        assert!(most >= Some(together), "{most:?}");
        let mut arrived = Vec::new();
        far.receive(Time::ZERO, &mut arrived).expect("memory");
        assert!(arrived.len() > 30, "{}", arrived.len());
    }
}
