//! Makes the calls of a sequence, one after another, in the process that has the connections.

use super::raw::{self, Digest, OPTIONS, errno, events, result};
use crate::peer::loopback;
use crate::{Call, Sequence};
use libc::{c_int, c_void};
use std::ffi::CString;
use std::io::{BufRead, BufReader, Write};
use std::mem::{size_of, zeroed};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::thread;
use std::time::Duration;

/// Time after which a blocking call is interrupted, microseconds.
const LONGEST_CALL_US: i64 = 150_000;
/// Maximum time of a wait for readiness, ms.
const WAIT_MS: c_int = 40;
/// Time after which another thread acts while the first thread waits.
const LATER: Duration = Duration::from_millis(30);
/// Time that a connection gets to move.
const TO_LEAVE: Duration = Duration::from_millis(2);
const SIZES: [usize; 8] = [0, 1, 2, 5, 100, 1000, 4096, 20_000];
const RECEIVE_FLAGS: [c_int; 12] = [
    0,
    libc::MSG_PEEK,
    libc::MSG_TRUNC,
    libc::MSG_WAITALL,
    libc::MSG_DONTWAIT,
    libc::MSG_PEEK | libc::MSG_TRUNC,
    libc::MSG_PEEK | libc::MSG_WAITALL,
    libc::MSG_PEEK | libc::MSG_DONTWAIT,
    libc::MSG_WAITALL | libc::MSG_DONTWAIT,
    libc::MSG_OOB,
    libc::MSG_CMSG_CLOEXEC | libc::MSG_NOSIGNAL,
    libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT,
];
/// Returns whether a call sends data and says which other data belongs to it.
pub fn joins_data(call: &Call) -> bool {
    let flags = call
        .operands
        .get(2)
        .and_then(|&at| SEND_FLAGS.get(at as usize));
    let has_flags = ["send", "sendmsg"].contains(&call.name);
    has_flags && flags.is_some_and(|flags| flags & (libc::MSG_EOR | libc::MSG_MORE) != 0)
}

const SEND_FLAGS: [c_int; 7] = [
    libc::MSG_NOSIGNAL,
    0,
    libc::MSG_DONTWAIT,
    libc::MSG_MORE,
    libc::MSG_OOB,
    libc::MSG_EOR,
    libc::MSG_DONTROUTE | libc::MSG_CONFIRM,
];
/// Numbers of Linux that the libc crate does not have for each of its C libraries.
const F_SETSIG: c_int = 10;
const F_GETSIG: c_int = 11;
const SIOCGPGRP: libc::Ioctl = 0x8904;
const SIOCOUTQNSD: libc::Ioctl = 0x894b;
const IN: u32 = libc::EPOLLIN as u32;
const OUT: u32 = libc::EPOLLOUT as u32;
const RDHUP: u32 = libc::EPOLLRDHUP as u32;
const ET: u32 = libc::EPOLLET as u32;
const ONESHOT: u32 = libc::EPOLLONESHOT as u32;
const EXCLUSIVE: u32 = libc::EPOLLEXCLUSIVE as u32;
const EVENTS: [u32; 9] = [
    IN,
    OUT,
    IN | OUT | RDHUP,
    0,
    IN | RDHUP | ET,
    IN | OUT | ET,
    IN | ONESHOT,
    IN | OUT | ET | ONESHOT,
    IN | EXCLUSIVE,
];

/// Returns whether a call registers a descriptor for edges.
pub fn waits_for_edges(call: &Call) -> bool {
    let events = call.operands.get(2).and_then(|&at| EVENTS.get(at as usize));
    ["add", "modify"].contains(&call.name) && events.is_some_and(|events| events & ET != 0)
}

/// The peer of one connection.
struct Peer(BufReader<UnixStream>);

impl Peer {
    fn ask(&mut self, what: &str, number: usize) -> String {
        let mut answer = String::new();
        let _ = writeln!(self.0.get_ref(), "{what} {number}");
        let _ = self.0.read_line(&mut answer);
        String::from(answer.trim())
    }
}

/// A descriptor of the sequence, or -1 once it is closed, and the number of its connection.
#[derive(Clone, Copy)]
struct Slot {
    fd: c_int,
    of: usize,
}

pub struct Player {
    peers: Vec<Peer>,
    slots: Vec<Slot>,
    sets: Vec<c_int>,
    /// Data sent on each connection.
    sent: Vec<Digest>,
    /// Whether to send a byte before each call, so that the policy moves the connection.
    moves: Vec<bool>,
    /// Whether each call follows without waiting for the move.
    is_hasty: bool,
    /// Whether urgent data was sent.
    has_urgent: Vec<bool>,
}

extern "C" fn ignore(_: c_int) {}

