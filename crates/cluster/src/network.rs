//! Two adapters that are connected to each other and run on one thread. Applications attach to them as to adapter processes.

use baton_bus::Batching;
use baton_iolib::{AdapterListener, Geometry, Limits, ShmAdapter};
use baton_nic::adapter::{Adapter, AdapterConfig, Ending, SessionId, pump};
use baton_tcp::{Config, Segment, Stack};
use baton_wire::{Span, Time};
use bytes::Bytes;
use rustix::time::{ClockId, clock_gettime};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Number of idle rounds before the thread sleeps for a moment.
const IDLE_TURNS: u32 = 50;

/// One of the two adapters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The adapter 10.0.0.1.
    Left,
    /// The adapter 10.0.0.2.
    Right,
}

impl Side {
    /// Returns an address of the adapter.
    pub fn address(self, port: u16) -> SocketAddr {
        SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1 + self as u8)), port)
    }
}

/// Returns an address that no host has, so that everything sent there is lost.
pub fn nowhere(port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 99], port))
}

enum Command {
    /// Stops an adapter as if its process had been killed.
    Kill(Side),
    Start(Side),
    /// Suspends an adapter until `GoOn`.
    Pause(Side),
    GoOn(Side),
    End,
}

/// The network, which stops when it is dropped.
pub struct Network {
    folder: TempDir,
    commands: Sender<(Command, Sender<()>)>,
    /// Number of SYNs with data that the left side has sent and whose data the SYN-ACK acknowledged.
    syns_with_data: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Network {
    /// Starts two adapters with default parameters.
    pub fn start() -> Self {
        Self::with(AdapterConfig::default())
    }

    /// Starts two adapters with these parameters.
    pub fn with(config: AdapterConfig) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (commands, received) = channel();
        let paths = [Side::Left, Side::Right].map(|side| path_in(folder.path(), side));
        let syns_with_data = Arc::default();
        let seen = Arc::clone(&syns_with_data);
        let thread = thread::spawn(move || run(&paths, &config, &received, &seen));
        let network = Self {
            folder,
            commands,
            syns_with_data,
            thread: Some(thread),
        };
        network.start_again(Side::Left);
        network.start_again(Side::Right);
        network
    }

    /// Returns the path of the socket where applications attach.
    pub fn path(&self, side: Side) -> PathBuf {
        path_in(self.folder.path(), side)
    }

    /// Returns the number of SYNs with data that the left side has sent and whose data the SYN-ACK acknowledged.
    pub fn syns_with_data(&self) -> u64 {
        self.syns_with_data.load(Ordering::Relaxed)
    }

    /// Stops an adapter as if its process had been killed.
    pub fn kill(&self, side: Side) {
        self.tell(Command::Kill(side));
    }

    /// Starts an adapter that was killed.
    pub fn start_again(&self, side: Side) {
        self.tell(Command::Start(side));
    }

    /// Suspends an adapter.
    pub fn pause(&self, side: Side) {
        self.tell(Command::Pause(side));
    }

    /// Resumes an adapter.
    pub fn go_on(&self, side: Side) {
        self.tell(Command::GoOn(side));
    }

    /// Sends a command, and returns when it has been executed.
    fn tell(&self, command: Command) {
        let (done, wait) = channel();
        self.commands
            .send((command, done))
            .expect("the network's thread runs");
        wait.recv().expect("the network's thread runs");
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if self
            .thread
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
        {
            self.tell(Command::End);
        }
        let ended = self.thread.take().map(JoinHandle::join);
        if !thread::panicking() {
            ended.expect("the thread was started").expect("no panic");
        }
    }
}

fn path_in(folder: &Path, side: Side) -> PathBuf {
    folder.join(format!("{side:?}.sock"))
}

/// An adapter and its applications.
struct Station {
    address: IpAddr,
    listener: AdapterListener,
    adapter: Adapter<Bytes>,
    stack: Stack<Bytes>,
    /// Start of the network's clock, on CLOCK_MONOTONIC.
    epoch_ns: u64,
    applications: Vec<(SessionId, ShmAdapter)>,
    is_paused: bool,
}

impl Station {
    fn start(path: &Path, side: Side, config: &AdapterConfig, epoch_ns: u64) -> Self {
        let address = side.address(0).ip();
        let config = AdapterConfig {
            addresses: vec![address],
            reports_unread: true,
            ..config.clone()
        };
        let limits = Limits {
            most_sends: config.most_sends,
            ..Limits::default()
        };
        Self {
            address,
            listener: AdapterListener::bind(path, limits).expect("a free path"),
            adapter: Adapter::new(config).expect("a valid configuration"),
            stack: Stack::new(Config::default(), 7 + side as u64),
            epoch_ns,
            applications: Vec::new(),
            is_paused: false,
        }
    }

