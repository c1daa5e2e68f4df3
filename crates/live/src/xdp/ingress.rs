//! A traffic control program on an interface's received packets: they reach it after packet sockets for all protocols, and before the
//! kernel's IP and packet sockets for a single protocol.

use super::bpf::{AttachPoint, Instruction, Link, Map, MapKind, Program, ProgramKind};
use super::error::XdpError;
use super::programs::Counter;

/// The program on one interface. Dropping this detaches the program, and so does any end of the process.
#[derive(Debug)]
pub(super) struct Ingress {
    counters: Map,
    _link: Link,
}

impl Ingress {
    /// Attaches the program that `write` creates for the given counters (Linux 6.6 and later).
    ///
    /// # Errors
    /// See [`XdpError`].
    pub(super) fn attach(
        interface: u32,
        program_name: &'static str,
        write: impl FnOnce(&Map) -> Vec<Instruction>,
    ) -> Result<Self, XdpError> {
        let counters = Map::new(
            "baton_counters",
            MapKind::PerCpuArray,
            size_of::<u32>(),
            size_of::<u64>(),
            Counter::COUNT,
        )
        .map_err(XdpError::of("create the maps of BPF programs"))?;
        let instructions = write(&counters);
        let program = Program::load(program_name, ProgramKind::TrafficControl, &instructions)
            .map_err(XdpError::of_load(program_name))?;
        let link = program
            .attach(AttachPoint::TcxIngress, interface, 0)
            .map_err(XdpError::of("attach a BPF program to traffic control"))?;
        Ok(Self {
            counters,
            _link: link,
        })
    }

    pub(super) fn count(&self, counter: Counter) -> u64 {
        let sums = self.counters.sums::<1>(counter as u32);
        // An entry of this map always exists.
        sums.map_or(0, |[sum]| sum)
    }
}
