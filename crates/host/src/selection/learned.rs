//! Selection by measurement: hands off what makes the application's work cheaper.

use super::{Decision, NextLook, Selection, View, Work};
use baton_wire::{Endpoint, Span, Time};
use std::hash::{BuildHasher, BuildHasherDefault};

/// Shares of the connections that may be handed off, in units of 1/256, in ascending order.
const SHARES: [u32; 4] = [0, 64, 128, 256];
/// Minimum sizes of responses that the host sends, bytes, in descending order.
const LIMITS: [u64; 5] = [u64::MAX, 1 << 20, 256 << 10, 64 << 10, 16 << 10];

/// Minimum duration of a sample.
const SAMPLE: Span = Span::from_ms(50);
/// Minimum number of requests in a sample, if they come within [`LONGEST_SAMPLE`].
const SAMPLE_REQUESTS: u64 = 128;
const LONGEST_SAMPLE: Span = Span::from_secs(2);
/// Number of samples after which two settings are compared, and after which a comparison without a result is given up. The speed of a machine
/// drifts: fewer samples agree with each other, but not with later ones.
const SAMPLES: u32 = 16;
const MOST_SAMPLES: u32 = 48;
/// Minimum time for connections to move after a change of the setting, and minimum mean number of requests per connection in this time, if
/// they come within [`LONGEST_SAMPLE`]. Nothing is measured meanwhile.
const SETTLING: Span = Span::from_ms(100);
const SETTLING_REQUESTS: u64 = 2;
/// Time between two series of comparisons, when no setting was found to be better. It doubles after each further series.
const FIRST_REST: Span = Span::from_secs(2);
const LONGEST_REST: Span = Span::from_secs(160);

/// Relative difference in processor time per request that is worth a change.
const WORTH: f64 = 0.05;
/// Relative loss of requests per second that no change, and no series of changes, may cause.
const LOSS: f64 = 0.04;
/// Relative gain of requests per second that is worth a change, whatever the cost.
const GAIN: f64 = 0.08;
/// A sample is discarded if the number of connections changes by more than one in this many: the rate then depends on that change.
const STEADY: u64 = 16;
/// At most one in this many send requests may belong to large responses: a connection moves to the host and back for each.
const MOST_LARGE: u64 = 4;
/// Factor by which rate or cost must change for the load to count as different, so that settings are compared again.
const OTHER_LOAD: f64 = 1.5;
/// Number of refusals after which a connection stays on the host.
const MOST_FAILURES: u32 = 4;
/// Number of reads after which the policy looks at a connection again while it compares nothing.
const READS_AT_REST: u32 = 16;

/// Which connections and responses go to the NIC: indices in [`SHARES`] and [`LIMITS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Setting {
    share: usize,
    limit: usize,
}

/// A change of the setting by one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    MoreConnections,
    SmallerResponses,
    FewerConnections,
    LargerResponses,
}

const STEPS: [Step; 4] = [
    Step::MoreConnections,
    Step::SmallerResponses,
    Step::FewerConnections,
    Step::LargerResponses,
];

impl Setting {
    /// Returns the setting after a step, or `None` at the end of the scale. Sizes matter only if connections are on the NIC.
    fn after(self, step: Step) -> Option<Self> {
        let Self { share, limit } = self;
        let (share, limit) = match step {
            Step::MoreConnections => (share + 1, limit),
            Step::FewerConnections => (share.checked_sub(1)?, limit),
            _ if share == 0 => return None,
            Step::SmallerResponses => (share, limit + 1),
            Step::LargerResponses => (share, limit.checked_sub(1)?),
        };
        let is_valid = share < SHARES.len() && limit < LIMITS.len();
        is_valid.then_some(Self { share, limit })
    }

    fn limit(self) -> u64 {
        LIMITS[self.limit]
    }
}

/// Mean and variance of a series (Welford's algorithm).
#[derive(Clone, Copy, Debug, Default)]
struct Series {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Series {
    fn add(&mut self, value: f64) {
        self.count += 1.0;
        let before = value - self.mean;
        self.mean += before / self.count;
        self.squares += before * (value - self.mean);
    }

    /// Returns the square of the mean's standard error.
    fn error_squared(&self) -> f64 {
        self.squares / (self.count * (self.count - 1.0)).max(1.0)
    }

