//! Drivers that poll, as those of Click do (Kohler et al., The Click Modular Router, 2000, section 5.1).
//!
//! A driver looks at its ring, takes a few frames, and lets the application have done with them before the next one looks: however many frames
//! come, there is time to forward those that were taken. That the processor looks all the time, also when there is nothing, is not modelled:
//! it finds at once what there is, and its time is counted where it found something.

use super::super::event::Context;
use super::super::host::Work;
use super::core::{Core, Devices, Task};

/// Frames that are taken at a time where the driver does not say (Click: `PollDevice`'s BURST).
const BURST: u32 = 8;

/// What polling drivers are at.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Polling {
    /// The NIC that is looked at.
    nic: u8,
    /// What may still be taken of it now: frames, or batches of descriptors.
    left: u32,
}

impl Core {
    /// Goes on with the NIC that is looked at, then with the application, then with the next NIC that has something.
    pub(super) fn begin_with_polling(&mut self, cx: &mut Context<'_>, devices: &mut Devices<'_>) {
        let Some(Polling { nic, left }) = self.polling else {
            return;
        };
        if left > 0 && self.begin_driver(cx, devices, nic) {
            let left = left - 1;
            self.polling = Some(Polling { nic, left });
            return;
        }
        self.polling = Some(Polling { nic, left: 0 });
        self.refill(cx, devices, nic);
        self.begin_application(cx, devices);
        if self.task.is_some() {
            return;
        }
        let nics = devices.interfaces.len() as u8;
        let mut in_turn = (1..=nics).map(|nth| (nic + nth) % nics);
        let next = in_turn.find(|nic| devices.interfaces[usize::from(*nic)].has_work(self.number));
        if let Some(nic) = next {
            let rule = devices.interfaces[usize::from(nic)].driver;
            let left = rule.polls.unwrap_or(BURST);
            self.polling = Some(Polling { nic, left });
            let slot = devices.interfaces[usize::from(nic)]
                .nic
                .next_to_look_at(self.number);
            self.begin(cx, Task::Poll, Work::Poll { nic, slot });
        }
    }
}
