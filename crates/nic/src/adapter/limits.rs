//! How many connections may be imported: Hard_Limit, Soft_Limit and load control (handoff-policies 3.2).

use crate::config::{LoadControl, Relief};
use crate::load_control::{Governor, Load, LoadState, Watermarks};
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
    /// Those of them that hosts were asked to take back.
    asked: u32,
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
            asked: 0,
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

    /// One has left, which the host was asked to take back or not.
    pub(super) fn left(&mut self, was_asked: bool) {
        self.connections -= 1;
        self.asked -= u32::from(was_asked);
    }

    /// Hosts were asked to take so many back.
    pub(super) fn asked(&mut self, count: u32) {
        self.asked += count;
    }

    /// No connection is taken from now on.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// Runs load control; gives how many connections the hosts should be asked to take back now, beside those that they were asked for:
    /// some that were on their way here may have come since.
    pub(super) fn run(&mut self, load: &Load) -> u32 {
        self.governor.run(load, self.connections);
        match self.relief {
            Relief::Passive => 0,
            Relief::Active => (self.governor.surplus(self.connections)).saturating_sub(self.asked),
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
        assert!(
            self.asked <= self.connections,
            "those that were asked for are here"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_while_others_are_asked_for_is_asked_for_too() {
        let load_control = LoadControl {
            enabled: true,
            high_water_packets: 8,
            low_water_packets: 2,
            relief: Relief::Active,
            ..LoadControl::default()
        };
        let mut limits = Limits::new(&load_control, 1000);
        (0..100).for_each(|_| limits.imported());
        let overload = Load::of_queue(9);
        assert_eq!(limits.run(&overload), 11);
        limits.asked(11);
        assert_eq!(limits.run(&overload), 0);
        limits.imported();
        assert_eq!(limits.run(&overload), 1, "it was on its way");
        limits.asked(1);
        (0..12).for_each(|_| limits.left(true));
        limits.check();
        assert_eq!((limits.run(&overload), limits.connections()), (0, 89));
        assert_eq!(limits.load_state(), LoadState::Monitor);
    }
}
