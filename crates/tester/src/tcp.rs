//! A host with TCP at one end of a test.

mod connections;
mod streams;

use crate::error::TesterError;
use crate::signal::Signal;
use crate::task::{TcpCounts, TcpRole, TcpTask};
use baton_inet::{Cidr, Host, InterfaceConfig};
use baton_live::port::Port;
use baton_live::{Application, Clock, Engine};
use baton_tcp::Config;
use baton_wire::{Span, Time};
use connections::{Acceptor, Opener};
use std::net::Ipv4Addr;
use streams::{Reader, Writer};

/// Destination port of connections.
const PORT: u16 = 9;
/// First source port of connections (RFC 6335 6), and the number of source ports.
const FIRST_PORT: u16 = 49_152;
const PORTS: u16 = u16::MAX - FIRST_PORT + 1;
/// Prefix length of the network that RFC 2544 C.2.2 reserves for tests.
const PREFIX: u8 = 15;
/// Time that connections have to end after the trial.
const LONGEST_END: Span = Span::from_secs(2);
/// How much longer than its trial a reader may take, since connections must be opened first.
const LONGEST_START: Span = Span::from_secs(5);

/// An application on a host that knows when it is done.
trait Part: Application {
    /// Returns whether counting is finished.
    fn is_done(&self, now: Time) -> bool;

    /// Returns the counts.
    fn counts(&self) -> TcpCounts;
}

/// Does a host's part of a trial; returns its counts, and the share of the time in which it was idle.
///
/// # Errors
/// The interface no longer exists, or the host cannot work on it.
pub fn run(
    task: &TcpTask,
    trial: u8,
    port: &mut dyn Port,
    clock: Clock,
    signal: &Signal,
) -> Result<(TcpCounts, f64), TesterError> {
    let host = host(task, port)?;
    let now = clock.now();
    let mut engine = Engine::new(host, port, clock);
    let host = engine.host_mut();
    match task.role {
        TcpRole::Send { connections } => {
            let mut part = Writer::open(task, trial, connections, now, host)?;
            drive(&mut engine, &mut part, task, signal)
        }
        TcpRole::Read => {
            let mut part = Reader::listen(task, host);
            drive(&mut engine, &mut part, task, signal)
        }
        TcpRole::Open { rate } => {
            let mut part = Opener::new(task, rate, now);
            drive(&mut engine, &mut part, task, signal)
        }
        TcpRole::Accept => {
            let mut part = Acceptor::listen(task, host);
            drive(&mut engine, &mut part, task, signal)
        }
    }
}

/// Creates the host. Segments without options carry 1460 bytes. The host gives up on lost connections and drops ended ones at once, since
/// ports are reused after milliseconds.
fn host(task: &TcpTask, port: &mut dyn Port) -> Result<Host, TesterError> {
    let config = Config {
        timestamps: false,
        msl_ms: 1,
        send_buffer: 1 << 20,
        receive_buffer: 1 << 20,
        ..Config::default()
    };
    let address = format!("{}/{PREFIX}", Ipv4Addr::from(task.own));
    let address: Cidr = address.parse().expect("an address and a length");
    let link = port.link();
    let interface = InterfaceConfig {
        mtu: link.mtu,
        ..InterfaceConfig::new(link.mac, vec![address])
    };
    let secret = u64::from(u32::from_be_bytes(task.own));
    Host::new(interface, config, secret)
        .map_err(|error| TesterError::BadInput(format!("{}: {error}", port.link().name)))
}

/// The stream whose end all participants wait for. Stream numbers do not matter with TCP: the first participant that is done ends both.
const END: u8 = crate::task::FROM_NIC;

fn drive<T: Port, P: Part>(
    engine: &mut Engine<T>,
    part: &mut P,
    task: &TcpTask,
    signal: &Signal,
) -> Result<(TcpCounts, f64), TesterError> {
    let start = engine.now();
    let length = Span::from_ns(task.warm_up_ns + task.duration_ns);
    let limit = start + length + LONGEST_START;
    let mut idle = Span::ZERO;
    loop {
        let more = engine.turn(part)?;
        let now = engine.now();
        if part.is_done(now) {
            signal.done(END, 0);
        }
        if signal.handed(END).is_some() || signal.is_aborted() || now >= limit {
            signal.done(END, 0);
            break;
        }
        if !more && !engine.was_busy() {
            let due = part.poll_timeout();
            let soon = now + Span::from_ms(5);
            engine.wait(Some(due.map_or(soon, |due| due.min(soon))), &[])?;
            idle += engine.now().saturating_since(now);
        }
    }
    let took = engine.now().saturating_since(start);
    let mut counts = part.counts();
    counts.retransmitted = engine.host().stack().stats().retransmissions;
    engine.reset_all(part)?;
    Ok((counts, idle.as_secs_f64() / took.as_secs_f64()))
}
