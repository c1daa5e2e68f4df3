//! The link that a command runs on: created when the command starts, removed when it ends.

use crate::error::LiveError;
use crate::namespace::{Namespace, ip, within};
use crate::port::{
    InterfaceError, LinkInfo, Offload, Offloads, Opened, Port, PortConfig, Tap, boxed,
    interface_exists,
};
use baton_inet::Cidr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// A port on which no server is expected (RFC 863).
const DISCARD: u16 = 9;

/// Maximum length of an interface's name.
const LONGEST_NAME: usize = 15;

/// The interface that the engine uses, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// A TAP device of this name, which is created if it does not exist. The kernel's end is in the namespace.
    Tap(String),
    /// A new pair of veth interfaces: one of this name, which the engine uses, and one with a `p` appended to the name, which the kernel
    /// uses and which is in the namespace.
    Veth(String),
    /// An existing interface in the namespace.
    Interface(String),
}

/// A link as the user specified it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkSpec {
    /// The interface.
    pub attachment: Attachment,
    /// Network namespace of the kernel's end; created if it does not exist. `None` is the namespace of the process.
    pub namespace: Option<String>,
    /// Addresses that the kernel's end is given.
    pub host_addresses: Vec<Cidr>,
    /// How the engine receives and sends the interface's frames; a TAP device is itself a port.
    pub port: PortConfig,
    /// Number of engines, each of which gets a port.
    pub engines: usize,
    /// Addresses of the engine: the kernel may not have them.
    pub engine_addresses: Vec<Cidr>,
}

/// A link that is up. Dropping it removes everything that was created for it.
pub struct Link {
    /// The engines' end, at least one port. Dropped first: a TAP device disappears with it.
    ports: Vec<Box<dyn Port + Send>>,
    /// Messages for the user.
    pub notes: Vec<String>,
    _made: Made,
}

/// What is removed with the link, in this order.
#[derive(Debug, Default)]
struct Made {
    commands: Vec<Undo>,
    namespace: Option<Namespace>,
}

/// A command that undoes another.
#[derive(Debug)]
struct Undo(Vec<String>);

impl Drop for Undo {
    fn drop(&mut self) {
        let arguments: Vec<&str> = self.0.iter().map(String::as_str).collect();
        // The object may be gone already.
        let _ = ip(&arguments);
    }
}

impl Link {
    /// Creates the link that `spec` describes and attaches to it.
    ///
    /// # Errors
    /// The process lacks the permission, an interface is absent or busy, or the kernel has one of the engine's addresses.
    pub fn up(spec: &LinkSpec) -> Result<Self, LiveError> {
        let mut made = Made::default();
        if let Some(name) = &spec.namespace {
            made.namespace = Some(Namespace::enter_or_make(name)?);
        }
        let namespace = spec.namespace.as_deref();
        let Opened { ports, notes } = match &spec.attachment {
            Attachment::Tap(name) => {
                let existed = within(namespace, || interface_exists(name))?;
                let mac = mac_for(name);
                let taps = within(namespace, || Tap::open_several(name, mac, spec.engines))??;
                made.configure(namespace, name, &spec.host_addresses, existed)?;
                Opened {
                    ports: boxed(taps),
                    notes: Vec::new(),
                }
            }
            Attachment::Veth(name) => made.veth(namespace, name, spec)?,
            Attachment::Interface(name) => {
                made.configure_existing(namespace, name, &spec.host_addresses)?;
                within(namespace, || spec.port.open(name, spec.engines))??
            }
        };
        check_addresses(namespace, &spec.engine_addresses)?;
        Ok(Self {
            ports,
            notes,
            _made: made,
        })
    }

    /// Returns the properties of the engine's end.
    pub fn info(&self) -> &LinkInfo {
        self.ports[0].link()
    }

    /// Returns a port for each engine, and a value that the caller must keep as long as it uses the ports.
    pub fn into_parts(self) -> (Vec<Box<dyn Port + Send>>, impl Sized) {
        (self.ports, self._made)
    }
}

impl Made {
    fn undo(&mut self, arguments: &[&str]) {
        let arguments = arguments.iter().map(|&text| text.to_owned()).collect();
        self.commands.push(Undo(arguments));
    }

