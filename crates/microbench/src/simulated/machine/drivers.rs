//! When drivers work: because NICs interrupt, or because the drivers poll.
//!
//! Interrupts take precedence over the application, and a handler ends when no frame is left. Polling drivers work like those of Click
//! (Kohler et al., The Click Modular Router, 2000, section 5.1): a driver looks at its ring, takes a few frames, and lets the application
//! finish them before the next driver looks. However many frames arrive, there is time to forward those that were taken. The model does not
//! charge for unsuccessful polls: the processor finds new frames immediately, and only successful polls take time.

use super::super::host::Task;
use super::core::{Core, Devices};

/// Number of frames that a driver takes at a time if its profile does not say (Click: `PollDevice`'s BURST).
const BURST: u32 = 8;

/// The driver whose turn it is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turn {
    nic: u8,
    /// Number of frames or batches of descriptors that the driver may still take from its NIC now.
    left: u32,
}

impl Core {
    /// Begins the next task if the processor is idle.
    pub(super) fn advance(&mut self, devices: &mut Devices<'_, '_>) {
        if self.task.is_some() {
            return;
        }
        let Turn { nic, left } = self.turn;
        let is_in_turn = left > 0;
        if is_in_turn && self.begin_driver(devices, nic) {
            self.turn.left = if self.polls { left - 1 } else { left };
            return;
        }
        self.turn.left = 0;
        if is_in_turn || self.polls {
            devices.refill(nic, self.number);
        }
        if self.polls {
            self.begin_application(devices);
            if self.task.is_none() {
                self.begin_poll(devices);
            }
            return;
        }
        if is_in_turn {
            let interface = &mut devices.interfaces[usize::from(nic)];
            let (nic, mut around) = interface.with_around(devices.cx, devices.bus);
            nic.end_interrupt(&mut around, self.number);
        }
        self.begin_interrupt(devices, is_in_turn.then_some(nic));
        if self.task.is_none() {
            self.begin_application(devices);
        }
    }

    /// Enters the driver of a NIC that interrupts. The application gets its turn before the NIC whose interrupt has ended can interrupt again.
    fn begin_interrupt(&mut self, devices: &mut Devices<'_, '_>, ended: Option<u8>) {
        let nics = devices.interfaces.len() as u8;
        let first = ended.map_or(0, |nic| nic + 1);
        let others = nics - u8::from(ended.is_some());
        let mut in_turn = (0..others).map(|nth| (first + nth) % nics);
        if let Some(nic) = in_turn.find(|nic| devices.of(*nic).nic.take_interrupt(self.number)) {
            let left = u32::MAX;
            self.turn = Turn { nic, left };
            self.interrupts += 1;
            self.begin(devices, Task::Enter(nic));
        }
    }

    /// Lets the driver of the next NIC that has work poll it.
    fn begin_poll(&mut self, devices: &mut Devices<'_, '_>) {
        let (nics, last) = (devices.interfaces.len() as u8, self.turn.nic);
        let mut in_turn = (1..=nics).map(|nth| (last + nth) % nics);
        if let Some(nic) = in_turn.find(|nic| devices.of(*nic).has_work(self.number)) {
            let left = devices.of(nic).driver.polls.unwrap_or(BURST);
            self.turn = Turn { nic, left };
            let slot = devices.of(nic).nic.next_to_look_at(self.number);
            self.begin(devices, Task::Poll { nic, slot });
        }
    }
}
