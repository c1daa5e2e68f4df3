use super::*;
use crate::connect::ConnectError;
use crate::handshake::{Geometry, Limits, Refusal};
use crate::live_link::LiveLink;
use crate::waiting::{Spin, wait};
use baton_bus::Descriptor;
use baton_bus::descriptor::{Action, Request};
use baton_bus::link::{AdapterLink, Dma, DmaId, HostLink, LinkError, Violation};
use baton_bus::shared::Side;
use baton_wire::{Span, Time};
use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, SealFlags, memfd_create};
use rustix::io::Errno;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

pub(super) const SMALL: Geometry = Geometry {
    ring_depth: 8,
    buffers: 4,
    buffer_bytes: 64,
    most_sends: 4,
};
pub(super) const NOW: Time = Time::ZERO;

/// Connects a host with `wishes`, and returns it with the adapter's end that `listener` accepts.
fn join(
    listener: &mut AdapterListener,
    path: &Path,
    wishes: &Geometry,
    attached: &[Option<u32>],
) -> Result<(ShmHost, ShmAdapter), ConnectError> {
    let connecting = thread::spawn({
        let (path, wishes) = (path.to_owned(), *wishes);
        move || ShmHost::connect(&path, &wishes)
    });
    let mut accepted = None;
    while !connecting.is_finished() {
        accepted = accepted.or_else(|| listener.accept(attached));
    }
    let host = connecting.join().expect("no panic")?;
    Ok((host, accepted.expect("it is attached")))
}

fn small_pair() -> (ShmHost, ShmAdapter) {
    let (host, adapter, _) = pair(SMALL).expect("memory");
    (host, adapter)
}

fn request(number: u32) -> Descriptor {
    Request {
        socket: number,
        tag: 0,
        action: Action::Socket,
    }
    .encode()
}

fn requests_of(adapter: &mut ShmAdapter) -> Vec<Descriptor> {
    let mut requests = Vec::new();
    adapter
        .get(NOW, usize::MAX, &mut requests)
        .expect("the host is there");
    requests
}

#[test]
fn descriptors_and_data_cross_the_link() {
    let (mut host, mut adapter) = small_pair();
    assert_eq!(
        (host.free_buffers(), host.buffer_bytes()),
        (4, SMALL.buffer_bytes)
    );
    let address = host
        .place(Bytes::from_static(b"request"))
        .expect("a buffer");
    assert_eq!(host.put(NOW, &[request(1)]), Ok(1));
    assert_eq!(requests_of(&mut adapter), [request(1)]);
    adapter
        .read(NOW, DmaId(7), address + 2, 5)
        .expect("in range");
    let data = Bytes::from_static(b"quest");
    let id = DmaId(7);
    assert_eq!(adapter.poll_dma(NOW), Ok(Some(Dma::Read { id, data })));
    let more = Bytes::from_static(b", continued");
    assert!(host.append(address, 7, &more));
    assert!(
        !host.append(address, 18, &Bytes::from(vec![0; 47])),
        "too long"
    );
    adapter.read(NOW, id, address, 18).expect("in range");
    let data = Bytes::from_static(b"request, continued");
    assert_eq!(adapter.poll_dma(NOW), Ok(Some(Dma::Read { id, data })));
    host.free(address);
    let address = host.reserve().expect("a buffer");
    adapter
        .write(NOW, id, address, Bytes::from_static(b"response"))
        .expect("in range");
    assert_eq!(adapter.poll_dma(NOW), Ok(Some(Dma::Written { id })));
    assert_eq!(adapter.poll_dma(NOW), Ok(None));
    assert_eq!(adapter.put(NOW, &[request(2), request(3)]), Ok(2));
    let mut responses = Vec::new();
    host.get(NOW, &mut responses).expect("the adapter is there");
    assert_eq!(responses, [request(2), request(3)]);
    assert_eq!(host.take(address, 8), Ok(Bytes::from_static(b"response")));
    assert_eq!(host.free_buffers(), 4);
    let range = Violation::Range { address, len: 8 };
    assert_eq!(host.take(address, 8), Err(range), "it is free by now");
}

#[test]
fn addresses_outside_the_pool_are_refused() {
    let (mut host, mut adapter) = small_pair();
    let id = DmaId(0);
    let end = SMALL.pool_bytes();
    for (address, len) in [(end, 1), (end - 1, 2), (u64::MAX, 64), (u64::MAX - 10, 5)] {
        let range = LinkError::Violation(Violation::Range { address, len });
        assert_eq!(adapter.read(NOW, id, address, len), Err(range.clone()));
        let data = Bytes::from(vec![0; len as usize]);
        assert_eq!(adapter.write(NOW, id, address, data), Err(range));
    }
    let length = LinkError::Violation(Violation::Length(65));
    assert_eq!(adapter.read(NOW, id, 0, 65), Err(length));
    assert_eq!(adapter.read(NOW, id, end, 0), Ok(()));
    let long = Bytes::from(vec![0; 65]);
    assert_eq!(host.place(long.clone()), Err(long));
    assert_eq!(host.free_buffers(), 4);
}

