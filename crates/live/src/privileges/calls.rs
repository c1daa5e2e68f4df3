//! The system calls that the adapter and the broker make once they are set up.

use libc::c_long;

/// A system call, and the conditions that its arguments must meet.
pub type Call = (c_long, &'static [Check]);

/// A condition for an argument, which is given by its index.
#[derive(Clone, Copy, Debug)]
pub enum Check {
    /// The argument has this value.
    Is(u8, u64),
    /// The argument has this value (last) in the bits of this mask.
    Masked(u8, u64, u64),
    /// The argument is the ID of this process.
    IsOwnProcess(u8),
}

use Check::{Is, IsOwnProcess, Masked};

const ANY: &[Check] = &[];
/// Flags that must be clear, so that a file is only read, and not created or truncated.
const READ_ONLY: u64 = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC | libc::O_TMPFILE) as u64
    & !(libc::O_DIRECTORY as u64);
const EXECUTABLE: u64 = libc::PROT_EXEC as u64;
/// Flags of a thread of this process.
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
/// PR_GET_AUXV, which rustix uses to get the page size and the like.
const GET_AUXILIARY_VECTOR: u64 = 0x4155_5856;
/// SIOCETHTOOL.
const ETHTOOL: u64 = 0x8946;
/// SIOCOUTQNSD.
const UNSENT: u64 = 0x894b;

/// Calls of both daemons.
pub const COMMON: &[Call] = &[
    // --- memory, which must not be executable ---
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
    // Rejected as unknown by a separate filter.
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
    // --- time and random numbers ---
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
    // --- files: reading existing ones, as for the backtrace of a panic, and removing the daemon's own sockets ---
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
    // --- terminals, and properties of an interface ---
    (libc::SYS_ioctl, &[Is(1, libc::TCGETS)]),
    (libc::SYS_ioctl, &[Is(1, libc::TIOCGWINSZ)]),
    (libc::SYS_ioctl, &[Is(1, libc::FIONBIO)]),
    (libc::SYS_ioctl, &[Is(1, libc::SIOCGIFFLAGS)]),
    (libc::SYS_ioctl, &[Is(1, libc::SIOCGIFHWADDR)]),
    (libc::SYS_ioctl, &[Is(1, libc::SIOCGIFINDEX)]),
    (libc::SYS_ioctl, &[Is(1, libc::SIOCGIFMTU)]),
    (libc::SYS_ioctl, &[Is(1, ETHTOOL)]),
    // --- sockets: for requests about interfaces, and for the kernel's routes ---
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

/// Additional calls of an adapter.
pub const ADAPTER: &[Call] = &[
    // Connections to the next broker and to applications, memory shared with applications, and their doorbells.
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
    // Files of applications.
    (libc::SYS_preadv2, ANY),
    // Files that were opened before: capture and timeline.
    (libc::SYS_pwrite64, ANY),
    (libc::SYS_fdatasync, ANY),
    (libc::SYS_fsync, ANY),
];

/// Additional calls of a broker.
pub const BROKER: &[Call] = &[
    // Connections of the kernel.
    (libc::SYS_socket, &[Is(0, INET), Masked(1, KIND, STREAM)]),
    (libc::SYS_socket, &[Is(0, INET6), Masked(1, KIND, STREAM)]),
    (libc::SYS_bind, ANY),
    (libc::SYS_getpeername, ANY),
    (libc::SYS_ioctl, &[Is(1, libc::FIONREAD)]),
    (libc::SYS_ioctl, &[Is(1, libc::TIOCOUTQ)]),
    (libc::SYS_ioctl, &[Is(1, UNSENT)]),
    // Memory for an adapter.
    (libc::SYS_memfd_create, ANY),
    (libc::SYS_ftruncate, ANY),
    // Maps and programs, by the numbers of `enum bpf_cmd`: look up, update and delete an entry of a map; load, run and describe a program;
    // create, update and detach the link that holds a program at the interface. All maps are created before.
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
