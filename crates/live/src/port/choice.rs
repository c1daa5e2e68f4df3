//! Opens the configured kind of port on an interface.

use super::{
    AfXdp, AfXdpConfig, InterfaceError, Offload, Offloads, PacketConfig, PacketSocket, Port,
};
use crate::xdp::XdpError;

/// The kind of port that receives and sends frames on an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortConfig {
    /// A packet socket, which works in addition to the kernel.
    Packet(PacketConfig),
    /// AF_XDP sockets, which replace the kernel.
    AfXdp(AfXdpConfig),
}

/// A port, with notes for its user.
pub struct Opened {
    /// The port.
    pub port: Box<dyn Port + Send>,
    /// Notes, one sentence each.
    pub notes: Vec<String>,
}

impl PortConfig {
    /// Opens the port on the interface `name` in this thread's network namespace, and switches off offloads of the interface that would
    /// deliver frames unlike those on a wire.
    ///
    /// # Errors
    /// The interface does not exist, the process lacks the permission, or XDP cannot be used; see [`XdpError`].
    pub fn open(&self, name: &str) -> Result<Opened, XdpError> {
        let mut notes = Vec::new();
        if switch_gro_off(name)? {
            let advice = match self {
                Self::Packet(_) => {
                    "; if the other end of the link is virtual too, run `ethtool -K PEER tx off` there"
                }
                Self::AfXdp(_) => "",
            };
            notes.push(format!(
                "switched generic receive offload (gro) off on {name}{advice}"
            ));
        }
        let port: Box<dyn Port + Send> = match self {
            Self::Packet(config) => Box::new(PacketSocket::open(name, config)?),
            Self::AfXdp(config) => {
                let port = AfXdp::open(name, config)?;
                notes.push(told(name, &port));
                Box::new(port)
            }
        };
        Ok(Opened { port, notes })
    }
}

/// Switches generic receive offload off; returns whether it was on.
fn switch_gro_off(name: &str) -> Result<bool, InterfaceError> {
    let offloads = Offloads::of(name);
    let was_on = offloads.is_on(Offload::GenericReceive)?;
    offloads.switch_off(&Offload::OF_ENGINE)?;
    Ok(was_on)
}

fn told(name: &str, port: &AfXdp) -> String {
    let copies = match port.is_zero_copy() {
        true => "without copies",
        false => "with a copy of each frame",
    };
    let (mode, queues) = (port.mode(), port.queues());
    let plural = if queues == 1 { "" } else { "s" };
    format!(
        "AF_XDP takes all frames of {name} in {mode} mode, {copies}, from {queues} queue{plural}; the kernel receives none of them"
    )
}