#[test]
fn neither_size_nor_seals_of_the_memory_can_change() {
    let (_host, _adapter, file) = pair(SMALL).expect("memory");
    let bytes = rustix::fs::fstat(&file).expect("a file").st_size as u64;
    for changed in [0, bytes - 1, bytes + 1] {
        assert_eq!(rustix::fs::ftruncate(&file, changed), Err(Errno::PERM));
    }
    let seals = rustix::fs::fcntl_add_seals(&file, SealFlags::WRITE);
    assert_eq!(seals, Err(Errno::PERM));
}

#[test]
fn memory_without_seals_or_with_a_wrong_header_is_refused() {
    let unsound = |file: OwnedFd| !memory::is_sound(file, &SMALL).expect("a file");
    let sound = memory::create(&SMALL).expect("memory");
    assert!(memory::is_sound(&sound, &SMALL).expect("a file"));
    assert!(unsound(
        memory::create(&Geometry::default()).expect("memory")
    ));
    let bare = memfd_create("bare", MemfdFlags::ALLOW_SEALING).expect("memory");
    let mut content = vec![0; rustix::fs::fstat(&sound).expect("a file").st_size as usize];
    rustix::io::pread(&sound, &mut content[..], 0).expect("a file");
    rustix::io::pwrite(&bare, &content, 0).expect("a file");
    assert!(unsound(bare));
}

#[test]
fn the_adapter_refuses_with_a_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("adapter.sock");
    let nobody = ShmHost::connect(&path, &SMALL).expect_err("nobody is there");
    assert!(
        nobody.to_string().contains("baton live adapter"),
        "{nobody}"
    );
    let limits = Limits {
        applications: 2,
        ring_depth: 64,
        ..Limits::default()
    };
    let mut listener = AdapterListener::bind(&path, limits).expect("a socket");
    let mut refused = |wishes: &Geometry, attached: &[Option<u32>]| {
        let refused = join(&mut listener, &path, wishes, attached);
        match refused.expect_err("refused") {
            ConnectError::Refused(refusal) => refusal,
            other => panic!("{other}"),
        }
    };
    assert_eq!(refused(&SMALL, &[None; 2]), Refusal::TooMany { most: 2 });
    let deep = Geometry {
        ring_depth: 65,
        ..SMALL
    };
    let (wished, least, most) = (65, 8, 64);
    let depth = Refusal::RingDepth {
        wished,
        least,
        most,
    };
    assert_eq!(refused(&deep, &[]), depth);
    assert_eq!(listener.refusals().len(), 2);
    let (_, adapter) = join(&mut listener, &path, &SMALL, &[None]).expect("others are served");
    assert_eq!(adapter.application().pid, Some(std::process::id()));
}

#[test]
fn silent_or_malformed_clients_do_not_delay_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("adapter.sock");
    let mut listener = AdapterListener::bind(&path, Limits::default()).expect("a socket");
    let _silent = UnixStream::connect(&path).expect("the adapter is there");
    let mut nonsense = UnixStream::connect(&path).expect("the adapter is there");
    nonsense.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("room");
    drop(UnixStream::connect(&path));
    join(&mut listener, &path, &SMALL, &[]).expect("it is attached");
    assert_eq!(listener.refusals(), [(Refusal::NoHello, 2)]);
}

#[test]
fn silent_clients_of_a_user_are_dropped_for_new_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("adapter.sock");
    let mut listener = AdapterListener::bind(&path, Limits::default()).expect("a socket");
    let connect = || UnixStream::connect(&path).expect("the adapter is there");
    let silent: Vec<_> = (0..10).map(|_| connect()).collect();
    join(&mut listener, &path, &SMALL, &[]).expect("it is attached");
    let refusals = listener.refusals();
    assert!(
        refusals.contains(&(Refusal::TooManySilent, 7)),
        "{refusals:?}"
    );
    drop(silent);
}

fn is_ready(link: &impl AsFd) -> bool {
    let mut fds = [PollFd::new(link, PollFlags::IN)];
    poll(&mut fds, Some(&rustix::event::Timespec::default())).expect("it can be polled") > 0
}

#[test]
fn doorbells_wake_sleepers() {
    let (mut host, mut adapter) = small_pair();
    assert!(adapter.prepare_to_sleep().expect("the system can wait"));
    assert!(!is_ready(&adapter));
    assert_eq!(host.put(NOW, &[request(1)]), Ok(1));
    assert_eq!(host.put(NOW, &[request(2)]), Ok(1));
    assert!(is_ready(&adapter));
    assert!(adapter.has_news().expect("the system can wait"));
    assert_eq!(requests_of(&mut adapter).len(), 2);
    assert!(!is_ready(&adapter), "it was heard");
    assert!(!adapter.has_news().expect("the system can wait"));
    assert_eq!(
        (
            host.counters().doorbells_rung,
            host.counters().doorbells_saved
        ),
        (1, 1)
    );
    assert_eq!(host.put(NOW, &[request(3)]), Ok(1));
    assert!(!adapter.prepare_to_sleep().expect("the system can wait"));
    // Free slots wake up a side that was waiting for them.
    let many = [request(4); 8];
    assert_eq!(host.put(NOW, &many), Ok(7));
    assert!(host.prepare_to_sleep().expect("the system can wait"));
    assert_eq!(requests_of(&mut adapter).len(), 8);
    assert!(is_ready(&host));
    assert_eq!(host.put(NOW, &many[7..]), Ok(1));
}

