//! What drivers can do with frames of XDP programs (the family `netdev` of generic netlink, Linux 6.3 and later).

use crate::netlink::{self, Attributes, HEADER_BYTES};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::os::fd::OwnedFd;

// Of linux/genetlink.h and linux/netdev.h.
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const GET_DEVICE: u8 = 1;
const INTERFACE: u16 = 1;
const FEATURES: u16 = 3;
/// The device sends frames that a program redirects to it (NETDEV_XDP_ACT_NDO_XMIT).
const SENDS_REDIRECTED: u64 = 1 << 2;

const GENERIC_HEADER_BYTES: usize = 4;
const VERSION: u8 = 1;
/// An answer fits.
const ANSWER_BYTES: usize = 8 * 1024;

/// Asks the kernel.
#[derive(Debug)]
pub(super) struct Features {
    socket: OwnedFd,
    family: u16,
    answer: Vec<u8>,
}

impl Features {
    /// In this thread's network namespace.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub(super) fn new() -> io::Result<Self> {
        let mut features = Self {
            socket: netlink::generic_socket()?,
            family: CONTROL,
            answer: vec![0; ANSWER_BYTES],
        };
        let name = Attributes::default().with(FAMILY_NAME, b"netdev\0");
        let found = features.ask(GET_FAMILY, &name, FAMILY_ID)?;
        features.family = u16::from_ne_bytes(found);
        Ok(features)
    }

    /// Whether a device sends frames that programs in drivers redirect to it: of a veth pair only while its other end polls.
    ///
    /// # Errors
    /// There is no such interface.
    pub(super) fn sends_redirected(&mut self, interface: u32) -> io::Result<bool> {
        let index = Attributes::default().with(INTERFACE, &interface.to_ne_bytes());
        let found = self.ask(GET_DEVICE, &index, FEATURES)?;
        Ok(u64::from_ne_bytes(found) & SENDS_REDIRECTED != 0)
    }

    /// One attribute of the answer.
    fn ask<const N: usize>(
        &mut self,
        command: u8,
        attributes: &Attributes,
        wanted: u16,
    ) -> io::Result<[u8; N]> {
        let body = [&[command, VERSION, 0, 0], &attributes.0[..]].concat();
        let request = netlink::request(self.family, 0, &body);
        send(&self.socket, &request, SendFlags::empty())?;
        let (len, _) = recv(&self.socket, self.answer.as_mut_slice(), RecvFlags::empty())?;
        let answer = &self.answer[..len];
        if let Some(Err(error)) = netlink::outcome(answer) {
            return Err(error);
        }
        let attributes = answer.get(HEADER_BYTES + GENERIC_HEADER_BYTES..);
        let value = attributes.and_then(|all| netlink::attribute(all, wanted));
        value
            .and_then(|value| value.first_chunk().copied())
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}
