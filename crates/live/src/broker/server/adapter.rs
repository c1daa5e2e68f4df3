//! Requests of an adapter.

use super::requests::Refusal;
use super::{Shared, refuse};
use crate::broker::memory::Memory;
use crate::broker::session::{Arrival, Return, Session, Welcome};
use crate::places::own_number;
use crate::port::link_info_or_loopback;
use crate::xdp::Mode;
use baton_sockets::broker::messages::{
    self, DETACH, DONE, GIVE_SOCKET, INJECT, Message, Most, TAKE_OVER,
};
use baton_tcp::Config;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// IPv4 and TCP headers without options, bytes.
const HEADERS_BYTES: u16 = 40;

/// Longest time until the broker notices that an adapter was killed, even on a busy machine.
const NOTICED: Duration = Duration::from_secs(2);

/// What an adapter has kept at the interface after its broker was killed.
pub(super) struct Programs {
    links: Vec<OwnedFd>,
    mode: Mode,
}

/// Calls `attach`, which fails with the process ID of the adapter that is attached. If that process was killed, tries again until the
/// broker has noticed: a supervisor may start the next adapter before that.
fn once_free(mut attach: impl FnMut() -> Result<(), u32>) -> Result<(), Refusal> {
    let limit = Instant::now() + NOTICED;
    loop {
        match attach() {
            Err(other) if has_ended(other) && Instant::now() < limit => {
                std::thread::sleep(Duration::from_millis(5));
            }
            outcome => return outcome.map_err(Refusal::Occupied),
        }
    }
}

/// Returns whether a process has exited or is a zombie, whose command line is empty.
fn has_ended(process: u32) -> bool {
    std::fs::read(format!("/proc/{process}/cmdline")).map_or(true, |line| line.is_empty())
}

impl Shared {
    /// Attaches an adapter, if there is none, and sends it what it needs.
    pub(super) fn attach(
        &self,
        stream: &UnixStream,
        body: &[u8],
        user: u32,
        pid: i32,
    ) -> Result<Arc<Session>, Refusal> {
        self.check_adapter(user)?;
        let arrival = serde_json::from_slice(body)?;
        let session = Arc::new(self.session(Memory::create()?, arrival, pid)?);
        once_free(|| self.captured.attach(Arc::clone(&session)))?;
        let mut files = vec![session.memory.as_fd()];
        files.extend(self.captured.lookup().links());
        let mode = self.captured.lookup().steering().mode();
        // If the adapter does not receive this, the next receive finds that it has disappeared.
        let _ = self.welcome_adapter(stream, mode, &files);
        Ok(session)
    }

    /// Attaches an adapter of a former broker, if there is no other adapter. Also returns the programs that the adapter has kept at the interface.
    pub(super) fn adopt(
        &self,
        stream: &UnixStream,
        message: Message,
        user: u32,
        pid: i32,
    ) -> Result<(Arc<Session>, Programs), Refusal> {
        self.check_adapter(user)?;
        let Return { is_native, arrival } = serde_json::from_slice(&message.body)?;
        let mode = match is_native {
            true => Mode::Native,
            false => Mode::Generic,
        };
        let mut files = message.files.into_iter();
        let memory = Memory::open(files.next().ok_or(Refusal::Unknown)?)?;
        let session = Arc::new(self.session(memory, arrival, pid)?);
        once_free(|| self.captured.adopt(&session))?;
        let _ = self.welcome_adapter(stream, mode, &[]);
        let links = files.collect();
        Ok((session, Programs { links, mode }))
    }

    fn welcome_adapter(
        &self,
        stream: &UnixStream,
        mode: Mode,
        files: &[BorrowedFd<'_>],
    ) -> Result<(), Refusal> {
        let welcome = Welcome {
            is_native: mode == Mode::Native,
            queues: self.captured.lookup().steering().queues(),
        };
        Ok(messages::send(
            stream,
            DONE,
            &serde_json::to_vec(&welcome)?,
            files,
        )?)
    }

    fn session(&self, memory: Memory, arrival: Arrival, pid: i32) -> Result<Session, Refusal> {
        let Arrival {
            interface,
            namespace: from,
            tcp,
            policy,
        } = arrival;
        let expected = &self.captured.interface;
        let namespace = own_number().unwrap_or_default();
        if interface != *expected || from != namespace {
            return Err(Refusal::OtherInterface {
                of: interface,
                expected: expected.clone(),
                from,
                namespace,
            });
        }
        let policy = policy.parse().map_err(|_| Refusal::Unknown)?;
        let (link, _) = link_info_or_loopback(expected).map_err(io::Error::other)?;
        let tcp = Config {
            mss: link.mtu.saturating_sub(HEADERS_BYTES),
            ..tcp
        };
        Ok(Session::new(memory, pid.unsigned_abs(), tcp, policy))
    }

    /// Serves an adapter until it detaches or disappears.
    pub(super) fn serve_adapter(
        &self,
        stream: &UnixStream,
        session: &Arc<Session>,
        mut programs: Option<Programs>,
    ) {
        while let Ok(Some(message)) = messages::receive_at_most(stream, Most::of) {
            match message.kind {
                GIVE_SOCKET => {
                    let sent = match self.set_socket(&message) {
                        Ok(()) => messages::send(stream, DONE, &[], &[]),
                        Err(refusal) => refuse(stream, &refusal),
                    };
                    if sent.is_err() {
                        break;
                    }
                }
                TAKE_OVER => {
                    let sent = match self.take_over(programs.take()) {
                        Ok(()) => messages::send(stream, DONE, &[], &[]),
                        Err(refusal) => refuse(stream, &refusal),
                    };
                    if sent.is_err() {
                        break;
                    }
                }
                // If the kernel does not accept the packet, that is like packet loss.
                INJECT => drop(self.captured.inject_stray(&message.body)),
                DETACH => {
                    self.captured.part(session);
                    let _ = messages::send(stream, DONE, &[], &[]);
                    return;
                }
                _ => {}
            }
        }
        // If the adapter was killed before TAKE_OVER, this broker's programs drop its packets from now on, because it has no sockets here.
        let _ = self.take_over(programs);
        // When the broker itself ends, it has closed the stream.
        if !self.ends.load(Ordering::Relaxed) {
            self.captured.bury(session);
        }
    }

    fn take_over(&self, programs: Option<Programs>) -> Result<(), Refusal> {
        match programs {
            Some(Programs { links, mode }) => Ok(self.captured.take_over(links, mode)?),
            None => Ok(()),
        }
    }

    fn set_socket(&self, message: &Message) -> Result<(), Refusal> {
        let socket = message.socket().ok_or(Refusal::NoSocket)?;
        let queue = message.body.first_chunk().ok_or(Refusal::Unknown)?;
        let steering = self.captured.lookup().steering();
        Ok(steering.set_socket(u32::from_ne_bytes(*queue), socket)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn an_adapter_waits_only_for_a_killed_predecessor() {
        let sleep = || Command::new("sleep").arg("60").stdin(Stdio::null()).spawn();
        let mut other = sleep().expect("it starts");
        let occupied = once_free(|| Err(other.id()));
        assert!(matches!(occupied, Err(Refusal::Occupied(_))));
        let mut attempts = 0;
        other.kill().expect("it runs");
        while !has_ended(other.id()) {
            std::thread::yield_now();
        }
        let attached = once_free(|| {
            attempts += 1;
            if attempts < 3 {
                Err(other.id())
            } else {
                Ok(())
            }
        });
        assert!(attached.is_ok() && attempts == 3);
        other.wait().expect("it was killed");
        assert!(has_ended(other.id()));
    }
}
