//! The program of a router's fast path: it forwards what [`Router`](baton_inet::Router) would forward without a question, and leaves all
//! else to it (RFC 1812 5.2, RFC 8200 3).

use super::assembler::{Arithmetic, Assembler, Condition, Helper, Label, Operand, Register, Size};
use super::bpf::{Instruction, Map};
use super::programs::{
    Counter, ETHERNET_BYTES, ETHERNET_TYPE, GO_ON, INDEX, IPV4_LEAST_BYTES, IPV4_LENGTH,
    IPV4_PROTOCOL, IPV4_SOURCE, IPV6_BYTES, IPV6_LENGTH, IPV6_NEXT_HEADER, IPV6_SOURCE, Maps, PASS,
    REDIRECT, SKB_DATA, SKB_SEGMENT_SIZE, TCP, TCP_LEAST_BYTES, TYPE_IPV4, TYPE_IPV6, VLAN_PRESENT,
    count_and_exit, in_network_order, look_up, reach, redirect,
};
use Arithmetic::{Add, And, Move, ShiftRight};
use Condition::{Equal, Greater, Less, NotEqual};
use Register::{R0, R1, R2, R3, R4, R6, R7, R8, R9, R10};
use Size::{Byte, Double, Half, Word};
use std::mem::offset_of;

/// A prefix as the kernel's tries have it, and programs build it from packets.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Prefix {
    /// Bits of what follows that count.
    pub(super) bits: u32,
    /// 4 or 6: one trie has both versions.
    pub(super) family: u32,
    /// In network byte order; IPv4 addresses take the first bytes.
    pub(super) addr: [u8; 16],
}

impl Prefix {
    pub(super) const BYTES: usize = size_of::<Self>();
    pub(super) const FAMILY_BITS: u32 = 32;

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.bits.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.family.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.addr);
        bytes
    }
}

/// What becomes of packets to a prefix.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Action {
    /// By which interface they leave, counted from one; zero is for the router to see to.
    pub(super) slot: u16,
    /// Its largest packet, bytes.
    pub(super) mtu: u16,
    /// Ethernet addresses of who receives them, and of the interface.
    pub(super) destination: [u8; 6],
    pub(super) source: [u8; 6],
    /// The interface, by the kernel's number.
    pub(super) interface: u32,
    /// Set by the program when it has forwarded by it.
    pub(super) used: u32,
}

impl Action {
    pub(super) const BYTES: usize = size_of::<Self>();
    const SLOT: i16 = offset_of!(Self, slot) as i16;
    const MTU: i16 = offset_of!(Self, mtu) as i16;
    const DESTINATION: i16 = offset_of!(Self, destination) as i16;
    const SOURCE: i16 = offset_of!(Self, source) as i16;
    const INTERFACE: i16 = offset_of!(Self, interface) as i16;
    const USED: i16 = offset_of!(Self, used) as i16;

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..2].copy_from_slice(&self.slot.to_ne_bytes());
        bytes[2..4].copy_from_slice(&self.mtu.to_ne_bytes());
        bytes[4..10].copy_from_slice(&self.destination);
        bytes[10..16].copy_from_slice(&self.source);
        bytes[16..20].copy_from_slice(&self.interface.to_ne_bytes());
        bytes[20..].copy_from_slice(&self.used.to_ne_bytes());
        bytes
    }

    /// Whether an entry, as it was read, says that it was used.
    pub(super) fn is_used(bytes: &[u8; Self::BYTES]) -> bool {
        bytes[Self::USED as usize..] != [0; 4]
    }
}

/// The table that the programs of all interfaces share, and the traffic that one of them has forwarded, by slot.
#[derive(Debug)]
pub(super) struct Tables<'a> {
    pub(super) routes: &'a Map,
    pub(super) traffic: &'a Map,
}

/// Where a program sees frames, and what it needs to let go of them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'a> {
    /// Before the kernel has seen them; by slot they leave by these interfaces.
    Xdp {
        devices: &'a Map,
        maps: &'a Maps<'a>,
    },
    /// Where traffic control sees what is received.
    Ingress { counters: &'a Map },
}

/// The result for a frame that traffic control sends by another interface (TC_ACT_REDIRECT).
pub(super) const REDIRECTED: i32 = 7;
/// Where a context of traffic control (`struct __sk_buff`) has the bytes of a frame.
const LENGTH: i16 = 0;

