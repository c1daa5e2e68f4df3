//! A router's fast path: programs on its interfaces that forward most packets before the kernel's stack, or the router, sees them.

use super::bpf::{Map, MapKind, Program};
use super::error::XdpError;
use super::features::Features;
use super::forward::{self, Action, Place, Prefix, Tables};
use super::ingress::Ingress;
use super::programs::{self, Counter};
use super::steering::{Mode, Steering};
use crate::port::{CounterSink, LinkCounters, LinkInfo, LinkWatch, interface_index, link_info};
use baton_inet::{Cidr, FibEntry, NextHop, Router};
use baton_wire::{Span, Time};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::fmt;
use std::io;
use std::net::IpAddr;

/// The programs' name, to be seen in `bpftool`.
const PROGRAM: &str = "baton_forward";
/// How often it is seen to that links work, and which neighbours are in use.
const LOOK: Span = Span::from_ms(500);

/// Where the programs of a fast path see frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastPathKind {
    /// Before the kernel has spent anything on them, or at least before it has looked at them.
    Xdp,
    /// Where traffic control sees them: with every driver, nothing is copied, and offloads of virtual interfaces stay what they are. Packet
    /// sockets of all protocols see them before (Linux 6.6 and later).
    TrafficControl,
}

impl fmt::Display for FastPathKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Xdp => "XDP",
            Self::TrafficControl => "traffic control",
        })
    }
}

/// How a fast path is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastPathConfig {
    /// Where its programs are; without, where they are fastest: XDP if the drivers of all interfaces send what it redirects in native mode,
    /// otherwise traffic control, and XDP in generic mode where the kernel knows no such links.
    pub kind: Option<FastPathKind>,
    /// The mode of XDP programs; without, the native one if all interfaces send what it redirects.
    pub mode: Option<Mode>,
    /// The checksums of IPv4's headers are verified.
    pub verify_checksums: bool,
    /// Prefixes at most.
    pub capacity: u32,
}

impl Default for FastPathConfig {
    fn default() -> Self {
        Self {
            kind: None,
            mode: None,
            verify_checksums: true,
            capacity: 1 << 20,
        }
    }
}

/// A program on an interface.
#[derive(Debug)]
enum Hook {
    Xdp(Steering),
    Ingress(Ingress),
}

impl Hook {
    fn program(&self) -> &Program {
        match self {
            Self::Xdp(steering) => &steering.program,
            Self::Ingress(ingress) => &ingress.program,
        }
    }

    fn count(&self, counter: Counter) -> u64 {
        match self {
            Self::Xdp(steering) => steering.count(counter),
            Self::Ingress(ingress) => ingress.count(counter),
        }
    }
}

/// One of the router's interfaces.
#[derive(Debug)]
struct End {
    hook: Hook,
    /// What came by this interface and was forwarded, by the slot by which it left.
    traffic: Map,
    link: LinkInfo,
    index: u32,
    watch: LinkWatch,
    before: LinkCounters,
    /// Packets may leave by it.
    sends: bool,
}

/// What the kernel has been told of a prefix.
type Told = (Action, Option<NextHop>);

/// Frames and bytes that a fast path forwarded, from one interface or to one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Forwarded {
    frames: u64,
    bytes: u64,
}

/// Forwards what a [`Router`] on the same interfaces would forward without a question. What is for the router itself, whose neighbour
/// is not known, that has options or comes to its end, what is too long for the next link and all that is not IP takes its usual way to
/// the router's ports.
///
/// It ends when it is dropped, and with the process, however that ends: then the kernel has all frames.
///
/// Calling order: [`FastPath::update`] whenever the router may have heard of a neighbour, and at least every second.
#[derive(Debug)]
pub struct FastPath {
    ends: Vec<End>,
    routes: Map,
    /// The interfaces by their slots. Kept for XDP programs.
    devices: Option<Map>,
    /// What drivers can do; it is asked for where programs run in them.
    features: Option<Features>,
    told: FxHashMap<Prefix, Told>,
    /// Of the router, when it was last looked at.
    changes: u64,
    due: Time,
}

