//! A congestion controller that is defined outside the crate: the engine obeys it, and it moves with its connection.

use baton_tcp::{
    Acked, Config, Congestion, ConnId, Controller, Custom, Loss, Needs, Portable, Segment, Stack,
    Start, Window,
};
use baton_testkit::{endpoint, symbolic};
use baton_wire::{Flow, Span, Symbolic, Time};

const FLOW: Flow = Flow {
    local: endpoint(1, 5000),
    remote: endpoint(2, 80),
};

/// A controller with a paced window of this many segments.
#[derive(Clone, Debug)]
struct Fixed {
    segments: u32,
    smss: u32,
}

impl Fixed {
    fn new(saved: Option<&[u8]>) -> Self {
        match saved {
            None => Self {
                segments: 3,
                smss: 1,
            },
            Some(saved) => Self {
                segments: saved[0].into(),
                smss: u32::from(saved[1]) * 100,
            },
        }
    }
}

impl Controller for Fixed {
    fn needs(&self) -> Needs {
        Needs::WINDOW | Needs::PACING
    }

    fn on_established(&mut self, start: &Start) {
        self.smss = start.smss;
    }

    fn on_growth(&mut self, _window: Window, _acked: &Acked) -> u32 {
        unreachable!("the controller sets the window itself")
    }

    fn on_loss(&mut self, _window: Window, _loss: &Loss) -> u32 {
        u32::MAX
    }

    fn window(&self) -> u32 {
        self.segments * self.smss
    }

    /// One segment per ten milliseconds.
    fn pacing_rate(&self) -> u64 {
        u64::from(self.smss) * 100
    }

    fn save(&self) -> Vec<u8> {
        vec![self.segments as u8, (self.smss / 100) as u8]
    }
}

/// A variant of Reno that saves no state when it is written as bytes.
#[derive(Clone, Debug)]
struct Timid;

impl Controller for Timid {
    fn on_growth(&mut self, _window: Window, _acked: &Acked) -> u32 {
        1
    }

    fn on_loss(&mut self, window: Window, _loss: &Loss) -> u32 {
        window.bytes / 4
    }
}

const FIXED: Custom = Custom::new("fixed", &|_, saved| Box::new(Fixed::new(saved)));
const TIMID: Custom = Custom::new("timid", &|_, _| Box::new(Timid));

fn config(custom: Custom) -> Config {
    Config {
        mss: 1000,
        timestamps: false,
        congestion: Congestion::Custom(custom),
        ..Config::default()
    }
}

/// Returns the segments that leave at `now`.
fn sent(stack: &mut Stack<Symbolic>, now: Time) -> Vec<Segment<Symbolic>> {
    std::iter::from_fn(|| stack.poll_transmit(now))
        .map(|(_, segment)| segment)
        .collect()
}

/// Returns a connection that is established and has written much data, at 100 ms.
fn established(custom: Custom) -> (Stack<Symbolic>, ConnId) {
    let mut stack = Stack::new(config(custom), 1);
    let mut peer = Stack::new(Config::default(), 2);
    peer.listen(FLOW.remote, 1);
    let id = stack.connect(Time::ZERO, FLOW).expect("a free four-tuple");
    let syn = sent(&mut stack, Time::ZERO).remove(0);
    let now = Time::ZERO + Span::from_ms(100);
    peer.handle_segment(now, syn);
    let answer = sent(&mut peer, now).remove(0);
    stack.handle_segment(now, answer);
    sent(&mut stack, now);
    let data = symbolic(0, 0, 50_000);
    stack.write(id, data).expect("it is open");
    (stack, id)
}

/// Returns the times at which segments leave within `span` from 100 ms on, in ms after 100 ms.
fn departures(stack: &mut Stack<Symbolic>, span: Span) -> Vec<u64> {
    let start = Time::ZERO + Span::from_ms(100);
    let mut now = start;
    let mut departures = Vec::new();
    loop {
        stack.handle_timeouts(now);
        let ms = now.saturating_since(start).as_us() / 1000;
        departures.extend(sent(stack, now).iter().map(|_| ms));
        match stack.poll_timeout() {
            Some(next) if next < start + span => now = next.max(now),
            _ => return departures,
        }
    }
}

#[test]
fn window_and_pacing_are_the_controllers() {
    let (mut stack, id) = established(FIXED);
    assert_eq!(stack.info(Time::ZERO, id).congestion_window, 3000);
    assert_eq!(departures(&mut stack, Span::from_ms(150)), [0, 10, 20]);
    stack.check();
}

#[test]
fn the_controller_moves_along_within_a_program() {
    let (mut stack, id) = established(FIXED);
    let now = Time::ZERO + Span::from_ms(100);
    let moved = stack.export(now, id);
    let mut other = Stack::new(Config::default(), 9);
    let id = other.import(now, moved).expect("its factory moves with it");
    assert_eq!(other.info(now, id).congestion_window, 3000);
    assert_eq!(departures(&mut other, Span::from_ms(150)), [0, 10, 20]);
}

/// Converts a state to bytes and back, as between programs.
fn through_bytes(state: &Portable<Symbolic>) -> Portable<Symbolic> {
    Portable::from_bytes(&state.to_bytes()).expect("an exported state can be decoded")
}

#[test]
fn a_controller_moved_as_bytes_is_recreated_by_its_name() {
    let (mut stack, id) = established(FIXED);
    let now = Time::ZERO + Span::from_ms(100);
    let moved = through_bytes(&stack.export(now, id));
    let mut stranger = Stack::new(Config::default(), 9);
    let refused = stranger
        .import(now, moved)
        .expect_err("the stack does not know the name");
    let mut other = Stack::new(config(FIXED), 9);
    let id = other
        .import(now, through_bytes(&refused))
        .expect("the stack knows the name");
    let Congestion::Custom(custom) = other.config_of(id).congestion else {
        panic!("expected the same controller")
    };
    assert!(custom.is_known() && custom.name() == "fixed");
    other.check();
    assert_eq!(departures(&mut other, Span::from_ms(150)), [0, 10, 20]);
}

#[test]
fn a_controller_without_saved_state_starts_fresh() {
    let (mut stack, id) = established(TIMID);
    let now = Time::ZERO + Span::from_ms(100);
    let before = stack.info(now, id).congestion_window;
    let moved = through_bytes(&stack.export(now, id));
    let mut other = Stack::new(config(TIMID), 9);
    let id = other.import(now, moved).expect("the stack knows the name");
    assert_eq!(other.info(now, id).congestion_window, before);
    assert_eq!(departures(&mut other, Span::from_ms(1)).len(), 10);
}

#[test]
fn parameters_name_the_controller() {
    let text = toml::to_string(&config(FIXED)).expect("parameters can be written");
    assert!(text.contains("custom = \"fixed\""), "{text}");
    let read: Config = toml::from_str(&text).expect("parameters can be read");
    assert_eq!(read, config(FIXED));
    let error = read.check().expect_err("a name alone is not a controller");
    assert_eq!(error.field, "congestion");
    let built_in = |text: &str| toml::from_str::<Config>(text).expect("a name").congestion;
    assert_eq!(built_in("congestion = \"bbr\""), Congestion::Bbr);
    assert_eq!(built_in("congestion = \"dctcp\""), Congestion::Dctcp);
}