    /// Returns the difference of this mean from another one, relative to the other one, and its interval of two standard errors to each side.
    fn relative_to(&self, other: &Self) -> Difference {
        let error = 2.0 * (self.error_squared() + other.error_squared()).sqrt();
        let scale = other.mean.max(f64::MIN_POSITIVE);
        let [mean, error] = [self.mean - other.mean, error].map(|value| value / scale);
        Difference {
            mean,
            least: mean - error,
            most: mean + error,
        }
    }
}

/// Relative difference of two means.
#[derive(Clone, Copy, Debug)]
struct Difference {
    mean: f64,
    least: f64,
    most: f64,
}

/// Samples under one setting.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    samples: u32,
    /// Processor time per request, seconds.
    cost: Series,
    /// Requests per second.
    rate: Series,
    /// Share of the requests that came from the NIC.
    on_nic: Series,
}

/// Result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Better,
    NotBetter,
    /// The setting made no difference to where connections are.
    NoEffect,
    /// More samples are needed.
    Open,
}

impl Measured {
    fn add(&mut self, since: &Work, now: &Work) {
        let requests = (now.requests - since.requests).max(1) as f64;
        let seconds = |span: Span| span.as_ps() as f64 / 1e12;
        let busy = seconds(now.busy - since.busy);
        self.samples += 1;
        self.cost.add(busy / requests);
        self.rate
            .add(requests / seconds(now.now.saturating_since(since.now)));
        self.on_nic
            .add((now.on_nic - since.on_nic) as f64 / requests);
    }

    /// Compares these samples with those `before` the change, and the rate also with the rate `at_first`.
    fn judge(&self, before: &Self, at_first: &Series) -> Verdict {
        let cost = self.cost.relative_to(&before.cost);
        let rates = [&before.rate, at_first].map(|rate| self.rate.relative_to(rate));
        let moved = (self.on_nic.mean - before.on_nic.mean).abs();
        let is_cheaper = cost.mean < -WORTH && cost.most < 0.0;
        match () {
            () if moved < 0.01 => Verdict::NoEffect,
            () if rates[0].least > GAIN => Verdict::Better,
            () if cost.least > 0.0 || rates.iter().any(|rate| rate.most < -LOSS) => {
                Verdict::NotBetter
            }
            () if is_cheaper && rates.iter().all(|rate| rate.least > -LOSS) => Verdict::Better,
            () if self.samples < MOST_SAMPLES => Verdict::Open,
            // Noise in the rate is no reason against a saving that is certain.
            () if is_cheaper && rates.iter().all(|rate| rate.mean > -LOSS) => Verdict::Better,
            () => Verdict::NotBetter,
        }
    }

    /// Returns whether the load differs from that of earlier samples.
    fn is_other_load(&self, before: &Self) -> bool {
        let differs =
            |now: f64, before: f64| now > before * OTHER_LOAD || before > now * OTHER_LOAD;
        differs(self.cost.mean, before.cost.mean) || differs(self.rate.mean, before.rate.mean)
    }
}

/// What the policy is doing.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Measures the current setting, to compare it with another.
    Measuring,
    /// Tries another setting.
    Trying { step: Step, tried: Setting },
    /// No other setting was better.
    Resting { until: Time },
}

/// Hands off as many connections as pay, by what the host measures while it runs: processor time of the application per request, and
/// requests per second. The policy begins with all connections on the host. It hands off a part of them. If requests become cheaper and not
/// fewer, it keeps that setting and tries more; otherwise, it takes them back. In the same way, it tries whether the host should send large
/// responses. When no change helps any more, it waits for a while, or until the load has changed.
#[derive(Clone, Debug)]
pub struct Learned {
    setting: Setting,
    phase: Phase,
    /// The step that is tried next, as an index in [`STEPS`], and how many steps in a row were no better.
    next: usize,
    in_vain: usize,
    rest: Span,
    /// Samples of the current setting, and of the setting that is tried.
    current: Measured,
    trial: Measured,
    /// Rate before the first change of a series.
    at_first: Option<Series>,
    /// Samples at the beginning of the pause between comparisons, by which a change of the load is recognised.
    at_rest: Measured,
    /// Start of the current sample.
    since: Option<Work>,
    /// State at the last change of the setting, until connections have moved.
    settles_from: Option<Work>,
    /// Number of send requests on the NIC since the last change of the setting, and those of large responses, by index in [`LIMITS`].
    sends: u64,
    large: [u64; LIMITS.len()],
}

impl Default for Learned {
    fn default() -> Self {
        Self {
            setting: Setting::default(),
            phase: Phase::Measuring,
            next: 0,
            in_vain: 0,
            rest: FIRST_REST,
            current: Measured::default(),
            trial: Measured::default(),
            at_first: None,
            at_rest: Measured::default(),
            since: None,
            settles_from: None,
            sends: 0,
            large: [0; LIMITS.len()],
        }
    }
}

