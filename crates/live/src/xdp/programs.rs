//! The programs that run in the kernel on an interface's received and sent packets.

use super::assembler::{Arithmetic, Assembler, Condition, Helper, Label, Register, Size};
use super::bpf::{Instruction, Map};
use super::key::Key;
use Arithmetic::{Add, And, Move, ShiftLeft};
use Condition::{Equal, Greater, Less, NotEqual};
use Register::{R0, R1, R2, R3, R4, R6, R7, R8, R9, R10};
use Size::{Byte, Double, Half, Word};

/// Drops a received packet (XDP_DROP).
const DISCARD: i32 = 1;
/// Passes the packet to the kernel (XDP_PASS).
pub(super) const PASS: i32 = 2;
/// Redirects the packet to a socket (XDP_REDIRECT).
pub(super) const REDIRECT: i32 = 4;
/// Continues with the next program, or passes the packet (TCX_NEXT, and TC_ACT_UNSPEC of a filter).
pub(super) const GO_ON: i32 = -1;
/// Drops the packet (TCX_DROP, TC_ACT_SHOT).
pub(super) const DROP: i32 = 2;

/// The counters of a program, by their indices in its map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Counter {
    Redirected,
    Passed,
    Guarded,
    Discarded,
}

impl Counter {
    pub(super) const COUNT: u32 = 4;
}

/// The maps that programs use.
#[derive(Debug)]
pub(super) struct Maps<'a> {
    /// AF_XDP sockets, by receive queue.
    pub(super) sockets: &'a Map,
    pub(super) counters: &'a Map,
}

/// Direction of the packets that a program sees. It determines where the context (`struct xdp_md`, `struct __sk_buff`) contains their
/// bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    In,
    Out,
}

impl Way {
    /// Offset of the packet's start in the context; the packet's end is in the next word.
    const fn data(self) -> i16 {
        match self {
            Self::In => 0,
            Self::Out => SKB_DATA,
        }
    }
}

/// Offset of the packet's start in a context of traffic control (`struct __sk_buff`).
pub(super) const SKB_DATA: i16 = 76;
/// Offset of the receive queue in the context (`struct xdp_md`).
const RECEIVE_QUEUE: i16 = 16;
/// Offset of the field that says whether a packet has a VLAN tag outside of its bytes (`struct __sk_buff`).
const VLAN_PRESENT: i16 = 20;

pub(super) const ETHERNET_BYTES: i32 = 14;
pub(super) const ETHERNET_TYPE: i16 = 12;
pub(super) const TYPE_IPV4: u16 = 0x0800;
const TYPE_IPV6: u16 = 0x86dd;
pub(super) const IPV4_LEAST_BYTES: i32 = 20;
const IPV4_MOST_BYTES: i32 = 60;
const IPV6_BYTES: i32 = 40;
pub(super) const TCP: i32 = 6;
const TCP_LEAST_BYTES: i32 = 20;
/// The flag for more fragments, and the offset: both are zero in a complete packet.
const FRAGMENT_BITS: u16 = 0x3fff;
/// Offsets of header fields in a frame.
const IPV4_LENGTH: i16 = ETHERNET_BYTES as i16 + 2;
const IPV4_FRAGMENT: i16 = ETHERNET_BYTES as i16 + 6;
const IPV4_PROTOCOL: i16 = ETHERNET_BYTES as i16 + 9;
pub(super) const IPV4_SOURCE: i16 = ETHERNET_BYTES as i16 + 12;
const IPV6_LENGTH: i16 = ETHERNET_BYTES as i16 + 4;
const IPV6_NEXT_HEADER: i16 = ETHERNET_BYTES as i16 + 6;
const IPV6_SOURCE: i16 = ETHERNET_BYTES as i16 + 8;

/// Offsets on the stack: the key, and below it the index of a counter or a queue.
const KEY: i16 = -(Key::BYTES as i16);
const INDEX: i16 = KEY - 8;

/// Passes every frame.
pub(super) fn nothing() -> Vec<Instruction> {
    let mut a = Assembler::default();
    a.compute(Move, R0, PASS);
    a.exit();
    a.finish()
}

/// Redirects every frame to the socket of its queue, or passes it if the queue has no socket.
pub(super) fn everything(maps: &Maps<'_>) -> Vec<Instruction> {
    let mut a = Assembler::default();
    a.compute(Move, R6, R1);
    redirect(&mut a, maps, PASS, Counter::Passed);
    a.finish()
}

