//! Connections of an open loop, which arrive on their own.

use super::client::later;
use crate::run::Load;
use baton_wire::Time;
use baton_workload::{RequestSpec, Workload};
use std::collections::VecDeque;
use std::mem;

/// Maximum number of connections of one share of the load that wait for a client; more are lost.
const MOST_WAITING: usize = 1 << 20;

/// Connections that arrive whether or not earlier ones are done, with one queue per share of the load.
#[derive(Debug)]
pub(super) struct OpenLoop {
    queues: Vec<Queue>,
}

/// The connections of one share of the load, and the idle clients.
#[derive(Debug)]
struct Queue {
    next: Connection,
    /// Connections that are due but have no client, in order.
    waiting: VecDeque<Connection>,
    idle: Vec<u32>,
    /// Scripts whose memory can be reused.
    spare: Vec<Vec<RequestSpec>>,
}

/// A connection to be opened.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    /// Time at which the first request is due.
    pub(super) due: Time,
    pub(super) script: Vec<RequestSpec>,
}

/// Outcome for a connection that is due.
#[derive(Debug)]
pub(super) enum Due {
    /// This client opens the connection.
    Open(u32, Connection),
    /// The connection, with this number of requests, waits for a client.
    Waits(usize),
    /// The connection is lost, because too many wait.
    Lost(usize),
}

impl OpenLoop {
    /// Creates a loop in which nothing is due before `first` and the `idle` clients of each share of the load have no connection.
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

    /// Returns when the next connection is due.
    pub(super) fn next_due(&self) -> Option<Time> {
        self.queues.iter().map(|queue| queue.next.due).min()
    }

    /// Returns a connection that is due at `now`.
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

    /// Returns the connection that a client opens next. If there is none, the client becomes idle.
    pub(super) fn next_for(&mut self, client: u32, share: u32) -> Option<Connection> {
        let queue = &mut self.queues[share as usize];
        let waiting = queue.waiting.pop_front();
        if waiting.is_none() {
            queue.idle.push(client);
        }
        waiting
    }

    /// Keeps a used-up script so that its memory is reused.
    pub(super) fn recycle(&mut self, share: u32, script: Vec<RequestSpec>) {
        self.queues[share as usize].spare.push(script);
    }
}

impl Queue {
    /// Returns the next connection and replaces it with its successor.
    fn advance(&mut self, workload: &mut dyn Workload) -> Connection {
        let mut script = self.spare.pop().unwrap_or_default();
        workload.next_connection(&mut script);
        let due = later(self.next.due, script[0].wait_ps);
        mem::replace(&mut self.next, Connection { due, script })
    }
}
