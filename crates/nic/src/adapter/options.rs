//! SETSOCKOPT.

use super::session::{Session, Work};
use super::socket::Phase;
use baton_bus::descriptor::{Opcode, Outcome, SocketOption, Status};
use baton_bus::link::Inline;
use baton_tcp::{Config, ConnId, FastOpen, FastOpenListening, Keepalive, Stack};
use baton_wire::{Payload, Time};
use std::num::NonZero;

/// Smallest send or receive buffer, bytes: a few segments.
const LEAST_BUFFER_BYTES: u32 = 4096;

/// Value of FAST OPEN for a CONNECT with data in the SYN and no cookie.
const WITHOUT_COOKIE: u32 = 2;

/// Options that have been set on a socket. The connections of a listener inherit its options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    no_delay: Option<bool>,
    cork: Option<bool>,
    keep_alive: Option<bool>,
    keep_idle_s: Option<u32>,
    keep_interval_s: Option<u32>,
    keep_probes: Option<u32>,
    send_buffer: Option<u32>,
    receive_buffer: Option<u32>,
    /// 0 means no timeout.
    user_timeout_ms: Option<u32>,
    fast_open: u32,
    /// 0 means that no other socket may listen at the address.
    share: u32,
}

impl Options {
    /// Sets one option.
    fn set(&mut self, option: SocketOption, value: u32, most_buffer: u32) -> Result<(), Status> {
        let switch = || match value {
            0 | 1 => Ok(Some(value == 1)),
            _ => Err(Status::BadValue),
        };
        let buffer = || match (LEAST_BUFFER_BYTES..=most_buffer).contains(&value) {
            true => Ok(Some(value)),
            false => Err(Status::BadValue),
        };
        // The range that Linux accepts.
        let time = || match (1..=32_767).contains(&value) {
            true => Ok(Some(value)),
            false => Err(Status::BadValue),
        };
        match option {
            SocketOption::NoDelay => self.no_delay = switch()?,
            SocketOption::Cork => self.cork = switch()?,
            SocketOption::KeepAlive => self.keep_alive = switch()?,
            SocketOption::KeepIdle => self.keep_idle_s = time()?,
            SocketOption::KeepInterval => self.keep_interval_s = time()?,
            SocketOption::KeepProbes => self.keep_probes = time()?,
            SocketOption::SendBuffer => self.send_buffer = buffer()?,
            SocketOption::ReceiveBuffer => self.receive_buffer = buffer()?,
            SocketOption::UserTimeout => self.user_timeout_ms = Some(value),
            SocketOption::FastOpen => self.fast_open = value,
            SocketOption::Share => self.share = value,
            SocketOption::Times => return Err(Status::WrongState),
        }
        Ok(())
    }

    /// Returns the number that identifies the sockets with which a listener may be shared.
    pub(super) fn share(&self) -> Option<NonZero<u32>> {
        NonZero::new(self.share)
    }

    /// Returns the kind of Fast Open that a CONNECT uses, if any.
    pub(super) fn fast_open(&self) -> Option<FastOpen> {
        match self.fast_open {
            0 => None,
            WITHOUT_COOKIE => Some(FastOpen::WithoutCookie),
            _ => Some(FastOpen::Cookie),
        }
    }

    /// Returns the Fast Open parameters of a listener.
    pub(super) fn fast_open_listening(&self, most_backlog: u32) -> FastOpenListening {
        FastOpenListening {
            pending: self.fast_open.min(most_backlog) as usize,
            without_cookie: false,
        }
    }

    /// Returns whether any option changes the connection's [`Config`], in addition to flags of the connection.
    fn changes_config(&self) -> bool {
        let keeps = [self.keep_idle_s, self.keep_interval_s, self.keep_probes];
        self.keep_alive.is_some()
            || keeps.iter().any(Option::is_some)
            || self.send_buffer.is_some()
            || self.receive_buffer.is_some()
            || self.user_timeout_ms.is_some()
    }

