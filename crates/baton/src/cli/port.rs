//! Options for how a live command gets frames from an interface and back.

use baton_live::port::{AfXdpConfig, PacketConfig, PortConfig, RingKind};
use baton_live::xdp::Mode;
use clap::{Args, ValueEnum};

/// The port on an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub struct PortArgs {
    /// How frames are taken from an interface and put there: by a packet socket, in parallel with the kernel, or by AF_XDP sockets, instead
    /// of the kernel, which then gets no frames
    #[arg(long, value_name = "KIND", default_value = "packet")]
    pub port_kind: PortKind,
    /// How a packet socket gets frames: one by one, or in blocks, with less work for each frame and up to a millisecond of delay
    #[arg(long, value_name = "KIND", default_value = "slots")]
    pub ring: RingName,
    /// Where AF_XDP takes frames: in the driver, or in the kernel's receive path [default: in the driver if it supports this]
    #[arg(long, value_name = "MODE")]
    pub xdp_mode: Option<ModeName>,
}

/// Kinds of ports on an interface by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PortKind {
    /// A packet socket.
    Packet,
    /// AF_XDP sockets, one for each receive queue.
    AfXdp,
}

/// Kinds of receive rings by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RingName {
    /// TPACKET_V2.
    Slots,
    /// TPACKET_V3.
    Blocks,
}

/// Modes of XDP programs by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeName {
    /// In the driver.
    Native,
    /// In the kernel's receive path.
    Generic,
}

impl ModeName {
    /// Returns the mode.
    pub fn mode(self) -> Mode {
        match self {
            Self::Native => Mode::Native,
            Self::Generic => Mode::Generic,
        }
    }
}

impl PortArgs {
    /// Returns the configuration of the port.
    pub fn config(&self) -> PortConfig {
        match self.port_kind {
            PortKind::Packet => PortConfig::Packet(PacketConfig {
                ring: match self.ring {
                    RingName::Slots => RingKind::Slots,
                    RingName::Blocks => RingKind::Blocks,
                },
                ..PacketConfig::default()
            }),
            PortKind::AfXdp => PortConfig::AfXdp(self.af_xdp()),
        }
    }

    /// Returns the part of the configuration that concerns AF_XDP.
    pub fn af_xdp(&self) -> AfXdpConfig {
        AfXdpConfig {
            mode: self.xdp_mode.map(ModeName::mode),
            ..AfXdpConfig::default()
        }
    }
}
