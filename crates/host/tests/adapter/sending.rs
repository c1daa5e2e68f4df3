//! Sending: transfers, corks, buffer space, completions.

use baton_bus::Batching;
use baton_bus::descriptor::{Action, Buffer, Outcome, Request, Status};
use baton_bus::link::MemoryConfig;
use baton_cluster::script::{CLOSE, LINK, Script, batching, response, sends};
use baton_host::adapter::OsLayerConfig;
use baton_host::{Ready, Receive, Sockets};
use bytes::Bytes;

fn lengths(requests: &[Request]) -> Vec<u32> {
    let actions: Vec<_> = requests.iter().map(|request| request.action).collect();
    sends(&actions).iter().map(|&(len, _)| len).collect()
}

#[test]
fn header_body_and_close_of_a_response_leave_together() {
    let (mut script, socket, _) = Script::with_connection(OsLayerConfig::default());
    let transfers = script.transfers();
    let mut calls = script.calls();
    calls.set_cork(socket, true);
    assert_eq!(calls.send(socket, Bytes::from(vec![1; 200])), Ok(200));
    assert_eq!(calls.send(socket, Bytes::from(vec![2; 1024])), Ok(1024));
    calls.set_cork(socket, false);
    calls.close(socket);
    let actions = script.actions();
    assert_eq!(sends(&actions), [(200, true), (1024, false)]);
    assert_eq!(actions[2..], [CLOSE]);
    assert_eq!(script.transfers(), transfers + 1);
}

#[test]
fn header_and_body_share_a_buffer_where_the_link_can_join_them() {
    let (mut script, socket, _) = Script::with_connection(OsLayerConfig::default());
    script.host.set_joins(true);
    let mut calls = script.calls();
    calls.set_cork(socket, true);
    assert_eq!(calls.send(socket, Bytes::from(vec![1; 200])), Ok(200));
    assert_eq!(calls.send(socket, Bytes::from(vec![2; 1024])), Ok(1024));
    calls.set_cork(socket, false);
    assert_eq!(sends(&script.actions()), [(1224, false)]);
    // Data that does not fit is sent separately.
    script.calls().set_cork(socket, true);
    assert_eq!(script.send(socket, 4000), 4000);
    assert_eq!(script.send(socket, 5000), 5000);
    script.calls().set_cork(socket, false);
    let expected = [(4000, true), (4096, true), (904, false)];
    assert_eq!(sends(&script.actions()), expected);
    assert_eq!(script.os.held(socket), 0);
}

#[test]
fn lazy_answers_are_masked_unless_something_waits_for_them() {
    let config = OsLayerConfig {
        most_sends: 2,
        ..OsLayerConfig::default()
    };
    let (mut script, socket, _) = Script::with_connection(config);
    for _ in 0..2 {
        assert_eq!(script.send(socket, 10), 10);
    }
    let requests = script.requests();
    assert!(script.os.masks_lazy(), "nothing waits for the answers");
    assert_eq!(script.send(socket, 10), 10);
    assert!(!script.os.masks_lazy(), "this send waits for an answer");
    for request in &requests {
        script.done(request, Status::Ok);
    }
    let last = script.requests();
    assert_eq!(
        sends(&last.iter().map(|r| r.action).collect::<Vec<_>>()),
        [(10, false)]
    );
    assert!(script.os.masks_lazy());
    script.os.unmask_lazy();
    assert!(
        !script.os.masks_lazy(),
        "the application requested every answer"
    );
    script.done(&last[0], Status::Ok);
    script.pump();
    assert!(script.os.masks_lazy(), "no request is pending");
}

#[test]
fn data_is_cut_to_transfers() {
    let config = OsLayerConfig {
        batching: Batching {
            max_transfer_bytes: 1000,
            ..Batching::default()
        },
        ..OsLayerConfig::default()
    };
    let (mut script, socket, _) = Script::with_connection(config);
    assert_eq!(script.send(socket, 2500), 2500);
    let expected = [(1000, true), (1000, true), (500, false)];
    assert_eq!(sends(&script.actions()), expected);
}

#[test]
fn sends_that_fill_a_transfer_do_not_wait_for_others() {
    let mut script = Script::new(batching(100, 1_000_000));
    let (socket, _) = script.open();
    assert_eq!(script.send(socket, 4095), 4095);
    assert!(script.actions().is_empty());
    assert_eq!(script.send(socket, 1), 1);
    assert_eq!(sends(&script.actions()), [(4095, false), (1, false)]);
}