/// Makes a call in a child that has inherited the connection. Returns its exit code: the result, or 100 more than the error.
pub fn act(fd: c_int, what: u32, byte: u8) -> c_int {
    // SAFETY: the data is good for its length.
    let gave = unsafe {
        match what {
            0 => libc::send(fd, (&raw const byte).cast(), 1, libc::MSG_NOSIGNAL) as c_int,
            1 => libc::recv(fd, [0_u8; 8].as_mut_ptr().cast(), 2, libc::MSG_DONTWAIT) as c_int,
            2 => libc::shutdown(fd, libc::SHUT_WR),
            _ => libc::close(fd),
        }
    };
    match gave {
        -1 => 100 + errno(),
        gave => gave,
    }
}

fn handle(signal: c_int, flags: c_int) {
    // SAFETY: the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = ignore as *const () as usize;
        action.sa_flags = flags;
        libc::sigaction(signal, &raw const action, null_mut());
    }
}

/// Sends SIGALRM periodically, after this many microseconds each; 0 stops the timer.
fn alarm(us: i64) {
    let time = libc::timeval {
        tv_sec: 0,
        tv_usec: us,
    };
    let timer = libc::itimerval {
        it_interval: time,
        it_value: time,
    };
    // SAFETY: the timer is valid.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, null_mut()) };
}

impl Player {
    /// Writes the transcript of a sequence, call by call.
    pub fn play(sequence: &Sequence, peer: &Path, out: &mut impl Write) -> std::io::Result<()> {
        handle(libc::SIGALRM, 0);
        handle(libc::SIGPIPE, 0);
        // Descriptors whose owner is told of input by a signal; how soon the signal comes is not defined.
        // SAFETY: this takes no pointers to memory.
        unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
        let open = &sequence.0[0].operands;
        let mut player = Self {
            peers: Vec::new(),
            slots: Vec::new(),
            sets: Vec::new(),
            sent: Vec::new(),
            moves: Vec::new(),
            has_urgent: Vec::new(),
            is_hasty: open[4] == 2,
        };
        for _ in 0..=open[3] {
            if let Err(error) = player.open(peer, open) {
                return write!(out, "cannot open: {error}");
            }
        }
        for call in &sequence.0[1..] {
            player.move_all();
            alarm(LONGEST_CALL_US);
            let gave = player.call(call);
            alarm(0);
            write!(out, "{}={gave}; ", call.name)?;
        }
        write!(out, "{}", player.end())
    }

    fn open(&mut self, path: &Path, open: &[u32]) -> std::io::Result<()> {
        let mut peer = Peer(BufReader::new(UnixStream::connect(path)?));
        let is_ipv6 = open[1] == 1;
        let stream = if open[0] == 0 {
            let listener = TcpListener::bind((loopback(is_ipv6), 0))?;
            let what = if is_ipv6 { "connect6" } else { "connect4" };
            peer.ask(what, listener.local_addr()?.port().into());
            listener.accept()?.0
        } else {
            let port = peer.ask("listen", if is_ipv6 { 6 } else { 4 });
            let port = port.parse().map_err(std::io::Error::other)?;
            let stream = TcpStream::connect(SocketAddr::new(loopback(is_ipv6), port))?;
            peer.ask("accept", 0);
            stream
        };
        stream.set_nonblocking(open[2] == 1)?;
        let of = self.peers.len();
        self.slots.push(Slot {
            fd: stream.into_raw_fd(),
            of,
        });
        self.peers.push(peer);
        self.sent.push(Digest::default());
        self.moves.push(open[4] > 0);
        self.has_urgent.push(false);
        Ok(())
    }

    /// Sends a byte on each connection that is to move.
    fn move_all(&mut self) {
        for of in 0..self.peers.len() {
            if self.moves[of] {
                self.moves[of] = self.step(of, !self.is_hasty) == "1";
            }
        }
    }