/// Redirects the TCP segments of the flows in the map to the socket of their queue, and passes everything else, including frames whose
/// headers are incomplete or not understood. Segments of a flow that is on hold, or whose queue has no socket, are dropped: the kernel,
/// which does not know the connection, would reset it.
pub(super) fn lookup(flows: &Map, maps: &Maps<'_>) -> Vec<Instruction> {
    let mut a = Assembler::default();
    let (pass, hold) = (a.label(), a.label());
    a.compute(Move, R6, R1);
    find(&mut a, Way::In, flows, pass);
    a.load(Word, R1, R0, 0);
    a.jump_if(R1, NotEqual, 0, hold);
    redirect(&mut a, maps, DISCARD, Counter::Discarded);
    a.place(hold);
    a.compute(Move, R9, DISCARD);
    count_and_exit(&mut a, Counter::Discarded, maps.counters);
    a.place(pass);
    a.compute(Move, R9, PASS);
    count_and_exit(&mut a, Counter::Passed, maps.counters);
    a.finish()
}

/// Drops packets of the flows in the map that the kernel sends, as long as the first queue has a socket. When the adapter's process is
/// gone, received packets are not redirected either.
pub(super) fn guard(flows: &Map, maps: &Maps<'_>) -> Vec<Instruction> {
    let mut a = Assembler::default();
    let pass = a.label();
    a.compute(Move, R6, R1);
    a.load(Word, R1, R6, VLAN_PRESENT);
    a.jump_if(R1, NotEqual, 0, pass);
    find(&mut a, Way::Out, flows, pass);
    a.store(Word, R10, INDEX, 0);
    look_up(&mut a, maps.sockets, INDEX);
    a.jump_if(R0, Equal, 0, pass);
    a.compute(Move, R9, DROP);
    count_and_exit(&mut a, Counter::Guarded, maps.counters);
    a.place(pass);
    a.compute(Move, R0, GO_ON);
    a.exit();
    a.finish()
}

/// Redirects the frame to the socket of its queue and ends; without a socket, ends with the result `otherwise`. R6 is the context.
fn redirect(a: &mut Assembler, maps: &Maps<'_>, otherwise: i32, counter: Counter) {
    let other = a.label();
    a.load(Word, R2, R6, RECEIVE_QUEUE);
    a.load_map(R1, maps.sockets);
    // The result if the queue has no socket.
    a.compute(Move, R3, otherwise);
    a.call(Helper::RedirectMap);
    a.compute(Move, R9, R0);
    a.jump_if(R9, NotEqual, REDIRECT, other);
    count_and_exit(a, Counter::Redirected, maps.counters);
    a.place(other);
    count_and_exit(a, counter, maps.counters);
}

/// Increments a counter, and ends with the result in R9.
pub(super) fn count_and_exit(a: &mut Assembler, counter: Counter, counters: &Map) {
    let out = a.label();
    a.store(Word, R10, INDEX, counter as i32);
    look_up(a, counters, INDEX);
    a.jump_if(R0, Equal, 0, out);
    // Each processor has its own counter.
    a.load(Double, R1, R0, 0);
    a.compute(Add, R1, 1);
    a.store(Double, R0, 0, R1);
    a.place(out);
    a.compute(Move, R0, R9);
    a.exit();
}

/// Jumps to `pass` unless the packet is a TCP segment of one of the flows. R6 is the context. Sets R7 to the packet's start, R8 to its end,
/// R9 to its TCP header, and R0 to the flow's entry.
fn find(a: &mut Assembler, way: Way, flows: &Map, pass: Label) {
    let (ipv6, ports) = (a.label(), a.label());
    a.load(Word, R7, R6, way.data());
    a.load(Word, R8, R6, way.data() + 4);
    for start in (0..Key::BYTES as i16).step_by(8) {
        a.store(Double, R10, KEY + start, 0);
    }
    reach(a, R7, ETHERNET_BYTES, pass);
    a.load(Half, R1, R7, ETHERNET_TYPE);
    a.jump_if(R1, Equal, in_network_order(TYPE_IPV6), ipv6);
    a.jump_if(R1, NotEqual, in_network_order(TYPE_IPV4), pass);
    ipv4_header(a, way, pass);
    a.jump(ports);
    a.place(ipv6);
    ipv6_header(a, way, pass);
    a.place(ports);
    let (source, destination) = match way {
        Way::In => (Key::REMOTE_PORT, Key::LOCAL_PORT),
        Way::Out => (Key::LOCAL_PORT, Key::REMOTE_PORT),
    };
    for (from, to) in [(0, source), (2, destination)] {
        a.load(Half, R1, R9, from);
        a.store(Half, R10, KEY + to, R1);
    }
    look_up(a, flows, KEY);
    a.jump_if(R0, Equal, 0, pass);
}

