//! Limits on imported connections: Hard_Limit, Soft_Limit and load control (handoff-policies 3.2).

use crate::config::{LoadControl, Relief};
use crate::load_control::{Governor, Load, LoadState, Watermarks};
use baton_bus::descriptor::Status;

/// Limits on IMPORTs.
#[derive(Debug)]
pub(super) struct Limits {
    governor: Box<dyn Governor>,
    relief: Relief,
    is_enabled: bool,
    hard_limit: u32,
    /// Cnum: imported connections on the adapter.
    connections: u32,
    /// Number of imported connections that hosts were asked to take back.
    asked: u32,
    /// Whether imports are refused because the adapter is about to stop.
    closed: bool,
    /// The Soft_Limit that was last announced to the hosts.
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

    /// Replaces load control by the caller's own. With active relief, hosts are asked to take back the surplus that it reports.
    pub(super) fn set_governor(&mut self, governor: Box<dyn Governor>) {
        self.governor = governor;
    }

    /// Returns Soft_Limit: the maximum number of imported connections at present.
    pub(super) fn soft_limit(&self) -> u32 {
        match self.closed {
            true => 0,
            false => self.governor.soft_limit().min(self.hard_limit),
        }
    }

    /// Returns whether hosts may be asked to take connections back.
    pub(super) fn relieves_actively(&self) -> bool {
        self.is_enabled && self.relief == Relief::Active
    }

    /// Returns Cnum.
    pub(super) fn connections(&self) -> u32 {
        self.connections
    }

    /// Returns the state of load control.
    pub(super) fn load_state(&self) -> LoadState {
        self.governor.state()
    }

    /// Checks whether another connection may be imported.
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

    /// Records that a connection has left. `was_asked` says whether the host was asked to take it back.
    pub(super) fn left(&mut self, was_asked: bool) {
        self.connections -= 1;
        self.asked -= u32::from(was_asked);
    }

    /// Records that hosts were asked to take `count` connections back.
    pub(super) fn asked(&mut self, count: u32) {
        self.asked += count;
    }

    /// Refuses connections from now on.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// Runs load control. Returns the number of connections that the hosts should now be asked to take back, in addition to those already
    /// asked for: more connections may have arrived since.
    pub(super) fn run(&mut self, load: &Load) -> u32 {
        self.governor.run(load, self.connections);
        match self.relief {
            Relief::Passive => 0,
            Relief::Active => (self.governor.surplus(self.connections)).saturating_sub(self.asked),
        }
    }

    /// Returns Soft_Limit if it differs from the announced one. With `no_memory` for any connection, Soft_Limit counts as 0.
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
            "hosts are asked only for connections that are here"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_that_arrive_during_relief_are_relieved_too() {
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
