//! What an adapter asks for.

use super::requests::{Refusal, check_operator};
use super::{Shared, refuse};
use crate::broker::session::{Arrival, Session, Welcome};
use crate::port::link_info;
use crate::xdp::Mode;
use baton_sockets::broker::messages::{self, DETACH, DONE, GIVE_SOCKET, INJECT, Message};
use baton_tcp::Config;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// IPv4 and TCP headers without options, bytes.
const HEADERS_BYTES: u16 = 40;

impl Shared {
    /// Takes in an adapter, if there is none, and gives it what it needs.
    pub(super) fn attach(
        &self,
        stream: &UnixStream,
        body: &[u8],
        user: u32,
        pid: i32,
    ) -> Result<Arc<Session>, Refusal> {
        check_operator(user)?;
        let Arrival {
            interface,
            tcp,
            policy,
        } = serde_json::from_slice(body)?;
        let expected = &self.captured.interface;
        if interface != *expected {
            return Err(Refusal::OtherInterface {
                of: interface,
                expected: expected.clone(),
            });
        }
        let policy = policy.parse().map_err(|_| Refusal::Unknown)?;
        let mtu = link_info(expected).map_err(io::Error::other)?.mtu;
        let tcp = Config {
            mss: mtu.saturating_sub(HEADERS_BYTES),
            ..tcp
        };
        let session = Arc::new(Session::new(pid.unsigned_abs(), tcp, policy)?);
        self.captured
            .attach(Arc::clone(&session))
            .map_err(Refusal::Occupied)?;
        let lookup = self.captured.lookup();
        let welcome = Welcome {
            is_native: lookup.steering().mode() == Mode::Native,
            queues: lookup.steering().queues(),
        };
        let mut files = vec![session.memory.as_fd()];
        files.extend(lookup.links());
        // An adapter that does not hear it is found to be gone by what follows.
        let _ = messages::send(stream, DONE, &serde_json::to_vec(&welcome)?, &files);
        Ok(session)
    }

    /// What an adapter asks for, until it ends or is gone.
    pub(super) fn serve_adapter(&self, stream: &UnixStream, session: &Arc<Session>) {
        while let Ok(Some(message)) = messages::receive(stream) {
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
                // That the kernel takes no packets this way is as if it had lost them.
                INJECT => drop(self.captured.inject(&message.body)),
                DETACH => {
                    self.captured.part(session);
                    let _ = messages::send(stream, DONE, &[], &[]);
                    return;
                }
                _ => {}
            }
        }
        // At the broker's own end it is the stream that is gone.
        if !self.ends.load(Ordering::Relaxed) {
            self.captured.bury(session);
        }
    }

    fn set_socket(&self, message: &Message) -> Result<(), Refusal> {
        let socket = message.socket().ok_or(Refusal::NoSocket)?;
        let queue = message.body.first_chunk().ok_or(Refusal::Unknown)?;
        let steering = self.captured.lookup().steering();
        Ok(steering.set_socket(u32::from_ne_bytes(*queue), socket)?)
    }
}
