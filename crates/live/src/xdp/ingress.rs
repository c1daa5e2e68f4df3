//! A program that sees what an interface receives as traffic control does: after packet sockets of all protocols, before the kernel's IP and
//! packet sockets of one.

use super::bpf::{AttachPoint, Instruction, Link, Map, MapKind, Program, ProgramKind};
use super::error::XdpError;
use super::programs::Counter;

/// The program on one interface. It ends when it is dropped, and with the process, however that ends.
#[derive(Debug)]
pub(super) struct Ingress {
    pub(super) program: Program,
    counters: Map,
    _link: Link,
}

impl Ingress {
    /// Attaches the program that `write` writes for its counters (Linux 6.6 and later).
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
        .map_err(XdpError::of("make maps of programs"))?;
        let instructions = write(&counters);
        let program = Program::load(program_name, ProgramKind::TrafficControl, &instructions)
            .map_err(XdpError::of_load(program_name))?;
        let link = program
            .attach(AttachPoint::TcxIngress, interface, 0)
            .map_err(XdpError::of(
                "attach a program by a link of traffic control",
            ))?;
        Ok(Self {
            program,
            counters,
            _link: link,
        })
    }

    pub(super) fn count(&self, counter: Counter) -> u64 {
        let sums = self.counters.sums::<1>(counter as u32);
        // An entry of this map cannot be absent.
        sums.map_or(0, |[sum]| sum)
    }
}
