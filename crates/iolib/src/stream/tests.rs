use super::*;
use crate::application::Application;
use crate::connect::ConnectError;
use crate::handshake::{Geometry, Limits, Refusal};
use crate::live_link::LiveLink;
use baton_bus::Descriptor;
use baton_bus::descriptor::{Action, Malformed, Request};
use baton_bus::link::{AdapterLink, DmaId, HostLink, LinkError, Violation};
use baton_wire::Time;
use rustix::event::PollFlags;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::thread;

const SMALL: Geometry = Geometry {
    ring_depth: 8,
    buffers: 4,
    buffer_bytes: 64,
    most_sends: 4,
};
const NOW: Time = Time::ZERO;

type Host = StreamHost<UnixStream>;
type Adapter = StreamAdapter<UnixStream>;

fn streams() -> (UnixStream, UnixStream) {
    let (host, adapter) = UnixStream::pair().expect("sockets");
    for stream in [&host, &adapter] {
        stream.set_nonblocking(true).expect("an option");
    }
    (host, adapter)
}

fn pair() -> (Host, Adapter) {
    let (host, adapter) = streams();
    let application = Application::default();
    (
        StreamHost::over(host, SMALL),
        StreamAdapter::over(adapter, SMALL, application),
    )
}

fn request(number: u32) -> Descriptor {
    Request {
        socket: number,
        tag: 0,
        action: Action::Socket,
    }
    .encode()
}

#[test]
fn a_side_that_can_take_nothing_is_woken_only_by_new_space() {
    let (mut host, mut adapter) = pair();
    while adapter.put(NOW, &[request(1); 8]).expect("the host lives") > 0 {}
    assert_eq!(host.put(NOW, &[request(2)]), Ok(1));
    assert!(!adapter.prepare_to_sleep().expect("the system can wait"));
    assert!(
        adapter
            .prepare_to_sleep_for_room()
            .expect("the system can wait")
    );
    assert_eq!(adapter.interest(), PollFlags::OUT);
    let mut got = Vec::new();
    while adapter
        .prepare_to_sleep_for_room()
        .expect("the system can wait")
    {
        host.get(NOW, &mut got).expect("the adapter lives");
    }
    assert_eq!(adapter.put(NOW, &[request(3)]), Ok(1));
    assert!(
        adapter.interest().contains(PollFlags::IN),
        "it is listening again"
    );
}

#[test]
fn a_side_that_does_not_receive_blocks_only_the_other() {
    let (mut host, mut adapter) = pair();
    let batch: Vec<_> = (0..8).map(request).collect();
    let mut put = 0;
    while host.put(NOW, &batch).expect("the adapter is there") > 0 {
        put += batch.len();
        assert!(put < 1_000_000, "it goes on for ever");
    }
    assert!(host.interest().contains(rustix::event::PollFlags::OUT));
    let mut got = Vec::new();
    while got.len() < put {
        adapter.get(NOW, 3, &mut got).expect("the host is there");
        let _ = host.has_news().expect("the system can wait");
    }
    assert!(got.iter().zip(batch.iter().cycle()).all(|(a, b)| a == b));
    assert_eq!(host.put(NOW, &batch), Ok(8));
}

/// Returns how a host reacts to these bytes from the adapter.
fn host_says(bytes: &[u8]) -> Result<(), LinkError> {
    let (host, mut adapter) = streams();
    adapter.write_all(bytes).expect("room");
    drop(adapter);
    let mut host = StreamHost::over(host, SMALL);
    (0..9).try_for_each(|_| host.get(NOW, &mut Vec::new()))
}

fn adapter_says(bytes: &[u8]) -> Result<(), LinkError> {
    let (mut host, adapter) = streams();
    host.write_all(bytes).expect("room");
    drop(host);
    let mut adapter = StreamAdapter::over(adapter, SMALL, Application::default());
    adapter.read(NOW, DmaId(1), 0, 3)?;
    (0..9).try_for_each(|_| adapter.get(NOW, 9, &mut Vec::new()))
}

#[test]
fn bad_messages_are_refused_with_a_reason() {
    let read = |len: u8, address: u8| {
        [
            2, 0, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, len, 0, 0, 0, address, 1, 0, 0, 0, 0, 0, 0,
        ]
    };
    let range = Violation::Range {
        address: 256,
        len: 1,
    };
    assert_eq!(host_says(&read(1, 0)), Err(range.into()));
    assert_eq!(host_says(&read(65, 0)), Err(Violation::Length(65).into()));
    let reply = [3, 0, 0, 0, 6, 0, 0, 0, 1, 0, 0, 0, b'a', b'b'];
    assert_eq!(host_says(&reply), Err(Violation::Message(3).into()));
    let unwanted = Violation::Unwanted { id: 1, len: 2 };
    assert_eq!(adapter_says(&reply), Err(unwanted.into()));
    assert_eq!(adapter_says(&read(1, 0)), Err(Violation::Message(2).into()));
    assert_eq!(adapter_says(&[9; 8]), Err(Violation::Message(9).into()));
    assert_eq!(adapter_says(&[1, 0, 0]), Err(LinkError::Gone));
    // A head entry that announces a continuation, which does not follow.
    let mut cut_off = vec![1, 0, 0, 0, 32, 0, 0, 0, 0x10, 4];
    cut_off.resize(8 + 12, 0);
    cut_off.push(33);
    cut_off.resize(8 + 32, 0);
    let truncated = Violation::Malformed(Malformed::Truncated { missing: 1 });
    assert_eq!(adapter_says(&cut_off), Err(truncated.into()));
}

#[test]
fn a_host_limits_the_reads_that_it_accepts() {
    let asked: Vec<u8> = std::iter::repeat_n([2, 0, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 64], 100)
        .flat_map(|head| [&head[..], &[0; 11]].concat())
        .collect();
    let unwanted = Violation::Unwanted { id: 1, len: 64 };
    assert_eq!(host_says(&asked), Err(unwanted.into()));
}

#[test]
fn refusals_have_a_reason() {
    let limits = Limits {
        applications: 0,
        ..Limits::default()
    };
    let mut listener = TcpAdapterListener::bind("127.0.0.1:0", limits).expect("a port");
    let address = listener.local_addr().expect("it is bound");
    let connecting = thread::spawn(move || TcpHost::connect(address, &SMALL));
    while !connecting.is_finished() {
        assert!(listener.accept(&[]).is_none());
    }
    let refused = connecting.join().expect("no panic").expect_err("refused");
    let too_many = Refusal::TooMany { most: 0 };
    assert!(matches!(refused, ConnectError::Refused(refusal) if refusal == too_many));
    assert_eq!(listener.refusals(), [(too_many, 1)]);
    let taken = TcpAdapterListener::bind(address, limits).expect_err("in use");
    assert!(taken.to_string().contains("free port"), "{taken}");
}
