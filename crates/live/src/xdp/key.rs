//! The key of a flow in the map, which programs build from packets.

use baton_wire::Flow;
use std::mem::offset_of;
use std::net::IpAddr;

/// A four-tuple in the programs' format: everything except the family is in network byte order. IPv4 addresses occupy the first bytes of
/// their fields. The family distinguishes them from IPv6 addresses with the same bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    remote_addr: [u8; 16],
    local_addr: [u8; 16],
    remote_port: [u8; 2],
    local_port: [u8; 2],
    /// 4 or 6.
    family: [u8; 4],
}

impl Key {
    pub(super) const BYTES: usize = size_of::<Self>();
    pub(super) const REMOTE_ADDR: i16 = offset_of!(Self, remote_addr) as i16;
    pub(super) const LOCAL_ADDR: i16 = offset_of!(Self, local_addr) as i16;
    pub(super) const REMOTE_PORT: i16 = offset_of!(Self, remote_port) as i16;
    pub(super) const LOCAL_PORT: i16 = offset_of!(Self, local_port) as i16;
    pub(super) const FAMILY: i16 = offset_of!(Self, family) as i16;

    /// Returns the key in the kernel's format.
    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let parts: [(i16, &[u8]); 5] = [
            (Self::REMOTE_ADDR, &self.remote_addr),
            (Self::LOCAL_ADDR, &self.local_addr),
            (Self::REMOTE_PORT, &self.remote_port),
            (Self::LOCAL_PORT, &self.local_port),
            (Self::FAMILY, &self.family),
        ];
        for (start, part) in parts {
            bytes[start as usize..][..part.len()].copy_from_slice(part);
        }
        bytes
    }
}

impl From<&Flow> for Key {
    fn from(flow: &Flow) -> Self {
        let family: u32 = match flow.local.addr {
            IpAddr::V4(_) => 4,
            IpAddr::V6(_) => 6,
        };
        Self {
            remote_addr: padded(flow.remote.addr),
            local_addr: padded(flow.local.addr),
            remote_port: flow.remote.port.to_be_bytes(),
            local_port: flow.local.port.to_be_bytes(),
            family: family.to_ne_bytes(),
        }
    }
}

fn padded(addr: IpAddr) -> [u8; 16] {
    match addr {
        IpAddr::V6(addr) => addr.octets(),
        IpAddr::V4(addr) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&addr.octets());
            bytes
        }
    }
}
