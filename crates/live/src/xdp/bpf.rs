//! The system call bpf(2): maps, programs, links. Arguments are the members of `union bpf_attr` that a command reads; what the
//! kernel knows beyond them it takes for zero.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// One instruction of a program (`struct bpf_insn`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    pub(super) code: u8,
    /// Both registers, four bits each.
    pub(super) registers: u8,
    pub(super) offset: i16,
    pub(super) number: i32,
}

/// What the call is asked to do, by the numbers of `enum bpf_cmd`.
#[derive(Clone, Copy, Debug)]
#[repr(i32)]
enum Command {
    MapCreate = 0,
    MapLookup = 1,
    MapUpdate = 2,
    MapDelete = 3,
    ProgramLoad = 5,
    TestRun = 10,
    Info = 15,
    LinkCreate = 28,
    LinkUpdate = 29,
    LinkDetach = 34,
}

/// Kinds of maps, by the numbers of `enum bpf_map_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum MapKind {
    Hash = 1,
    PerCpuArray = 6,
    /// Of prefixes, of which the longest that fits is found.
    LongestPrefix = 11,
    /// Of interfaces (DEVMAP).
    Devices = 14,
    /// Of AF_XDP sockets (XSKMAP).
    Sockets = 17,
}

/// Kinds of programs, by the numbers of `enum bpf_prog_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum ProgramKind {
    /// Runs on packets at the traffic control layer (SCHED_CLS).
    TrafficControl = 3,
    Xdp = 6,
}

/// Where a link attaches a program, by the numbers of `enum bpf_attach_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum AttachPoint {
    Xdp = 37,
    TcxIngress = 46,
    TcxEgress = 47,
}

const NAME_BYTES: usize = 16;
/// Room for what the verifier has to say of a short program.
const LOG_BYTES: usize = 256 * 1024;
/// What the programs of this crate declare; they call nothing that is reserved for the GPL.
const LICENSE: &CStr = c"Apache-2.0 OR MIT";