    fn step(&mut self, of: usize, waits: bool) -> String {
        let Some(slot) = self
            .slots
            .iter()
            .find(|slot| slot.of == of && slot.fd >= 0)
            .copied()
        else {
            return String::from("closed");
        };
        let gave = self.send_by(slot, 1, |fd, data, len| {
            // SAFETY: the data is good for its length.
            unsafe { libc::send(fd, data, len, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as i64 }
        });
        if gave == "1" && waits && !self.has_urgent[of] {
            let sent = self.sent[of].len();
            self.peers[of].ask("read", sent);
            // The library notices what has arrived when the program makes calls.
            for _ in 0..4 {
                thread::sleep(TO_LEAVE);
                let mut one = libc::pollfd {
                    fd: slot.fd,
                    events: 0,
                    revents: 0,
                };
                // SAFETY: there is one descriptor.
                unsafe { libc::poll(&raw mut one, 1, 0) };
            }
        }
        gave
    }

    fn slot(&self, operand: u32) -> Slot {
        self.slots[operand as usize % self.slots.len()]
    }

    fn set(&self, operand: u32) -> c_int {
        let count = self.sets.len();
        (operand as usize)
            .checked_rem(count)
            .map_or(-1, |at| self.sets[at])
    }

    /// Sends the next bytes of a connection by `call`, and counts those that were sent.
    fn send_by(
        &mut self,
        slot: Slot,
        len: usize,
        call: impl FnOnce(c_int, *const c_void, usize) -> i64,
    ) -> String {
        let from = self.sent[slot.of].len();
        let data: Vec<u8> = (from..from + len).map(raw::pattern).collect();
        let gave = call(slot.fd, data.as_ptr().cast(), len);
        let text = result(gave);
        if gave > 0 {
            self.sent[slot.of].add(&data[..len.min(gave as usize)]);
        }
        text
    }

    fn call(&mut self, call: &Call) -> String {
        let at = |place: usize| call.operands.get(place).copied().unwrap_or(0);
        let slot = self.slot(at(0));
        let size = || SIZES[at(1) as usize];
        match call.name {
            "recv" | "read" | "recvmsg" | "readv" => receive(call, slot.fd, size()),
            "send" | "write" | "sendmsg" | "writev" | "sendto" | "sendfile" => {
                self.send(call, slot, size())
            }
            "fill" => self.fill(slot),
            "bad" => bad(slot.fd, at(1)),
            "wrong" => wrong(slot.fd, at(1)),
            "splice" => splice(slot.fd, at(1)),
            "shutdown" => {
                let how = [libc::SHUT_WR, libc::SHUT_RD, libc::SHUT_RDWR, 7][at(1) as usize];
                // SAFETY: this takes no pointers.
                let gave = result(unsafe { libc::shutdown(slot.fd, how) });
                thread::sleep(TO_LEAVE);
                gave
            }
            "close" => self.close(at(0)),
            "dup" => self.dup(slot, at(1)),
            "flags" => flags(slot.fd, at(1)),
            "owner" => owner(slot.fd, at(1)),
            // How soon a byte is acknowledged is not defined.
            "ioctl" if matches!(at(1), 2 | 6) && self.is_hasty => String::from("not asked"),
            "ioctl" => ioctl(slot.fd, at(1)),
            "getsockopt" => get_option(
                slot.fd,
                OPTIONS[at(1) as usize],
                [4, 0, 1, 2, 8][at(2) as usize],
            ),
            "setsockopt" => set_option(
                slot.fd,
                OPTIONS[at(1) as usize],
                [1, 0, 5][at(2) as usize],
                [4, 1, 8][at(3) as usize],
            ),
            "names" => name(slot.fd, at(1) == 1, [28, 0, 2, 4, 16][at(2) as usize]),
            "linger" => result(raw::linger(slot.fd, i32::from(at(1) > 0), at(1) as i32 - 1)),
            "poll" | "select" => poll(
                slot.fd,
                call.name == "select",
                [1, 4, 0x2005, 0, 2, 0x2001][at(1) as usize],
            ),
            "epoll" | "add" | "modify" | "remove" | "wait" | "nest" | "pollset" => self.epoll(call),
            "fork" => self.fork(slot, at(1)),
            "exec" => self.exec(slot, at(1)),
            "thread" => self.thread(slot, at(1), at(2)),
            "restart" => self.restart(slot, at(1)),
            _ => self.tell_peer(call),
        }
    }

    fn tell_peer(&mut self, call: &Call) -> String {
        let at = |place: usize| call.operands.get(place).copied().unwrap_or(0);
        let of = at(0) as usize % self.peers.len();
        let sent = self.sent[of].len();
        let peer = &mut self.peers[of];
        alarm(0);
        match call.name {
            "peersend" => peer.ask("send", SIZES[at(1) as usize]),
            "peerread" => match peer.ask("read", sent) {
                // How much fits into the buffers differs between runs.
                all if all == self.sent[of].to_string() => String::from("all"),
                other => other,
            },
            "peershut" => peer.ask("shut", 0),
            "peerclose" => peer.ask("close", 0),
            "peerreset" => peer.ask("reset", 0),
            "later" => peer.ask(
                ["later-send", "later-shut", "later-reset", "later-send"][at(1) as usize],
                5,
            ),
            _ => self.step(of, true),
        }
    }

    fn send(&mut self, call: &Call, slot: Slot, size: usize) -> String {
        let third = call.operands.get(2).copied().unwrap_or(0) as usize;
        let count = call.operands.get(3).copied().unwrap_or(0) as usize;
        let flags = SEND_FLAGS.get(third).copied().unwrap_or(0);
        // The peer does not read urgent bytes with the rest, so it would never receive their number.
        self.has_urgent[slot.of] |= flags & libc::MSG_OOB != 0;
        self.send_by(slot, size, |fd, data, len| {
            // SAFETY: the data is good for its length, and the parts lie within it.
            unsafe {
                match call.name {
                    "send" => libc::send(fd, data, len, flags) as i64,
                    "write" => libc::write(fd, data, len) as i64,
                    "sendmsg" => {
                        let mut parts = parts(data.cast_mut(), len, count);
                        libc::sendmsg(fd, &raw const *message(&mut parts), flags) as i64
                    }
                    "writev" => {
                        let parts = parts(data.cast_mut(), len, third);
                        libc::writev(fd, parts.as_ptr(), parts.len() as c_int) as i64
                    }
                    "sendto" => {
                        let address: libc::sockaddr_in = zeroed();
                        let size = size_of::<libc::sockaddr_in>() as u32;
                        libc::sendto(fd, data, len, 0, (&raw const address).cast(), size) as i64
                    }
                    _ => {
                        let file = libc::memfd_create(c"sequence".as_ptr(), 0);
                        libc::write(file, data, len);
                        let mut from = 0;
                        let gave = libc::sendfile(fd, file, &raw mut from, len) as i64;
                        let error = errno();
                        libc::close(file);
                        *libc::__errno_location() = error;
                        gave
                    }
                }
            }
        })
    }

    /// Sends until the buffers are full. How much fits differs between runs.
    fn fill(&mut self, slot: Slot) -> String {
        alarm(0);
        // The buffers take more once the peer has received some data.
        let mut attempts = 0;
        loop {
            let gave = self.send_by(slot, 50_000, |fd, data, len| {
                // SAFETY: the data is good for its length.
                unsafe { libc::send(fd, data, len, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as i64 }
            });
            match gave.parse::<usize>() {
                Ok(_) => attempts = 0,
                Err(_) if gave != "EAGAIN" || attempts == 6 => return gave,
                Err(_) => {
                    attempts += 1;
                    thread::sleep(25 * TO_LEAVE);
                }
            }
        }
    }

    fn close(&mut self, operand: u32) -> String {
        let at = operand as usize % self.slots.len();
        // SAFETY: the descriptor belongs to the sequence.
        let gave = result(unsafe { libc::close(self.slots[at].fd) });
        self.slots[at].fd = -1;
        gave
    }

    fn dup(&mut self, slot: Slot, how: u32) -> String {
        // SAFETY: nothing else uses descriptors above 600.
        let fd = unsafe {
            match how {
                0 => libc::dup(slot.fd),
                1 => libc::dup2(slot.fd, 600 + self.slots.len() as c_int),
                2 => libc::dup3(slot.fd, 600 + self.slots.len() as c_int, libc::O_CLOEXEC),
                _ => libc::fcntl(slot.fd, libc::F_DUPFD_CLOEXEC, 650),
            }
        };
        if fd < 0 {
            return result(fd);
        }
        self.slots.push(Slot { fd, of: slot.of });
        String::from("new")
    }

    fn epoll(&mut self, call: &Call) -> String {
        let at = |place: usize| call.operands.get(place).copied().unwrap_or(0);
        let (set, slot) = (self.set(at(0)), at(1) as usize % self.slots.len());
        let fd = self.slots[slot].fd;
        let control = |how, fd, bits: u32, data: usize| {
            let mut event = libc::epoll_event {
                events: bits,
                u64: data as u64,
            };
            // SAFETY: the event is valid.
            result(unsafe { libc::epoll_ctl(set, how, fd, &raw mut event) })
        };
        match call.name {
            "epoll" => {
                // SAFETY: this only creates a descriptor.
                self.sets
                    .push(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) });
                String::from("new")
            }
            "add" => control(libc::EPOLL_CTL_ADD, fd, EVENTS[at(2) as usize], slot),
            "modify" => control(libc::EPOLL_CTL_MOD, fd, EVENTS[at(2) as usize], slot),
            "remove" => control(libc::EPOLL_CTL_DEL, fd, 0, slot),
            "nest" => {
                let bits = [IN, IN | ET, IN | ONESHOT][at(2) as usize];
                control(
                    libc::EPOLL_CTL_ADD,
                    self.set(at(1)),
                    bits,
                    100 + at(1) as usize,
                )
            }
            "pollset" => poll(set, false, 5),
            _ => wait(set, [8, 1, 0][at(1) as usize]),
        }
    }

