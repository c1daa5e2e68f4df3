//! IP packets and Ethernet frames.

use baton_wire::{Link, decode_frame, decode_packet, encode_frame, encode_packet};

/// Decodes the input as a packet and as a frame. Valid ones must not change when they are encoded and decoded again.
pub fn packet(data: &[u8]) {
    if let Ok((packet, payload)) = decode_packet(data) {
        let mut bytes = Vec::new();
        if encode_packet(&packet, payload, &mut bytes).is_ok() {
            assert_eq!(decode_packet(&bytes), Ok((packet, payload)));
        }
    }
    if let Ok((packet, payload)) = decode_frame(data) {
        let mut bytes = Vec::new();
        let link = Link::between(packet.src.addr, packet.dst.addr);
        if encode_frame(link, &packet, payload, &mut bytes).is_ok() {
            assert_eq!(decode_frame(&bytes), Ok((packet, payload)));
        }
    }
}
