//! Programs: loading them, and running them on frames.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::{AttachPoint, Command, NAME_BYTES, address_of, bpf, kernel_name, owned};

/// Buffer size for the verifier's log of a short program, bytes.
const LOG_BYTES: usize = 256 * 1024;
/// Maximum number of attempts to load a program, as in libbpf.
const ATTEMPTS: usize = 5;
/// License that the programs declare; they call no functions that are reserved for the GPL.
const LICENSE: &CStr = c"Apache-2.0 OR MIT";

/// One instruction of a program (`struct bpf_insn`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::xdp) struct Instruction {
    pub(in crate::xdp) code: u8,
    /// Both registers, four bits each.
    pub(in crate::xdp) registers: u8,
    pub(in crate::xdp) offset: i16,
    pub(in crate::xdp) number: i32,
}

/// Kinds of programs, by their numbers in `enum bpf_prog_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(in crate::xdp) enum ProgramKind {
    /// Runs on packets at the traffic control layer (SCHED_CLS).
    TrafficControl = 3,
    Xdp = 6,
}

/// A verified program in the kernel.
#[derive(Debug)]
pub(in crate::xdp) struct Program {
    fd: OwnedFd,
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The context of a received frame (`struct xdp_md`).
#[repr(C)]
struct Context {
    data: u32,
    data_end: u32,
    data_meta: u32,
    ingress_interface: u32,
    receive_queue: u32,
    egress_interface: u32,
}

/// The error of a program that could not be loaded.
#[derive(Debug)]
pub(in crate::xdp) struct LoadError {
    pub(in crate::xdp) error: io::Error,
    /// The verifier's log; empty if the program did not reach the verifier.
    pub(in crate::xdp) log: String,
}

impl Program {
    /// Loads a program into the kernel.
    ///
    /// # Errors
    /// The process lacks the permission, or the verifier refuses the program.
    pub(in crate::xdp) fn load(
        name: &str,
        kind: ProgramKind,
        instructions: &[Instruction],
    ) -> Result<Self, LoadError> {
        Self::load_flagged(name, kind, instructions, 0)
    }

    /// Loads an XDP program that also handles frames in several buffers; it sees only the first buffer, which contains the headers. Before
    /// Linux 5.18 it receives no such frames.
    ///
    /// # Errors
    /// See [`Program::load`].
    pub(in crate::xdp) fn load_for_parts(
        name: &str,
        instructions: &[Instruction],
    ) -> Result<Self, LoadError> {
        const HAS_FRAGS: u32 = 1 << 5;
        Self::load_flagged(name, ProgramKind::Xdp, instructions, HAS_FRAGS).or_else(|error| {
            match error.error.raw_os_error() {
                Some(libc::EINVAL) => Self::load(name, ProgramKind::Xdp, instructions),
                _ => Err(error),
            }
        })
    }

    fn load_flagged(
        name: &str,
        kind: ProgramKind,
        instructions: &[Instruction],
        flags: u32,
    ) -> Result<Self, LoadError> {
        let load = |log: &mut [u8]| Self::load_with(name, kind, instructions, flags, log);
        again_if_interrupted(|| load(&mut [])).map_err(|error| {
            let mut log = vec![0; LOG_BYTES];
            // Load the program again to obtain the verifier's log.
            let _ = load(&mut log);
            let said = log.split(|&byte| byte == 0).next().unwrap_or_default();
            let log = String::from_utf8_lossy(said).into_owned();
            LoadError { error, log }
        })
    }

    fn load_with(
        name: &str,
        kind: ProgramKind,
        instructions: &[Instruction],
        program_flags: u32,
        log: &mut [u8],
    ) -> io::Result<Self> {
        #[repr(C)]
        struct Attributes {
            kind: u32,
            instruction_count: u32,
            instructions: u64,
            license: u64,
            log_level: u32,
            log_bytes: u32,
            log: u64,
            kernel_version: u32,
            flags: u32,
            name: [u8; NAME_BYTES],
            interface: u32,
            attach_point: u32,
        }
        let mut attributes = Attributes {
            kind: kind as u32,
            instruction_count: instructions.len() as u32,
            instructions: address_of(instructions),
            license: LICENSE.as_ptr().expose_provenance() as u64,
            log_level: u32::from(!log.is_empty()),
            log_bytes: log.len() as u32,
            log: match log.is_empty() {
                true => 0,
                false => log.as_mut_ptr().expose_provenance() as u64,
            },
            kernel_version: 0,
            flags: program_flags,
            name: kernel_name(name),
            interface: 0,
            attach_point: match kind {
                ProgramKind::Xdp => AttachPoint::Xdp as u32,
                ProgramKind::TrafficControl => 0,
            },
        };
        // SAFETY: these are the attributes of the command. Instructions and license are alive and have the given lengths (the license ends
        // with a zero), and the kernel writes at most the length of the log.
        let fd = unsafe { bpf(Command::ProgramLoad, &mut attributes) }?;
        Ok(Self { fd: owned(fd) })
    }