    /// Makes a child that does something with a connection, and ends.
    fn fork(&mut self, slot: Slot, what: u32) -> String {
        let byte = raw::pattern(self.sent[slot.of].len());
        // SAFETY: the child only makes calls and exits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            alarm(LONGEST_CALL_US);
            // SAFETY: what the library does at exit is part of the test.
            unsafe { libc::exit(act(slot.fd, what, byte)) };
        }
        self.see_child(slot, what, child)
    }

    /// Starts a program that has the connection and is the only one to use it for a while.
    fn exec(&mut self, slot: Slot, what: u32) -> String {
        let byte = raw::pattern(self.sent[slot.of].len());
        let words = [
            String::from("baton-sequences"),
            String::from("act"),
            slot.fd.to_string(),
            what.to_string(),
            byte.to_string(),
        ];
        let words = words.map(|word| CString::new(word).expect("a word has no zero byte"));
        let mut pointers: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
        pointers.push(null());
        // SAFETY: the child makes calls, and replaces itself or exits. The words end with zero bytes and their list with a null pointer.
        let child = unsafe { libc::fork() };
        if child == 0 {
            alarm(LONGEST_CALL_US);
            // SAFETY: as above.
            unsafe {
                libc::fcntl(slot.fd, libc::F_SETFD, 0);
                libc::execv(c"/proc/self/exe".as_ptr(), pointers.as_ptr());
                libc::_exit(99);
            }
        }
        self.see_child(slot, what, child)
    }

    /// Waits for a child that has [acted](act).
    fn see_child(&mut self, slot: Slot, what: u32, child: libc::pid_t) -> String {
        alarm(0);
        let mut status = 0;
        // SAFETY: `status` is valid.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        if what == 0 && status == 1 << 8 {
            let next = raw::pattern(self.sent[slot.of].len());
            self.sent[slot.of].add(&[next]);
        }
        thread::sleep(TO_LEAVE);
        format!("status {status}")
    }

    /// Lets another thread act on the connection while this one waits.
    fn thread(&mut self, slot: Slot, what: u32, waits: u32) -> String {
        let byte = [raw::pattern(self.sent[slot.of].len())];
        let other = quietly(move || {
            thread::sleep(LATER);
            // SAFETY: the data is good for its length.
            unsafe {
                match what {
                    0 => libc::shutdown(slot.fd, libc::SHUT_RD),
                    1 => libc::shutdown(slot.fd, libc::SHUT_RDWR),
                    2 => libc::shutdown(slot.fd, libc::SHUT_WR),
                    _ => libc::send(
                        slot.fd,
                        byte.as_ptr().cast(),
                        1,
                        libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT,
                    ) as c_int,
                }
            }
        });
        let seen = match waits {
            0 => recv(slot.fd, 5, 0),
            _ => poll(slot.fd, false, 0x2001),
        };
        let gave = other.join().unwrap_or(-9);
        if what == 3 && gave == 1 {
            self.sent[slot.of].add(&byte);
        }
        format!("{seen}, other {gave}")
    }

    /// Sends a signal while a call waits, and lets the peer send data after that.
    fn restart(&mut self, slot: Slot, restarts: u32) -> String {
        handle(
            libc::SIGUSR1,
            if restarts == 1 { libc::SA_RESTART } else { 0 },
        );
        // SAFETY: this takes no pointers.
        let this = unsafe { libc::pthread_self() };
        let other = quietly(move || {
            thread::sleep(LATER);
            // SAFETY: the thread exists, since it waits for this one.
            unsafe { libc::pthread_kill(this, libc::SIGUSR1) }
        });
        self.peers[slot.of].ask("much-later-send", 3);
        let seen = recv(slot.fd, 5, 0);
        let _ = other.join();
        thread::sleep(5 * LATER);
        seen
    }

    /// Makes the final check: readiness, unread bytes, errors, and the data that has arrived at the peers.
    fn end(&mut self) -> String {
        let mut seen = String::from("end:");
        thread::sleep(Duration::from_millis(40));
        let slots = self.slots.clone();
        for slot in slots.iter().filter(|slot| slot.fd >= 0) {
            seen += &format!(" [{}", poll(slot.fd, false, 0x2005));
            seen += &format!(" {}", drain(slot.fd));
            seen += &format!(" {}", recv(slot.fd, 9, libc::MSG_DONTWAIT));
            seen += &format!(" {}]", get_option(slot.fd, OPTIONS[0], 4));
        }
        for slot in slots {
            // SAFETY: the descriptor belongs to the sequence.
            unsafe { libc::close(slot.fd) };
        }
        let all = self.peers.iter_mut().zip(&self.sent).zip(&self.has_urgent);
        for ((peer, sent), &has_urgent) in all {
            // Asks for one byte more than can arrive, so that the answer reports the end.
            let got = peer.ask("read", sent.len() + 1);
            let all = got == format!("{sent} and the end");
            seen += match all {
                true => " all sent arrived",
                false if has_urgent => " with urgent data",
                false => " ",
            };
            seen += if all || has_urgent { "" } else { &got };
        }
        seen
    }
}