impl FastPath {
    /// Attaches its programs to the interfaces `names` in this thread's network namespace, in the order of the router's. They forward
    /// nothing before the first [`FastPath::update`].
    ///
    /// # Errors
    /// See [`XdpError`].
    pub fn attach(names: &[&str], config: FastPathConfig) -> Result<Self, XdpError> {
        let native = || mode_for(names, config.mode);
        let generic = || (Some(Mode::Generic), None);
        match (config.kind, config.mode) {
            (Some(FastPathKind::TrafficControl), _) => Self::attach_ingress(names, &config),
            (Some(FastPathKind::Xdp), _) | (None, Some(_)) => {
                Self::attach_xdp(names, &config, native()?)
            }
            (None, None) => match native()? {
                (None, features) => Self::attach_xdp(names, &config, (None, features)),
                _ => Self::attach_ingress(names, &config)
                    .or_else(|_| Self::attach_xdp(names, &config, generic())),
            },
        }
    }

    fn attach_xdp(
        names: &[&str],
        config: &FastPathConfig,
        (mode, features): (Option<Mode>, Option<Features>),
    ) -> Result<Self, XdpError> {
        // Slots count from one.
        let slots = names.len() as u32 + 1;
        let devices = map("baton_devices", MapKind::Devices, 4, 4, slots)?;
        for (slot, name) in (1_u32..).zip(names) {
            let index = interface_index(name)?;
            devices
                .update(&slot.to_ne_bytes(), &index.to_ne_bytes())
                .map_err(XdpError::of("redirect to an interface"))?;
        }
        let mut made = Self::on(names, config, |name, mac, tables| {
            let steering = Steering::attach(name, mode, PROGRAM, |maps| {
                let place = Place::Xdp {
                    devices: &devices,
                    maps,
                };
                forward::forward(mac, config.verify_checksums, tables, place)
            });
            Ok(Hook::Xdp(steering?))
        })?;
        made.features = features;
        made.devices = Some(devices);
        Ok(made)
    }

    fn attach_ingress(names: &[&str], config: &FastPathConfig) -> Result<Self, XdpError> {
        Self::on(names, config, |name, mac, tables| {
            let ingress = Ingress::attach(interface_index(name)?, PROGRAM, |counters| {
                let place = Place::Ingress { counters };
                forward::forward(mac, config.verify_checksums, tables, place)
            });
            Ok(Hook::Ingress(ingress?))
        })
    }

