//! Who takes part in a test: an interface of this machine, or one of another.

use crate::error::TesterError;
use crate::signal::Signal;
use crate::station::Station;
use crate::task::{Outcome, Task};

/// One end of a test. In each trial its methods are called in their order.
pub trait Peer: Send {
    /// Its Ethernet address.
    fn mac(&self) -> [u8; 6];

    /// Its clock is that of this machine.
    fn is_here(&self) -> bool;

    /// Gets ready for a task.
    ///
    /// # Errors
    /// It cannot.
    fn prepare(&mut self, task: &Task) -> Result<(), TesterError>;

    /// Does it.
    ///
    /// # Errors
    /// It has failed.
    fn run(&mut self, task: &Task, signal: &Signal) -> Result<(), TesterError>;

    /// Says what came of it, when all others have done theirs.
    ///
    /// # Errors
    /// It does not answer.
    fn finish(&mut self) -> Result<Outcome, TesterError>;
}

impl Peer for Station {
    fn mac(&self) -> [u8; 6] {
        self.link().mac
    }

    fn is_here(&self) -> bool {
        true
    }

    fn prepare(&mut self, _task: &Task) -> Result<(), TesterError> {
        Station::prepare(self)
    }

    fn run(&mut self, task: &Task, signal: &Signal) -> Result<(), TesterError> {
        Station::run(self, task, signal)
    }

    fn finish(&mut self) -> Result<Outcome, TesterError> {
        Station::finish(self)
    }
}