    fn turn(&mut self, now: Time) -> bool {
        let mut did = false;
        while let Some(link) = self.listener.accept(&vec![None; self.applications.len()]) {
            let Geometry {
                ring_depth,
                buffer_bytes,
                ..
            } = *link.geometry();
            let batching = Batching {
                max_transfer_bytes: buffer_bytes,
                ..self.adapter.config().batching.clone()
            };
            let attached = self.adapter.attach_with(&batching, ring_depth);
            let session = attached.expect("the adapter accepts another application");
            self.adapter.set_epoch(session, self.epoch_ns);
            self.applications.push((session, link));
            did = true;
        }
        self.stack.handle_timeouts(now);
        self.adapter.handle_timeouts(now, &mut self.stack);
        while let Some((conn, event)) = self.stack.poll_event() {
            did = true;
            let ours = (self.adapter).handle_event(now, &mut self.stack, conn, &event);
            assert!(ours, "the adapter owns all connections");
        }
        let mut index = 0;
        while index < self.applications.len() {
            let (session, link) = &mut self.applications[index];
            match pump(now, &mut self.adapter, &mut self.stack, *session, link) {
                Ok(moved) => {
                    did |= moved;
                    index += 1;
                }
                Err(_) => {
                    let (session, _) = self.applications.remove(index);
                    let ending = Ending::Drain;
                    self.adapter.detach(now, &mut self.stack, session, ending);
                }
            }
        }
        did
    }
}

fn run(
    paths: &[PathBuf; 2],
    config: &AdapterConfig,
    commands: &Receiver<(Command, Sender<()>)>,
    syns_with_data: &AtomicU64,
) {
    let started = Instant::now();
    let epoch = clock_gettime(ClockId::Monotonic);
    let epoch_ns = epoch.tv_sec as u64 * 1_000_000_000 + epoch.tv_nsec as u64;
    let mut stations: [Option<Station>; 2] = [None, None];
    let mut idle = 0;
    loop {
        match commands.try_recv() {
            Ok((command, done)) => {
                let ends = matches!(command, Command::End);
                obey(command, &mut stations, paths, (config, epoch_ns));
                let _ = done.send(());
                if ends {
                    return;
                }
            }
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return,
        }
        let now = Time::ZERO + Span::from_us(started.elapsed().as_micros() as u64 + 1);
        let mut did = false;
        for station in stations.iter_mut().flatten().filter(|one| !one.is_paused) {
            did |= station.turn(now);
        }
        did |= move_segments(now, &mut stations);
        if let [Some(left), _] = &stations {
            let stats = left.stack.stats();
            syns_with_data.store(stats.fast_open_data_acknowledged, Ordering::Relaxed);
        }
        idle = if did { 0 } else { idle + 1 };
        if idle > IDLE_TURNS {
            thread::sleep(Duration::from_micros(50));
        }
    }
}

fn obey(
    command: Command,
    stations: &mut [Option<Station>; 2],
    paths: &[PathBuf; 2],
    (config, epoch_ns): (&AdapterConfig, u64),
) {
    match command {
        Command::Kill(side) => stations[side as usize] = None,
        Command::Start(side) => {
            let station = Station::start(&paths[side as usize], side, config, epoch_ns);
            stations[side as usize] = Some(station);
        }
        Command::Pause(side) | Command::GoOn(side) => {
            let station = stations[side as usize].as_mut().expect("the adapter runs");
            station.is_paused = matches!(command, Command::Pause(_));
        }
        Command::End => {}
    }
}

/// Delivers segments to the adapters that have their destination addresses. Segments to other addresses are lost.
fn move_segments(now: Time, stations: &mut [Option<Station>; 2]) -> bool {
    let mut segments: Vec<Segment<Bytes>> = Vec::new();
    for station in stations.iter_mut().flatten().filter(|one| !one.is_paused) {
        while let Some((_, segment)) = station.stack.poll_transmit(now) {
            segments.push(segment);
        }
    }
    let did = !segments.is_empty();
    for segment in segments {
        let mut all = stations.iter_mut().flatten();
        if let Some(station) = all.find(|station| station.address == segment.dst.addr) {
            station.stack.handle_segment(now, segment);
        }
    }
    did
}
