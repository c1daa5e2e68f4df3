//! What happens to the connections of an adapter that has disappeared without detaching.

use super::Captured;
use super::entry::{Entry, Flows, Taker};
use crate::broker::memory::{Owner, Stage, now_ms};
use crate::broker::notice::{BrokerNotice, Loss};
use crate::broker::record::{Said, WORDS, decode, without_data};
use crate::broker::session::Session;
use baton_sockets::broker::Destination;
use baton_wire::Flow;
use bytes::Bytes;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// After an adapter is killed, the maximum time between the moments at which applications and the broker notice it.
const LONGEST_DOUBT: Duration = Duration::from_secs(1);

/// Reason why a connection of an adapter that has disappeared cannot be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRecovered {
    /// The application has not handed over the connection, or the connection is lost already.
    #[error("this application has not handed over the connection, or it was reset")]
    NotTaken,
    /// The adapter has the connection.
    #[error("the adapter has the connection")]
    Alive,
    /// The application was never given this state of the connection, or a later one was given out since.
    #[error("the state is not the one that the application was given last")]
    OtherState,
}

impl Captured {
    /// Handles an adapter that has disappeared without detaching. No packet of its connections reaches the kernel, and connections with data
    /// in flight are lost.
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
            // The next adapter must not receive packets of these connections.
            let _ = self.lookup.hold(flow);
            let place = entry.place();
            match (place.owner().1, place.stage(), place.record.read()) {
                (Owner::Over, ..) | (_, Stage::Finished, _) => over.push(*flow),
                // The broker is putting the connection back.
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

    /// Locks the flows once a connection of `taker` is ready. Waits briefly: an application may notice an adapter's end before the broker
    /// does.
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

    /// Counts a connection that continues in the kernel after its adapter has disappeared.
    pub(in crate::broker) fn count_recovered(&self) {
        self.lock().stats.recovered += 1;
    }

    /// Gives up a connection that cannot continue after its adapter has disappeared.
    pub(in crate::broker) fn lose(&self, flow: &Flow, loss: Loss) {
        self.give_up(&mut self.lock(), vec![(*flow, loss)]);
    }

    /// Gives up lost connections: asks their peers for their sequence numbers, so that the kernel resets the connections when the peers
    /// answer. Frees the places only afterwards, so that the next broker finds them if this process is killed.
    pub(super) fn give_up(&self, flows: &mut Flows, lost: Vec<(Flow, Loss)>) {
        for (flow, loss) in lost {
            let Some(entry) = flows.entries.get(&flow) else {
                continue;
            };
            if !entry.is_given_up() {
                continue;
            }
            // Nothing can be done about a kernel without memory.
            let _ = self.lookup.remove(&flow);
            self.ask(&flow, &entry.place().record.last());
            if self.forget(flows, &flow) {
                flows.stats.reset += 1;
                let why = loss.to_string();
                self.history().ended(&flow, Destination::Reset, why);
                flows.tell(BrokerNotice::Lost(flow, loss));
            }
        }
    }

    pub(super) fn ask(&self, flow: &Flow, words: &[u32; WORDS]) {
        // If the peer cannot be asked, it receives the reset when it next sends something.
        if let Some(last) = decode(*flow, &without_data(words), Bytes::new(), now_ms()) {
            self.question(&last, true);
        }
    }
}
