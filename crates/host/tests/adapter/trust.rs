//! The host detects every violation of the protocol by an adapter.

use baton_bus::descriptor::{Buffer, Opcode, Outcome, Peer, Status, write_peer};
use baton_bus::link::{LinkError, Violation};
use baton_cluster::script::{CLIENT, SERVER, Script, response};
use baton_host::SocketId;
use baton_host::adapter::OsLayerConfig;

fn violation(script: &mut Script) -> Violation {
    let Err(LinkError::Violation(violation)) = script.try_pump() else {
        panic!("the host did not detect the violation");
    };
    script.os.handle_link_lost(script.now);
    script.os.check();
    violation
}

#[test]
fn unexpected_answers_are_violations() {
    for answer in 0..7 {
        let (mut script, socket, receive) = Script::with_connection(OsLayerConfig::default());
        script.send(socket, 10);
        let send = script.requests()[0];
        let mut other = send;
        other.tag += 100;
        let mut elsewhere = send;
        elsewhere.socket += 1;
        let sent = |len| Outcome::Sent {
            len,
            cumulative: false,
        };
        match answer {
            0 => script.answer(&other, Status::Ok, sent(10)),
            1 => script.answer(&elsewhere, Status::Ok, sent(10)),
            2 => script.answer(&send, Status::Ok, sent(11)),
            3 => script.answer(&receive, Status::Ok, sent(10)),
            4 => script.answer(&send, Status::Ok, Outcome::Done(Opcode::Close)),
            5 => script.tell(SocketId(77), Status::Ok, Outcome::PeerClosed),
            _ => {
                script.tell(socket, Status::Reset, Outcome::Over);
                script.tell(socket, Status::Reset, Outcome::Over);
            }
        }
        let found = violation(&mut script);
        assert!(
            matches!(found, Violation::Unasked { .. }),
            "{answer}: {found}"
        );
    }
}

#[test]
fn a_buffer_is_the_one_that_was_posted_and_not_longer() {
    let (mut script, _, receive) = Script::with_connection(OsLayerConfig::default());
    let wrong = |address, len| Outcome::Received(Buffer::Memory { address, len });
    script.answer(&receive, Status::Ok, wrong(3, 5));
    assert!(matches!(violation(&mut script), Violation::Unasked { .. }));
    for len in [0, 4097] {
        let (mut script, _, receive) = Script::with_connection(OsLayerConfig::default());
        script.answer(&receive, Status::Ok, wrong(3, len));
        assert_eq!(violation(&mut script), Violation::Length(len));
    }
}

#[test]
fn a_bulk_accept_has_the_numbers_that_were_reserved() {
    for numbers in [&[0_u32, 1][..], &[1, 3], &[1, 2, 3]] {
        let config = baton_host::adapter::OsLayerConfig {
            bulk_accept: 2,
            ..OsLayerConfig::default()
        };
        let mut script = Script::new(config);
        script.os.listen(script.now, SERVER, 5).unwrap();
        let accept = script.requests()[3];
        let baton_bus::descriptor::Action::Accept { first, .. } = accept.action else {
            panic!("{accept:?}");
        };
        let count = numbers.len() as u16;
        let head = response(&accept, Status::Ok, Outcome::AcceptedBulk { count });
        let peers = numbers.iter().map(|number| {
            let socket = first + number - 1;
            let remote = CLIENT;
            write_peer(Peer { socket, remote })
        });
        let entry: Vec<_> = std::iter::once(head).chain(peers).collect();
        script.put(&entry);
        assert!(matches!(violation(&mut script), Violation::Unasked { .. }));
    }
}