impl Learned {
    /// Returns the setting in force.
    fn in_force(&self) -> Setting {
        match self.phase {
            Phase::Trying { tried, .. } => tried,
            Phase::Measuring | Phase::Resting { .. } => self.setting,
        }
    }

    /// Returns whether the connection belongs to the share that may be handed off. A larger share contains each smaller one.
    fn is_in_share(&self, view: &View) -> bool {
        let share = SHARES[self.in_force().share];
        let hasher = BuildHasherDefault::<rustc_hash::FxHasher>::default();
        share > 0 && ((hasher.hash_one(view.remote) >> 24) & 0xff) < u64::from(share)
    }

    fn decide(&self, view: &View) -> Decision {
        let is_large = view.response_bytes >= self.in_force().limit();
        let may = view.failures < MOST_FAILURES && !view.nic_is_full() && !is_large;
        Decision::hand_off_if(may && self.is_in_share(view))
    }

    /// Puts a setting into force and waits until the connections have moved.
    fn change(&mut self, now: &Work, phase: Phase) {
        self.phase = phase;
        self.trial = Measured::default();
        (self.sends, self.large) = (0, [0; LIMITS.len()]);
        self.settles_from = Some(*now);
    }

    /// Returns whether there are responses above a limit, but few enough that their connections may move for them.
    fn has_few_above(&self, limit: usize) -> bool {
        (1..=self.sends / MOST_LARGE).contains(&self.large[limit])
    }

    /// Returns whether the step can make a difference.
    fn is_sensible(&self, step: Step) -> bool {
        let Some(after) = self.setting.after(step) else {
            return false;
        };
        match step {
            Step::SmallerResponses => self.has_few_above(after.limit),
            _ => true,
        }
    }

    /// Tries the next sensible step, or rests.
    fn try_next(&mut self, now: &Work) {
        self.at_first.get_or_insert(self.current.rate);
        while self.in_vain < STEPS.len() {
            let step = STEPS[self.next];
            if self.is_sensible(step)
                && let Some(tried) = self.setting.after(step)
            {
                return self.change(now, Phase::Trying { step, tried });
            }
            self.next = (self.next + 1) % STEPS.len();
            self.in_vain += 1;
        }
        self.phase = Phase::Resting {
            until: now.now + self.rest,
        };
        self.rest = (self.rest * 2).min(LONGEST_REST);
        self.at_rest = self.current;
        self.current = Measured::default();
    }

    /// Measures the current setting again, before the next series of comparisons.
    fn wake(&mut self) {
        self.at_first = None;
        self.in_vain = 0;
        if self.setting.share == 0 {
            self.setting.limit = 0;
        }
        self.phase = Phase::Measuring;
        self.current = Measured::default();
    }

    fn conclude(&mut self, now: &Work, step: Step, tried: Setting) {
        let at_first = self.at_first.unwrap_or(self.current.rate);
        match self.trial.judge(&self.current, &at_first) {
            Verdict::Open => {}
            Verdict::Better => {
                self.setting = tried;
                (self.in_vain, self.rest) = (0, FIRST_REST);
                self.current = self.trial;
                self.phase = Phase::Measuring;
            }
            // None of the few connections is in the share.
            Verdict::NoEffect if step == Step::MoreConnections => match tried.after(step) {
                Some(tried) => self.change(now, Phase::Trying { step, tried }),
                None => self.reject(now),
            },
            Verdict::NoEffect | Verdict::NotBetter => self.reject(now),
        }
    }

    /// Returns to the current setting. If no connection is on the NIC yet, the next attempt leaves large responses on the host.
    fn reject(&mut self, now: &Work) {
        let mut smaller = self.in_force().limit + 1..LIMITS.len();
        let smaller = smaller.find(|&limit| self.has_few_above(limit));
        match smaller.filter(|_| self.setting.share == 0) {
            Some(limit) => self.setting.limit = limit,
            None => {
                self.in_vain += 1;
                self.next = (self.next + 1) % STEPS.len();
            }
        }
        self.current = Measured::default();
        self.change(now, Phase::Measuring);
    }

    /// Adds a sample to the setting in force, and draws a conclusion if there are enough.
    fn handle_sample(&mut self, since: &Work, now: &Work) {
        match self.phase {
            Phase::Measuring => {
                self.current.add(since, now);
                if self.current.samples >= SAMPLES {
                    self.try_next(now);
                }
            }
            Phase::Trying { step, tried } => {
                self.trial.add(since, now);
                if self.trial.samples >= SAMPLES {
                    self.conclude(now, step, tried);
                }
            }
            Phase::Resting { until } => {
                self.current.add(since, now);
                if self.current.samples >= SAMPLES {
                    if now.now >= until || self.current.is_other_load(&self.at_rest) {
                        self.wake();
                    } else {
                        self.current = Measured::default();
                    }
                }
            }
        }
    }
}

