//! Passes frames to the kernel as if an interface had received them.

use super::bpf::{Program, ProgramKind};
use super::error::XdpError;
use super::programs;
use crate::port::{interface_index, link_info_or_loopback};
use std::io;

/// Length of an Ethernet header, bytes.
const HEADER_BYTES: usize = 14;

/// Passes frames to the kernel's stack, bypassing the interface's own program.
#[derive(Debug)]
pub struct Injector {
    program: Program,
    interface: u32,
    mac: [u8; 6],
}

impl Injector {
    /// Creates an injector for the interface `name` in this thread's network namespace.
    ///
    /// # Errors
    /// See [`XdpError`].
    pub fn new(name: &str) -> Result<Self, XdpError> {
        let program = Program::load("baton_inject", ProgramKind::Xdp, &programs::nothing())
            .map_err(XdpError::of_load("baton_inject"))?;
        Ok(Self {
            program,
            interface: interface_index(name)?,
            mac: link_info_or_loopback(name)?.0.mac,
        })
    }

    /// Makes the kernel receive an IP packet (Linux 5.18 and later).
    ///
    /// # Errors
    /// The interface is gone, or the kernel does not support this.
    pub fn inject(&self, packet: &[u8]) -> io::Result<()> {
        let kind: u16 = match packet.first().map(|first| first >> 4) {
            Some(6) => 0x86dd,
            _ => 0x0800,
        };
        let mut frame = Vec::with_capacity(HEADER_BYTES + packet.len());
        frame.extend(self.mac);
        // The kernel ignores the sender's Ethernet address.
        frame.extend([0; 6]);
        frame.extend(kind.to_be_bytes());
        frame.extend(packet);
        self.program.run_live(&frame, self.interface)
    }
}