/// Sets R0 to the entry of a map whose key is at this offset of the stack, or to zero.
fn look_up(a: &mut Assembler, map: &Map, key: i16) {
    a.load_map(R1, map);
    a.compute(Move, R2, R10);
    a.compute(Add, R2, i32::from(key));
    a.call(Helper::MapLookup);
}

/// Jumps to `pass` unless the packet contains `bytes` bytes from `start` on.
pub(super) fn reach(a: &mut Assembler, start: Register, bytes: i32, pass: Label) {
    a.compute(Move, R3, start);
    a.compute(Add, R3, bytes);
    a.jump_if(R3, Greater, R8, pass);
}

/// Parses an IPv4 header.
fn ipv4_header(a: &mut Assembler, way: Way, pass: Label) {
    reach(a, R7, ETHERNET_BYTES + IPV4_LEAST_BYTES, pass);
    a.load(Byte, R4, R7, ETHERNET_BYTES as i16);
    version(a, 4, pass);
    a.load(Byte, R1, R7, IPV4_PROTOCOL);
    a.jump_if(R1, NotEqual, TCP, pass);
    a.load(Half, R1, R7, IPV4_FRAGMENT);
    a.compute(And, R1, in_network_order(FRAGMENT_BITS));
    a.jump_if(R1, NotEqual, 0, pass);
    // Length of the header with its options.
    a.compute(And, R4, 0x0f);
    a.compute(ShiftLeft, R4, 2);
    if way == Way::In {
        a.load(Half, R2, R7, IPV4_LENGTH);
        a.order_for_machine(R2);
        a.compute(Move, R1, R4);
        a.compute(Add, R1, TCP_LEAST_BYTES);
        a.jump_if(R2, Less, R1, pass);
    }
    behind_ipv4_header(a, pass);
    reach(a, R9, TCP_LEAST_BYTES, pass);
    addresses(a, way, IPV4_SOURCE, 4);
}

/// Parses an IPv6 header, which must be followed by TCP without extension headers.
fn ipv6_header(a: &mut Assembler, way: Way, pass: Label) {
    reach(a, R7, ETHERNET_BYTES + IPV6_BYTES, pass);
    a.load(Byte, R4, R7, ETHERNET_BYTES as i16);
    version(a, 6, pass);
    a.load(Byte, R1, R7, IPV6_NEXT_HEADER);
    a.jump_if(R1, NotEqual, TCP, pass);
    if way == Way::In {
        a.load(Half, R2, R7, IPV6_LENGTH);
        a.order_for_machine(R2);
        a.jump_if(R2, Less, TCP_LEAST_BYTES, pass);
    }
    a.compute(Move, R9, R7);
    a.compute(Add, R9, ETHERNET_BYTES + IPV6_BYTES);
    reach(a, R9, TCP_LEAST_BYTES, pass);
    addresses(a, way, IPV6_SOURCE, 16);
}

/// Jumps to `pass` unless the upper half of the byte in R4 is this version of IP.
fn version(a: &mut Assembler, version: i32, pass: Label) {
    a.compute(Move, R1, R4);
    a.compute(And, R1, 0xf0);
    a.jump_if(R1, NotEqual, version << 4, pass);
}

/// Sets R9 to the end of the IPv4 header, whose length is in R4. Each length has a branch of its own: adding a number from a packet to a
/// pointer would need one more capability (CAP_PERFMON).
fn behind_ipv4_header(a: &mut Assembler, pass: Label) {
    let found = a.label();
    a.compute(Move, R9, R7);
    a.compute(Add, R9, ETHERNET_BYTES + IPV4_LEAST_BYTES);
    for length in (IPV4_LEAST_BYTES..=IPV4_MOST_BYTES).step_by(4) {
        a.jump_if(R4, Equal, length, found);
        a.compute(Add, R9, 4);
    }
    // The length is less than the minimum.
    a.jump(pass);
    a.place(found);
}

/// Copies both addresses and their family to the key; the source address is at offset `source`, followed by the destination.
fn addresses(a: &mut Assembler, way: Way, source: i16, bytes: i16) {
    let (of_source, of_destination) = match way {
        Way::In => (Key::REMOTE_ADDR, Key::LOCAL_ADDR),
        Way::Out => (Key::LOCAL_ADDR, Key::REMOTE_ADDR),
    };
    for (from, to) in [(source, of_source), (source + bytes, of_destination)] {
        for at in (0..bytes).step_by(4) {
            a.load(Word, R1, R7, from + at);
            a.store(Word, R10, KEY + to + at, R1);
        }
    }
    let family = if bytes == 4 { 4 } else { 6 };
    a.store(Word, R10, KEY + Key::FAMILY, family);
}

/// Returns the number as a load instruction finds it in a packet.
pub(super) fn in_network_order(number: u16) -> i32 {
    i32::from(number.to_be())
}
