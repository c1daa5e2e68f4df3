//! Programs: loaded, and run on frames.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::{AttachPoint, Command, NAME_BYTES, address_of, bpf, kernel_name, owned};

/// Room for what the verifier has to say of a short program.
const LOG_BYTES: usize = 256 * 1024;
/// Attempts to load a program, as many as libbpf makes.
const ATTEMPTS: usize = 5;
/// What the programs of this crate declare; they call nothing that is reserved for the GPL.
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

/// Kinds of programs, by the numbers of `enum bpf_prog_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(in crate::xdp) enum ProgramKind {
    /// Runs on packets at the traffic control layer (SCHED_CLS).
    TrafficControl = 3,
    Xdp = 6,
}

/// A program in the kernel, verified.
#[derive(Debug)]
pub(in crate::xdp) struct Program {
    fd: OwnedFd,
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Where a frame is received (`struct xdp_md`).
#[repr(C)]
struct Context {
    data: u32,
    data_end: u32,
    data_meta: u32,
    ingress_interface: u32,
    receive_queue: u32,
    egress_interface: u32,
}

/// Why a program was not taken.
#[derive(Debug)]
pub(in crate::xdp) struct LoadError {
    pub(in crate::xdp) error: io::Error,
    /// What the verifier says of the program; empty if it did not come to see it.
    pub(in crate::xdp) log: String,
}

impl Program {
    /// Gives the kernel a program.
    ///
    /// # Errors
    /// There is no permission, or the verifier refuses it.
    pub(in crate::xdp) fn load(
        name: &str,
        kind: ProgramKind,
        instructions: &[Instruction],
    ) -> Result<Self, LoadError> {
        Self::load_flagged(name, kind, instructions, 0)
    }

    /// The same of an XDP program that also sees frames in several buffers: of these only the first, where the headers are. Before Linux 5.18
    /// it sees none such.
    ///
    /// # Errors
    /// As [`Program::load`].
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
            // Only to hear why.
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
        // SAFETY: these are the attributes of the command. Instructions and license are alive and as long as they say (the license
        // ends in a zero), and the kernel writes at most the length of the log.
        let fd = unsafe { bpf(Command::ProgramLoad, &mut attributes) }?;
        Ok(Self { fd: owned(fd) })
    }

    /// Runs the program on a frame, apart from any network, and gives its result.
    ///
    /// # Errors
    /// The frame has no Ethernet header, or is too long.
    pub(in crate::xdp) fn run(&self, frame: &[u8]) -> io::Result<u32> {
        self.test_run(frame, &[], &mut [])
    }

    /// The same; what the program has made of the frame is written to `changed`, which must be as long.
    ///
    /// # Errors
    /// As [`Program::run`].
    pub(in crate::xdp) fn run_on(&self, frame: &[u8], changed: &mut [u8]) -> io::Result<u32> {
        assert_eq!(
            frame.len(),
            changed.len(),
            "no program here changes lengths"
        );
        self.test_run(frame, &[], changed)
    }

    /// Runs an XDP program on a frame as if `interface` had received it: what it passes goes to the kernel's stack (Linux 5.18 and later).
    ///
    /// # Errors
    /// There is no such interface, or the kernel cannot do it.
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

    /// With a context the frame is a live one.
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
        // SAFETY: these are the attributes of the command. The kernel reads as many bytes as frame and context have, and writes as
        // many as `changed` has.
        unsafe { bpf(Command::TestRun, &mut attributes) }?;
        Ok(attributes.result)
    }
}

/// The verifier gives up with EAGAIN when a signal comes meanwhile (Linux 4.20 and later).
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

    /// What comes of a load that is interrupted so many times, and the attempts.
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
