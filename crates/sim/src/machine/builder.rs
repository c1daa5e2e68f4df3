//! Builds a machine that uses the caller's own policies.

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

/// Policies that replace those that the experiment names.
#[derive(Default)]
pub(super) struct Policies {
    pub(super) selection: Option<Box<dyn Selection>>,
    /// Creates the policy for each host's side of a cache.
    pub(super) coherence: Option<Box<dyn Fn() -> Box<dyn Coherence> + Send>>,
    pub(super) affinity: Option<Box<dyn Affinity>>,
    /// Creates the policy for a cache with the given number of blocks.
    pub(super) replacement: Option<Arc<MakeReplacement>>,
    /// Creates the policy for a NIC with the given Hard_Limit.
    pub(super) scheduler: Option<Box<Make<dyn Schedule>>>,
    pub(super) load_control: Option<Box<Make<dyn Governor>>>,
    /// Creates the policy for a ring of the given depth: for the host and for the adapter.
    pub(super) batching: Option<Box<Make<dyn BatchingRule>>>,
}

/// Creates a policy for each NIC.
type Make<T> = dyn Fn(u32) -> Box<T> + Send;

/// Creates a policy for each NIC's cache. It is shared, because each adapter's sockets keep it.
type MakeReplacement = dyn Fn(u32) -> Box<dyn Replacement> + Send + Sync;

/// Builder for a [`Machine`].
///
/// ```
/// use baton_host::{Decision, Selection, View};
/// use baton_sim::{Machine, NoObserver, config::Experiment};
///
/// /// Hands off connections that still have much to send.
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
    /// Returns a builder for a machine that runs this experiment.
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
    /// Replaces the workload of the experiment.
    pub fn load(mut self, load: Load) -> Self {
        self.load = Some(load);
        self
    }

    /// Sets the links to capture.
    pub fn captures(mut self, captures: &'a [Capture]) -> Self {
        self.captures = captures;
        self
    }

    /// Sets the timeline to write.
    pub fn timeline(mut self, timeline: Option<&'a Timeline>) -> Self {
        self.timeline = timeline;
        self
    }

    /// Sets the policy that selects connections to hand off (handoff-policies 3.3).
    pub fn selection(mut self, policy: impl Selection + 'static) -> Self {
        self.policies.selection = Some(Box::new(policy));
        self
    }

    /// Sets the policy for blocks in the NICs' caches when a file changes (data-caching 4.4).
    pub fn coherence(mut self, policy: impl Coherence + Clone + 'static) -> Self {
        self.policies.coherence = Some(Box::new(move || Box::new(policy.clone())));
        self
    }

    /// Sets the policy that chooses the answering NIC (data-caching 6.3). Without effect if adapters establish connections, because each
    /// adapter answers its own.
    pub fn affinity(mut self, policy: impl Affinity + 'static) -> Self {
        self.policies.affinity = Some(Box::new(policy));
        self
    }

    /// Sets the policy that chooses the block to evict from a NIC's cache (data-caching 4.2). `make` takes the number of blocks of the
    /// cache.
    pub fn replacement<R: Replacement + 'static>(
        mut self,
        make: impl Fn(u32) -> R + Send + Sync + 'static,
    ) -> Self {
        self.policies.replacement = Some(Arc::new(move |blocks| Box::new(make(blocks))));
        self
    }

    /// Sets the policy that chooses a NIC's next piece of work (handoff-policies 3.1). Without effect if an adapter does all pending work
    /// in one piece.
    pub fn scheduler(mut self, policy: impl Schedule + Clone + 'static) -> Self {
        self.policies.scheduler = Some(Box::new(move |_| Box::new(policy.clone())));
        self
    }

    /// Sets the policy that limits the connections on a NIC (handoff-policies 3.2). `make` takes the Hard_Limit.
    pub fn load_control<G: Governor + 'static>(
        mut self,
        make: impl Fn(u32) -> G + Send + 'static,
    ) -> Self {
        self.policies.load_control = Some(Box::new(move |hard_limit| Box::new(make(hard_limit))));
        self
    }

    /// Sets the rule for when either side transfers descriptors (batching 3.1). `make` takes the depth of the ring.
    pub fn batching<R: BatchingRule + 'static>(
        mut self,
        make: impl Fn(u32) -> R + Send + 'static,
    ) -> Self {
        self.policies.batching = Some(Box::new(move |depth| Box::new(make(depth))));
        self
    }

    /// Creates the machine, at time zero.
    ///
    /// # Errors
    /// The experiment has an invalid value, its workload cannot be loaded, or a capture cannot be created.
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
