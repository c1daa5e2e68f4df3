//! The memory allocator of this library. A signal handler of the program may have interrupted malloc(3), whose lock then stays locked until
//! the handler returns; a call of this library that waited for that lock would wait forever.

use dlmalloc::GlobalDlmalloc;

/// No handler can interrupt a thread that holds its lock: this library's threads handle no signals, and the program's threads only between
/// calls.
#[global_allocator]
static MEMORY: GlobalDlmalloc = GlobalDlmalloc;

/// Makes sure that the child of fork(2) can allocate, whatever the parent's threads were doing. Call this before this library has threads
/// and before anything that allocates at fork(2) is registered: the handler that is registered last runs first.
pub fn follow_forks() {
    // SAFETY: no allocation has happened yet that a child would have to wait for.
    unsafe { dlmalloc::enable_alloc_after_fork() }
}
