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

/// Ports, with notes for their user.
pub struct Opened {
    /// The ports of one interface: at least one.
    pub ports: Vec<Box<dyn Port + Send>>,
    /// Notes, one sentence each.
    pub notes: Vec<String>,
}

impl PortConfig {
    /// Opens `count` ports, among which the kernel distributes connections, on the interface `name` in this thread's network namespace, and switches off offloads of the interface that would
    /// deliver frames unlike those on a wire.
    ///
    /// # Errors
    /// The interface does not exist, the process lacks the permission, or XDP cannot be used; see [`XdpError`].
    pub fn open(&self, name: &str, count: usize) -> Result<Opened, XdpError> {
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
        let ports = match self {
            Self::Packet(config) => boxed(PacketSocket::open_several(name, config, count)?),
            Self::AfXdp(config) => {
                let ports = AfXdp::open_several(name, config, count)?;
                notes.push(told(name, &ports));
                boxed(ports)
            }
        };
        Ok(Opened { ports, notes })
    }
}

/// Returns the ports as ports of any kind.
pub(crate) fn boxed<T: Port + Send + 'static>(ports: Vec<T>) -> Vec<Box<dyn Port + Send>> {
    let boxed = |port| Box::new(port) as Box<dyn Port + Send>;
    ports.into_iter().map(boxed).collect()
}

/// Switches generic receive offload off; returns whether it was on.
fn switch_gro_off(name: &str) -> Result<bool, InterfaceError> {
    let offloads = Offloads::of(name);
    let was_on = offloads.is_on(Offload::GenericReceive)?;
    offloads.switch_off(&Offload::OF_ENGINE)?;
    Ok(was_on)
}

fn told(name: &str, ports: &[AfXdp]) -> String {
    let copies = match ports.iter().all(AfXdp::is_zero_copy) {
        true => "without copies",
        false => "with a copy of each frame",
    };
    let queues: usize = ports.iter().map(AfXdp::queues).sum();
    let mode = ports[0].mode();
    let plural = if queues == 1 { "" } else { "s" };
    format!(
        "AF_XDP takes all frames of {name} in {mode} mode, {copies}, from {queues} queue{plural}; the kernel receives none of them"
    )
}