/// Calls the kernel.
///
/// # Safety
/// `attributes` are those of `command`, as far as they go, without padding; what they point to is alive, and as large as they say.
unsafe fn bpf<T>(command: Command, attributes: &mut T) -> io::Result<i32> {
    let attributes: *mut T = attributes;
    // SAFETY: the kernel reads and writes no more than the size that it is given, and what the attributes point to, for which the
    // caller vouches.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command as libc::c_int,
            attributes,
            mem::size_of::<T>(),
        )
    };
    match result {
        0.. => Ok(result as i32),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Takes a descriptor that a command has made.
fn owned(descriptor: i32) -> OwnedFd {
    // SAFETY: the kernel has just made it for the caller, and nobody else knows it.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

fn address_of<T>(value: &[T]) -> u64 {
    value.as_ptr().expose_provenance() as u64
}

/// A name as the kernel keeps it, to be seen in `bpftool`; cut where it is too long.
fn kernel_name(name: &str) -> [u8; NAME_BYTES] {
    let mut bytes = [0; NAME_BYTES];
    for (target, byte) in bytes[..NAME_BYTES - 1].iter_mut().zip(name.bytes()) {
        *target = byte;
    }
    bytes
}

/// A map in the kernel. It goes when nothing refers to it any more.
#[derive(Debug)]
pub(super) struct Map {
    fd: OwnedFd,
    key_bytes: usize,
    /// What a call reads or writes of an entry, bytes.
    value_bytes: usize,
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Map {
    /// A map for at most `entries`.
    ///
    /// # Errors
    /// There is no permission, no memory, or no such kind.
    pub(super) fn new(
        name: &str,
        kind: MapKind,
        key_bytes: usize,
        value_bytes: usize,
        entries: u32,
    ) -> io::Result<Self> {
        #[repr(C)]
        struct Attributes {
            kind: u32,
            key_bytes: u32,
            value_bytes: u32,
            entries: u32,
            flags: u32,
            inner_map: u32,
            numa_node: u32,
            name: [u8; NAME_BYTES],
        }
        let mut attributes = Attributes {
            kind: kind as u32,
            key_bytes: key_bytes as u32,
            value_bytes: value_bytes as u32,
            entries,
            flags: match kind {
                // The kernel makes these on demand only (BPF_F_NO_PREALLOC).
                MapKind::LongestPrefix => 1,
                _ => 0,
            },
            inner_map: 0,
            numa_node: 0,
            name: kernel_name(name),
        };
        // A value for each processor, of whole words of eight bytes.
        let copies = match kind {
            MapKind::PerCpuArray => possible_processors()?,
            _ => 1,
        };
        // SAFETY: these are the attributes of the command, and there are no pointers in them.
        let fd = unsafe { bpf(Command::MapCreate, &mut attributes) }?;
        Ok(Self {
            fd: owned(fd),
            key_bytes,
            value_bytes: value_bytes * copies,
        })
    }

    /// Calls on an entry, with the key and what is read or written of the value.
    fn on_entry(&self, command: Command, key: &[u8], value: *mut u8) -> io::Result<()> {
        #[repr(C)]
        struct Attributes {
            map: u32,
            padding: u32,
            key: u64,
            value: u64,
            flags: u64,
        }
        assert_eq!(key.len(), self.key_bytes, "the key is one of this map");
        let mut attributes = Attributes {
            map: self.fd.as_raw_fd() as u32,
            padding: 0,
            key: address_of(key),
            value: value.expose_provenance() as u64,
            flags: 0,
        };
        // SAFETY: these are the attributes of the three commands on entries. The key is as long as the map's. The value is not
        // looked at (delete), or is as long as the map's, of all processors, which the callers assert; it is written by lookups only,
        // which have it mutable.
        unsafe { bpf(command, &mut attributes) }.map(|_| ())
    }

    /// Sets an entry.
    ///
    /// # Errors
    /// E2BIG if there is no room for another.
    pub(super) fn update(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        assert_eq!(value.len(), self.value_bytes, "a value of this map");
        self.on_entry(Command::MapUpdate, key, value.as_ptr().cast_mut())
    }

    /// Takes an entry out.
    ///
    /// # Errors
    /// ENOENT if there is none.
    pub(super) fn delete(&self, key: &[u8]) -> io::Result<()> {
        self.on_entry(Command::MapDelete, key, std::ptr::null_mut())
    }

    /// Reads an entry.
    ///
    /// # Errors
    /// ENOENT if there is none.
    pub(super) fn read(&self, key: &[u8], value: &mut [u8]) -> io::Result<()> {
        assert_eq!(value.len(), self.value_bytes, "a value of this map");
        self.on_entry(Command::MapLookup, key, value.as_mut_ptr())
    }

    /// The sums of the values that the processors have in entry `index` of an array of `N` numbers each.
    ///
    /// # Errors
    /// There is no such entry.
    pub(super) fn sums<const N: usize>(&self, index: u32) -> io::Result<[u64; N]> {
        let mut bytes = vec![0; self.value_bytes];
        self.read(&index.to_ne_bytes(), &mut bytes)?;
        let (words, _) = bytes.as_chunks::<8>();
        let mut sums = [0_u64; N];
        for of_processor in words.chunks_exact(N) {
            for (sum, word) in sums.iter_mut().zip(of_processor) {
                *sum = sum.wrapping_add(u64::from_ne_bytes(*word));
            }
        }
        Ok(sums)
    }
}

/// How many processors the kernel keeps values for: the ranges of its list, as in `0-3,8`.
fn possible_processors() -> io::Result<usize> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        Some((last + 1).saturating_sub(first))
    };
    let counts = list.trim().split(',').map(count);
    counts
        .sum::<Option<usize>>()
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// A program in the kernel, verified.
#[derive(Debug)]
pub(super) struct Program {
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
pub(super) struct LoadError {
    pub(super) error: io::Error,
    /// What the verifier says of the program; empty if it did not come to see it.
    pub(super) log: String,
}

impl Program {
    /// Gives the kernel a program.
    ///
    /// # Errors
    /// There is no permission, or the verifier refuses it.
    pub(super) fn load(
        name: &str,
        kind: ProgramKind,
        instructions: &[Instruction],
    ) -> Result<Self, LoadError> {
        let load = |log: &mut [u8]| Self::load_with(name, kind, instructions, log);
        load(&mut []).map_err(|error| {
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
            flags: 0,
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
    pub(super) fn run(&self, frame: &[u8]) -> io::Result<u32> {
        self.test_run(frame, &[], &mut [])
    }

    /// The same; what the program has made of the frame is written to `changed`, which must be as long.
    ///
    /// # Errors
    /// As [`Program::run`].
    pub(super) fn run_on(&self, frame: &[u8], changed: &mut [u8]) -> io::Result<u32> {
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
    pub(super) fn run_live(&self, frame: &[u8], interface: u32) -> io::Result<()> {
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

    /// Attaches the program to an interface.
    ///
    /// # Errors
    /// There is no permission, another program is in the way, or the driver refuses it.
    pub(super) fn attach(
        &self,
        point: AttachPoint,
        interface: u32,
        flags: u32,
    ) -> io::Result<Link> {
        #[repr(C)]
        struct Attributes {
            program: u32,
            interface: u32,
            point: u32,
            flags: u32,
        }
        let mut attributes = Attributes {
            program: self.fd.as_raw_fd() as u32,
            interface,
            point: point as u32,
            flags,
        };
        // SAFETY: these are the attributes of the command, and there are no pointers in them.
        let fd = unsafe { bpf(Command::LinkCreate, &mut attributes) }?;
        Ok(Link { fd: owned(fd) })
    }

    /// Takes the place of the program that a link, which another process has made, holds at this interface. No packet meets neither.
    ///
    /// # Errors
    /// It is no link of this interface, or of programs of another kind; there is no permission.
    pub(super) fn replace(&self, link: OwnedFd, interface: u32) -> io::Result<Link> {
        #[repr(C)]
        struct Attributes {
            link: u32,
            program: u32,
            flags: u32,
            before: u32,
        }
        if interface_of(link.as_fd())? != interface {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut attributes = Attributes {
            link: link.as_raw_fd() as u32,
            program: self.fd.as_raw_fd() as u32,
            flags: 0,
            before: 0,
        };
        // SAFETY: these are the attributes of the command, and there are no pointers in them.
        unsafe { bpf(Command::LinkUpdate, &mut attributes) }?;
        Ok(Link { fd: link })
    }
}

/// The interface at which a link holds an XDP program, or one of traffic control.
fn interface_of(link: BorrowedFd<'_>) -> io::Result<u32> {
    /// `struct bpf_link_info` up to the interface, which stands first for both kinds.
    #[repr(C)]
    #[derive(Default)]
    struct Info {
        kind: u32,
        number: u32,
        program: u32,
        padding: u32,
        interface: u32,
    }
    #[repr(C)]
    struct Attributes {
        fd: u32,
        bytes: u32,
        info: u64,
    }
    const XDP: u32 = 6;
    const TCX: u32 = 11;
    let mut info = Info::default();
    let mut attributes = Attributes {
        fd: link.as_raw_fd() as u32,
        bytes: size_of::<Info>() as u32,
        info: std::ptr::from_mut(&mut info) as u64,
    };
    // SAFETY: these are the attributes of the command. The kernel writes at most that many bytes, of which any are valid, to where there is
    // room for them.
    unsafe { bpf(Command::Info, &mut attributes) }?;
    match info.kind {
        XDP | TCX => Ok(info.interface),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// What holds a program at an interface: until it is dropped, at the latest until the process is gone.
#[derive(Debug)]
pub(super) struct Link {
    fd: OwnedFd,
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Link {
    /// Closing would do, if no child of this process had the descriptor too, as between fork and exec.
    fn drop(&mut self) {
        #[repr(C)]
        struct Attributes {
            link: u32,
        }
        let mut attributes = Attributes {
            link: self.fd.as_raw_fd() as u32,
        };
        // SAFETY: these are the attributes of the command, and there are no pointers in them.
        let _ = unsafe { bpf(Command::LinkDetach, &mut attributes) };
    }
}