/// Runs a thread that handles no signals.
fn quietly(run: impl FnOnce() -> c_int + Send + 'static) -> thread::JoinHandle<c_int> {
    // SAFETY: the sets are filled in before they are read.
    unsafe {
        let (mut all, mut before) = (zeroed(), zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, &raw mut before);
        let handle = thread::spawn(run);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, null_mut());
        handle
    }
}

/// Splits a buffer into this many parts, and adds an empty part in the middle.
fn parts(data: *mut c_void, len: usize, count: usize) -> Vec<libc::iovec> {
    let part = |from: usize, to: usize| libc::iovec {
        iov_base: data.wrapping_byte_add(from),
        iov_len: to - from,
    };
    let mut parts: Vec<_> = (0..count)
        .map(|at| part(len * at / count, len * (at + 1) / count))
        .collect();
    parts.insert(count / 2, part(0, 0));
    parts
}

fn message(parts: &mut [libc::iovec]) -> Box<libc::msghdr> {
    // SAFETY: all zeros are a valid, empty message.
    let mut message: Box<libc::msghdr> = Box::new(unsafe { zeroed() });
    message.msg_iov = parts.as_mut_ptr();
    message.msg_iovlen = parts.len();
    message
}

/// Reads all data that is there or arrives shortly, and reports its digest and the last result.
fn drain(fd: c_int) -> String {
    let (mut all, mut room, mut attempts) = (Digest::default(), vec![0; 1 << 16], 0);
    loop {
        // SAFETY: the buffer is valid for its length.
        let gave =
            unsafe { libc::recv(fd, room.as_mut_ptr().cast(), room.len(), libc::MSG_DONTWAIT) };
        match usize::try_from(gave) {
            Ok(len) if len > 0 => all.add(&room[..len]),
            Err(_) if errno() == libc::EAGAIN && attempts < 4 => {
                attempts += 1;
                thread::sleep(4 * TO_LEAVE);
            }
            _ => return format!("{all} {}", result(gave as i64)),
        }
    }
}