/// Places in frames.
const IPV4_TTL: i16 = ETHERNET_BYTES as i16 + 8;
const IPV4_CHECKSUM: i16 = ETHERNET_BYTES as i16 + 10;
const IPV4_DESTINATION: i16 = IPV4_SOURCE + 4;
const IPV6_HOP_LIMIT: i16 = ETHERNET_BYTES as i16 + 7;
const IPV6_DESTINATION: i16 = IPV6_SOURCE + 16;
/// Behind it the upper half of a byte is the length of a TCP header.
const TCP_HEADER_WORDS: i16 = 12;
/// The first byte of an IPv4 header without options.
const PLAIN_IPV4: i32 = 0x45;
/// First bytes of IPv4 addresses that are not those of one host: this network, loopback, and what is above the last class.
const THIS_NETWORK: i32 = 0;
const LOOPBACK: i32 = 127;
const LAST_UNICAST: i32 = 223;
/// The first two bytes of IPv6 addresses, as a number: from link-local ones on they are of a link, or of many (RFC 4291 2.4).
const LAST_GLOBAL: i32 = 0xfe7f;
/// The sum over a header with a right checksum (RFC 1071).
const ALL_ONES: i32 = 0xffff;
/// A frame whose interface is gone is dropped (XDP_DROP).
const DROPPED: i32 = 1;

/// The prefix that is looked up, on the stack.
const KEY: i16 = -(Prefix::BYTES as i16);
const KEY_FAMILY: i16 = KEY + offset_of!(Prefix, family) as i16;
const KEY_ADDR: i16 = KEY + offset_of!(Prefix, addr) as i16;

/// Forwards what comes to the Ethernet address `mac`. `verifies` says whether IPv4's checksum is looked at.
///
/// R6 is the context, R7 the packet's start, R8 its end and then the slot, R9 the bytes behind the Ethernet header.
pub(super) fn forward(
    mac: [u8; 6],
    verifies: bool,
    tables: &Tables<'_>,
    place: Place<'_>,
) -> Vec<Instruction> {
    let mut a = Assembler::default();
    let (router, ipv6, known) = (a.label(), a.label(), a.label());
    a.compute(Move, R6, R1);
    let start = match place {
        Place::Xdp { .. } => {
            a.call(Helper::BufferLength);
            a.compute(Move, R9, R0);
            0
        }
        Place::Ingress { .. } => {
            a.load(Word, R9, R6, LENGTH);
            a.load(Word, R1, R6, VLAN_PRESENT);
            a.jump_if(R1, NotEqual, 0, router);
            SKB_DATA
        }
    };
    a.compute(Add, R9, -ETHERNET_BYTES);
    a.load(Word, R7, R6, start);
    a.load(Word, R8, R6, start + 4);
    reach(&mut a, R7, ETHERNET_BYTES + IPV4_LEAST_BYTES, router);
    for (at, pair) in (0..).step_by(2).zip(mac.as_chunks::<2>().0) {
        a.load(Half, R1, R7, at);
        let expected = u16::from_ne_bytes(*pair);
        a.jump_if(R1, NotEqual, i32::from(expected), router);
    }
    a.load(Half, R1, R7, ETHERNET_TYPE);
    a.jump_if(R1, Equal, in_network_order(TYPE_IPV6), ipv6);
    a.jump_if(R1, NotEqual, in_network_order(TYPE_IPV4), router);
    read_ipv4(&mut a, verifies, router);
    a.jump(known);
    a.place(ipv6);
    read_ipv6(&mut a, router);
    a.place(known);
    rewrite(&mut a, tables, place, router);
    leave(&mut a, tables.traffic, place);
    a.place(router);
    match place {
        Place::Xdp { maps, .. } => redirect(&mut a, maps, PASS, Counter::Passed),
        Place::Ingress { counters } => {
            a.compute(Move, R9, GO_ON);
            count_and_exit(&mut a, Counter::Passed, counters);
        }
    }
    a.finish()
}

/// Goes on to `router` unless it is a packet of IPv4 that can be forwarded; the key is its destination.
fn read_ipv4(a: &mut Assembler, verifies: bool, router: Label) {
    a.load(Byte, R1, R7, ETHERNET_BYTES as i16);
    a.jump_if(R1, NotEqual, PLAIN_IPV4, router);
    a.load(Half, R2, R7, IPV4_LENGTH);
    a.order_for_machine(R2);
    a.jump_if(R2, Less, IPV4_LEAST_BYTES, router);
    a.jump_if(R2, Greater, R9, router);
    a.load(Byte, R1, R7, IPV4_TTL);
    a.jump_if(R1, Less, 2, router);
    if verifies {
        sum_header(a);
        a.jump_if(R1, NotEqual, ALL_ONES, router);
    }
    for addr in [IPV4_SOURCE, IPV4_DESTINATION] {
        a.load(Byte, R1, R7, addr);
        a.jump_if(R1, Equal, THIS_NETWORK, router);
        a.jump_if(R1, Equal, LOOPBACK, router);
        a.jump_if(R1, Greater, LAST_UNICAST, router);
    }
    write_key(a, 4, IPV4_DESTINATION);
}