    /// With programs that `attach` attaches.
    fn on(
        names: &[&str],
        config: &FastPathConfig,
        attach: impl Fn(&str, [u8; 6], &Tables<'_>) -> Result<Hook, XdpError>,
    ) -> Result<Self, XdpError> {
        let (key, value) = (Prefix::BYTES, Action::BYTES);
        let kind = MapKind::LongestPrefix;
        let routes = map("baton_routes", kind, key, value, config.capacity)?;
        let slots = names.len() as u32 + 1;
        let mut ends = Vec::new();
        for name in names {
            let (link, mut watch) = (link_info(name)?, LinkWatch::of(name)?);
            let traffic = map("baton_traffic", MapKind::PerCpuArray, 4, 16, slots)?;
            let tables = Tables {
                routes: &routes,
                traffic: &traffic,
            };
            ends.push(End {
                hook: attach(name, link.mac, &tables)?,
                traffic,
                index: interface_index(name)?,
                link,
                before: watch.state()?.counters,
                watch,
                sends: false,
            });
        }
        Ok(Self {
            ends,
            routes,
            devices: None,
            features: None,
            told: FxHashMap::default(),
            changes: 0,
            due: Time::ZERO,
        })
    }

    /// What gives the rest of the frames of interface `at` to AF_XDP sockets; none by traffic control, which does not.
    pub fn steering(&self, at: usize) -> Option<&Steering> {
        match &self.ends[at].hook {
            Hook::Xdp(steering) => Some(steering),
            Hook::Ingress(_) => None,
        }
    }

    /// Where its programs are.
    pub fn kind(&self) -> FastPathKind {
        match self.mode() {
            Some(_) => FastPathKind::Xdp,
            None => FastPathKind::TrafficControl,
        }
    }

    /// The mode of its XDP programs, where it has some: the native one only if all are in it.
    pub fn mode(&self) -> Option<Mode> {
        let steerings = (0..self.ends.len()).map(|at| self.steering(at));
        let modes = steerings.map(|steering| steering.map(Steering::mode));
        modes.reduce(|one, other| match one {
            Some(Mode::Native) => other,
            _ => one,
        })?
    }

    /// Tells the kernel what has changed at the router, and the router which neighbours are in use.
    ///
    /// # Errors
    /// The kernel has no memory. Then what it has been told may be wrong: the fast path must be given up.
    pub fn update(&mut self, now: Time, router: &mut Router) -> io::Result<()> {
        let is_due = now >= self.due;
        if !is_due && router.neighbour_changes() == self.changes {
            return Ok(());
        }
        if is_due {
            self.due = now + LOOK;
            self.look_at_links();
            self.tell_of_use(now, router)?;
        }
        self.changes = router.neighbour_changes();
        self.install(&router.fib())
    }

    /// By interfaces that are down, or whose driver has stopped to send, nothing leaves past the router, which knows what to say.
    fn look_at_links(&mut self) {
        for end in &mut self.ends {
            let state = end.watch.state();
            let is_up = state.is_ok_and(|state| {
                state.is_up && state.has_carrier && state.mtu >= end.link.mtu.into()
            });
            let features = &mut self.features;
            let drives = features.as_mut().is_none_or(|features| {
                let sends = features.sends_redirected(end.index);
                sends.unwrap_or(false)
            });
            end.sends = is_up && drives;
        }
    }

    fn tell_of_use(&mut self, now: Time, router: &mut Router) -> io::Result<()> {
        let mut bytes = [0; Action::BYTES];
        for (prefix, (action, next_hop)) in &self.told {
            let Some(next_hop) = next_hop.filter(|_| action.slot != 0) else {
                continue;
            };
            let key = prefix.to_bytes();
            self.routes.read(&key, &mut bytes)?;
            if Action::is_used(&bytes) {
                router.handle_use(now, &next_hop);
                self.routes.update(&key, &action.to_bytes())?;
            }
        }
        Ok(())
    }

    fn install(&mut self, fib: &[FibEntry]) -> io::Result<()> {
        let wanted = fib.iter().map(|entry| {
            let action = entry.next_hop.map(|hop| self.action(&hop));
            let told = (action.unwrap_or_default(), entry.next_hop);
            (prefix_of(&entry.destination), told)
        });
        let wanted: FxHashMap<Prefix, Told> = wanted.collect();
        let news = wanted
            .iter()
            .filter(|(prefix, told)| self.told.get(prefix) != Some(told));
        let mut news: Vec<(&Prefix, &Told)> = news.collect();
        // No packet goes for a moment where a shorter prefix leads.
        news.sort_by_key(|(prefix, _)| Reverse(prefix.bits));
        for (prefix, (action, _)) in news {
            self.routes.update(&prefix.to_bytes(), &action.to_bytes())?;
        }
        for prefix in self.told.keys() {
            if !wanted.contains_key(prefix) {
                self.routes.delete(&prefix.to_bytes())?;
            }
        }
        self.told = wanted;
        Ok(())
    }

    fn action(&self, hop: &NextHop) -> Action {
        let end = &self.ends[hop.interface];
        match end.sends {
            false => Action::default(),
            true => Action {
                slot: hop.interface as u16 + 1,
                mtu: end.link.mtu,
                destination: hop.mac,
                source: end.link.mac,
                interface: end.index,
                used: 0,
            },
        }
    }

    /// What would leave if this frame came by interface `at`; none if it is left to the router. It is counted.
    ///
    /// # Errors
    /// The kernel runs programs on no such frame: it is too short for an Ethernet header, or too long.
    pub fn run(&self, at: usize, frame: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let mut changed = vec![0; frame.len()];
        let hook = &self.ends[at].hook;
        let leaves = match hook {
            Hook::Xdp(_) => programs::REDIRECT,
            Hook::Ingress(_) => forward::REDIRECTED,
        };
        let result = hook.program().run_on(frame, &mut changed)?.cast_signed();
        Ok((result == leaves).then_some(changed))
    }

    /// Packets forwarded.
    pub fn forwarded(&self) -> u64 {
        let ends = 0..self.ends.len();
        ends.map(|at| self.received(at).frames).sum()
    }

    /// What came by one interface and was forwarded.
    fn received(&self, at: usize) -> Forwarded {
        let ends = 0..self.ends.len();
        total(ends.map(|out| self.between(at, out)))
    }

    fn between(&self, at: usize, out: usize) -> Forwarded {
        let sums = self.ends[at].traffic.sums(out as u32 + 1);
        // An entry of this map cannot be absent.
        let [frames, bytes] = sums.unwrap_or_default();
        Forwarded { frames, bytes }
    }

    /// Tells what has been counted at interface `at`. What its driver dropped of what was given to it is counted by the kernel alone,
    /// together with what others sent.
    pub fn counters(&mut self, at: usize, sink: &mut dyn CounterSink) {
        let (received, ends) = (self.received(at), 0..self.ends.len());
        let sent = total(ends.map(|from| self.between(from, at)));
        sink.counter("fast_path.received.frames", received.frames);
        sink.counter("fast_path.received.bytes", received.bytes);
        sink.counter("fast_path.sent.frames", sent.frames);
        sink.counter("fast_path.sent.bytes", sent.bytes);
        let End {
            hook,
            watch,
            before,
            ..
        } = &mut self.ends[at];
        let passed = hook.count(Counter::Passed) + hook.count(Counter::Redirected);
        sink.counter("fast_path.passed", passed);
        let no_device = hook.count(Counter::NoDevice);
        sink.counter("fast_path.dropped.no_device", no_device);
        if let Ok(state) = watch.state() {
            let counted = state.counters.since(before);
            sink.counter("kernel.rx_dropped", counted.rx_dropped);
            sink.counter("kernel.tx_dropped", counted.tx_dropped);
        }
    }
}

fn total(all: impl Iterator<Item = Forwarded>) -> Forwarded {
    all.fold(Forwarded::default(), |sum, more| Forwarded {
        frames: sum.frames + more.frames,
        bytes: sum.bytes + more.bytes,
    })
}

/// A map for programs.
fn map(name: &str, kind: MapKind, key: usize, value: usize, entries: u32) -> Result<Map, XdpError> {
    Map::new(name, kind, key, value, entries).map_err(XdpError::of("make maps of programs"))
}

/// The mode to ask for, and whom to ask whether drivers go on to send, if programs are to run in them.
fn mode_for(
    names: &[&str],
    asked: Option<Mode>,
) -> Result<(Option<Mode>, Option<Features>), XdpError> {
    let generic = (Some(Mode::Generic), None);
    if asked == Some(Mode::Generic) {
        return Ok(generic);
    }
    let mut features = match (Features::new(), asked) {
        (Ok(features), _) => features,
        // Nobody knows.
        (Err(_), Some(_)) => return Ok((asked, None)),
        (Err(_), None) => return Ok(generic),
    };
    for name in names {
        let sends = features.sends_redirected(interface_index(name)?);
        match (sends.unwrap_or(false), asked) {
            (true, _) => {}
            (false, None) => return Ok(generic),
            (false, Some(_)) => return Err(XdpError::NoRedirect((*name).to_owned())),
        }
    }
    Ok((asked, Some(features)))
}

fn prefix_of(destination: &Cidr) -> Prefix {
    let mut addr = [0; 16];
    let family = match destination.network() {
        IpAddr::V4(network) => {
            addr[..4].copy_from_slice(&network.octets());
            4
        }
        IpAddr::V6(network) => {
            addr = network.octets();
            6
        }
    };
    Prefix {
        bits: Prefix::FAMILY_BITS + u32::from(destination.prefix_len()),
        family,
        addr,
    }
}
