//! One connection over a perfect link.

use baton_tcp::{CloseReason, Config, ConnId, Event, Stack, Symbolic};
use baton_wire::{Endpoint, Flow, Span, Time};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

fn end(host: u8, port: u16) -> Endpoint {
    Endpoint::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)), port)
}

#[test]
fn a_request_and_its_answer_cross_and_both_ends_close() {
    let mut client: Stack<Symbolic> = Stack::new(Config::default(), 1);
    let mut server: Stack<Symbolic> = Stack::new(Config::default(), 2);
    let listener = server.listen(end(1, 80), 16);
    let flow = Flow {
        local: end(2, 5000),
        remote: end(1, 80),
    };
    let c = client.connect(Time::ZERO, flow).expect("a free four-tuple");
    let delay = Span::from_us(50);
    let mut now = Time::ZERO;
    let mut wire: VecDeque<(Time, bool, baton_tcp::Segment<Symbolic>)> = VecDeque::new();
    let (mut at_server, mut at_client): (Option<ConnId>, u64) = (None, 0);
    let mut closed = 0;
    let mut request = 0;
    loop {
        while let Some((id, event)) = client.poll_event() {
            match event {
                Event::Connected => {
                    client
                        .write(
                            id,
                            Symbolic {
                                source: 1,
                                offset: 0,
                                len: 300,
                            },
                        )
                        .unwrap();
                }
                Event::Readable => {
                    while let Some(piece) = client.read(id, usize::MAX) {
                        assert_eq!((piece.source, piece.offset), (2, at_client));
                        at_client += u64::from(piece.len);
                        client.consume(id, piece.len as usize);
                    }
                    if at_client == 100_000 {
                        client.close(c);
                    }
                }
                Event::Closed(reason) => {
                    assert_eq!(reason, CloseReason::Normal);
                    closed += 1;
                }
                _ => {}
            }
        }
        while let Some((id, event)) = server.poll_event() {
            match event {
                Event::Acceptable(_) => at_server = server.accept(listener),
                Event::Readable => {
                    assert_eq!(Some(id), at_server);
                    while let Some(piece) = server.read(id, usize::MAX) {
                        request += piece.len;
                        server.consume(id, piece.len as usize);
                    }
                    if request == 300 {
                        server
                            .write(
                                id,
                                Symbolic {
                                    source: 2,
                                    offset: 0,
                                    len: 100_000,
                                },
                            )
                            .unwrap();
                    }
                }
                Event::PeerClosed => server.close(id),
                Event::Closed(reason) => {
                    assert_eq!(reason, CloseReason::Normal);
                    closed += 1;
                }
                _ => {}
            }
        }
        while let Some((_, segment)) = client.poll_transmit(now) {
            wire.push_back((now + delay, true, segment));
        }
        while let Some((_, segment)) = server.poll_transmit(now) {
            wire.push_back((now + delay, false, segment));
        }
        client.check();
        server.check();
        if closed == 2 {
            break;
        }
        let arrival = wire.front().map_or(Time::NEVER, |&(at, ..)| at);
        let next = arrival
            .min(client.poll_timeout().unwrap_or(Time::NEVER))
            .min(server.poll_timeout().unwrap_or(Time::NEVER));
        assert!(
            next < Time::ZERO + Span::from_secs(2),
            "it does not take long"
        );
        now = next;
        client.handle_timeouts(now);
        server.handle_timeouts(now);
        if arrival <= now {
            let (_, to_server, segment) = wire.pop_front().unwrap();
            if to_server {
                server.handle_segment(now, segment)
            } else {
                client.handle_segment(now, segment)
            };
        }
    }
    assert_eq!(at_client, 100_000);
    assert!(client.is_empty() && server.is_empty());
    assert_eq!(
        client.stats().retransmissions + server.stats().retransmissions,
        0
    );
    assert_eq!(client.time_wait_len(), 1);
}
