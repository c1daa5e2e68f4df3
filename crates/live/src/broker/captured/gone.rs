//! What becomes of the connections of an adapter that is gone without a word.

use super::Captured;
use super::entry::{Entry, Flows, Taker};
use crate::broker::memory::{Owner, Stage, now_ms};
use crate::broker::notice::{BrokerNotice, Loss};
use crate::broker::record::{Said, WORDS, decode, without_data};
use crate::broker::session::Session;
use baton_wire::Flow;
use bytes::Bytes;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// After an adapter was killed an application that lives sees it by its link, and the broker by its stream.
const LONGEST_DOUBT: Duration = Duration::from_secs(1);

/// Why a connection of an adapter that is gone cannot be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRecovered {
    /// The application has not handed it over, or it is lost already.
    #[error("a connection that was not handed over by this application, or was reset")]
    NotTaken,
    /// The adapter has it.
    #[error("the adapter has the connection")]
    Alive,
    /// The application has not got it in this state, or not last.
    #[error("the state is not the one in which the connection was given out last")]
    OtherState,
}

impl Captured {
    /// An adapter is gone without a word. No packet of its connections reaches the kernel; those of which data was under way are lost.
    pub(in crate::broker) fn bury(&self, session: &Arc<Session>) {
        let mut flows = self.lock();
        if !flows.is_current(session) {
            return;
        }
        flows.adapter = None;
        let _ = session.gone.set(Instant::now());
        let (mut over, mut lost) = (Vec::new(), Vec::new());
        let (mut complete, mut moving) = (0, 0);
        let of_session = |entry: &&Entry| Arc::ptr_eq(&entry.session, session);
        for (flow, entry) in &flows.entries {
            if !of_session(&entry) {
                continue;
            }
            // Whoever comes next must not have them.
            let _ = self.lookup.hold(flow);
            let place = entry.place();
            match (place.owner().1, place.stage(), place.record.read()) {
                (Owner::Over, ..) | (_, Stage::Finished, _) => over.push(*flow),
                // It is being put back.
                (Owner::Broker, ..) => {}
                _ if entry.orphan.is_some() => lost.push((*flow, Loss::Abandoned)),
                (Owner::Application, ..) | (_, _, Said::Untouched) => moving += 1,
                (_, _, Said::Complete(_)) => complete += 1,
                (_, _, Said::Incomplete) => lost.push((*flow, Loss::Incomplete)),
            }
        }
        flows.tell(BrokerNotice::Killed {
            pid: session.pid,
            complete,
            moving,
            reset: lost.len(),
        });
        for flow in over {
            self.end(&mut flows, &flow);
        }
        self.give_up(&mut flows, lost);
        drop(flows);
        self.changed.notify_all();
    }

    /// Waits a moment until a connection of `taker` is as it should be: an application may hear of an adapter's end before the broker does.
    pub(super) fn lock_once(
        &self,
        flow: &Flow,
        taker: Taker,
        is_ready: impl Fn(&Entry) -> bool,
    ) -> Result<MutexGuard<'_, Flows>, NotRecovered> {
        let limit = Instant::now() + LONGEST_DOUBT;
        let mut flows = self.lock();
        loop {
            let entry = flows.entries.get_mut(flow);
            let entry = entry.ok_or(NotRecovered::NotTaken)?;
            if !entry.belongs_to(taker) {
                return Err(NotRecovered::NotTaken);
            }
            if is_ready(entry) {
                return Ok(flows);
            }
            let left = limit.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(NotRecovered::Alive);
            }
            let waited = self.changed.wait_timeout(flows, left);
            flows = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// A connection whose adapter is gone goes on in the kernel.
    pub(in crate::broker) fn count_recovered(&self) {
        self.lock().stats.recovered += 1;
    }

    /// A connection whose adapter is gone cannot go on.
    pub(in crate::broker) fn lose(&self, flow: &Flow, loss: Loss) {
        self.give_up(&mut self.lock(), vec![(*flow, loss)]);
    }

    /// Lets go of connections that are lost: their peers are asked where they are, and the kernel answers by a reset. The places are free after that:
    /// if this process is killed meanwhile, the broker after it finds them.
    pub(super) fn give_up(&self, flows: &mut Flows, lost: Vec<(Flow, Loss)>) {
        for (flow, loss) in lost {
            let Some(entry) = flows.entries.get(&flow) else {
                continue;
            };
            if !entry.is_given_up() {
                continue;
            }
            // There is nothing to be done about a kernel without memory.
            let _ = self.lookup.remove(&flow);
            self.ask(&flow, &entry.place().record.last());
            if self.forget(flows, &flow) {
                flows.stats.reset += 1;
                flows.tell(BrokerNotice::Lost(flow, loss));
            }
        }
    }

    pub(super) fn ask(&self, flow: &Flow, words: &[u32; WORDS]) {
        // A peer that is not asked hears of it when it sends something.
        if let Some(last) = decode(*flow, &without_data(words), Bytes::new(), now_ms()) {
            self.question(&last, true);
        }
    }
}
