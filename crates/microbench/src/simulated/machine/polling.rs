//! Drivers that poll, as those of Click do (Kohler et al., The Click Modular Router, 2000, section 5.1).
//!
//! A driver looks at its ring, takes a few frames, and lets the application finish them before the next driver looks. However many frames
//! arrive, there is time to forward those that were taken. The model does not charge for unsuccessful polls: the processor finds new frames
//! at once, and only successful polls take time.

use super::super::event::Context;
use super::super::host::Work;
use super::core::{Core, Devices, Task};

/// Number of frames that a driver takes at a time if its profile does not say (Click: `PollDevice`'s BURST).
const BURST: u32 = 8;

/// State of polling drivers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Polling {
    /// The NIC that is being polled.
    nic: u8,
    /// How many frames or batches of descriptors may still be taken from this NIC now.
    left: u32,
}

impl Core {
    /// Continues with the NIC that is being polled, then with the application, then with the next NIC that has work.
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