    /// Runs the program on a frame, independently of any network, and returns its result.
    ///
    /// # Errors
    /// The frame has no Ethernet header, or is too long.
    pub(in crate::xdp) fn run(&self, frame: &[u8]) -> io::Result<u32> {
        self.test_run(frame, &[], &mut [])
    }

    /// Runs the program on a frame and writes the modified frame to `changed`, which must have the same length.
    ///
    /// # Errors
    /// See [`Program::run`].
    pub(in crate::xdp) fn run_on(&self, frame: &[u8], changed: &mut [u8]) -> io::Result<u32> {
        assert_eq!(
            frame.len(),
            changed.len(),
            "no program here changes lengths"
        );
        self.test_run(frame, &[], changed)
    }

    /// Runs an XDP program on a frame as if `interface` had received it: the kernel's stack receives the frame if the program passes it
    /// (Linux 5.18 and later).
    ///
    /// # Errors
    /// The interface does not exist, or the kernel does not support this.
    pub(in crate::xdp) fn run_live(&self, frame: &[u8], interface: u32) -> io::Result<()> {
        let context = Context {
            data: 0,
            data_end: frame.len() as u32,
            data_meta: 0,
            ingress_interface: interface,
            receive_queue: 0,
            egress_interface: 0,
        };
        self.test_run(frame, &[context], &mut []).map(drop)
    }

    /// Runs the program. With a context, the frame is a live one.
    fn test_run(&self, frame: &[u8], context: &[Context], changed: &mut [u8]) -> io::Result<u32> {
        #[repr(C)]
        struct Attributes {
            program: u32,
            result: u32,
            data_bytes: u32,
            data_out_bytes: u32,
            data: u64,
            data_out: u64,
            repeat: u32,
            duration_ns: u32,
            context_bytes: u32,
            context_out_bytes: u32,
            context: u64,
            context_out: u64,
            flags: u32,
            processor: u32,
            batch: u32,
            padding: u32,
        }
        const LIVE_FRAMES: u32 = 1 << 1;
        let live = u32::from(!context.is_empty());
        let mut attributes = Attributes {
            program: self.fd.as_raw_fd() as u32,
            result: 0,
            data_bytes: frame.len() as u32,
            data_out_bytes: changed.len() as u32,
            data: address_of(frame),
            data_out: match changed.is_empty() {
                true => 0,
                false => changed.as_mut_ptr().expose_provenance() as u64,
            },
            repeat: 1,
            duration_ns: 0,
            context_bytes: size_of_val(context) as u32,
            context_out_bytes: 0,
            context: match context {
                [] => 0,
                some => address_of(some),
            },
            context_out: 0,
            flags: live * LIVE_FRAMES,
            processor: 0,
            batch: live,
            padding: 0,
        };
        // SAFETY: these are the attributes of the command. The kernel reads as many bytes as frame and context have, and writes at most the
        // length of `changed`.
        unsafe { bpf(Command::TestRun, &mut attributes) }?;
        Ok(attributes.result)
    }
}

/// Repeats a load that fails with EAGAIN: the verifier gives up when a signal arrives (Linux 4.20 and later).
fn again_if_interrupted<T>(mut load: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut result = load();
    for _ in 1..ATTEMPTS {
        match &result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => result = load(),
            _ => break,
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a load that is interrupted `times` times; returns the result and the number of attempts.
    fn interrupted(times: usize, then: io::Result<()>) -> (io::Result<()>, usize) {
        let (mut attempts, mut then) = (0, Some(then));
        let result = again_if_interrupted(|| {
            attempts += 1;
            if attempts <= times {
                return Err(io::Error::from_raw_os_error(libc::EAGAIN));
            }
            then.take().expect("nobody loads again what was decided")
        });
        (result, attempts)
    }

    #[test]
    fn a_program_is_loaded_again_after_a_signal() {
        assert!(matches!(interrupted(0, Ok(())), (Ok(()), 1)));
        assert!(matches!(
            interrupted(ATTEMPTS - 1, Ok(())),
            (Ok(()), ATTEMPTS)
        ));
        assert!(matches!(interrupted(ATTEMPTS, Ok(())), (Err(_), ATTEMPTS)));
        let refused = io::Error::from_raw_os_error(libc::EACCES);
        let (result, attempts) = interrupted(1, Err(refused));
        assert_eq!(result.unwrap_err().raw_os_error(), Some(libc::EACCES));
        assert_eq!(attempts, 2);
    }
}
