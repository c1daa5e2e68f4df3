//! Selects the processor on which a thread runs.

use crate::error::LiveError;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;

/// Returns the processors that this thread may use, in ascending order.
///
/// # Errors
/// The system does not report them.
pub fn allowed_cores() -> io::Result<Vec<usize>> {
    let allowed = sched_getaffinity(None)?;
    let all = 0..CpuSet::MAX_CPU;
    Ok(all.filter(|&core| allowed.is_set(core)).collect())
}

/// Restricts the calling thread to `core`, or to the last core that it may use if `core` is `None`. Returns the core.
///
/// # Errors
/// The core does not exist, or this process may not use it.
pub fn pin_to_core(core: Option<usize>) -> Result<usize, LiveError> {
    let failed = || LiveError::failed("cannot choose a core for the engine");
    let cores = allowed_cores().map_err(failed())?;
    let wanted = core.or(cores.last().copied());
    let Some(core) = wanted.filter(|core| cores.contains(core)) else {
        return Err(LiveError::BadInput(format!(
            "--core {}: there is no such core, or this process may not use it; expected {}",
            core.unwrap_or_default(),
            ranges(&cores)
        )));
    };
    let mut one = CpuSet::new();
    one.set(core);
    sched_setaffinity(None, &one).map_err(|error| failed()(error.into()))?;
    Ok(core)
}

/// Formats ascending numbers as people write them: `0-3, 8`.
fn ranges(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let text = |run: &[usize]| match *run {
        [first, .., last] => format!("{first}-{last}"),
        [only] => only.to_string(),
        [] => String::new(),
    };
    runs.map(text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_pinned_and_others_are_not() {
        let pinned = std::thread::spawn(|| {
            let core = pin_to_core(None).expect("some core");
            let set = sched_getaffinity(None).expect("an answer");
            assert_eq!((set.count(), set.is_set(core)), (1, true));
            pin_to_core(Some(core)).expect("the same again");
            core
        });
        let core = pinned.join().expect("no panic");
        assert!(sched_getaffinity(None).expect("an answer").is_set(core));
    }

    #[test]
    fn a_missing_core_is_refused_with_a_list_of_existing_ones() {
        for core in [CpuSet::MAX_CPU - 1, usize::MAX] {
            let refused = pin_to_core(Some(core)).expect_err("no such core");
            let text = refused.to_string();
            assert!(text.starts_with(&format!("--core {core}: ")), "{text}");
            assert!(text.contains("; expected "), "{text}");
        }
    }

    #[test]
    fn numbers_in_a_row_are_written_as_a_range() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2, 5, 7-8");
        assert_eq!(ranges(&[]), "");
    }
}
