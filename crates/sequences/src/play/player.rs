//! Makes the calls of a sequence, one after another, in the process that has the connections.

use super::calls::{
    alarm, drain, flags, get_option, ioctl, message, name, owner, parts, poll, receive, recv,
    set_option, splice, wait,
};
use super::invalid::{bad, wrong};
use super::raw::{self, Digest, OPTIONS, errno, result};
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
/// Time after which another thread acts while the first thread waits.
const LATER: Duration = Duration::from_millis(30);
/// Time that a connection gets to move.
pub(super) const TO_LEAVE: Duration = Duration::from_millis(2);
const SIZES: [usize; 8] = [0, 1, 2, 5, 100, 1000, 4096, 20_000];
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
    /// Whether to send a byte before each call, which makes the policy move the connection.
    moves: Vec<bool>,
    /// Whether calls do not wait for the move that this byte causes.
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

impl Player {
    /// Writes the transcript of a sequence, call by call.
    pub fn play(sequence: &Sequence, peer: &Path, out: &mut impl Write) -> std::io::Result<()> {
        handle(libc::SIGALRM, 0);
        handle(libc::SIGPIPE, 0);
        // Sequences request signals about input; when such a signal arrives is not defined, so it is ignored.
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
            // When a byte is acknowledged is not defined.
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
        // The peer does not read urgent bytes with the others, so it would never have read as many bytes as were sent.
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

    /// Starts a program that inherits the connection and is the only one to use it for a while.
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
