//! Drivers whose NICs interrupt.

use super::super::event::Context;
use super::super::host::Work;
use super::{Machine, Task};

impl Machine {
    /// Goes on with the interrupt handler, or into that of a NIC that interrupts: it goes before the application.
    pub(super) fn begin_interrupt(&mut self, cx: &mut Context<'_>) {
        let ended = self.in_interrupt;
        if let Some(nic) = ended {
            self.go_on_in_interrupt(cx, nic);
            if self.task.is_some() {
                return;
            }
        }
        // The application has its turn before the same NIC interrupts again.
        let nics = self.interfaces.len() as u8;
        let first = ended.map_or(0, |nic| nic + 1);
        let others = if ended.is_some() { nics - 1 } else { nics };
        for nic in (0..others).map(|nth| (first + nth) % nics) {
            let interface = &mut self.interfaces[usize::from(nic)];
            if interface.nic.interrupts {
                interface.nic.interrupts = false;
                self.in_interrupt = Some(nic);
                self.interrupts += 1;
                return self.begin(cx, Task::Enter(nic), Work::Interrupt);
            }
        }
    }

    /// The driver's interrupt handler: what was received, then what was sent, until there is nothing left.
    fn go_on_in_interrupt(&mut self, cx: &mut Context<'_>, nic: u8) {
        if !self.begin_driver(cx, nic) {
            self.refill(cx, nic);
            self.in_interrupt = None;
            self.interfaces[usize::from(nic)].nic.end_interrupt(cx);
        }
    }
}