#[test]
fn a_cork_holds_data_until_it_is_removed_or_its_timer_fires() {
    let (mut script, socket, _) = Script::with_connection(OsLayerConfig::default());
    script.calls().set_cork(socket, true);
    assert_eq!(script.send(socket, 10), 10);
    script.wait(400);
    assert_eq!(script.send(socket, 20), 20);
    assert!(script.actions().is_empty());
    assert_eq!(script.os.unsent(socket), 30);
    let due = script.os.poll_timeout().expect("the cork's timer");
    script.wait(600);
    assert_eq!(
        due, script.now,
        "the timer starts when data is first held back"
    );
    assert_eq!(sends(&script.actions()), [(10, true), (20, false)]);
    assert_eq!(script.os.stats().corks_fired, 1);
    assert_eq!(script.send(socket, 30), 30);
    assert!(script.actions().is_empty(), "the cork is still set");
    script.calls().set_cork(socket, false);
    assert_eq!(sends(&script.actions()), [(30, false)]);
    assert_eq!(script.os.poll_timeout(), None);
}

#[test]
fn a_cork_releases_data_that_fills_a_transfer() {
    let (mut script, socket, _) = Script::with_connection(OsLayerConfig::default());
    script.calls().set_cork(socket, true);
    assert_eq!(script.send(socket, 4000), 4000);
    assert_eq!(script.send(socket, 96), 96);
    assert!(script.actions().is_empty());
    assert_eq!(script.send(socket, 5000), 5000);
    let expected = [(4000, true), (96, true), (4096, true)];
    assert_eq!(
        sends(&script.actions()),
        expected,
        "the last 904 bytes are held back"
    );
}

#[test]
fn held_data_is_sent_before_the_fin() {
    let (mut script, socket, _) = Script::with_connection(OsLayerConfig::default());
    script.calls().set_cork(socket, true);
    assert_eq!(script.send(socket, 10), 10);
    script.calls().close(socket);
    let actions = script.actions();
    assert_eq!(sends(&actions), [(10, false)]);
    assert_eq!(actions[1..], [CLOSE]);
}

#[test]
fn outstanding_sends_are_limited_and_resume_when_half_are_done() {
    let config = OsLayerConfig {
        most_sends: 4,
        ..OsLayerConfig::default()
    };
    let (mut script, socket, _) = Script::with_connection(config);
    for _ in 0..4 {
        assert_eq!(script.send(socket, 10), 10);
    }
    // The last piece is accepted and held back.
    assert_eq!(script.send(socket, 20), 20);
    assert_eq!(
        script.send(socket, 5000),
        0,
        "no more data may be held back"
    );
    let requests = script.requests();
    assert_eq!(lengths(&requests), [10; 4]);
    script.done(&requests[0], Status::Ok);
    assert_eq!(
        lengths(&script.requests()),
        [20],
        "the first SEND is done, so this one can be sent"
    );
    script.done(&requests[1], Status::Ok);
    script.pump();
    assert!(script.ready().is_empty());
    script.done(&requests[2], Status::Ok);
    script.pump();
    assert_eq!(script.ready(), [Ready::Writable(socket)]);
    assert!(script.os.stats().no_room.sends > 0);
}

#[test]
fn one_completion_may_cover_earlier_sends() {
    let (mut script, socket, _) = Script::with_connection(OsLayerConfig::default());
    for _ in 0..3 {
        script.send(socket, 10);
    }
    let requests = script.requests();
    let free = script.free();
    let outcome = Outcome::Sent {
        len: 10,
        cumulative: true,
    };
    script.answer(&requests[1], Status::Ok, outcome);
    script.pump();
    assert_eq!(script.free(), free + 2);
    assert_eq!(script.os.stats().completed_by_later, 1);
    // A request completed by a later answer must not be answered again.
    script.done(&requests[0], Status::Ok);
    assert!(script.try_pump().is_err());
}

#[test]
fn short_data_travels_in_descriptors() {
    let config = OsLayerConfig {
        most_inline: 100,
        ..OsLayerConfig::default()
    };
    let (mut script, socket, _) = Script::with_connection(config);
    let free = script.free();
    script.send(socket, 100);
    script.send(socket, 101);
    assert_eq!(script.free(), free - 1);
    let requests = script.requests();
    let inline = Action::send(Buffer::Inline { len: 100 }, false);
    assert_eq!(requests[0].action, inline);
    for request in &requests {
        script.done(request, Status::Ok);
    }
    script.pump();
    assert_eq!(script.free(), free);
    assert_eq!(script.os.stats().inline_sends, 1);
}

#[test]
fn a_full_ring_only_delays_sends() {
    let config = OsLayerConfig {
        ring_depth: 2,
        ..OsLayerConfig::default()
    };
    let (mut script, socket, _) = Script::with_connection(config);
    script.host.faults().refuse_requests(true);
    assert_eq!(script.send(socket, 10), 10);
    assert_eq!(script.send(socket, 10), 10);
    assert_eq!(
        script.send(socket, 10),
        10,
        "accepted, but not yet requested"
    );
    script.calls().close(socket);
    assert!(script.actions().is_empty());
    let retry = script
        .os
        .poll_timeout()
        .expect("the link does not report space, so the host retries");
    assert!(retry > script.now);
    script.host.faults().refuse_requests(false);
    script.now = retry;
    let requests = script.requests();
    assert_eq!(lengths(&requests), [10, 10, 10]);
    assert_eq!(requests[3].action, CLOSE);
}

