//! Calls after which the C library or another program uses a descriptor without this library. Its connection then has to be in the kernel.

use crate::leaving::{leave, leave_those, some_are_away};
use crate::reason::Reason;
use crate::session;
use crate::sys::{self, call};
use baton_iolib::log::{self, Level};
use baton_iolib::program::{check, find, names_library};
use libc::{FILE, c_char, c_int, pid_t, posix_spawn_file_actions_t, posix_spawnattr_t, rlimit};
use std::arch::naked_asm;
use std::ffi::{CStr, OsStr};
use std::mem;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::AtomicUsize;

/// The type of a resource's name in the C library.
type RLimit = libc::__rlimit_resource_t;

/// Gives the connections that a started program will inherit back to the kernel.
fn leave_inheritable() {
    leave_those(Reason::Shared, |fd| {
        // SAFETY: this only asks for flags.
        let flags = unsafe { call!(SYS_fcntl, fd, libc::F_GETFD) };
        flags >= 0 && flags & libc::c_long::from(libc::FD_CLOEXEC) == 0
    });
}

/// Prepares for execve(2): gives inherited connections back to the kernel, and sends what the program wrote.
fn before_exec() {
    leave_inheritable();
    session::flush();
}

unsafe extern "C" {
    /// See environ(7).
    static environ: *const *const c_char;
}

/// Returns the environment of this process.
fn own_environment() -> *const *const c_char {
    // SAFETY: a program must not change its environment while it starts another one, with or without this library.
    unsafe { environ }
}

/// Returns whether an environment preloads this library.
///
/// # Safety
/// `environment` is null or good, as execve(2) has it.
unsafe fn preloads(environment: *const *const c_char) -> bool {
    // SAFETY: by this function's contract.
    unsafe {
        let mut variable = environment;
        while !variable.is_null() && !(*variable).is_null() {
            let text = CStr::from_ptr(*variable).to_bytes();
            if let Some(libraries) = text.strip_prefix(b"LD_PRELOAD=") {
                return names_library(libraries);
            }
            variable = variable.add(1);
        }
    }
    false
}

/// Logs if the program that is about to start will run without this library.
///
/// # Safety
/// `name` is null or a C string, and `environment` null or good.
unsafe fn name_unfit(name: *const c_char, environment: *const *const c_char) {
    if name.is_null() || !session::has_adapter() || !log::shows(Level::Warn) {
        return;
    }
    // SAFETY: by this function's contract, and getenv(3) returns a C string or null. It takes no lock that the child of a multi-threaded
    // process might wait for.
    let (name, path) = unsafe {
        let path = libc::getenv(c"PATH".as_ptr());
        let path = (!path.is_null()).then(|| CStr::from_ptr(path));
        (CStr::from_ptr(name), path)
    };
    let name = OsStr::from_bytes(name.to_bytes());
    let path = path.map(|path| OsStr::from_bytes(path.to_bytes()));
    let Ok(program) = find(name, path) else {
        return;
    };
    let shown = program.display();
    match check(&program) {
        Err(why) if why.runs() => {
            Reason::Unfit.count(format_args!("{shown} runs without Baton: {why}"));
        }
        // SAFETY: by this function's contract.
        Ok(()) if !unsafe { preloads(environment) } => {
            Reason::Unfit.count(format_args!(
                "{shown} runs without Baton: its environment has no LD_PRELOAD"
            ));
        }
        _ => {}
    }
}

/// Prepares for replacing this program by the program `name`.
unsafe fn before_exec_of(name: *const c_char, environment: *const *const c_char) {
    // SAFETY: valid by the manual page.
    unsafe { name_unfit(name, environment) };
    before_exec();
}

/// execve(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(
    path: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) -> c_int {
    // SAFETY: valid by the manual page, and the kernel checks everything itself.
    unsafe {
        before_exec_of(path, environment);
        call!(SYS_execve, path, arguments, environment) as c_int
    }
}

/// Prepares for starting the program `name` in another process.
unsafe fn before_spawn(name: *const c_char, environment: *const *mut c_char) {
    // SAFETY: by this function's contract.
    unsafe { name_unfit(name, environment.cast()) };
    leave_inheritable();
}

/// Attaches to the adapter before the program limits its number of processes: HAProxy forbids itself further threads when it begins to
/// serve.
fn before_limit(resource: RLimit) {
    if resource == libc::RLIMIT_NPROC && session::begins_in_kernel() {
        session::prepare();
        session::adapter();
    }
}

