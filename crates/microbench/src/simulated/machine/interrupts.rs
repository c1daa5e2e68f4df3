//! Drivers whose NICs interrupt.

use super::super::event::Context;
use super::super::host::Work;
use super::core::{Core, Devices, Task};

impl Core {
    /// Continues the interrupt handler, or enters that of a NIC that interrupts. Interrupts go before the application.
    pub(super) fn begin_interrupt(&mut self, cx: &mut Context<'_>, devices: &mut Devices<'_>) {
        let ended = self.in_interrupt;
        if let Some(nic) = ended {
            self.go_on_in_interrupt(cx, devices, nic);
            if self.task.is_some() {
                return;
            }
        }
        // The application gets its turn before the same NIC can interrupt again.
        let nics = devices.interfaces.len() as u8;
        let first = ended.map_or(0, |nic| nic + 1);
        let others = if ended.is_some() { nics - 1 } else { nics };
        for nic in (0..others).map(|nth| (first + nth) % nics) {
            let interface = &mut devices.interfaces[usize::from(nic)];
            if interface.nic.take_interrupt(self.number) {
                self.in_interrupt = Some(nic);
                self.interrupts += 1;
                return self.begin(cx, Task::Enter(nic), Work::Interrupt);
            }
        }
    }

    /// Continues the interrupt handler, which handles received frames, then sent ones, until none remain.
    fn go_on_in_interrupt(&mut self, cx: &mut Context<'_>, devices: &mut Devices<'_>, nic: u8) {
        if !self.begin_driver(cx, devices, nic) {
            self.refill(cx, devices, nic);
            self.in_interrupt = None;
            let interface = &mut devices.interfaces[usize::from(nic)];
            let (nic, mut around) = interface.with_around(cx, devices.bus);
            nic.end_interrupt(&mut around, self.number);
        }
    }
}
