//! A congestion controller from outside: data goes at a quarter more than the fastest delivery rate seen, and twice what the
//! path holds at that rate is the window. `cargo run -p baton-tcp --example congestion_controller`

use baton_tcp::{Ack, Acked, Config, Congestion, Controller, Custom, Loss, Needs, Start};
use baton_tcp::{Segment, Stack, Window};
use baton_wire::{Endpoint, Flow, Span, Symbolic, Time};
use std::collections::VecDeque;

#[derive(Clone, Debug, Default)]
struct Metered {
    window: u32,
    rate: u64,
    least_rtt: Option<Span>,
}

impl Controller for Metered {
    fn needs(&self) -> Needs {
        Needs::ACKS | Needs::RATE_SAMPLES | Needs::PACING | Needs::WINDOW
    }
    fn on_established(&mut self, start: &Start) {
        self.window = start.window;
    }
    fn on_ack(&mut self, ack: &Ack) {
        self.rate = self.rate.max(ack.sample.map_or(0, |sample| sample.rate));
        self.least_rtt = self.least_rtt.into_iter().chain(ack.rtt).min();
        let rtt_us = self.least_rtt.map_or(0, Span::as_us);
        self.window = self.window.max((2 * self.rate * rtt_us / 1_000_000) as u32);
    }
    fn on_loss(&mut self, window: Window, _loss: &Loss) -> u32 {
        self.rate = self.rate * 7 / 10;
        self.window = window.bytes * 7 / 10;
        u32::MAX
    }
    fn on_growth(&mut self, _window: Window, _acked: &Acked) -> u32 {
        0 // Not asked: the window is this controller's own.
    }
    fn window(&self) -> u32 {
        self.window
    }
    fn pacing_rate(&self) -> u64 {
        self.rate * 5 / 4
    }
}

/// Two hosts 10 ms from each other.
fn main() {
    let metered = Custom::new("metered", &|_seed, _saved| Box::<Metered>::default());
    let config = Config {
        congestion: Congestion::Custom(metered),
        ..Config::default()
    };
    let flow = Flow {
        local: Endpoint::new([10, 0, 0, 1].into(), 5000),
        remote: Endpoint::new([10, 0, 0, 2].into(), 80),
    };
    let mut hosts = [Stack::new(config.clone(), 1), Stack::new(config, 2)];
    let listener = hosts[1].listen(flow.remote, 1);
    let mut sink = None;
    let id = hosts[0]
        .connect(Time::ZERO, flow)
        .expect("a free four-tuple");
    let mut flying: VecDeque<(Time, usize, Segment<Symbolic>)> = VecDeque::new();
    for step in 0..5000 {
        let now = Time::ZERO + Span::from_us(100) * step;
        while let Some((_, to, segment)) = flying.pop_front_if(|(at, ..)| *at <= now) {
            hosts[to].handle_segment(now, segment);
        }
        sink = sink.or(hosts[1].accept(listener));
        while let Some(piece) = sink.and_then(|sink| hosts[1].read(sink, usize::MAX)) {
            hosts[1].consume(sink.expect("it was read from"), piece.len as usize);
        }
        let (source, offset, len) = (0, 0, hosts[0].send_space(id) as u32);
        let data = Symbolic {
            source,
            offset,
            len,
        };
        hosts[0].write(id, data).expect("it is open");
        for (from, host) in hosts.iter_mut().enumerate() {
            host.handle_timeouts(now);
            while let Some((_, segment)) = host.poll_transmit(now) {
                flying.push_back((now + Span::from_ms(10), 1 - from, segment));
            }
        }
    }
    let info = hosts[0].info(Time::ZERO + Span::from_ms(500), id);
    println!(
        "window {} bytes, {} bytes/s",
        info.congestion_window, info.delivery_rate
    );
}