/// Defines functions that run `$before`, and then call the C library's function of the same name.
macro_rules! after {
    ($($(#[$about:meta])* $name:ident($($argument:ident: $kind:ty),* $(,)?) -> $result:ty, $before:expr;)*) => {$(
        $(#[$about])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $kind),*) -> $result {
            static REAL: AtomicUsize = AtomicUsize::new(0);
            // SAFETY: valid by the manual page.
            #[allow(unused_unsafe, reason = "some of these are safe")]
            unsafe {
                $before
            };
            let name = concat!(stringify!($name), "\0");
            let name = CStr::from_bytes_with_nul(name.as_bytes()).unwrap_or_default();
            // SAFETY: the C library's function of this name has this type.
            unsafe {
                let real = sys::next(&REAL, name);
                mem::transmute::<usize, unsafe extern "C" fn($($kind),*) -> $result>(real)($($argument),*)
            }
        }
    )*};
}

after! {
    /// fdopen(3): the C library's stream reads, writes and closes the descriptor itself.
    fdopen(fd: c_int, mode: *const c_char) -> *mut FILE,
        leave(fd, Reason::Stream, format_args!("descriptor {fd}"));
    /// posix_spawn(3).
    posix_spawn(
        child: *mut pid_t,
        path: *const c_char,
        actions: *const posix_spawn_file_actions_t,
        attributes: *const posix_spawnattr_t,
        arguments: *const *mut c_char,
        environment: *const *mut c_char,
    ) -> c_int, before_spawn(path, environment);
    /// posix_spawnp(3).
    posix_spawnp(
        child: *mut pid_t,
        file: *const c_char,
        actions: *const posix_spawn_file_actions_t,
        attributes: *const posix_spawnattr_t,
        arguments: *const *mut c_char,
        environment: *const *mut c_char,
    ) -> c_int, before_spawn(file, environment);
    /// setrlimit(2). Starts this library's own thread before the program forbids further threads.
    setrlimit(resource: RLimit, limit: *const rlimit) -> c_int, before_limit(resource);
    /// Another name of setrlimit(2).
    setrlimit64(resource: RLimit, limit: *const rlimit) -> c_int, before_limit(resource);
    /// posix_spawn_file_actions_adddup2(3).
    posix_spawn_file_actions_adddup2(
        actions: *mut posix_spawn_file_actions_t,
        fd: c_int,
        new: c_int,
    ) -> c_int, leave(fd, Reason::Shared, format_args!("descriptor {fd}"));
    /// See exec(3).
    execv(path: *const c_char, arguments: *const *const c_char) -> c_int,
        before_exec_of(path, own_environment());
    /// See exec(3).
    execvp(file: *const c_char, arguments: *const *const c_char) -> c_int,
        before_exec_of(file, own_environment());
    /// See exec(3).
    execvpe(
        file: *const c_char,
        arguments: *const *const c_char,
        environment: *const *const c_char,
    ) -> c_int, before_exec_of(file, environment);
    /// See fexecve(3).
    fexecve(
        fd: c_int,
        arguments: *const *const c_char,
        environment: *const *const c_char,
    ) -> c_int, before_exec();
}

/// Defines a function that is variadic or returns twice: it calls `$before`, and jumps to the function that `$before` returns, with all
/// arguments in place.
macro_rules! on_the_way {
    ($($(#[$about:meta])* $name:ident, $before:ident;)*) => {$(
        $(#[$about])*
        #[cfg(target_arch = "x86_64")]
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            // Saves the six argument registers, and al, which counts the vector registers of a variadic call.
            naked_asm!(
                "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "push rax",
                "call {before}",
                "mov r11, rax",
                "pop rax", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                "jmp r11",
                before = sym $before,
            )
        }

        $(#[$about])*
        #[cfg(target_arch = "aarch64")]
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                "stp x29, x30, [sp, #-80]!",
                "stp x0, x1, [sp, #16]", "stp x2, x3, [sp, #32]", "stp x4, x5, [sp, #48]", "stp x6, x7, [sp, #64]",
                "bl {before}",
                "mov x16, x0",
                "ldp x0, x1, [sp, #16]", "ldp x2, x3, [sp, #32]", "ldp x4, x5, [sp, #48]", "ldp x6, x7, [sp, #64]",
                "ldp x29, x30, [sp], #80",
                "br x16",
                before = sym $before,
            )
        }
    )*};
}

on_the_way! {
    /// See exec(3).
    execl, before_execl;
    /// See exec(3).
    execlp, before_execlp;
    /// See exec(3).
    execle, before_execle;
    /// vfork(2). The child shares this process's memory but has its own descriptors, which do not follow a connection back to the kernel.
    /// If any connection is on the adapter, it calls fork(2) instead.
    vfork, before_vfork;
}

unsafe extern "C" fn before_execl(path: *const c_char) -> usize {
    static REAL: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: valid by the manual page.
    unsafe { before_exec_of(path, own_environment()) };
    sys::next(&REAL, c"execl")
}

unsafe extern "C" fn before_execlp(file: *const c_char) -> usize {
    static REAL: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: valid by the manual page.
    unsafe { before_exec_of(file, own_environment()) };
    sys::next(&REAL, c"execlp")
}

unsafe extern "C" fn before_execle(_path: *const c_char) -> usize {
    static REAL: AtomicUsize = AtomicUsize::new(0);
    // The environment follows a variable number of arguments, and is not checked.
    before_exec();
    sys::next(&REAL, c"execle")
}

unsafe extern "C" fn before_vfork() -> usize {
    static REAL: AtomicUsize = AtomicUsize::new(0);
    static FORK: AtomicUsize = AtomicUsize::new(0);
    match some_are_away() {
        true => sys::next(&FORK, c"fork"),
        false => sys::next(&REAL, c"vfork"),
    }
}
