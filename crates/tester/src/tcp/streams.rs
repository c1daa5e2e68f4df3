//! Sends data over several connections as fast as possible.

use super::{FIRST_PORT, PORT, PORTS, Part};
use crate::error::TesterError;
use crate::task::{TcpCounts, TcpTask};
use baton_inet::Host;
use baton_live::Application;
use baton_tcp::{ConnId, Event, ListenerId};
use baton_wire::{Endpoint, Flow, Span, Time};
use bytes::Bytes;

/// Number of bytes written at once.
const PIECE_BYTES: usize = 64 * 1024;

/// Opens connections and writes to them.
#[derive(Debug)]
pub(super) struct Writer {
    piece: Bytes,
    opened: u64,
    failed: u64,
}

impl Writer {
    /// Opens the connections from ports that the previous trial did not use.
    pub(super) fn open(
        task: &TcpTask,
        trial: u8,
        connections: u32,
        now: Time,
        host: &mut Host,
    ) -> Result<Self, TesterError> {
        let remote = Endpoint::new(task.other.into(), PORT);
        for number in 0..connections {
            let step = (u32::from(trial) * connections + number) % u32::from(PORTS);
            let local = Endpoint::new(task.own.into(), FIRST_PORT + step as u16);
            let opened = host.stack_mut().connect(now, Flow { local, remote });
            if opened.is_none() {
                let message = format!("{connections} connections: expected at most {PORTS}");
                return Err(TesterError::BadInput(message));
            }
        }
        Ok(Self {
            piece: vec![0x5a; PIECE_BYTES].into(),
            opened: connections.into(),
            failed: 0,
        })
    }

    fn write(&self, conn: ConnId, host: &mut Host) {
        while host.stack().send_space(conn) > 0 {
            // If the connection has just ended, another event reports that.
            let written = host.stack_mut().write(conn, self.piece.clone());
            if written.is_err() {
                break;
            }
        }
    }
}

impl Application for Writer {
    fn handle(&mut self, _now: Time, host: &mut Host) {
        while let Some((conn, event)) = host.stack_mut().poll_event() {
            match event {
                Event::Connected | Event::Acknowledged(_) => self.write(conn, host),
                Event::Closed(_) => self.failed += 1,
                _ => {}
            }
        }
    }
}

impl Part for Writer {
    fn is_done(&self, _now: Time) -> bool {
        // The reader decides when the trial is done.
        false
    }

    fn counts(&self) -> TcpCounts {
        TcpCounts {
            offered: self.opened,
            failed: self.failed,
            ..TcpCounts::default()
        }
    }
}

/// Accepts connections and reads their data.
#[derive(Debug)]
pub(super) struct Reader {
    listener: ListenerId,
    warm_up: Span,
    duration: Span,
    /// When counting starts: some time after the first data.
    from: Option<Time>,
    bytes: u64,
}

impl Reader {
    /// Listens for connections.
    pub(super) fn listen(task: &TcpTask, host: &mut Host) -> Self {
        const BACKLOG: usize = 1024;
        let local = Endpoint::new(task.own.into(), PORT);
        Self {
            listener: host.stack_mut().listen(local, BACKLOG),
            warm_up: Span::from_ns(task.warm_up_ns),
            duration: Span::from_ns(task.duration_ns),
            from: None,
            bytes: 0,
        }
    }

    fn read(&mut self, now: Time, conn: ConnId, host: &mut Host) {
        let mut len = 0;
        while let Some(data) = host.stack_mut().read(conn, usize::MAX) {
            host.stack_mut().consume(conn, data.len());
            len += data.len() as u64;
        }
        let from = *self.from.get_or_insert(now + self.warm_up);
        if now >= from && now < from + self.duration {
            self.bytes += len;
        }
    }
}

impl Application for Reader {
    fn handle(&mut self, now: Time, host: &mut Host) {
        while let Some((conn, event)) = host.stack_mut().poll_event() {
            match event {
                Event::Acceptable(_) => while host.stack_mut().accept(self.listener).is_some() {},
                Event::Readable => self.read(now, conn, host),
                _ => {}
            }
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.from.map(|from| from + self.duration)
    }
}

impl Part for Reader {
    fn is_done(&self, now: Time) -> bool {
        self.from.is_some_and(|from| now >= from + self.duration)
    }

    fn counts(&self) -> TcpCounts {
        TcpCounts {
            bytes: self.bytes,
            ..TcpCounts::default()
        }
    }
}