#[test]
fn a_doorbell_rung_while_its_side_stays_awake_is_cleared() {
    let (mut host, mut adapter) = small_pair();
    assert!(host.prepare_to_sleep().expect("the system can wait"));
    assert_eq!(adapter.put(NOW, &[request(1)]), Ok(1));
    assert!(!host.prepare_to_sleep().expect("the system can wait"));
    host.get(NOW, &mut Vec::new())
        .expect("the adapter is there");
    assert!(host.prepare_to_sleep().expect("the system can wait"));
    assert!(!is_ready(&host), "nothing has come since");
}

#[test]
fn a_doorbell_rung_late_wakes_once() {
    let file = memory::create(&SMALL).expect("memory");
    let mapping = || mapping::Mapping::new(file.as_fd(), memory::Layout::new(&SMALL));
    let (late, host_bell) = doorbell::doorbell().expect("a pipe");
    let (button, adapter_bell) = doorbell::doorbell().expect("a pipe");
    // The adapter rings `elsewhere`; `late` rings the host's bell later.
    let (elsewhere, _bell) = doorbell::doorbell().expect("a pipe");
    let end = |side, bell, button| {
        end::ShmEnd::new(mapping().expect("memory"), side, SMALL, bell, button)
    };
    let mut host = end(Side::Host, host_bell, button);
    let mut adapter = end(Side::Adapter, adapter_bell, elsewhere);
    let took = |host: &mut end::ShmEnd| {
        let mut responses = Vec::new();
        host.get(NOW, usize::MAX, &mut responses)
            .expect("the adapter is there");
        responses.len()
    };
    assert_eq!(took(&mut host), 0);
    assert!(host.prepare_to_sleep().expect("no violation"));
    assert_eq!(adapter.put(NOW, &[request(1)]), Ok(1));
    assert_eq!(took(&mut host), 1, "something else has woken it");
    late.ring();
    assert!(host.prepare_to_sleep().expect("no violation"));
    assert!(is_ready(&host));
    assert_eq!(took(&mut host), 0);
    assert!(host.prepare_to_sleep().expect("no violation"));
    assert!(!is_ready(&host), "it was heard");
}

#[test]
fn a_host_that_masks_lazy_entries_stays_asleep() {
    let (mut host, mut adapter) = small_pair();
    host.mask_lazy(true);
    assert!(host.prepare_to_sleep().expect("the system can wait"));
    assert_eq!(adapter.put_lazily(NOW, &[request(1)]), Ok(1));
    assert!(!is_ready(&host));
    assert_eq!(adapter.put(NOW, &[request(2)]), Ok(1));
    assert!(is_ready(&host));
    let mut responses = Vec::new();
    host.get(NOW, &mut responses).expect("the adapter is there");
    assert_eq!(responses, [request(1), request(2)]);
    assert!(!is_ready(&host), "its bell is silent again");
    host.mask_lazy(false);
    assert!(host.prepare_to_sleep().expect("the system can wait"));
    assert_eq!(adapter.put_lazily(NOW, &[request(3)]), Ok(1));
    assert!(is_ready(&host));
}

#[test]
fn the_loss_of_the_other_side_is_noticed_asleep_and_awake() {
    let (mut host, adapter) = small_pair();
    assert!(host.prepare_to_sleep().expect("the system can wait"));
    drop(adapter);
    assert!(is_ready(&host));
    assert_eq!(host.get(NOW, &mut Vec::new()), Err(LinkError::Gone));
    assert!(!host.prepare_to_sleep().expect("no violation"));
    assert_eq!(host.put(NOW, &[request(1)]), Err(LinkError::Gone));

    let (mut host, mut adapter) = small_pair();
    assert_eq!(host.put(NOW, &[request(1)]), Ok(1));
    drop(host);
    assert_eq!(requests_of(&mut adapter), [request(1)], "its last words");
    let later = NOW + Span::from_ms(1000);
    assert_eq!(
        adapter.get(later, usize::MAX, &mut Vec::new()),
        Err(LinkError::Gone)
    );
}

#[test]
fn a_wait_ends_by_a_timeout() {
    let (mut host, _adapter) = small_pair();
    let mut spin = Spin::new(Duration::from_micros(50));
    let start = Instant::now();
    wait(&mut host, &mut spin, Some(Duration::from_millis(20))).expect("the system can wait");
    assert!(start.elapsed() >= Duration::from_millis(20));
}