/// R1 becomes the sum over the header; in which byte order does not matter (RFC 1071 2).
fn sum_header(a: &mut Assembler) {
    a.compute(Move, R1, 0);
    for at in (0..IPV4_LEAST_BYTES).step_by(2) {
        a.load(Half, R2, R7, (ETHERNET_BYTES + at) as i16);
        a.compute(Add, R1, R2);
    }
    // What the first fold may carry over the second takes in.
    for _ in 0..2 {
        a.compute(Move, R2, R1);
        a.compute(ShiftRight, R2, 16);
        a.compute(And, R1, ALL_ONES);
        a.compute(Add, R1, R2);
    }
}

/// The same of IPv6.
fn read_ipv6(a: &mut Assembler, router: Label) {
    reach(a, R7, ETHERNET_BYTES + IPV6_BYTES, router);
    a.load(Byte, R1, R7, ETHERNET_BYTES as i16);
    a.compute(And, R1, 0xf0);
    a.jump_if(R1, NotEqual, 0x60, router);
    a.load(Half, R2, R7, IPV6_LENGTH);
    a.order_for_machine(R2);
    a.compute(Add, R2, IPV6_BYTES);
    a.jump_if(R2, Greater, R9, router);
    a.load(Byte, R1, R7, IPV6_HOP_LIMIT);
    a.jump_if(R1, Less, 2, router);
    for addr in [IPV6_SOURCE, IPV6_DESTINATION] {
        a.load(Half, R1, R7, addr);
        a.order_for_machine(R1);
        // Unspecified, loopback, or an address of IPv4 (RFC 4291 2.5).
        a.jump_if(R1, Equal, 0, router);
        a.jump_if(R1, Greater, LAST_GLOBAL, router);
    }
    write_key(a, 16, IPV6_DESTINATION);
}

/// The key becomes the address of so many bytes at this place.
fn write_key(a: &mut Assembler, bytes: i16, addr: i16) {
    let family = if bytes == 4 { 4 } else { 6 };
    let bits = Prefix::FAMILY_BITS as i32 + i32::from(bytes) * 8;
    a.store(Word, R10, KEY, bits);
    a.store(Word, R10, KEY_FAMILY, family);
    for at in (0..16).step_by(4) {
        if at < bytes {
            a.load(Word, R1, R7, addr + at);
            a.store(Word, R10, KEY_ADDR + at, R1);
        } else {
            a.store(Word, R10, KEY_ADDR + at, 0);
        }
    }
}

/// Looks the destination up and changes what a router changes; R8 becomes the slot. Nothing is changed for `router`.
fn rewrite(a: &mut Assembler, tables: &Tables<'_>, place: Place<'_>, router: Label) {
    let (marked, ipv6, done) = (a.label(), a.label(), a.label());
    look_up(a, tables.routes, KEY);
    a.jump_if(R0, Equal, 0, router);
    a.load(Half, R8, R0, Action::SLOT);
    a.jump_if(R8, Equal, 0, router);
    a.load(Half, R2, R0, Action::MTU);
    match place {
        Place::Xdp { .. } => a.jump_if(R9, Greater, R2, router),
        Place::Ingress { .. } => {
            let (longer, fits) = (a.label(), a.label());
            a.jump_if(R9, Greater, R2, longer);
            a.jump(fits);
            a.place(longer);
            measure_segments(a, router);
            a.place(fits);
        }
    }
    // Who only reads does not take the line from other processors.
    a.load(Word, R2, R0, Action::USED);
    a.jump_if(R2, NotEqual, 0, marked);
    a.store(Word, R0, Action::USED, 1);
    a.place(marked);
    for (from, to) in [(Action::DESTINATION, 0), (Action::SOURCE, 6)] {
        for at in [0, 2, 4] {
            a.load(Half, R1, R0, from + at);
            a.store(Half, R7, to + at, R1);
        }
    }
    a.load(Word, R1, R10, KEY_FAMILY);
    a.jump_if(R1, Equal, 6, ipv6);
    take_hop(a, IPV4_TTL);
    // The word of TTL and protocol is 0x100 less, so the checksum is as much more (RFC 1141).
    a.load(Half, R1, R7, IPV4_CHECKSUM);
    a.compute(Add, R1, in_network_order(0x100));
    let fits = a.label();
    a.jump_if(R1, Less, ALL_ONES, fits);
    a.compute(Add, R1, 1);
    a.place(fits);
    a.store(Half, R7, IPV4_CHECKSUM, R1);
    a.jump(done);
    a.place(ipv6);
    take_hop(a, IPV6_HOP_LIMIT);
    a.place(done);
}

