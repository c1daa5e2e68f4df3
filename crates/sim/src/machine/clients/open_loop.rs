//! Connections that come by themselves.

use super::client::later;
use crate::run::Load;
use baton_wire::Time;
use baton_workload::{RequestSpec, Workload};
use std::collections::VecDeque;
use std::mem;

/// Connections of one share of the load that wait for a client, at most; more are lost.
const MOST_WAITING: usize = 1 << 20;

/// Connections that come whether earlier ones are done or not: one queue for each share of the load.
#[derive(Debug)]
pub(super) struct OpenLoop {
    queues: Vec<Queue>,
}

/// The connections of one share of the load, and the clients that have nothing to do.
#[derive(Debug)]
struct Queue {
    next: Connection,
    /// Due, but without a client, in their order.
    waiting: VecDeque<Connection>,
    idle: Vec<u32>,
    /// Scripts that were used up.
    spare: Vec<Vec<RequestSpec>>,
}

/// A connection that is to be opened.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    /// When its first request is due.
    pub(super) due: Time,
    pub(super) script: Vec<RequestSpec>,
}

/// What becomes of a connection that is due.
#[derive(Debug)]
pub(super) enum Due {
    /// This client opens it.
    Open(u32, Connection),
    /// It waits for a client; so many requests.
    Waits(usize),
    /// Too many wait.
    Lost(usize),
}

impl OpenLoop {
    /// Nothing is due before `first`. The clients of each share of the load have nothing to do.
    pub(super) fn new(workloads: &mut Load, idle: Vec<Vec<u32>>, first: Time) -> Self {
        let queues = workloads.iter_mut().zip(idle).map(|(workload, idle)| {
            let mut queue = Queue {
                next: Connection {
                    due: first,
                    script: Vec::new(),
                },
                waiting: VecDeque::new(),
                idle,
                spare: Vec::new(),
            };
            queue.advance(&mut **workload);
            queue
        });
        Self {
            queues: queues.collect(),
        }
    }

    /// When the next connection is due.
    pub(super) fn next_due(&self) -> Option<Time> {
        self.queues.iter().map(|queue| queue.next.due).min()
    }

    /// A connection that is due by now.
    pub(super) fn take_due(&mut self, now: Time, workloads: &mut Load) -> Option<Due> {
        let mut queues = self.queues.iter_mut().zip(workloads);
        let (queue, workload) = queues.find(|(queue, _)| queue.next.due <= now)?;
        let connection = queue.advance(&mut **workload);
        let requests = connection.script.len();
        Some(if let Some(client) = queue.idle.pop() {
            Due::Open(client, connection)
        } else if queue.waiting.len() < MOST_WAITING {
            queue.waiting.push_back(connection);
            Due::Waits(requests)
        } else {
            queue.spare.push(connection.script);
            Due::Lost(requests)
        })
    }

    /// The connection that a client opens next; without one the client has nothing to do.
    pub(super) fn next_for(&mut self, client: u32, share: u32) -> Option<Connection> {
        let queue = &mut self.queues[share as usize];
        let waiting = queue.waiting.pop_front();
        if waiting.is_none() {
            queue.idle.push(client);
        }
        waiting
    }

    /// A script that is used up.
    pub(super) fn recycle(&mut self, share: u32, script: Vec<RequestSpec>) {
        self.queues[share as usize].spare.push(script);
    }
}

impl Queue {
    /// The next connection, in whose place comes the one after it.
    fn advance(&mut self, workload: &mut dyn Workload) -> Connection {
        let mut script = self.spare.pop().unwrap_or_default();
        workload.next_connection(&mut script);
        let due = later(self.next.due, script[0].wait_ps);
        mem::replace(&mut self.next, Connection { due, script })
    }
}