/// Other sockets keep posting buffers, so the ring is always full.
#[test]
fn a_send_that_found_the_ring_full_takes_its_turn() {
    let config = OsLayerConfig {
        ring_depth: 2,
        ..OsLayerConfig::default()
    };
    let link = MemoryConfig {
        ring_depth: 2,
        ..LINK
    };
    for len in [100, 4096, 10_000] {
        let mut script = Script::with_link(config.clone(), link);
        let busy = [(); 7].map(|()| script.open());
        let (patient, _) = script.open();
        for pair in busy.chunks(2) {
            for (_, receive) in pair {
                script.deliver(receive, 10);
            }
            script.pump();
            for (socket, _) in pair {
                while let Receive::Data(_) = script.calls().receive(*socket, 100) {}
            }
        }
        script.pump();
        script.calls().set_cork(patient, true);
        let mut taken = script.send(patient, len);
        script.calls().set_cork(patient, false);
        let mut sent = 0;
        for _ in 0..100 {
            for request in script.requests() {
                match request.action {
                    Action::Receive { .. } => script.deliver(&request, 10),
                    Action::Send { data, .. } => {
                        sent += data.len() as usize;
                        script.done(&request, Status::Ok);
                    }
                    action => panic!("{action:?}"),
                }
            }
            script.pump();
            for ready in script.ready() {
                match ready {
                    Ready::Readable(socket) => {
                        while let Receive::Data(_) = script.calls().receive(socket, 100) {}
                    }
                    Ready::Writable(socket) => taken += script.send(socket, len - taken),
                    Ready::Acceptable => {}
                }
            }
        }
        assert_eq!(sent, len, "{taken} bytes were accepted");
    }
}

#[test]
fn the_last_buffers_are_shared_by_sockets_with_few_sends() {
    let link = MemoryConfig { buffers: 8, ..LINK };
    let mut script = Script::with_link(OsLayerConfig::default(), link);
    let (greedy, _) = script.open();
    let (modest, _) = script.open();
    // Six buffers are free. A socket that has as many in use as are free gets no more.
    assert!(script.send(greedy, 100 << 10) < 100 << 10);
    assert_eq!(script.requests().len(), 3);
    assert_eq!(script.free(), 3);
    assert!(script.send(modest, 100 << 10) < 100 << 10);
    let requests = script.requests();
    assert_eq!(requests.len(), 2);
    assert!(script.ready().is_empty());
    script.done(&requests[0], Status::Ok);
    script.done(&requests[1], Status::Ok);
    script.pump();
    assert_eq!(script.ready(), [Ready::Writable(modest)]);
}

#[test]
fn sockets_without_outstanding_sends_wait_for_free_buffers() {
    let link = MemoryConfig { buffers: 4, ..LINK };
    let mut script = Script::with_link(OsLayerConfig::default(), link);
    let sockets = [(); 3].map(|()| script.open().0);
    let [first, second, third] = sockets;
    assert_eq!(script.send(first, 100), 100);
    let requests = script.requests();
    assert_eq!(script.free(), 0);
    assert_eq!(script.send(second, 100), 100, "held back");
    assert_eq!(script.send(third, 8000), 4096, "held back in part");
    assert!(script.actions().is_empty());
    assert_eq!(
        script.os.poll_timeout(),
        None,
        "the host waits without polling"
    );
    script.done(&requests[0], Status::Ok);
    let requests = script.requests();
    assert_eq!(
        (lengths(&requests), requests[0].socket),
        (vec![100], second.0)
    );
    script.done(&requests[0], Status::Ok);
    let requests = script.requests();
    assert_eq!(
        (lengths(&requests), requests[0].socket),
        (vec![4096], third.0)
    );
    assert!(script.ready().is_empty(), "no buffer is free");
    script.done(&requests[0], Status::Ok);
    script.pump();
    assert_eq!(script.ready(), [Ready::Writable(third)]);
}

#[test]
fn a_send_that_fails_ends_the_connection() {
    let (mut script, socket, receive) = Script::with_connection(OsLayerConfig::default());
    script.send(socket, 10);
    let requests = script.requests();
    script.done(&requests[0], Status::TooManyRequests);
    let requests = script.requests();
    assert_eq!(
        requests[0].action,
        Action::Close(baton_bus::descriptor::Close::Abort)
    );
    assert_eq!(script.ready(), [Ready::Readable(socket)]);
    assert!(script.calls().send(socket, "x".into()).is_err());
    script.done(&requests[0], Status::Ok);
    script.put(&[response(
        &receive,
        Status::Aborted,
        Outcome::Received(Buffer::Memory { address: 0, len: 0 }),
    )]);
    script.pump();
    script.calls().close(socket);
    assert!(script.actions().is_empty(), "the socket is already closed");
    script.assert_empty();
}
