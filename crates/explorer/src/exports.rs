//! What a page calls. There is one buffer: the page asks for room in it, puts a log or a question there, and finds the answer in it.

#![allow(
    unsafe_code,
    reason = "names that are seen outside, and functions of the page"
)]

use crate::answer;
use baton_sim::Observer;
use baton_workload::log::{Logs, give_standard_input};
use std::mem;
use std::panic;
use std::sync::{Mutex, MutexGuard, PoisonError};

static BUFFER: Mutex<Vec<u8>> = Mutex::new(Vec::new());
/// A log is read once, however many runs replay it.
static LOGS: Logs = Logs::new();

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// This share of the run has been simulated.
    safe fn progress(share: f64);
    /// A rule of the simulator was broken, as this text says, of so many bytes. The module ends.
    fn panicked(text: *const u8, bytes: usize);
}

struct Page;

impl Observer for Page {
    fn progress(&mut self, share: f64) {
        progress(share);
    }
}

fn lock() -> MutexGuard<'static, Vec<u8>> {
    BUFFER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the buffer is, which has so many bytes from now on; those that it had stay.
#[unsafe(no_mangle)]
pub extern "C" fn buffer(bytes: usize) -> *mut u8 {
    let mut buffer = lock();
    buffer.resize(bytes, 0);
    buffer.as_mut_ptr()
}

/// What is in the buffer is the user's log. Once, before the first question.
#[unsafe(no_mangle)]
pub extern "C" fn give_log() {
    give_standard_input(mem::take(&mut lock()));
}

/// Answers the question in the buffer. The answer is there instead, and its length is returned.
#[unsafe(no_mangle)]
pub extern "C" fn ask() -> usize {
    panic::set_hook(Box::new(|what| {
        let text = what.to_string();
        // SAFETY: the text lives until the call returns, and the page reads no more than its length.
        unsafe { panicked(text.as_ptr(), text.len()) }
    }));
    let question = mem::take(&mut *lock());
    let said = answer(&question, &LOGS, &mut Page).into_bytes();
    let bytes = said.len();
    *lock() = said;
    bytes
}