/// What is longer than the next link's largest packet, which is in R2, goes on to `router` unless it is a super-frame of TCP whose segments
/// are not: the kernel or the interface cuts it later, if at all. R0 is the action, and R8 the slot.
///
/// Other super-frames may have headers of tunnels, of which the context does not tell.
fn measure_segments(a: &mut Assembler, router: Label) {
    let (ipv6, known) = (a.label(), a.label());
    // R8 is the packet's end for a while.
    a.load(Word, R8, R6, SKB_DATA + 4);
    a.load(Word, R1, R10, KEY_FAMILY);
    a.jump_if(R1, Equal, 6, ipv6);
    let header = [
        (IPV4_LEAST_BYTES, IPV4_PROTOCOL, None),
        (IPV6_BYTES, IPV6_NEXT_HEADER, Some(ipv6)),
    ];
    for (ip_bytes, protocol, label) in header {
        if let Some(label) = label {
            a.place(label);
        }
        reach(a, R7, ETHERNET_BYTES + ip_bytes + TCP_LEAST_BYTES, router);
        a.load(Byte, R1, R7, protocol);
        a.jump_if(R1, NotEqual, TCP, router);
        a.load(
            Byte,
            R4,
            R7,
            (ETHERNET_BYTES + ip_bytes) as i16 + TCP_HEADER_WORDS,
        );
        // The upper half is the header's length in words of four bytes.
        a.compute(And, R4, 0xf0);
        a.compute(ShiftRight, R4, 2);
        a.compute(Add, R4, ip_bytes);
        if label.is_none() {
            a.jump(known);
        }
    }
    a.place(known);
    a.load(Word, R1, R6, SKB_SEGMENT_SIZE);
    a.jump_if(R1, Equal, 0, router);
    a.compute(Add, R4, R1);
    a.jump_if(R4, Greater, R2, router);
    a.load(Half, R8, R0, Action::SLOT);
}

fn take_hop(a: &mut Assembler, at: i16) {
    a.load(Byte, R1, R7, at);
    a.compute(Add, R1, -1);
    a.store(Byte, R7, at, R1);
}

/// Ends with the frame at the interface by which it leaves, and counts it. R0 is what becomes of it.
fn leave(a: &mut Assembler, traffic: &Map, place: Place<'_>) {
    let result = match place {
        Place::Xdp { devices, maps } => {
            redirect_by_slot(a, devices, maps.counters);
            REDIRECT
        }
        Place::Ingress { .. } => {
            a.load(Word, R1, R0, Action::INTERFACE);
            // To be sent.
            a.compute(Move, R2, 0);
            a.call(Helper::Redirect);
            REDIRECTED
        }
    };
    let out = a.label();
    a.store(Word, R10, INDEX, R8);
    look_up(a, traffic, INDEX);
    a.jump_if(R0, Equal, 0, out);
    a.compute(Add, R9, ETHERNET_BYTES);
    for (at, more) in [(0, Operand::Number(1)), (8, Operand::Register(R9))] {
        a.load(Double, R1, R0, at);
        a.compute(Add, R1, more);
        a.store(Double, R0, at, R1);
    }
    a.place(out);
    a.compute(Move, R0, result);
    a.exit();
}

/// Drops the frame if there is no such interface any more.
fn redirect_by_slot(a: &mut Assembler, devices: &Map, counters: &Map) {
    let found = a.label();
    a.load_map(R1, devices);
    a.compute(Move, R2, R8);
    // The result where there is none.
    a.compute(Move, R3, DROPPED);
    a.call(Helper::RedirectMap);
    a.jump_if(R0, Equal, REDIRECT, found);
    a.compute(Move, R9, DROPPED);
    count_and_exit(a, Counter::NoDevice, counters);
    a.place(found);
}
