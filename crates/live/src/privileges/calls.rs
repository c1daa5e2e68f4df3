//! The system calls that adapter and broker make once they are set up.

use libc::c_long;

/// A system call, and what its arguments must be.
pub type Call = (c_long, &'static [Check]);

/// What an argument, by its place, must be.
#[derive(Clone, Copy, Debug)]
pub enum Check {
    /// This value.
    Is(u8, u64),
    /// This value in the bits of a mask, which comes before.
    Masked(u8, u64, u64),
    /// The number of this process.
    IsOwnProcess(u8),
}

use Check::{Is, IsOwnProcess, Masked};

const ANY: &[Check] = &[];
/// Only to be read, and only what is there.
const READ_ONLY: u64 = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC | libc::O_TMPFILE) as u64
    & !(libc::O_DIRECTORY as u64);
const EXECUTABLE: u64 = libc::PROT_EXEC as u64;
/// A thread of this process, in its namespaces.
const THREAD: u64 = (libc::CLONE_VM | libc::CLONE_THREAD | libc::CLONE_SIGHAND) as u64;
const OTHER_NAMESPACES: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u64;
/// The type of a socket without SOCK_CLOEXEC and SOCK_NONBLOCK.
const KIND: u64 = 0xf;
const UNIX: u64 = libc::AF_UNIX as u64;
const INET: u64 = libc::AF_INET as u64;
const INET6: u64 = libc::AF_INET6 as u64;
const NETLINK: u64 = libc::AF_NETLINK as u64;
const STREAM: u64 = libc::SOCK_STREAM as u64;
const DATAGRAM: u64 = libc::SOCK_DGRAM as u64;
const RAW: u64 = libc::SOCK_RAW as u64;
const ROUTE: u64 = libc::NETLINK_ROUTE as u64;
/// PR_GET_AUXV: rustix looks there for the page size and the like.
const GET_AUXILIARY_VECTOR: u64 = 0x4155_5856;
/// SIOCETHTOOL.
const ETHTOOL: u64 = 0x8946;
/// SIOCOUTQNSD.
const UNSENT: u64 = 0x894b;

/// What both make.
pub const COMMON: &[Call] = &[
    // --- memory: none that can be executed ---
    (libc::SYS_brk, ANY),
    (libc::SYS_mmap, &[Masked(2, EXECUTABLE, 0)]),
    (libc::SYS_mprotect, &[Masked(2, EXECUTABLE, 0)]),
    (libc::SYS_mremap, ANY),
    (libc::SYS_munmap, ANY),
    (libc::SYS_madvise, ANY),
    // --- threads of this process, and signals to it ---
    (
        libc::SYS_clone,
        &[Masked(0, THREAD | OTHER_NAMESPACES, THREAD)],
    ),
    // Answered as unknown by a filter of its own.
    (libc::SYS_clone3, ANY),
    (libc::SYS_set_robust_list, ANY),
    (libc::SYS_rseq, ANY),
    (libc::SYS_futex, ANY),
    (libc::SYS_membarrier, ANY),
    (libc::SYS_sched_getaffinity, ANY),
    (libc::SYS_sched_yield, ANY),
    (libc::SYS_prctl, &[Is(0, libc::PR_SET_NAME as u64)]),
    (libc::SYS_prctl, &[Is(0, GET_AUXILIARY_VECTOR)]),
    (libc::SYS_sigaltstack, ANY),
    (libc::SYS_rt_sigaction, ANY),
    (libc::SYS_rt_sigprocmask, ANY),
    (libc::SYS_rt_sigreturn, ANY),
    (libc::SYS_restart_syscall, ANY),
    (libc::SYS_tgkill, &[IsOwnProcess(0)]),
    (libc::SYS_getpid, ANY),
    (libc::SYS_gettid, ANY),
    (libc::SYS_getuid, ANY),
    (libc::SYS_exit, ANY),
    (libc::SYS_exit_group, ANY),
    // --- time and chance ---
    (libc::SYS_clock_gettime, ANY),
    (libc::SYS_clock_nanosleep, ANY),
    (libc::SYS_gettimeofday, ANY),
    (libc::SYS_nanosleep, ANY),
    (libc::SYS_getrandom, ANY),
    // --- descriptors ---
    (libc::SYS_close, ANY),
    (libc::SYS_dup, ANY),
    (libc::SYS_fcntl, ANY),
    (libc::SYS_fstat, ANY),
    (libc::SYS_lseek, ANY),
    (libc::SYS_read, ANY),
    (libc::SYS_readv, ANY),
    (libc::SYS_pread64, ANY),
    (libc::SYS_write, ANY),
    (libc::SYS_writev, ANY),
    (libc::SYS_ppoll, ANY),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_poll, ANY),
    // --- files: what is there is read, as in a trace of a panic, and the own sockets are removed ---
    (libc::SYS_openat, &[Masked(2, READ_ONLY, 0)]),
    (libc::SYS_newfstatat, ANY),
    (libc::SYS_statx, ANY),
    (libc::SYS_readlinkat, ANY),
    (libc::SYS_getcwd, ANY),
    (libc::SYS_unlinkat, ANY),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_readlink, ANY),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_unlink, ANY),
    // --- terminals, and what an interface says of itself ---
    (libc::SYS_ioctl, &[Is(1, libc::TCGETS)]),
    (libc::SYS_ioctl, &[Is(1, libc::TIOCGWINSZ)]),
    (libc::SYS_ioctl, &[Is(1, libc::FIONBIO)]),
    (libc::SYS_ioctl, &[Is(1, libc::SIOCGIFFLAGS)]),
    (libc::SYS_ioctl, &[Is(1, libc::SIOCGIFHWADDR)]),
    (libc::SYS_ioctl, &[Is(1, libc::SIOCGIFINDEX)]),
    (libc::SYS_ioctl, &[Is(1, libc::SIOCGIFMTU)]),
    (libc::SYS_ioctl, &[Is(1, ETHTOOL)]),
    // --- sockets: those of which interfaces are asked, and the kernel's routes ---
    (libc::SYS_socket, &[Is(0, INET), Masked(1, KIND, DATAGRAM)]),
    (
        libc::SYS_socket,
        &[Is(0, NETLINK), Masked(1, KIND, RAW), Is(2, ROUTE)],
    ),
    (libc::SYS_accept4, ANY),
    (libc::SYS_connect, ANY),
    (libc::SYS_getsockname, ANY),
    (libc::SYS_getsockopt, ANY),
    (libc::SYS_setsockopt, ANY),
    (libc::SYS_recvfrom, ANY),
    (libc::SYS_recvmsg, ANY),
    (libc::SYS_sendmsg, ANY),
    (libc::SYS_sendto, ANY),
    (libc::SYS_shutdown, ANY),
];