fn recv(fd: c_int, size: usize, flags: c_int) -> String {
    let mut room = vec![0xee; size];
    // SAFETY: the buffer is valid for its length.
    let gave = unsafe { libc::recv(fd, room.as_mut_ptr().cast(), size, flags) } as i64;
    received(gave, &room)
}

/// Formats the result of a reading call and the bytes that it has written, including those beyond the returned length.
fn received(gave: i64, room: &[u8]) -> String {
    let text = result(gave);
    let used = room
        .iter()
        .rposition(|&byte| byte != 0xee)
        .map_or(0, |at| at + 1);
    let len = usize::try_from(gave).unwrap_or(0);
    match used > len {
        true => format!("{text} WRITES {used}"),
        false => format!("{text}/{}", Digest::of(&room[..used])),
    }
}

fn receive(call: &Call, fd: c_int, size: usize) -> String {
    let third = call.operands.get(2).copied().unwrap_or(0) as usize;
    let count = call.operands.get(3).copied().unwrap_or(0) as usize;
    let flags = RECEIVE_FLAGS.get(third).copied().unwrap_or(0);
    let mut room = vec![0xee_u8; size];
    let data: *mut c_void = room.as_mut_ptr().cast();
    // SAFETY: the buffer is valid for its length, and the parts lie within it.
    let (gave, more) = unsafe {
        match call.name {
            "recv" => (libc::recv(fd, data, size, flags), String::new()),
            "read" => (libc::read(fd, data, size), String::new()),
            "readv" => {
                let parts = parts(data, size, third);
                (
                    libc::readv(fd, parts.as_ptr(), parts.len() as c_int),
                    String::new(),
                )
            }
            _ => {
                let mut parts = parts(data, size, count);
                let mut message = message(&mut parts);
                let mut name = [0_u8; 28];
                let mut control = [0_u64; 16];
                message.msg_name = name.as_mut_ptr().cast();
                message.msg_namelen = 28;
                message.msg_control = control.as_mut_ptr().cast();
                message.msg_controllen = 128;
                let gave = libc::recvmsg(fd, &raw mut *message, flags);
                let error = errno();
                let more = format!(
                    " {} {} {:x}",
                    message.msg_namelen, message.msg_controllen, message.msg_flags
                );
                *libc::__errno_location() = error;
                (gave, if gave < 0 { String::new() } else { more })
            }
        }
    };
    received(gave as i64, &room) + &more
}

/// Memory that can be read and written up to [`Self::end`], where memory begins that cannot be accessed, and a page that can only be read.
struct Pages {
    end: *mut c_void,
    read_only: *mut c_void,
}

const PAGE: usize = 4096;

