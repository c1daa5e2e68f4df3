//! A network namespace with an adapter, its applications, and connections of the kernel's TCP.

use crate::echo::CONTENT_BYTES;
use baton_testkit::process::{Process, TIMEOUT, run};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{self, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The environment variable with the role that this program plays.
pub const ROLE: &str = "BATON_TEST_ROLE";
/// The environment variable with the path of the adapter's socket.
pub const ADAPTER: &str = "BATON_TEST_ADAPTER";
/// The address of the adapter's TCP engine.
pub const ENGINE: &str = "10.9.0.2";
/// The kernel's address.
pub const KERNEL: &str = "10.9.0.1";

/// Everything that a test needs. It is removed when dropped.
pub struct World {
    folder: TempDir,
    number: String,
    adapter: Option<Process>,
}

impl World {
    /// Makes a namespace, and starts an adapter with `more` arguments in it.
    pub fn new(more: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut world = Self {
            folder: tempfile::tempdir().expect("a folder"),
            number: format!("{}-{count}", process::id()),
            adapter: None,
        };
        run("ip", &["netns", "add", &world.namespace()]);
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
        assert!(self.adapter.is_none(), "only one adapter at a time");
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
        let adapter = start(&mut command);
        adapter.says("offloading TCP");
        self.adapter = Some(adapter);
    }

    pub fn adapter(&self) -> &Process {
        self.adapter.as_ref().expect("it was started")
    }

    /// Kills the adapter, which cannot notify its applications.
    pub fn kill_adapter(&mut self) {
        // Dropping it waits for the process, whose end deletes the device. Until then, another adapter would find the device busy.
        drop(self.adapter.take());
    }

    /// Starts this program in a role with an argument.
    pub fn application(&self, role: &str, argument: &str) -> Process {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command
            .env(ROLE, format!("{role} {argument}"))
            .env(ADAPTER, self.path("adapter"));
        start(&mut command)
    }

    /// Returns what `baton live stat` reports about the adapter.
    pub fn stat(&self) -> Value {
        let output = Command::new(env!("CARGO_BIN_EXE_baton"))
            .args(["live", "stat", "--json", "--control"])
            .arg(self.path("control"))
            .output()
            .expect("the program starts");
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Returns a counter of the adapter, or 0 if it has none of that name.
    pub fn counter(&self, name: &str) -> u64 {
        let stat = self.stat();
        stat["counters"][name].as_u64().unwrap_or_default()
    }

    /// Returns what the adapter reports about the application with this process id.
    pub fn row(&self, pid: u32) -> Value {
        let stat = self.stat();
        let rows = stat["applications"].as_array().expect("applications");
        let row = rows.iter().find(|row| row["pid"] == pid);
        row.expect("it is attached").clone()
    }

    /// Connects to a port of the engine with the kernel's TCP, and retries while nothing listens there.
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

    /// Tries once to connect to a port of the engine.
    pub fn try_connect(&self, port: u16) -> std::io::Result<TcpStream> {
        let address = SocketAddr::new(ENGINE.parse().expect("an address"), port);
        let stream = self.inside(|| TcpStream::connect_timeout(&address, TIMEOUT))?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(stream)
    }

    /// Returns a listener of the kernel's TCP.
    pub fn listen(&self) -> TcpListener {
        let listener = self.inside(|| TcpListener::bind((KERNEL, 0)));
        listener.expect("a port")
    }

    /// Runs `work` in the namespace, on a new thread. A socket that it makes stays in the namespace.
    fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let path = format!("/run/netns/{}", self.namespace());
        thread::scope(|scope| {
            let inside = scope.spawn(move || {
                let file = File::open(path).expect("the namespace");
                let network = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(file.as_fd(), network)
                    .expect("the namespace can be entered");
                work()
            });
            inside.join().expect("no panic")
        })
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.kill_adapter();
        run("ip", &["netns", "delete", &self.namespace()]);
    }
}

/// Starts a process, and reads both of its outputs.
fn start(command: &mut Command) -> Process {
    Process::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
}

/// Returns the processor time that a process has used.
pub fn processor_time(process: &Process) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.pid()));
    let stat = stat.expect("the process exists");
    // Fields 14 and 15 of proc(5), in hundredths of a second. The name before them may contain spaces.
    let fields = stat.rsplit(") ").next().expect("fields");
    let fields: Vec<&str> = fields.split(' ').collect();
    let ticks: u64 = [11, 12]
        .map(|at| fields[at].parse::<u64>().expect("ticks"))
        .iter()
        .sum();
    Duration::from_millis(10 * ticks)
}

/// Sends the data of `echo::content` to an echo application from a new thread, and checks the data that it returns.
pub fn echo_through(stream: TcpStream) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut sending = stream.try_clone().expect("another handle");
        let writer = thread::spawn(move || {
            sending
                .write_all(&crate::echo::content())
                .expect("the connection is open");
            sending
                .shutdown(std::net::Shutdown::Write)
                .expect("the connection is open");
        });
        let mut back = Vec::with_capacity(CONTENT_BYTES);
        (&stream)
            .read_to_end(&mut back)
            .expect("the data is echoed");
        writer.join().expect("no panic");
        assert!(
            back == crate::echo::content(),
            "{} bytes were echoed, and differ",
            back.len()
        );
    })
}
