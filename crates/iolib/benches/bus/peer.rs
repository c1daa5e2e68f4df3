//! The other process, which runs this program too.

use crate::carrier::{self, Bytes, Carrier, Kind, Link};
use baton_iolib::{AdapterListener, Geometry, Limits, ShmHost};
use rustix::event::{PollFd, poll};
use rustix::io::dup;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::fmt;
use std::io::{stdin, stdout};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Environment variable that tells a child process the kind of carrier.
const KIND: &str = "BATON_BENCH_KIND";
/// Environment variable that tells a child process on which core to run.
const CORE: &str = "BATON_BENCH_CORE";
/// Environment variable with the path at which the adapter listens for shared memory.
const SOCKET: &str = "BATON_BENCH_SOCKET";

/// Returns the size of the link. The pool is minimal, because no data is sent.
fn geometry(ring_depth: u32) -> Geometry {
    Geometry {
        ring_depth,
        buffers: 1,
        buffer_bytes: 4096,
        most_sends: 1,
    }
}

/// Where the two processes run.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    TwoCores,
    OneCore,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TwoCores => "two cores",
            Self::OneCore => "one core",
        })
    }
}

fn stay_on(core: usize) {
    let mut cores = CpuSet::new();
    cores.set(core);
    // This fails on a machine with a single core.
    let _ = sched_setaffinity(None, &cores);
}

/// The other process, and the carrier that connects to it.
pub struct Peer {
    child: Child,
    carrier: Option<Box<dyn Carrier>>,
    _folder: tempfile::TempDir,
}

impl Peer {
    pub fn start(kind: Kind, place: Place) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("adapter.sock");
        stay_on(0);
        let mut command = Command::new(std::env::current_exe().expect("the program's path"));
        let core = match place {
            Place::TwoCores => "1",
            Place::OneCore => "0",
        };
        command
            .env(KIND, kind.name())
            .env(CORE, core)
            .env(SOCKET, &socket);
        let (child, carrier): (Child, Box<dyn Carrier>) = match kind {
            Kind::SharedMemory | Kind::DeepRings => {
                let child = command.spawn().expect("a process");
                let depth = if kind == Kind::DeepRings { 1024 } else { 128 };
                (child, Box::new(Link::new(connect(&socket, depth))))
            }
            Kind::SocketPair => {
                let (own, other) = UnixStream::pair().expect("sockets");
                let child = command.stdin(OwnedFd::from(other)).spawn();
                (child.expect("a process"), Box::new(Bytes::socket(own)))
            }
            Kind::Pipe => {
                // The other process must not inherit this side's ends, or it would never see them closed.
                let pipe = || pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
                let (there, back) = (pipe(), pipe());
                let child = command.stdin(there.0).stdout(Stdio::from(back.1)).spawn();
                let carrier = Box::new(Bytes::pipe(back.0, there.1));
                (child.expect("a process"), carrier)
            }
        };
        Self {
            child,
            carrier: Some(carrier),
            _folder: folder,
        }
    }

    pub fn carrier(&mut self) -> &mut dyn Carrier {
        &mut **self
            .carrier
            .as_mut()
            .expect("the carrier exists until this is dropped")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The other process ends when the carrier is closed.
        self.carrier = None;
        let _ = self.child.wait();
    }
}

/// Connects as soon as the other process listens.
fn connect(socket: &Path, ring_depth: u32) -> ShmHost {
    for _ in 0..1000 {
        if let Ok(host) = ShmHost::connect(socket, &geometry(ring_depth)) {
            return host;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("the other process does not listen");
}

/// Serves as the other process if the environment says so. Returns whether it did.
pub fn serve_if_asked() -> bool {
    let (Ok(kind), Ok(core)) = (std::env::var(KIND), std::env::var(CORE)) else {
        return false;
    };
    stay_on(core.parse().expect("a number"));
    match Kind::ALL.into_iter().find(|it| it.name() == kind) {
        Some(Kind::SharedMemory | Kind::DeepRings) => carrier::serve(Link::new(accept())),
        Some(Kind::SocketPair) => {
            let socket = dup(stdin()).expect("a file");
            carrier::serve(Bytes::socket(UnixStream::from(socket)));
        }
        Some(Kind::Pipe) => {
            let end = |fd: &dyn AsFd| dup(fd.as_fd()).expect("a file");
            carrier::serve(Bytes::pipe(end(&stdin()), end(&stdout())));
        }
        None => panic!("no such kind"),
    }
    true
}

fn accept() -> baton_iolib::ShmAdapter {
    let path = std::env::var_os(SOCKET).expect("a path");
    let listener = AdapterListener::bind(Path::new(&path), Limits::default());
    let mut listener = listener.expect("a socket");
    loop {
        if let Some(link) = listener.accept(&[]) {
            return link;
        }
        let fds = listener.fds();
        let mut fds: Vec<_> = fds
            .iter()
            .map(|(fd, interest)| PollFd::from_borrowed_fd(*fd, *interest))
            .collect();
        poll(&mut fds, None).expect("poll succeeds");
    }
}