impl Pages {
    /// Maps new pages, which live until the process ends.
    fn new() -> Self {
        let map = |len, protection| {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            // SAFETY: the system chooses the place.
            unsafe { libc::mmap(null_mut(), len, protection, flags, -1, 0) }
        };
        let start = map(2 * PAGE, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: both pages belong to this mapping.
        let end = unsafe { start.byte_add(PAGE) };
        // SAFETY: nothing uses the page.
        unsafe { libc::mprotect(end, PAGE, libc::PROT_NONE) };
        let read_only = map(PAGE, libc::PROT_READ);
        Self { end, read_only }
    }
}

/// Calls with invalid pointers or lengths.
fn bad(fd: c_int, which: u32) -> String {
    let bad = 16 as *mut c_void;
    let Pages { end, read_only } = Pages::new();
    let mut len = -1_i32 as u32;
    let mut parts = [libc::iovec {
        iov_base: bad,
        iov_len: 4,
    }; 2];
    // Its last four bytes can be accessed.
    let last = end.wrapping_byte_sub(4);
    let (from, to) = (libc::MSG_NOSIGNAL, libc::MSG_DONTWAIT);
    let mut good_len = 4;
    // SAFETY: the system must detect the invalid pointers; all other arguments are valid.
    unsafe {
        let wrong_parts = message(&mut parts);
        let mut halves = [last, end].map(|iov_base| libc::iovec {
            iov_base,
            iov_len: 4,
        });
        let halved = message(&mut halves);
        result(match which {
            0 => libc::recv(fd, bad, 4, to) as i64,
            1 => libc::recv(fd, null_mut(), 0, to) as i64,
            2 => libc::send(fd, bad, 4, from) as i64,
            3 => libc::send(fd, null(), 0, from) as i64,
            4 => libc::recvmsg(fd, &raw const *wrong_parts as *mut _, to) as i64,
            5 => libc::sendmsg(fd, &raw const *wrong_parts, from) as i64,
            6 => libc::writev(fd, parts.as_ptr(), -1) as i64,
            7 => libc::readv(fd, bad.cast(), 1025) as i64,
            8 => libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_ERROR, bad, bad.cast()) as i64,
            9 => libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_TYPE, bad, &raw mut len) as i64,
            10 => libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, bad, 4) as i64,
            11 => libc::getsockname(fd, bad.cast(), &raw mut len) as i64,
            12 => libc::getpeername(fd, bad.cast(), bad.cast()) as i64,
            13 => libc::ioctl(fd, libc::FIONREAD, bad) as i64,
            14 => libc::ioctl(fd, libc::FIONBIO, bad) as i64,
            15 => libc::recvmsg(fd, bad.cast(), to) as i64,
            16 => libc::recv(fd, last, 8, to) as i64,
            17 => libc::recv(fd, end, 8, to) as i64,
            18 => libc::recv(fd, read_only, 8, to) as i64,
            19 => libc::recv(fd, last, 8, to | libc::MSG_PEEK) as i64,
            20 => libc::recvmsg(fd, &raw const *halved as *mut _, to) as i64,
            21 => libc::recvmsg(fd, read_only.cast(), to) as i64,
            22 => libc::send(fd, last, 8, from) as i64,
            23 => libc::send(fd, end, 8, from) as i64,
            24 => libc::sendmsg(fd, &raw const *halved, from) as i64,
            25 => libc::sendmsg(fd, end.cast(), from) as i64,
            26 => libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, end, 4) as i64,
            27 => libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_LINGER, last, 8) as i64,
            28 => {
                let (level, option) = (libc::SOL_SOCKET, libc::SO_TYPE);
                libc::getsockopt(fd, level, option, read_only, &raw mut good_len) as i64
            }
            29 => libc::getpeername(fd, end.cast(), &raw mut good_len) as i64,
            30 => libc::getsockname(fd, last.cast(), end.cast()) as i64,
            31 => libc::ioctl(fd, libc::FIONREAD, read_only) as i64,
            32 => libc::poll(end.cast(), 1, 0) as i64,
            _ => {
                let set = end.cast::<libc::fd_set>();
                libc::select(fd + 1, set, null_mut(), null_mut(), null_mut()) as i64
            }
        })
    }
}

/// Calls that do not apply to this descriptor, or not in this state.
fn wrong(fd: c_int, which: u32) -> String {
    // SAFETY: all zeros are a valid address of no family.
    unsafe {
        let address: libc::sockaddr_in6 = zeroed();
        let address = (&raw const address).cast::<libc::sockaddr>();
        result(match which {
            0 => libc::listen(fd, 1) as i64,
            1 => libc::accept(fd, null_mut(), null_mut()) as i64,
            2 => libc::bind(fd, address, 2) as i64,
            3 => libc::lseek(fd, 0, libc::SEEK_SET),
            4 => libc::fsync(fd) as i64,
            _ => libc::connect(fd, address, 1) as i64,
        })
    }
}

fn splice(fd: c_int, way: u32) -> String {
    let mut ends = [0; 2];
    // SAFETY: this function owns the descriptors.
    unsafe {
        libc::pipe2(ends.as_mut_ptr(), libc::O_NONBLOCK);
        let gave = match way {
            0 => libc::splice(
                fd,
                null_mut(),
                ends[1],
                null_mut(),
                5,
                libc::SPLICE_F_NONBLOCK,
            ),
            _ => libc::splice(
                ends[0],
                null_mut(),
                fd,
                null_mut(),
                5,
                libc::SPLICE_F_NONBLOCK,
            ),
        };
        let text = result(gave as i64);
        for end in ends {
            libc::close(end);
        }
        text
    }
}

fn flags(fd: c_int, which: u32) -> String {
    // SAFETY: this takes no pointers.
    unsafe {
        let get = libc::fcntl(fd, libc::F_GETFL);
        result(match which {
            0 => get,
            1 if get < 0 => get,
            1 => libc::fcntl(fd, libc::F_SETFL, get ^ libc::O_NONBLOCK),
            2 => libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC),
            3 => libc::fcntl(fd, libc::F_GETFD),
            _ => libc::fcntl(fd, 999),
        })
    }
}

/// Sets and gets who is told of input by a signal.
fn owner(fd: c_int, which: u32) -> String {
    // SAFETY: this takes no pointers.
    unsafe {
        let own = libc::getpid();
        let gave = match which {
            0 => libc::fcntl(fd, libc::F_SETOWN, own),
            1 => libc::fcntl(fd, libc::F_SETOWN, 0),
            2 => match libc::fcntl(fd, libc::F_GETOWN) {
                // The number differs between runs.
                pid if pid == own => return String::from("own"),
                other => other,
            },
            3 => libc::fcntl(fd, F_SETSIG, libc::SIGIO),
            4 => libc::fcntl(fd, F_GETSIG),
            5 => {
                let get = libc::fcntl(fd, libc::F_GETFL);
                if get < 0 {
                    get
                } else {
                    libc::fcntl(fd, libc::F_SETFL, get ^ libc::O_ASYNC)
                }
            }
            6 => libc::fcntl(fd, libc::F_SETOWN, -libc::getpgrp()),
            _ => libc::fcntl(fd, F_SETSIG, 999),
        };
        result(gave)
    }
}

