//! Cache replacement: which block a NIC's cache evicts.

use super::Raised;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Methods of a policy for one cache, and the slots in use, against which Python's answers are checked.
#[derive(Debug)]
pub struct Replacement {
    policy: Option<Methods>,
    in_use: Vec<bool>,
    raised: Raised,
}

#[derive(Debug)]
struct Methods {
    inserted: Py<PyAny>,
    used: Py<PyAny>,
    removed: Py<PyAny>,
    victim: Py<PyAny>,
}

impl Replacement {
    /// Creates the policy that `make` returns for a cache of `blocks` blocks.
    pub fn new(make: &Py<PyAny>, blocks: u32, raised: &Raised) -> Self {
        let made = |py: Python<'_>| {
            let policy = make.bind(py).call1((blocks,))?;
            let method = |name: &str| policy.getattr(name).map(Bound::unbind);
            Ok(Methods {
                inserted: method("inserted")?,
                used: method("used")?,
                removed: method("removed")?,
                victim: method("victim")?,
            })
        };
        Self {
            policy: raised.ask(made),
            in_use: vec![false; blocks as usize],
            raised: raised.clone(),
        }
    }

    fn tell(&self, tell: impl FnOnce(Python<'_>, &Methods) -> PyResult<Py<PyAny>>) {
        if let Some(methods) = &self.policy {
            self.raised.ask(|py| tell(py, methods).map(drop));
        }
    }

    /// Returns the slot that Python chooses, if it is valid.
    fn answer(&self) -> Option<u32> {
        let methods = self.policy.as_ref()?;
        self.raised.ask(|py| {
            let answer = methods.victim.call0(py)?;
            let slot = answer.extract::<u32>(py).ok();
            let is_used = |slot: &u32| self.in_use.get(*slot as usize) == Some(&true);
            slot.filter(is_used).ok_or_else(|| {
                let found = answer.bind(py).repr().map_or_else(|_| "?".to_owned(), |text| text.to_string());
                PyValueError::new_err(format!(
                    "replacement: victim() returned {found}; expected the number of a slot that is in use"
                ))
            })
        })
    }
}

impl baton_cache::Replacement for Replacement {
    fn inserted(&mut self, slot: u32, key: u64, bytes: u32) {
        self.in_use[slot as usize] = true;
        self.tell(|py, methods| methods.inserted.call1(py, (slot, key, bytes)));
    }

    fn used(&mut self, slot: u32) {
        self.tell(|py, methods| methods.used.call1(py, (slot,)));
    }

    fn removed(&mut self, slot: u32) {
        self.in_use[slot as usize] = false;
        self.tell(|py, methods| methods.removed.call1(py, (slot,)));
    }

    fn victim(&mut self) -> Option<u32> {
        let any = self.in_use.iter().position(|used| *used)? as u32;
        // Any slot will do until the run has ended.
        let slot = self.answer().unwrap_or(any);
        self.in_use[slot as usize] = false;
        Some(slot)
    }

    fn check(&self) {}
}
