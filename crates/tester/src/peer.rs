//! The participants of a test: interfaces of this machine or of another.

use crate::error::TesterError;
use crate::signal::Signal;
use crate::station::Station;
use crate::task::{Outcome, Task};

/// One end of a test. In each trial, its methods are called in order.
pub trait Peer: Send {
    /// Returns the Ethernet address of the peer.
    fn mac(&self) -> [u8; 6];

    /// Returns whether the peer's clock is that of this machine.
    fn is_here(&self) -> bool;

    /// Prepares for a task.
    ///
    /// # Errors
    /// The peer cannot do the task.
    fn prepare(&mut self, task: &Task) -> Result<(), TesterError>;

    /// Does the task.
    ///
    /// # Errors
    /// The task failed.
    fn run(&mut self, task: &Task, signal: &Signal) -> Result<(), TesterError>;

    /// Returns the outcome, after all peers have done their tasks.
    ///
    /// # Errors
    /// The peer does not answer.
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
