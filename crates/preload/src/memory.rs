//! Memory of this library's own. A handler of the program's may have interrupted malloc(3), and what that has locked stays locked until the handler
//! returns: a call of this library that came to wait for it would wait for ever.

use dlmalloc::GlobalDlmalloc;

/// Nobody is interrupted who has locked it: this library's threads handle no signals, and the program's only between calls.
#[global_allocator]
static MEMORY: GlobalDlmalloc = GlobalDlmalloc;

/// Sees to it that the child of fork(2) can allocate, whatever the threads of its parent were at. To be called before this library has threads, and
/// before what allocates at fork(2) is registered: the last that is registered is the first that is called.
pub fn follow_forks() {
    // SAFETY: nothing was allocated that a child would have to wait for.
    unsafe { dlmalloc::enable_alloc_after_fork() }
}