fn ioctl(fd: c_int, which: u32) -> String {
    let mut value: c_int = 0;
    // SAFETY: the argument points to an integer.
    let gave = unsafe {
        match which {
            0 => libc::ioctl(fd, libc::FIONREAD, &raw mut value),
            1 => libc::ioctl(fd, libc::FIONBIO, &raw mut value),
            2 => libc::ioctl(fd, libc::TIOCOUTQ, &raw mut value),
            // SIOCATMARK
            3 => libc::ioctl(fd, 0x8905, &raw mut value),
            4 => libc::ioctl(fd, libc::FIOASYNC, &raw mut value),
            5 => libc::ioctl(fd, SIOCGPGRP, &raw mut value),
            6 => libc::ioctl(fd, SIOCOUTQNSD, &raw mut value),
            _ => libc::ioctl(fd, 0x1234, &raw mut value),
        }
    };
    // SAFETY: this takes no pointers.
    if which == 5 && value == unsafe { libc::getpid() } {
        return format!("{} own", result(gave));
    }
    format!("{} {value}", result(gave))
}

fn get_option(fd: c_int, (level, option, is_same): (i32, i32, bool), mut len: u32) -> String {
    let mut room = [0xee_u8; 16];
    // SAFETY: the buffer is valid for the length.
    let gave =
        unsafe { libc::getsockopt(fd, level, option, room.as_mut_ptr().cast(), &raw mut len) };
    let told = match option {
        libc::TCP_INFO if level == libc::IPPROTO_TCP => &room[..1],
        _ if is_same => &room[..8],
        _ => &[],
    };
    format!(
        "{} {len} {}",
        result(gave),
        told.iter()
            .map(|byte| format!("{byte:x}"))
            .collect::<String>()
    )
}

fn set_option(fd: c_int, (level, option, _): (i32, i32, bool), value: u8, len: u32) -> String {
    let value = [value, 0, 0, 0, 0, 0, 0, 0];
    // SAFETY: the value is valid for its length.
    result(unsafe { libc::setsockopt(fd, level, option, value.as_ptr().cast(), len) })
}

/// Reports the length and family of an address, but not the port, which differs between runs.
fn name(fd: c_int, of_peer: bool, mut len: u32) -> String {
    let mut room = [0xee_u8; 32];
    // SAFETY: the buffer is valid for the length.
    let gave = unsafe {
        let address = room.as_mut_ptr().cast();
        match of_peer {
            true => libc::getpeername(fd, address, &raw mut len),
            false => libc::getsockname(fd, address, &raw mut len),
        }
    };
    let used = room
        .iter()
        .rposition(|&byte| byte != 0xee)
        .map_or(0, |at| at + 1);
    format!("{} {len} {used} {:x}", result(gave), room[0])
}

fn poll(fd: c_int, by_select: bool, bits: i16) -> String {
    alarm(0);
    if by_select {
        if fd < 0 {
            return String::from("closed");
        }
        // SAFETY: the sets are valid, and the descriptor is below 1,024.
        unsafe {
            let mut sets: [libc::fd_set; 3] = zeroed();
            sets.iter_mut().for_each(|set| libc::FD_SET(fd, set));
            let mut time = libc::timeval {
                tv_sec: 0,
                tv_usec: i64::from(WAIT_MS) * 1000,
            };
            let [read, write, other] = &mut sets;
            let gave = libc::select(fd + 1, read, write, other, &raw mut time);
            let text = result(gave);
            let is_set = |set: &libc::fd_set| libc::FD_ISSET(fd, set);
            return format!(
                "{text} {} {} {}",
                is_set(&sets[0]),
                is_set(&sets[1]),
                is_set(&sets[2])
            );
        }
    }
    let mut one = libc::pollfd {
        fd,
        events: bits,
        revents: 0,
    };
    // SAFETY: there is one descriptor.
    let gave = unsafe { libc::poll(&raw mut one, 1, WAIT_MS) };
    format!("{} {}", result(gave), events(one.revents as u16 as u32))
}

fn wait(set: c_int, most: c_int) -> String {
    alarm(0);
    // SAFETY: the array has space for eight events, and `most` is at most eight.
    unsafe {
        let mut told: [libc::epoll_event; 8] = zeroed();
        let gave = libc::epoll_wait(set, told.as_mut_ptr(), most, WAIT_MS);
        let text = result(gave);
        let told = told.iter().take(gave.max(0) as usize);
        let mut told: Vec<_> = told
            .map(|event| format!("{}:{}", { event.u64 }, events(event.events)))
            .collect();
        told.sort();
        // The order of several events is not defined.
        match most {
            1 => text,
            _ => format!("{text} {}", told.join(",")),
        }
    }
}
