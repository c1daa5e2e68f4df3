//! A machine with policies of one's own.

use super::capture::Taps;
use super::{Capture, Machine, RunError, Timeline};
use crate::config::Experiment;
use crate::run::{Load, load_workload};
use baton_bus::BatchingRule;
use baton_cache::Replacement;
use baton_host::{Affinity, Coherence, Selection};
use baton_nic::{Governor, Schedule};
use baton_workload::log::Logs;
use std::sync::Arc;

/// Policies that take the place of those that the experiment names.
#[derive(Default)]
pub(super) struct Policies {
    pub(super) selection: Option<Box<dyn Selection>>,
    /// For each host's side of a cache.
    pub(super) coherence: Option<Box<dyn Fn() -> Box<dyn Coherence> + Send>>,
    pub(super) affinity: Option<Box<dyn Affinity>>,
    /// For a cache of so many blocks.
    pub(super) replacement: Option<Arc<MakeReplacement>>,
    /// For a NIC of this Hard_Limit.
    pub(super) scheduler: Option<Box<Make<dyn Schedule>>>,
    pub(super) load_control: Option<Box<Make<dyn Governor>>>,
    /// For a ring of this depth: the host's, and the adapter's.
    pub(super) batching: Option<Box<Make<dyn BatchingRule>>>,
}

/// Makes a policy for each NIC.
type Make<T> = dyn Fn(u32) -> Box<T> + Send;

/// Makes a policy for each NIC's cache. It is shared: each adapter's sockets keep it.
type MakeReplacement = dyn Fn(u32) -> Box<dyn Replacement> + Send + Sync;

/// A [`Machine`] that is being put together.
///
/// ```
/// use baton_host::{Decision, Selection, View};
/// use baton_sim::{Machine, NoObserver, config::Experiment};
///
/// /// Hands off what still has much to send.
/// #[derive(Debug)]
/// struct Backlog(u32);
///
/// impl Selection for Backlog {
///     fn on_established(&mut self, _view: &View) -> Decision {
///         Decision::Stay
///     }
///     fn on_send(&mut self, view: &View) -> Decision {
///         match view.bytes_in_send_buffer >= self.0 {
///             true => Decision::HandOff,
///             false => Decision::Stay,
///         }
///     }
/// }
///
/// let mut experiment = Experiment::default();
/// experiment.clients.connections = 16;
/// experiment.run.warmup_packets = Some(2_000);
/// experiment.run.measured_packets = 10_000;
/// let machine = Machine::builder(&experiment).selection(Backlog(4096)).build()?;
/// let results = machine.run("", &mut NoObserver)?;
/// assert!(results.handoff.accepted > 0);
/// # Ok::<(), baton_sim::RunError>(())
/// ```
#[must_use]
pub struct MachineBuilder<'a> {
    experiment: &'a Experiment,
    load: Option<Load>,
    captures: &'a [Capture],
    timeline: Option<&'a Timeline>,
    policies: Policies,
}

impl Machine {
    /// A machine for this experiment, which may be given a load and policies of its own.
    pub fn builder(experiment: &Experiment) -> MachineBuilder<'_> {
        MachineBuilder {
            experiment,
            load: None,
            captures: &[],
            timeline: None,
            policies: Policies::default(),
        }
    }
}

impl<'a> MachineBuilder<'a> {
    /// What the clients ask for, in place of what the experiment says.
    pub fn load(mut self, load: Load) -> Self {
        self.load = Some(load);
        self
    }

    /// What is captured of its links.
    pub fn captures(mut self, captures: &'a [Capture]) -> Self {
        self.captures = captures;
        self
    }

    /// What of the run is written as a timeline.
    pub fn timeline(mut self, timeline: Option<&'a Timeline>) -> Self {
        self.timeline = timeline;
        self
    }

    /// Which connections are handed off (handoff-policies 3.3).
    pub fn selection(mut self, policy: impl Selection + 'static) -> Self {
        self.policies.selection = Some(Box::new(policy));
        self
    }

    /// What happens in the NICs' caches when a file changes (data-caching 4.4).
    pub fn coherence(mut self, policy: impl Coherence + Clone + 'static) -> Self {
        self.policies.coherence = Some(Box::new(move || Box::new(policy.clone())));
        self
    }

    /// Which NIC answers (data-caching 6.3). Without effect where adapters establish connections: each answers what came on it.
    pub fn affinity(mut self, policy: impl Affinity + 'static) -> Self {
        self.policies.affinity = Some(Box::new(policy));
        self
    }

    /// Which block makes room in a NIC's cache (data-caching 4.2): made for a cache of so many blocks.
    pub fn replacement<R: Replacement + 'static>(
        mut self,
        make: impl Fn(u32) -> R + Send + Sync + 'static,
    ) -> Self {
        self.policies.replacement = Some(Arc::new(move |blocks| Box::new(make(blocks))));
        self
    }

    /// Which piece of work a NIC does next (handoff-policies 3.1). Without effect where an adapter does all that is there in one.
    pub fn scheduler(mut self, policy: impl Schedule + Clone + 'static) -> Self {
        self.policies.scheduler = Some(Box::new(move |_| Box::new(policy.clone())));
        self
    }

    /// How many connections may be on a NIC (handoff-policies 3.2): made for this Hard_Limit.
    pub fn load_control<G: Governor + 'static>(
        mut self,
        make: impl Fn(u32) -> G + Send + 'static,
    ) -> Self {
        self.policies.load_control = Some(Box::new(move |hard_limit| Box::new(make(hard_limit))));
        self
    }

    /// When descriptors are transferred (batching 3.1), on either side: made for a ring of so many.
    pub fn batching<R: BatchingRule + 'static>(
        mut self,
        make: impl Fn(u32) -> R + Send + 'static,
    ) -> Self {
        self.policies.batching = Some(Box::new(move |depth| Box::new(make(depth))));
        self
    }

    /// The machine, at time zero.
    ///
    /// # Errors
    /// The experiment has a value that cannot be, its workload cannot be had, or a capture cannot be made.
    pub fn build(self) -> Result<Machine, RunError> {
        let load = match self.load {
            Some(load) => load,
            None => load_workload(self.experiment, &Logs::new(), &|| false)?.0,
        };
        self.experiment.validate()?;
        let taps = Taps::new(self.captures, self.timeline, self.experiment)?;
        Machine::new(self.experiment, load, taps, self.policies)
    }
}
