//! A namespace, an adapter on its link, applications, and connections of the kernel in it.

use crate::echo::CONTENT_BYTES;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{self, Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Names the role that this program plays.
pub const ROLE: &str = "BATON_TEST_ROLE";
/// Where its adapter is.
pub const ADAPTER: &str = "BATON_TEST_ADAPTER";
/// The engine's address.
pub const ENGINE: &str = "10.9.0.2";
/// The kernel's address.
pub const KERNEL: &str = "10.9.0.1";
/// Whatever has to come at all comes within this time, even where others use the machine.
pub const TIMEOUT: Duration = Duration::from_secs(120);

/// All that a test needs; gone when dropped.
pub struct World {
    folder: TempDir,
    number: String,
    adapter: Option<Process>,
}

impl World {
    /// A namespace, and an adapter that was started with `more` arguments.
    pub fn new(more: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut world = Self {
            folder: tempfile::tempdir().expect("a folder"),
            number: format!("{}-{count}", process::id()),
            adapter: None,
        };
        ip(&["netns", "add", &world.namespace()]);
        world.start_adapter(more);
        world
    }

    fn namespace(&self) -> String {
        format!("baton-faults-{}", self.number)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts the adapter, and waits until it is ready.
    pub fn start_adapter(&mut self, more: &[&str]) {
        assert!(self.adapter.is_none(), "one at a time");
        let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
        command
            .args(["live", "adapter", "--tap", &format!("f{}", self.number)])
            .args([
                "--netns",
                &self.namespace(),
                "--addr",
                &format!("{ENGINE}/24"),
            ])
            .args(["--host-addr", &format!("{KERNEL}/24")])
            .arg("--listen")
            .arg(self.path("adapter"))
            .arg("--control")
            .arg(self.path("control"))
            .args(more);
        let adapter = Process::start(command);
        adapter.says("offloading TCP", TIMEOUT);
        self.adapter = Some(adapter);
    }

    /// The adapter.
    pub fn adapter(&self) -> &Process {
        self.adapter.as_ref().expect("it was started")
    }

    /// Ends the adapter without a chance to say anything.
    pub fn kill_adapter(&mut self) {
        // The device goes with the process; another adapter would find it busy before.
        drop(self.adapter.take());
    }

    /// Starts this program in a role, which has an argument.
    pub fn application(&self, role: &str, argument: &str) -> Process {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command
            .env(ROLE, format!("{role} {argument}"))
            .env(ADAPTER, self.path("adapter"));
        Process::start(command)
    }

    /// What `baton live stat` tells of the adapter.
    pub fn stat(&self) -> Value {
        let output = Command::new(env!("CARGO_BIN_EXE_baton"))
            .args(["live", "stat", "--json", "--control"])
            .arg(self.path("control"))
            .output()
            .expect("the program starts");
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// A counter of the adapter.
    pub fn counter(&self, name: &str) -> u64 {
        let stat = self.stat();
        stat["counters"][name].as_u64().unwrap_or_default()
    }

    /// What the adapter tells of the application that is this process.
    pub fn row(&self, pid: u32) -> Value {
        let stat = self.stat();
        let rows = stat["applications"].as_array().expect("applications");
        let row = rows.iter().find(|row| row["pid"] == pid);
        row.expect("it is attached").clone()
    }

    /// A connection of the kernel's TCP to a port of the engine's, which may not be listening yet.
    pub fn connect(&self, port: u16) -> TcpStream {
        let until = Instant::now() + TIMEOUT;
        loop {
            match self.try_connect(port) {
                Ok(stream) => return stream,
                Err(error) if Instant::now() > until => panic!("port {port}: {error}"),
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// The same, once.
    pub fn try_connect(&self, port: u16) -> std::io::Result<TcpStream> {
        let address = SocketAddr::new(ENGINE.parse().expect("an address"), port);
        let stream = self.inside(|| TcpStream::connect_timeout(&address, TIMEOUT))?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(stream)
    }

    /// A listener of the kernel's TCP.
    pub fn listen(&self) -> TcpListener {
        let listener = self.inside(|| TcpListener::bind((KERNEL, 0)));
        listener.expect("a port")
    }

    /// Does something in the namespace, in a thread of its own; a socket that is made there stays there.
    fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let path = format!("/run/netns/{}", self.namespace());
        thread::scope(|scope| {
            let inside = scope.spawn(move || {
                let file = File::open(path).expect("the namespace");
                let network = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(file.as_fd(), network).expect("a way into it");
                work()
            });
            inside.join().expect("no panic")
        })
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.kill_adapter();
        ip(&["netns", "delete", &self.namespace()]);
    }
}

fn ip(arguments: &[&str]) {
    let status = Command::new("ip").args(arguments).status();
    assert!(status.expect("ip").success(), "ip {arguments:?}");
}

/// A process whose words are heard; killed when dropped.
pub struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    fn start(mut command: Command) -> Self {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let (sender, lines) = channel();
        let out: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|out| Box::new(out) as _),
            child.stderr.take().map(|out| Box::new(out) as _),
        ];
        for out in out.into_iter().flatten() {
            let sender = sender.clone();
            thread::spawn(move || {
                for line in BufReader::new(out).lines().map_while(Result::ok) {
                    // That nobody listens any more is no failure.
                    let _ = sender.send(line);
                }
            });
        }
        Self { child, lines }
    }

    /// Waits until it has said something that contains `text`.
    #[track_caller]
    pub fn says(&self, text: &str, within: Duration) {
        let until = Instant::now() + within;
        let mut heard = Vec::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.contains(text) => return,
                Ok(line) => heard.push(line),
                Err(_) => panic!("it did not say {text:?} in {within:?}, but {heard:?}"),
            }
        }
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it, and waits for its end.
    pub fn kill(mut self) {
        self.end();
    }

    /// Lets it do nothing more, until [`Process::go_on`].
    pub fn stop(&self) {
        self.signal("STOP");
    }

    /// Undoes [`Process::stop`].
    pub fn go_on(&self) {
        self.signal("CONT");
    }

    /// Processor time it has used.
    pub fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid()));
        let stat = stat.expect("it lives");
        // Fields 14 and 15 of proc(5), in hundredths of a second; the name before them may hold blanks.
        let fields = stat.rsplit(") ").next().expect("fields");
        let fields: Vec<&str> = fields.split(' ').collect();
        let ticks: u64 = [11, 12]
            .map(|at| fields[at].parse::<u64>().expect("ticks"))
            .iter()
            .sum();
        Duration::from_millis(10 * ticks)
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args(["-s", name, &self.pid().to_string()])
            .status();
        assert!(status.expect("kill").success());
    }

    fn end(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// Sends the content through a connection to an echo, in a thread, and checks what comes back.
pub fn echo_through(stream: TcpStream) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut sending = stream.try_clone().expect("another handle");
        let writer = thread::spawn(move || {
            sending
                .write_all(&crate::echo::content())
                .expect("it is taken");
            sending
                .shutdown(std::net::Shutdown::Write)
                .expect("it is open");
        });
        let mut back = Vec::with_capacity(CONTENT_BYTES);
        (&stream).read_to_end(&mut back).expect("it comes back");
        writer.join().expect("no panic");
        assert!(
            back == crate::echo::content(),
            "{} bytes, not as they were",
            back.len()
        );
    })
}

/// Waits until something is so.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let limit = Instant::now() + TIMEOUT;
    while !holds() {
        assert!(Instant::now() < limit, "{what}: not in {TIMEOUT:?}");
        thread::sleep(Duration::from_millis(20));
    }
}
