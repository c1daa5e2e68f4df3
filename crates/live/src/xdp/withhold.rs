//! Keeps packets for network tests from the kernel's IP layer, which would look up a route and answer with errors: this would cost the
//! receiving core as much again as a packet socket's copy.

use super::assembler::{Arithmetic, Assembler, Condition, Register, Size};
use super::bpf::{Instruction, Map};
use super::error::XdpError;
use super::ingress::Ingress;
use super::programs::{
    Counter, DROP, ETHERNET_BYTES, ETHERNET_TYPE, GO_ON, IPV4_LEAST_BYTES, IPV4_SOURCE, SKB_DATA,
    TYPE_IPV4, count_and_exit, in_network_order, reach,
};
use crate::port::interface_index;

/// The network 198.18.0.0/15 (RFC 2544 C.2.2): the first byte, and the second byte without its last bit.
const FIRST: i32 = 198;
const SECOND: i32 = 18;
const SECOND_MASK: i32 = 0xfe;

/// Delivers packets to the network reserved for tests only to packet sockets for all protocols. Dropping this detaches the program, and so
/// does any end of the process.
#[derive(Debug)]
pub struct Withheld {
    ingress: Ingress,
}

impl Withheld {
    /// Attaches the program to the interface `name` in this thread's network namespace (Linux 6.6 and later).
    ///
    /// # Errors
    /// See [`XdpError`].
    pub fn attach(name: &str) -> Result<Self, XdpError> {
        let interface = interface_index(name)?;
        let ingress = Ingress::attach(interface, "baton_withhold", withhold)?;
        Ok(Self { ingress })
    }

    /// Returns the number of packets that were kept from the kernel.
    pub fn packets(&self) -> u64 {
        self.ingress.count(Counter::Guarded)
    }
}

fn withhold(counters: &Map) -> Vec<Instruction> {
    use Arithmetic::{And, Move};
    use Condition::NotEqual;
    use Register::{R0, R1, R6, R7, R8, R9};
    use Size::{Byte, Half, Word};
    const DESTINATION: i16 = IPV4_SOURCE + 4;
    let mut a = Assembler::default();
    let pass = a.label();
    a.compute(Move, R6, R1);
    a.load(Word, R7, R6, SKB_DATA);
    a.load(Word, R8, R6, SKB_DATA + 4);
    reach(&mut a, R7, ETHERNET_BYTES + IPV4_LEAST_BYTES, pass);
    a.load(Half, R1, R7, ETHERNET_TYPE);
    a.jump_if(R1, NotEqual, in_network_order(TYPE_IPV4), pass);
    a.load(Byte, R1, R7, DESTINATION);
    a.jump_if(R1, NotEqual, FIRST, pass);
    a.load(Byte, R1, R7, DESTINATION + 1);
    a.compute(And, R1, SECOND_MASK);
    a.jump_if(R1, NotEqual, SECOND, pass);
    a.compute(Move, R9, DROP);
    count_and_exit(&mut a, Counter::Guarded, counters);
    a.place(pass);
    a.compute(Move, R0, GO_ON);
    a.exit();
    a.finish()
}
