//! NewReno: the window grows by a segment each round trip, and is half of what was in flight after a loss (RFC 5681, RFC 3465).

use super::controller::{Acked, Controller, Loss, Window};
use serde::{Deserialize, Serialize};

/// State of NewReno.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NewReno {
    /// Bytes acknowledged and not yet counted towards growth (RFC 3465 2.1).
    credit: u32,
}

impl Controller for NewReno {
    fn on_growth(&mut self, window: Window, acked: &Acked) -> u32 {
        self.credit = self.credit.saturating_add(acked.bytes);
        if self.credit < window.bytes {
            return 0;
        }
        self.credit -= window.bytes;
        acked.smss
    }

    /// RFC 5681 equation 4.
    fn on_loss(&mut self, _window: Window, loss: &Loss) -> u32 {
        self.credit = 0;
        (loss.flight / 2).max(2 * loss.smss)
    }
}