impl Selection for Learned {
    fn on_established(&mut self, view: &View) -> Decision {
        self.decide(view)
    }

    fn on_send(&mut self, view: &View) -> Decision {
        self.decide(view)
    }

    fn on_receive(&mut self, view: &View) -> Decision {
        self.decide(view)
    }

    fn next_look(&self, view: &View) -> NextLook {
        let reads = match self.phase {
            Phase::Resting { .. } => READS_AT_REST,
            Phase::Measuring | Phase::Trying { .. } => 1,
        };
        NextLook {
            receives: view.receives.saturating_add(reads),
            ..NextLook::NEVER
        }
    }

    fn reconsiders(&self, _view: &View) -> bool {
        true
    }

    fn takes_back(&mut self, view: &View) -> bool {
        self.sends += 1;
        for (count, limit) in self.large.iter_mut().zip(LIMITS) {
            *count += u64::from(view.response_bytes >= limit);
        }
        view.response_bytes >= self.in_force().limit() || !self.is_in_share(view)
    }

    /// Connections move when the setting changes, which is seldom, and when a large response begins or has ended.
    fn least_stay(&self, _local: Endpoint, _usual: Span) -> Span {
        Span::ZERO
    }

    fn wants_work(&self) -> bool {
        true
    }

    fn on_work(&mut self, work: &Work) {
        let is_over = |since: &Work, span, least| {
            let passed = work.now.saturating_since(since.now);
            let requests = work.requests - since.requests;
            passed >= span && requests >= least || passed >= LONGEST_SAMPLE
        };
        if let Some(from) = self.settles_from {
            if is_over(&from, SETTLING, work.connections * SETTLING_REQUESTS) {
                self.settles_from = None;
                self.since = Some(*work);
            }
            return;
        }
        let since = *self.since.get_or_insert(*work);
        if is_over(&since, SAMPLE, SAMPLE_REQUESTS) {
            self.since = Some(*work);
            let came = work.connections.abs_diff(since.connections);
            let is_steady = came <= work.connections / STEADY;
            // A sample without requests says nothing, nor does one during which the host has reset its count of processor time.
            if is_steady && work.requests > since.requests && work.busy >= since.busy {
                self.handle_sample(&since, work);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::view;
    use super::*;

    /// A server whose connections each send one request after another. Costs are in microseconds.
    struct Server {
        policy: Learned,
        now: Time,
        busy: Span,
        requests: u64,
        on_nic: u64,
        places: Vec<bool>,
        /// Requests per second.
        rate: fn(share_on_nic: f64) -> f64,
        /// Cost of a response of this size.
        on_host: fn(u64) -> u64,
        with_nic: fn(u64) -> u64,
        /// Size of the nth response.
        size: fn(u64) -> u64,
        noise: u64,
    }

    impl Server {
        fn new(connections: usize, on_host: fn(u64) -> u64, with_nic: fn(u64) -> u64) -> Self {
            Self {
                policy: Learned::default(),
                now: Time::ZERO,
                busy: Span::ZERO,
                requests: 0,
                on_nic: 0,
                places: vec![false; connections],
                rate: |_| 20_000.0,
                on_host,
                with_nic,
                size: |_| 1000,
                noise: 1,
            }
        }

        fn view(&self, connection: usize, response_bytes: u64) -> View {
            let any = view(80, 0, 1);
            View {
                remote: Endpoint::new(any.remote.addr, 40_000 + connection as u16),
                nic_soft_limit: 1 << 20,
                response_bytes,
                ..any
            }
        }

        fn share_on_nic(&self) -> f64 {
            let on_nic = self.places.iter().filter(|&&is_on_nic| is_on_nic).count();
            on_nic as f64 / self.places.len() as f64
        }

        /// Returns a factor in per cent, from 100 - 20 to 100 + 20 with noise.
        fn factor(&mut self) -> u64 {
            self.noise = self.noise.wrapping_mul(6_364_136_223_846_793_005) | 1;
            80 + (self.noise >> 33) % 41
        }

        fn request(&mut self, connection: usize) {
            let size = (self.size)(self.requests);
            self.requests += 1;
            self.on_nic += u64::from(self.places[connection]);
            if !self.places[connection] {
                let decision = self.policy.on_receive(&self.view(connection, 0));
                self.places[connection] = decision == Decision::HandOff;
            }
            if self.places[connection] {
                let view = self.view(connection, size);
                self.places[connection] = !self.policy.takes_back(&view);
            }
            let cost = match self.places[connection] {
                true => (self.with_nic)(size),
                false => (self.on_host)(size),
            };
            let ns = cost * 10 * self.factor();
            self.busy += Span::from_ns(ns);
            let gap = 1e9 / (self.rate)(self.share_on_nic());
            let gap = gap as u64 * self.factor() / 100;
            self.now += Span::from_ns(gap);
        }

        /// Serves requests, and returns the share that the policy has chosen by then, in units of 1/256.
        fn run(&mut self, seconds: u64) -> u32 {
            let end = self.now + Span::from_secs(seconds);
            let mut report_at = self.now;
            while self.now < end {
                let connection = self.requests as usize % self.places.len();
                self.request(connection);
                if self.now >= report_at {
                    report_at = self.now + Span::from_ms(5);
                    self.policy.on_work(&Work {
                        now: self.now,
                        busy: self.busy,
                        requests: self.requests,
                        on_nic: self.on_nic,
                        connections: self.places.len() as u64,
                    });
                }
            }
            SHARES[self.policy.setting.share]
        }
    }

    #[test]
    fn what_is_cheaper_on_the_nic_goes_there() {
        for connections in [1, 10, 1000] {
            let mut server = Server::new(connections, |_| 20, |_| 5);
            assert_eq!(server.run(10), 256, "{connections}");
        }
    }

    #[test]
    fn what_is_not_cheaper_on_the_nic_stays_on_the_host() {
        for (connections, with_nic) in [
            (1, (|_| 12) as fn(u64) -> u64),
            (10, |_| 12),
            (1000, |_| 12),
            (1000, |_| 10),
        ] {
            let mut server = Server::new(connections, |_| 10, with_nic);
            assert_eq!(server.run(60), 0, "{connections}");
            let tried = server.on_nic as f64 / server.requests as f64;
            assert!(tried < 0.1, "{tried} of the requests of {connections}");
        }
    }

    #[test]
    fn a_share_that_costs_requests_is_not_taken() {
        let mut server = Server::new(1000, |_| 20, |_| 5);
        server.rate = |share| match share > 0.3 {
            true => 15_000.0,
            false => 20_000.0,
        };
        assert_eq!(server.run(10), 64);
    }

    #[test]
    fn large_responses_go_where_they_are_cheaper() {
        let mut server = Server::new(100, |size| 15 + size / 10_000, |size| 5 + size / 2_000);
        server.size = |number| match number % 9 {
            0 => 400_000,
            _ => 1_000,
        };
        assert_eq!(server.run(30), 256);
        let limit = server.policy.setting.limit();
        assert!((1_001..=400_000).contains(&limit), "{limit}");
        let mut server = Server::new(100, |size| 15 + size / 2_000, |size| 5 + size / 10_000);
        server.size = |number| 1 + (number % 9) * 50_000;
        assert_eq!(server.run(30), 256);
        assert_eq!(server.policy.setting.limit, 0);
    }

    #[test]
    fn another_load_is_measured_again() {
        let mut server = Server::new(100, |_| 20, |_| 5);
        assert_eq!(server.run(60), 256);
        server.with_nic = |_| 40;
        assert_eq!(server.run(20), 0);
        server.with_nic = |_| 10;
        server.rate = |_| 5_000.0;
        assert_eq!(server.run(20), 256);
    }

    #[test]
    fn connections_that_are_refused_again_and_again_stay() {
        let mut server = Server::new(100, |_| 20, |_| 5);
        server.run(10);
        let view = server.view(0, 0);
        assert_eq!(server.policy.on_receive(&view), Decision::HandOff);
        let failures = MOST_FAILURES;
        let refused = View { failures, ..view };
        assert_eq!(server.policy.on_receive(&refused), Decision::Stay);
        let nic_soft_limit = 0;
        let full = View {
            nic_soft_limit,
            ..view
        };
        assert_eq!(server.policy.on_receive(&full), Decision::Stay);
    }

    #[test]
    fn without_requests_nothing_is_concluded() {
        let mut policy = Learned::default();
        for second in 0..100 {
            let now = Time::ZERO + Span::from_secs(second);
            policy.on_work(&Work {
                now,
                ..Work::default()
            });
        }
        assert_eq!(policy.current.samples, 0);
        assert_eq!(policy.in_force(), Setting::default());
    }
}
