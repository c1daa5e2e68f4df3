//! A request and its response over a link that may lose data: every byte arrives, and another implementation checks the capture.

use crate::common::{Link, V4, V6, interface};
use baton_tcp::{CloseReason, Config, Event};
use baton_testkit::Pattern;
use baton_wire::{Span, Time, decode_frame};
use bytes::Bytes;
use std::process::Command;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\n\r\n";
const RESPONSE_BYTES: usize = 300_000;

/// Lets the first host send a request to the second. One of `lose_every` segments of the response is lost.
fn exchange(networks: [&str; 2], lose_every: Option<usize>) -> Link {
    let config = Config {
        send_buffer: 1 << 20,
        ..Config::default()
    };
    let mut link = Link::new([0, 1].map(|side| interface(side, networks[side])), config);
    let mut count = 0;
    link.loses = Box::new(move |side, frame| {
        let is_data =
            side == 1 && decode_frame(frame).is_ok_and(|(_, payload)| !payload.is_empty());
        count += usize::from(is_data);
        is_data && lose_every.is_some_and(|every| count.is_multiple_of(every))
    });
    let conn = link.connect();
    assert!(link.run(1, Link::connected));
    link.write(0, conn, REQUEST);
    link.hosts[0].stack_mut().shutdown(conn);
    let is_asked = |link: &Link| {
        link.events[1]
            .iter()
            .any(|(_, event)| *event == Event::PeerClosed)
    };
    assert!(link.run(1, is_asked));
    assert_eq!(link.received(1), REQUEST);
    let response = Bytes::from(Pattern::new(0).bytes(RESPONSE_BYTES));
    let (accepted, stack) = (link.events[1][0].0, link.hosts[1].stack_mut());
    // The send buffer is large enough for the whole response.
    assert_eq!(stack.write(accepted, response.clone()), Ok(RESPONSE_BYTES));
    stack.close(accepted);
    assert!(link.run(100, |link| {
        [0, 1].iter().all(|&side| link.closed(side).is_some())
    }));
    assert_eq!(
        [0, 1].map(|side| link.closed(side)),
        [Some(CloseReason::Normal); 2]
    );
    assert!(link.received(0) == response, "every byte arrived");
    let stacks = link.hosts.each_ref().map(|host| host.stack());
    assert!(stacks.iter().all(|stack| stack.is_empty()));
    let waiting: usize = stacks.iter().map(|stack| stack.time_wait_len()).sum();
    assert_eq!(waiting, 1, "only the end that closed first is in TIME-WAIT");
    link
}

#[test]
fn a_response_crosses_a_link_with_losses() {
    for networks in [V4, V6] {
        exchange(networks, Some(7));
        let link = exchange(networks, None);
        let stats = link.hosts.each_ref().map(|host| host.stack().stats());
        assert!(stats.iter().all(|stats| stats.retransmissions == 0));
        let quick = Time::ZERO + Span::from_secs(2);
        assert!(link.now < quick, "the transfer is quick");
    }
}

/// Returns what Wireshark's expert reports about a capture, or `None` if tshark is not installed.
fn oddities(link: Link, filter: &str) -> Option<String> {
    let capture = tempfile::NamedTempFile::new().ok()?;
    std::fs::write(capture.path(), link.capture.into_inner()).ok()?;
    let options = ["-o", "tcp.check_checksum:TRUE", "-Y", filter, "-r"];
    let mut tshark = Command::new("tshark");
    let output = tshark.args(options).arg(capture.path()).output();
    Some(String::from_utf8(output.ok()?.stdout).expect("text"))
}

#[test]
fn wireshark_finds_nothing_odd_on_a_perfect_link() {
    let filter = "tcp.analysis.flags or tcp.checksum.status == 0 or _ws.malformed";
    let odd = oddities(exchange(V4, None), filter);
    assert_eq!(odd.unwrap_or_default(), "");
    // Check that Wireshark's expert notices faults.
    let link = exchange(V4, Some(7));
    let again = link.hosts[1].stack().stats().retransmissions;
    assert!(again > 0);
    let filter = "tcp.analysis.retransmission or tcp.analysis.out_of_order";
    if let Some(odd) = oddities(link, filter) {
        assert_eq!(odd.lines().count() as u64, again);
    }
}
