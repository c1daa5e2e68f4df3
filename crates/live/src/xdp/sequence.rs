//! Reads sequence numbers of the kernel's connections with a program, so that no socket must be put into repair mode.

use super::assembler::{Arithmetic, Assembler, Condition, Helper, Register, Size};
use super::bpf::{Instruction, Program, ProgramKind};
use super::error::XdpError;
use super::programs::{GO_ON, SKB_DATA};
use Arithmetic::{Add, Move};
use Condition::{Equal, Greater};
use Register::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10};
use Size::Word;
use baton_wire::{Flow, SeqNr};
use std::io;
use std::net::IpAddr;

/// Layout of the frame that the program runs on, which contains its question and its answer: the addresses and ports (`struct
/// bpf_sock_tuple`), their length, whether the connection exists, and its state.
const TUPLE_BYTES: i16 = 36;
const LENGTH: i16 = TUPLE_BYTES;
const FOUND: i16 = LENGTH + 4;
const STATE: i16 = FOUND + 4;
const RECEIVE_NEXT: i16 = STATE + 4;
const SEND_NEXT: i16 = RECEIVE_NEXT + 4;
const SEND_UNA: i16 = SEND_NEXT + 4;
const FRAME_BYTES: usize = SEND_UNA as usize + 4;

const NARROW_BYTES: i32 = 12;
const WIDE_BYTES: i32 = TUPLE_BYTES as i32;
/// Offset of the tuple on the program's stack.
const TUPLE: i16 = -(TUPLE_BYTES + 4);
/// Network namespace of the thread that runs the program (BPF_F_CURRENT_NETNS).
const OWN_NAMESPACE: i32 = -1;

/// Offsets in `struct bpf_sock` and `struct bpf_tcp_sock`.
const SOCK_STATE: i16 = 72;
const TCP_RECEIVE_NEXT: i16 = 16;
const TCP_SEND_NEXT: i16 = 20;
const TCP_SEND_UNA: i16 = 24;

/// State and sequence numbers of a connection in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// State of the connection, by the kernel's numbers.
    pub state: u32,
    /// RCV.NXT.
    pub receive_next: SeqNr,
    /// SND.NXT.
    pub send_next: SeqNr,
    /// SND.UNA.
    pub send_una: SeqNr,
}

/// Reads the state and sequence numbers of connections in this network namespace.
#[derive(Debug)]
pub struct SequenceReader(Program);

impl SequenceReader {
    /// Loads the program into the kernel.
    ///
    /// # Errors
    /// See [`XdpError`].
    pub fn new() -> Result<Self, XdpError> {
        let name = "baton_sequence";
        let program = Program::load(name, ProgramKind::TrafficControl, &program());
        program.map(Self).map_err(XdpError::of_load(name))
    }

    /// Returns the state of the connection with these endpoints, or `None` if the kernel has none. If only a listener matches, returns that
    /// of the listener.
    ///
    /// # Errors
    /// The kernel cannot run the program.
    pub fn read(&self, flow: &Flow) -> io::Result<Option<Sequence>> {
        let mut frame = [0; FRAME_BYTES];
        let len = match (flow.remote.addr, flow.local.addr) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                frame[..4].copy_from_slice(&from.octets());
                frame[4..8].copy_from_slice(&to.octets());
                NARROW_BYTES as usize
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                frame[..16].copy_from_slice(&from.octets());
                frame[16..32].copy_from_slice(&to.octets());
                WIDE_BYTES as usize
            }
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        };
        frame[len - 4..len - 2].copy_from_slice(&flow.remote.port.to_be_bytes());
        frame[len - 2..len].copy_from_slice(&flow.local.port.to_be_bytes());
        frame[LENGTH as usize..][..4].copy_from_slice(&(len as u32).to_ne_bytes());
        let mut answer = [0; FRAME_BYTES];
        self.0.run_on(&frame, &mut answer)?;
        let word = |at: i16| {
            let bytes = answer[at as usize..].first_chunk();
            u32::from_ne_bytes(*bytes.expect("the answer has all words"))
        };
        Ok((word(FOUND) != 0).then(|| Sequence {
            state: word(STATE),
            receive_next: SeqNr(word(RECEIVE_NEXT)),
            send_next: SeqNr(word(SEND_NEXT)),
            send_una: SeqNr(word(SEND_UNA)),
        }))
    }
}

/// Looks up the TCP socket that the frame names, and writes its state to the frame. R7 is the frame, R8 its end, R9 the socket.
fn program() -> Vec<Instruction> {
    let mut a = Assembler::default();
    let (wide, looked_up, release, out) = (a.label(), a.label(), a.label(), a.label());
    a.compute(Move, R6, R1);
    a.load(Word, R7, R6, SKB_DATA);
    a.load(Word, R8, R6, SKB_DATA + 4);
    a.compute(Move, R3, R7);
    a.compute(Add, R3, FRAME_BYTES as i32);
    a.jump_if(R3, Greater, R8, out);
    for at in (0..TUPLE_BYTES).step_by(4) {
        a.load(Word, R1, R7, at);
        a.store(Word, R10, TUPLE + at, R1);
    }
    a.load(Word, R0, R7, LENGTH);
    a.compute(Move, R1, R6);
    a.compute(Move, R2, R10);
    a.compute(Add, R2, i32::from(TUPLE));
    a.compute(Move, R4, OWN_NAMESPACE);
    a.compute(Move, R5, 0);
    a.jump_if(R0, Equal, WIDE_BYTES, wide);
    // The verifier requires a constant length in each call of the helper.
    a.compute(Move, R3, NARROW_BYTES);
    a.call(Helper::LookUpTcp);
    a.jump(looked_up);
    a.place(wide);
    a.compute(Move, R3, WIDE_BYTES);
    a.call(Helper::LookUpTcp);
    a.place(looked_up);
    a.jump_if(R0, Equal, 0, out);
    a.compute(Move, R9, R0);
    a.compute(Move, R1, R0);
    a.call(Helper::TcpSocket);
    a.jump_if(R0, Equal, 0, release);
    for (from, to) in [
        (TCP_RECEIVE_NEXT, RECEIVE_NEXT),
        (TCP_SEND_NEXT, SEND_NEXT),
        (TCP_SEND_UNA, SEND_UNA),
    ] {
        a.load(Word, R1, R0, from);
        a.store(Word, R7, to, R1);
    }
    a.load(Word, R1, R9, SOCK_STATE);
    a.store(Word, R7, STATE, R1);
    a.store(Word, R7, FOUND, 1);
    a.place(release);
    a.compute(Move, R1, R9);
    a.call(Helper::ReleaseSocket);
    a.place(out);
    a.compute(Move, R0, GO_ON);
    a.exit();
    a.finish()
}
