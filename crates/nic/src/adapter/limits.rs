//! How many connections may be imported: Hard_Limit, Soft_Limit and load control (handoff-policies 3.2).

use crate::config::{LoadControl, Relief};
use crate::load_control::{Governor, LoadState, Watermarks};
use baton_bus::descriptor::Status;

/// What bounds IMPORTs.
#[derive(Debug)]
pub(super) struct Limits {
    governor: Box<dyn Governor>,
    relief: Relief,
    is_enabled: bool,
    hard_limit: u32,
    /// Cnum: imported connections on the adapter.
    connections: u32,
    /// No more are taken: the adapter is going to stop.
    closed: bool,
    /// Soft_Limit as the hosts know it.
    announced: u32,
}

impl Limits {
    pub(super) fn new(load_control: &LoadControl, hard_limit: u32) -> Self {
        Self {
            governor: Box::new(Watermarks::new(load_control.clone(), hard_limit)),
            relief: load_control.relief,
            is_enabled: load_control.enabled,
            hard_limit,
            connections: 0,
            closed: false,
            announced: hard_limit,
        }
    }

    /// Load control of the caller's own; a relief of its choice asks hosts for what is too many.
    pub(super) fn set_governor(&mut self, governor: Box<dyn Governor>) {
        self.governor = governor;
    }

    /// Soft_Limit: the most connections that may be imported now.
    pub(super) fn soft_limit(&self) -> u32 {
        match self.closed {
            true => 0,
            false => self.governor.soft_limit().min(self.hard_limit),
        }
    }

    /// Whether hosts may be asked to take connections back.
    pub(super) fn relieves_actively(&self) -> bool {
        self.is_enabled && self.relief == Relief::Active
    }

    /// Cnum.
    pub(super) fn connections(&self) -> u32 {
        self.connections
    }

    /// State of load control.
    pub(super) fn load_state(&self) -> LoadState {
        self.governor.state()
    }

    /// Whether another connection may be imported.
    pub(super) fn may_import(&self) -> Result<(), Status> {
        match self.connections {
            cnum if cnum >= self.hard_limit => Err(Status::HardLimit),
            cnum if cnum >= self.soft_limit() => Err(Status::SoftLimit),
            _ => Ok(()),
        }
    }

    pub(super) fn imported(&mut self) {
        self.connections += 1;
    }

    pub(super) fn left(&mut self) {
        self.connections -= 1;
    }

    /// No connection is taken from now on.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// Runs load control; gives how many connections the host should take back now.
    pub(super) fn run(&mut self, qlen: u32) -> u32 {
        let before = self.governor.state();
        self.governor.run(qlen, self.connections);
        let begins = self.governor.state() == LoadState::Decrease && before != LoadState::Decrease;
        match begins && self.relief == Relief::Active {
            true => self.governor.surplus(self.connections),
            false => 0,
        }
    }

    /// Soft_Limit, if the hosts know another; 0 while there is `no_memory` for any connection.
    pub(super) fn soft_limit_change(&mut self, no_memory: bool) -> Option<u32> {
        let now = match no_memory {
            true => 0,
            false => self.soft_limit(),
        };
        (std::mem::replace(&mut self.announced, now) != now).then_some(now)
    }

    pub(super) fn check(&self) {
        self.governor.check();
        assert!(
            self.connections <= self.hard_limit,
            "Cnum is at most Hard_Limit"
        );
    }
}