    fn change(&self, config: &mut Config) {
        if let Some(on) = self.keep_alive {
            config.keepalive = on.then(Keepalive::default);
        }
        if let Some(keepalive) = &mut config.keepalive {
            let ms = |seconds: u32| seconds * 1000;
            keepalive.idle_ms = self.keep_idle_s.map_or(keepalive.idle_ms, ms);
            keepalive.interval_ms = self.keep_interval_s.map_or(keepalive.interval_ms, ms);
            keepalive.probes = self.keep_probes.unwrap_or(keepalive.probes);
        }
        if let Some(bytes) = self.send_buffer {
            config.send_buffer = bytes;
        }
        if let Some(bytes) = self.receive_buffer {
            config.receive_buffer = bytes;
        }
        if let Some(ms) = self.user_timeout_ms {
            config.user_timeout_ms = (ms > 0).then_some(ms);
        }
    }

    /// Returns the parameters of a connection or listener that is created with these options.
    pub(super) fn applied_to(&self, config: &Config) -> Config {
        let mut config = config.clone();
        self.change(&mut config);
        config
    }

    /// Applies the options to a connection. Returns false if too many different configurations are in use.
    pub(super) fn apply_to<P: Payload>(
        &self,
        now: Time,
        stack: &mut Stack<P>,
        conn: ConnId,
    ) -> bool {
        self.apply_marks_to(stack, conn);
        !self.changes_config() || stack.configure(now, conn, |config| self.change(config))
    }

    /// Applies the options that are not part of the connection's [`Config`].
    pub(super) fn apply_marks_to<P: Payload>(&self, stack: &mut Stack<P>, conn: ConnId) {
        if let Some(no_delay) = self.no_delay {
            stack.set_nodelay(conn, no_delay);
        }
        if let Some(cork) = self.cork {
            stack.set_cork(conn, cork);
        }
    }
}

impl<P: Payload + Inline> Session<P> {
    /// Executes SETSOCKOPT, which takes effect immediately on a connection, and on a listener for connections accepted from now on.
    pub(super) fn set_option(
        &mut self,
        work: &mut Work<'_, P>,
        slot: u32,
        tag: u32,
        option: SocketOption,
        value: u32,
    ) -> Result<(), Status> {
        if option == SocketOption::Times {
            return self.set_times(work, slot, tag, value);
        }
        let most_buffer = work.shared.config.most_buffer_bytes;
        let socket = &mut self.sockets[slot as usize];
        let is_new = matches!(socket.phase, Phase::Idle) && socket.local.is_none();
        if option == SocketOption::Share && !is_new {
            return Err(Status::WrongState);
        }
        let mut this = Options::default();
        this.set(option, value, most_buffer)?;
        match &socket.phase {
            Phase::Idle => {
                let options = socket.options.get_or_insert_default();
                options.set(option, value, most_buffer)?;
            }
            Phase::Listening(listening) => {
                let options = socket.options.get_or_insert_default();
                options.set(option, value, most_buffer)?;
                let rules = options.fast_open_listening(work.shared.config.most_backlog);
                work.stack.set_fast_open(listening.id, rules);
            }
            Phase::Connecting { .. } | Phase::Connected(_) if option == SocketOption::FastOpen => {
                return Err(Status::WrongState);
            }
            &Phase::Connecting { conn, .. } | &Phase::Connected(conn) => {
                if !this.apply_to(work.now, work.stack, conn) {
                    return Err(Status::BadValue);
                }
            }
            Phase::Reserved
            | Phase::Ending(_)
            | Phase::Importing
            | Phase::Exported
            | Phase::Packets => return Err(Status::WrongState),
        }
        let (number, done) = (socket.number, Outcome::Done(Opcode::SetOption));
        self.respond(work.now, number, tag, Status::Ok, done);
        Ok(())
    }
}