    /// Brings the kernel's end up and adds its addresses. They are removed with the interface, or one by one if it existed before.
    fn configure(
        &mut self,
        namespace: Option<&str>,
        name: &str,
        addresses: &[Cidr],
        existed: bool,
    ) -> Result<(), LiveError> {
        let within = namespace.map_or(vec![], |namespace| vec!["-n", namespace]);
        let run = |arguments: &[&str]| ip(&[&within, arguments].concat());
        for address in addresses {
            let text = address.to_string();
            let mut add = vec!["addr", "add", &text, "dev", name];
            if matches!(address, Cidr::V6(_)) {
                // There are no other hosts on this link, and duplicate address detection would make the address unusable for a second.
                add.push("nodad");
            }
            run(&add)?;
            if existed {
                self.undo(&[&within, &["addr", "del", &text, "dev", name][..]].concat());
            }
        }
        run(&["link", "set", name, "up"])
    }

    fn configure_existing(
        &mut self,
        namespace: Option<&str>,
        name: &str,
        addresses: &[Cidr],
    ) -> Result<(), LiveError> {
        if !within(namespace, || interface_exists(name))? {
            return Err(InterfaceError::Absent(name.to_owned()).into());
        }
        if addresses.is_empty() {
            return Ok(());
        }
        self.configure(namespace, name, addresses, true)
    }

    fn veth(
        &mut self,
        namespace: Option<&str>,
        name: &str,
        spec: &LinkSpec,
    ) -> Result<Opened, LiveError> {
        let peer = format!("{name}p");
        if peer.len() > LONGEST_NAME {
            return Err(InterfaceError::BadName(name.to_owned()).into());
        }
        if interface_exists(name) {
            let advice = "--veth creates an interface: give another name, or use it with --iface";
            return Err(InterfaceError::Present(name.to_owned(), advice).into());
        }
        let queues = spec.engines.to_string();
        let several = ["numtxqueues", &queues, "numrxqueues", &queues];
        let several = if spec.engines > 1 { &several[..] } else { &[] };
        let mut add = vec!["link", "add", name];
        add.extend(several);
        add.extend(["type", "veth", "peer", "name", &peer]);
        add.extend(several);
        if let Some(namespace) = namespace {
            add.extend(["netns", namespace]);
        }
        ip(&add)?;
        self.undo(&["link", "del", name]);
        // The kernel's packets must look as on a wire.
        let switch_off = || Offloads::of(&peer).switch_off(&Offload::OF_PEER);
        within(namespace, switch_off)??;
        // The kernel should not use the engine's end.
        let quiet = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
        let _ = std::fs::write(quiet, "1");
        ip(&["link", "set", name, "up"])?;
        self.configure(namespace, &peer, &spec.host_addresses, false)?;
        Ok(spec.port.open(name, spec.engines)?)
    }
}

/// Checks that the kernel has none of the engine's addresses: otherwise both would answer.
fn check_addresses(namespace: Option<&str>, addresses: &[Cidr]) -> Result<(), LiveError> {
    for address in addresses {
        let addr = address.addr();
        if within(namespace, || is_of_kernel(addr))? {
            return Err(LiveError::BadInput(format!(
                "{addr} is in use: the kernel has this address on this link; give the engine an address of its own"
            )));
        }
    }
    Ok(())
}

/// Packets to one of the kernel's own addresses have that address as their source. A successful bind would prove nothing: a namespace
/// without addresses allows any.
fn is_of_kernel(addr: IpAddr) -> bool {
    let unspecified: IpAddr = match addr {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let from = UdpSocket::bind((unspecified, 0)).and_then(|socket| {
        // No packet is sent.
        socket.connect((addr, DISCARD))?;
        socket.local_addr()
    });
    from.is_ok_and(|from| from.ip() == addr)
}

/// Derives a locally administered Ethernet address for the engine's end from the name of the interface (FNV-1a).
pub fn mac_for(name: &str) -> [u8; 6] {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let [a, b, c, d, e, ..] = hash.to_be_bytes();
    [0x02, a, b, c, d, e]
}