/// What an adapter makes beside.
pub const ADAPTER: &[Call] = &[
    // The next broker, and applications: the memory that is shared with them, and what wakes them.
    (libc::SYS_socket, &[Is(0, UNIX), Masked(1, KIND, STREAM)]),
    (libc::SYS_memfd_create, ANY),
    (libc::SYS_ftruncate, ANY),
    (libc::SYS_pipe2, ANY),
    (libc::SYS_eventfd2, ANY),
    (libc::SYS_epoll_create1, ANY),
    (libc::SYS_epoll_ctl, ANY),
    (libc::SYS_epoll_pwait, ANY),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_epoll_wait, ANY),
    // Frames.
    (libc::SYS_recvmmsg, ANY),
    (libc::SYS_sendmmsg, ANY),
    // Files that were open before: capture and timeline.
    (libc::SYS_pwrite64, ANY),
    (libc::SYS_fdatasync, ANY),
    (libc::SYS_fsync, ANY),
];

/// What a broker makes beside.
pub const BROKER: &[Call] = &[
    // Connections of the kernel.
    (libc::SYS_socket, &[Is(0, INET), Masked(1, KIND, STREAM)]),
    (libc::SYS_socket, &[Is(0, INET6), Masked(1, KIND, STREAM)]),
    (libc::SYS_bind, ANY),
    (libc::SYS_getpeername, ANY),
    (libc::SYS_ioctl, &[Is(1, libc::FIONREAD)]),
    (libc::SYS_ioctl, &[Is(1, libc::TIOCOUTQ)]),
    (libc::SYS_ioctl, &[Is(1, UNSENT)]),
    // The memory of an adapter.
    (libc::SYS_memfd_create, ANY),
    (libc::SYS_ftruncate, ANY),
    // Maps and programs, by the numbers of `enum bpf_cmd`: lookup, update and delete of what is in a map; load, run and describe a program;
    // create, update and detach what holds it at the interface. All maps are made before.
    (libc::SYS_bpf, &[Is(0, 1)]),
    (libc::SYS_bpf, &[Is(0, 2)]),
    (libc::SYS_bpf, &[Is(0, 3)]),
    (libc::SYS_bpf, &[Is(0, 5)]),
    (libc::SYS_bpf, &[Is(0, 10)]),
    (libc::SYS_bpf, &[Is(0, 15)]),
    (libc::SYS_bpf, &[Is(0, 28)]),
    (libc::SYS_bpf, &[Is(0, 29)]),
    (libc::SYS_bpf, &[Is(0, 34)]),
];
