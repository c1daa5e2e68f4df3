//! Functions that a page calls. There is one buffer: the page asks for space in it, writes a log or a question there, and reads the answer
//! from it.

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
/// Logs already read, so that each is read once, however many runs replay it.
static LOGS: Logs = Logs::new();

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Reports which share of the run has been simulated.
    safe fn progress(share: f64);
    /// Reports a panic, with its message of `bytes` bytes. The module cannot be used afterwards.
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

/// Resizes the buffer to `bytes` bytes, keeping its content, and returns its address.
#[unsafe(no_mangle)]
pub extern "C" fn buffer(bytes: usize) -> *mut u8 {
    let mut buffer = lock();
    buffer.resize(bytes, 0);
    buffer.as_mut_ptr()
}

/// Takes the buffer's content as the user's log. Call this once, before the first question.
#[unsafe(no_mangle)]
pub extern "C" fn give_log() {
    give_standard_input(mem::take(&mut lock()));
}

/// Answers the question in the buffer. Replaces the question by the answer, and returns the answer's length.
#[unsafe(no_mangle)]
pub extern "C" fn ask() -> usize {
    panic::set_hook(Box::new(|what| {
        let text = what.to_string();
        // SAFETY: the text lives until the call returns, and the page does not read beyond its length.
        unsafe { panicked(text.as_ptr(), text.len()) }
    }));
    let question = mem::take(&mut *lock());
    let said = answer(&question, &LOGS, &mut Page).into_bytes();
    let bytes = said.len();
    *lock() = said;
    bytes
}
