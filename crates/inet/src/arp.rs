//! ARP messages (RFC 826) between Ethernet and IPv4.

use crate::addresses::{BROADCAST_MAC, is_group_mac};
use crate::stats::Refusal;
use etherparse::{
    ArpEthIpv4Packet, ArpHardwareId, ArpOperation, ArpPacketSlice, EtherType, Ethernet2Header,
};
use std::net::Ipv4Addr;

/// Reads the message of a frame without its Ethernet header. Ignores padding.
pub(crate) fn read(bytes: &[u8]) -> Result<ArpEthIpv4Packet, Refusal> {
    let arp = ArpPacketSlice::from_slice(bytes).map_err(|_| Refusal::BadArp)?;
    let right_kind =
        arp.hw_addr_type() == ArpHardwareId::ETHERNET && arp.proto_addr_type() == EtherType::IPV4;
    if !right_kind {
        return Err(Refusal::BadArp);
    }
    let mac = |bytes: &[u8]| bytes.try_into().map_err(|_| Refusal::BadArp);
    let addr = |bytes: &[u8]| bytes.try_into().map_err(|_| Refusal::BadArp);
    let message = ArpEthIpv4Packet {
        operation: arp.operation(),
        sender_mac: mac(arp.sender_hw_addr())?,
        sender_ipv4: addr(arp.sender_protocol_addr())?,
        target_mac: mac(arp.target_hw_addr())?,
        target_ipv4: addr(arp.target_protocol_addr())?,
    };
    let operations = [ArpOperation::REQUEST, ArpOperation::REPLY];
    match operations.contains(&message.operation) && !is_group_mac(message.sender_mac) {
        true => Ok(message),
        false => Err(Refusal::BadArp),
    }
}

/// Appends a request for the owner of `target`, to one neighbour or to all hosts.
pub(crate) fn write_request(
    mac: [u8; 6],
    addr: Ipv4Addr,
    target: Ipv4Addr,
    to: Option<[u8; 6]>,
    frame: &mut Vec<u8>,
) {
    let message = ArpEthIpv4Packet {
        operation: ArpOperation::REQUEST,
        sender_mac: mac,
        sender_ipv4: addr.octets(),
        target_mac: [0; 6],
        target_ipv4: target.octets(),
    };
    write(to.unwrap_or(BROADCAST_MAC), &message, frame);
}

/// Appends the reply to `request`, which is for `addr`.
pub(crate) fn write_reply(
    mac: [u8; 6],
    addr: Ipv4Addr,
    request: &ArpEthIpv4Packet,
    frame: &mut Vec<u8>,
) {
    let message = ArpEthIpv4Packet {
        operation: ArpOperation::REPLY,
        sender_mac: mac,
        sender_ipv4: addr.octets(),
        target_mac: request.sender_mac,
        target_ipv4: request.sender_ipv4,
    };
    write(request.sender_mac, &message, frame);
}

fn write(to: [u8; 6], message: &ArpEthIpv4Packet, frame: &mut Vec<u8>) {
    let ethernet = Ethernet2Header {
        source: message.sender_mac,
        destination: to,
        ether_type: EtherType::ARP,
    };
    frame.extend_from_slice(&ethernet.to_bytes());
    frame.extend_from_slice(&message.to_bytes());
}
