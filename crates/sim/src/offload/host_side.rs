//! The simulated host: the web server above the OS layer, and a processor that takes time.

use super::clients::SERVER;
use super::config::{Experiment, HostCosts};
use super::http::ClosingHttp;
use super::link::{SimulatedLink, Tally};
use super::pages::Pages;
use super::worker::Worker;
use crate::config::Invalid;
use baton_apps::web;
use baton_bus::link::LinkError;
use baton_host::offload::OsLayer;
use baton_tcp::Symbolic;
use baton_wire::{Span, Time};

/// What runs on the host.
enum Application {
    Web(web::Server<Symbolic, ClosingHttp>),
    Pages(Pages),
}

/// The host with all that is its own.
pub(super) struct HostSide {
    os: OsLayer<Symbolic>,
    application: Application,
    pub(super) worker: Worker,
    costs: HostCosts,
}

impl HostSide {
    /// A host whose server is about to listen.
    pub(super) fn new(experiment: &Experiment) -> Result<Self, Invalid> {
        let config = &experiment.host;
        let mut os = OsLayer::new(config.interface.clone())
            .map_err(|error| Invalid::new("host.interface", error, "one that can work"))?;
        os.listen(Time::ZERO, SERVER, config.backlog)
            .map_err(|status| {
                Invalid::new(
                    "host.interface.most_sockets",
                    format!("{status:?}"),
                    "room for a listener",
                )
            })?;
        let mut worker = Worker::new(
            Span::from_ns(config.costs.wake_up_ns.into()),
            config.costs.wake_up_jitter_percent,
            experiment.run.seed ^ 0x4057,
        );
        worker.wake(Time::ZERO);
        Ok(Self {
            os,
            application: match config.pages {
                None => Application::Web(web::Server::with_config(
                    config.web.clone(),
                    ClosingHttp::default(),
                )),
                Some(pages) => Application::Pages(Pages::new(pages)),
            },
            worker,
            costs: config.costs.clone(),
        })
    }

    /// When it is to be looked at.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.worker.poll_timeout(self.timer())
    }

    fn timer(&self) -> Option<Time> {
        let of_application = match &self.application {
            Application::Web(_) => None,
            Application::Pages(pages) => pages.poll_timeout(),
        };
        match (self.os.poll_timeout(), of_application) {
            (Some(os), Some(application)) => Some(os.min(application)),
            (os, application) => os.or(application),
        }
    }

    /// Ends the piece of work that ends at `now`, and releases what goes onto the link.
    pub(super) fn end_work(&mut self, now: Time, link: &mut SimulatedLink) {
        if self.worker.ends(now) {
            link.release_host(now);
            if link.is_waiting_for_host() || self.may_put(link) {
                self.worker.go_on(now);
            }
        }
    }

    /// Whether requests that found no room would find some now.
    fn may_put(&self, link: &SimulatedLink) -> bool {
        self.os.queue().is_held_up() && link.has_room_for_requests()
    }

    /// Something has happened on the link.
    pub(super) fn look_at(&mut self, now: Time, link: &SimulatedLink) {
        if link.is_waiting_for_host() || self.may_put(link) {
            self.worker.wake(now);
        }
    }

    /// Begins a piece of work at `now`, if it is awake and has something to do: one turn of the server's event loop, with all that is there.
    /// What is asked for meanwhile leaves together.
    ///
    /// # Errors
    /// The adapter broke a rule, or the link is gone.
    pub(super) fn begin_work(
        &mut self,
        now: Time,
        link: &mut SimulatedLink,
    ) -> Result<(), LinkError> {
        if !self.worker.may_begin(now, self.timer()) {
            return Ok(());
        }
        self.os.gather(now, link)?;
        let mut events = 0;
        if let Application::Pages(pages) = &mut self.application {
            events += pages.handle_timeouts(now, &mut self.os.calls(now, link));
        }
        while let Some(ready) = self.os.next_ready() {
            let mut sockets = self.os.calls(now, link);
            match &mut self.application {
                Application::Web(server) => server.step(&mut sockets, ready),
                Application::Pages(pages) => pages.step(now, &mut sockets, ready),
            }
            events += 1;
        }
        self.os.transmit(now, link)?;
        let span = self.cost(events, link.take_host_tally());
        self.worker.work(now, span);
        Ok(())
    }

    fn cost(&self, events: u32, tally: Tally) -> Span {
        let costs = &self.costs;
        let ns = u64::from(costs.event_ns) * u64::from(events)
            + u64::from(costs.descriptor_ns) * u64::from(tally.descriptors)
            + u64::from(costs.transfer_ns) * u64::from(tally.transfers)
            + u64::from(costs.kilobyte_ns) * tally.bytes / 1024;
        // No piece of work is without time, so that time goes on.
        Span::from_ns(ns.max(1))
    }

    /// Its queue of requests.
    pub(super) fn queue(&self) -> &baton_bus::DescriptorQueue {
        self.os.queue()
    }

    /// Asserts what always holds.
    pub(super) fn check(&self) {
        self.os.check();
    }
}
