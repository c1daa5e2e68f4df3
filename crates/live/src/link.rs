//! The link that a command runs on: made when it starts, taken away when it ends.

use crate::error::LiveError;
use crate::namespace::{Namespace, ip, within};
use crate::port::{
    InterfaceError, LinkInfo, Offload, Offloads, Opened, Port, PortConfig, Tap, interface_exists,
};
use crate::xdp::Steering;
use baton_inet::Cidr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// A port that is asked for nothing (RFC 863).
const DISCARD: u16 = 9;

/// Longest name of an interface.
const LONGEST_NAME: usize = 15;

/// Which interface the engine uses, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// A TAP device of this name, which is made if there is none. The kernel's end is in the namespace.
    Tap(String),
    /// A pair of veth interfaces, made: one of this name, which the engine uses, and one with a `p` behind the name, which is the
    /// kernel's and in the namespace.
    Veth(String),
    /// An interface that exists, in the namespace.
    Interface(String),
}

/// A link as the user wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkSpec {
    /// The interface.
    pub attachment: Attachment,
    /// The network namespace of the kernel's end; made if there is none. Without, the one that the process is in.
    pub namespace: Option<String>,
    /// Addresses that the kernel's end is given.
    pub host_addresses: Vec<Cidr>,
    /// How the engine gets frames of an interface; a TAP device is a port itself.
    pub port: PortConfig,
    /// Addresses that the engine will have: nobody else may have them.
    pub engine_addresses: Vec<Cidr>,
}

/// A link that is up. What was made for it goes when it is dropped.
pub struct Link {
    /// The engine's end. Dropped first: a TAP device goes with it.
    port: Box<dyn Port>,
    /// What the user should know.
    pub notes: Vec<String>,
    _made: Made,
}

/// What goes with the link, in this order.
#[derive(Debug, Default)]
struct Made {
    commands: Vec<Undo>,
    namespace: Option<Namespace>,
}

/// A command that takes back another.
#[derive(Debug)]
struct Undo(Vec<String>);

impl Drop for Undo {
    fn drop(&mut self) {
        let arguments: Vec<&str> = self.0.iter().map(String::as_str).collect();
        // What is gone already need not be taken away.
        let _ = ip(&arguments);
    }
}

impl Link {
    /// Makes what `spec` says and attaches to it.
    ///
    /// # Errors
    /// There is no permission, an interface is absent or busy, or an address is somebody else's.
    pub fn up(spec: &LinkSpec) -> Result<Self, LiveError> {
        Self::up_behind(spec, None)
    }

    /// The same where a program may see frames first; see [`PortConfig::open_behind`].
    ///
    /// # Errors
    /// As [`Link::up`].
    pub fn up_behind(spec: &LinkSpec, steering: Option<&Steering>) -> Result<Self, LiveError> {
        let mut made = Made::default();
        if let Some(name) = &spec.namespace {
            made.namespace = Some(Namespace::enter_or_make(name)?);
        }
        let namespace = spec.namespace.as_deref();
        let Opened { port, notes } = match &spec.attachment {
            Attachment::Tap(name) => {
                let existed = within(namespace, || interface_exists(name))?;
                let mac = mac_for(name);
                let tap = within(namespace, || Tap::open(name, mac))??;
                made.configure(namespace, name, &spec.host_addresses, existed)?;
                Opened {
                    port: Box::new(tap),
                    notes: Vec::new(),
                }
            }
            Attachment::Veth(name) => made.veth(namespace, name, spec)?,
            Attachment::Interface(name) => {
                made.configure_existing(namespace, name, &spec.host_addresses)?;
                within(namespace, || spec.port.open_behind(name, steering))??
            }
        };
        check_addresses(namespace, &spec.engine_addresses)?;
        Ok(Self {
            port,
            notes,
            _made: made,
        })
    }

    /// The engine's end.
    pub fn info(&self) -> &LinkInfo {
        self.port.link()
    }

    /// The port, and what must be kept as long as it is used.
    pub fn into_parts(self) -> (Box<dyn Port>, impl Sized) {
        (self.port, self._made)
    }
}

impl Made {
    fn undo(&mut self, arguments: &[&str]) {
        let arguments = arguments.iter().map(|&text| text.to_owned()).collect();
        self.commands.push(Undo(arguments));
    }

    /// Brings the kernel's end up and gives it its addresses. They go with the interface, unless it was there before.
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
                // Nobody else is on this link; without, the address would be of no use for a second.
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
            let advice = "--veth makes a pair: give another name, or use it by --iface";
            return Err(InterfaceError::Present(name.to_owned(), advice).into());
        }
        let mut add = vec!["link", "add", name, "type", "veth", "peer", "name", &peer];
        if let Some(namespace) = namespace {
            add.extend(["netns", namespace]);
        }
        ip(&add)?;
        self.undo(&["link", "del", name]);
        // What the kernel sends must be as on a wire.
        let switch_off = || Offloads::of(&peer).switch_off(&Offload::OF_PEER);
        within(namespace, switch_off)??;
        // The kernel has no business on the engine's end.
        let quiet = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
        let _ = std::fs::write(quiet, "1");
        ip(&["link", "set", name, "up"])?;
        self.configure(namespace, &peer, &spec.host_addresses, false)?;
        Ok(spec.port.open(name)?)
    }
}

/// An address that the kernel has cannot be the engine's too: both would answer.
fn check_addresses(namespace: Option<&str>, addresses: &[Cidr]) -> Result<(), LiveError> {
    for address in addresses {
        let addr = address.addr();
        if within(namespace, || is_of_kernel(addr))? {
            return Err(LiveError::BadInput(format!(
                "{addr} is in use: it is an address of the kernel on this link; give the engine one of its own"
            )));
        }
    }
    Ok(())
}

/// Who sends to an own address sends from it. That one can be bound to says nothing: a namespace without addresses lets any.
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

/// A locally administered Ethernet address for the engine's end, from the name of the interface (FNV-1a).
pub fn mac_for(name: &str) -> [u8; 6] {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let [a, b, c, d, e, ..] = hash.to_be_bytes();
    [0x02, a, b, c, d, e]
}
