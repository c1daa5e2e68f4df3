//! When and why connections moved. The history of a connection is kept while the connection is out of the kernel, and for some time
//! afterwards: when there are too many, the oldest ones of the user with the most are forgotten.

use super::captured::Taker;
use super::memory::{Place, now_us};
use super::notice::BrokerNotice;
use baton_host::MoveReason;
use baton_sockets::broker::{ConnectionHistory, Destination, HistoryAnswer, HistoryQuery, MoveRow};
use baton_wire::Flow;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Maximum number of histories of connections that are not out of the kernel.
const MOST_PAST: usize = 16_384;
/// Number of recent moves kept per connection.
const MOST_MOVES: usize = 8;
/// Maximum number of connections in one answer.
const MOST_TOLD: usize = 16_384;
/// Maximum number of notices that wait to be logged; further ones are discarded.
const MOST_NOTICES: usize = 4096;
/// Maximum number of kinds that a summary distinguishes.
const MOST_KINDS: usize = 64;
/// Time between two summaries, if anything has moved.
const BETWEEN_SUMMARIES: Duration = Duration::from_secs(10);

/// The name of a reason: a constant, or the text of a refusal.
type Why = Cow<'static, str>;

#[derive(Clone, Debug)]
struct Move {
    at_ms: u64,
    /// The same time on the clock that broker and adapter share, microseconds.
    began_us: u32,
    to: Destination,
    why: Why,
    took_us: Option<u32>,
    times: u32,
}

#[derive(Debug)]
struct Life {
    uid: u32,
    pid: u32,
    program: Arc<str>,
    /// The kernel's number of the socket in which the kernel last had the connection.
    socket: u64,
    /// Whether the connection is out of the kernel.
    is_away: bool,
    /// Whether the connection is in the queue of those that may be forgotten.
    is_queued: bool,
    /// Whether the connection has moved again since it was queued. If so, it is queued once more before it is forgotten.
    is_recent: bool,
    moves: VecDeque<Move>,
    earlier_moves: u64,
}

/// The histories of all connections.
#[derive(Debug)]
pub(super) struct History {
    lives: FxHashMap<Flow, Life>,
    /// Connections that may be forgotten, by user, oldest first. Some have left the kernel again.
    past: FxHashMap<u32, VecDeque<Flow>>,
    past_len: usize,
    forgotten: u64,
    /// Connections that were still on their way to the adapter at the last look.
    arriving: Vec<Flow>,
    /// Names of programs, by the numbers of their connections to the broker.
    programs: FxHashMap<u64, Arc<str>>,
    notices: VecDeque<BrokerNotice>,
    /// Whether each move is logged.
    tells_all: bool,
    /// Number of moves since the last summary, by destination and reason.
    moved: FxHashMap<(Destination, Why), u64>,
    summed_up: Instant,
}

impl Default for History {
    fn default() -> Self {
        Self {
            lives: FxHashMap::default(),
            past: FxHashMap::default(),
            past_len: 0,
            forgotten: 0,
            arriving: Vec::new(),
            programs: FxHashMap::default(),
            notices: VecDeque::new(),
            tells_all: false,
            moved: FxHashMap::default(),
            summed_up: Instant::now(),
        }
    }
}

impl History {
    /// Enables a notice for each move.
    pub(super) fn tell_all(&mut self) {
        self.tells_all = true;
    }

    /// Returns the next notice for the operator.
    pub(super) fn poll_notice(&mut self) -> Option<BrokerNotice> {
        if let Some(notice) = self.notices.pop_front() {
            return Some(notice);
        }
        if self.moved.is_empty() || self.summed_up.elapsed() < BETWEEN_SUMMARIES {
            return None;
        }
        self.summed_up = Instant::now();
        let mut moved: Vec<_> = self.moved.drain().collect();
        moved.sort_by(|(one, _), (other, _)| one.cmp(other));
        Some(BrokerNotice::Moves(moved))
    }

    /// Records that a connection has left the kernel for `taker`. The kernel had it in `socket`.
    pub(super) fn left(
        &mut self,
        flow: &Flow,
        taker: Taker,
        socket: u64,
        why: MoveReason,
        began_us: u32,
    ) {
        self.begin(flow, taker, Some(socket));
        self.add(
            flow,
            Destination::Adapter,
            why.name().into(),
            None,
            began_us,
        );
        self.arriving.push(*flow);
    }

    /// Records that a connection that `taker` wanted to move stays in the kernel.
    pub(super) fn stayed(&mut self, flow: &Flow, taker: Taker, socket: u64, why: String) {
        self.begin(flow, taker, Some(socket));
        self.add(flow, Destination::Stayed, why.into(), None, now_us());
    }

    /// Records a connection that the broker found on an adapter of a previous broker.
    pub(super) fn found(&mut self, flow: &Flow, taker: Taker) {
        self.begin(flow, taker, None);
        let why = "before this broker".into();
        self.add(flow, Destination::Adapter, why, None, now_us());
    }

    /// Records that a connection is about to return to the kernel. Returns when the adapter ceased to have the connection, on the shared clock.
    pub(super) fn returning(&mut self, flow: &Flow, place: &Place) -> u32 {
        self.arrived(flow, place);
        now_us().wrapping_sub(place.age_us())
    }

    /// Records that the connection is back, in `socket`.
    pub(super) fn returned(&mut self, flow: &Flow, began_us: u32, socket: u64, why: MoveReason) {
        let took = now_us().wrapping_sub(began_us);
        self.add(
            flow,
            Destination::Kernel,
            why.name().into(),
            Some(took),
            began_us,
        );
        if let Some(life) = self.lives.get_mut(flow) {
            life.socket = socket;
        }
    }

    /// Records that a connection has ended outside the kernel.
    pub(super) fn ended(&mut self, flow: &Flow, to: Destination, why: String) {
        self.add(flow, to, why.into(), None, now_us());
        if let Some(life) = self.lives.get_mut(flow) {
            // A later connection with the same ends gets a new history.
            life.socket = 0;
        }
    }

    /// Checks whether the connections on their way to the adapter have arrived. `place_of` returns a connection's place in the adapter's
    /// memory while the connection is out of the kernel.
    pub(super) fn look<'a>(&mut self, place_of: impl Fn(&Flow) -> Option<&'a Place>) {
        let mut arriving = std::mem::take(&mut self.arriving);
        arriving.retain(|flow| match place_of(flow) {
            Some(place) => !self.arrived(flow, place),
            None => false,
        });
        self.arriving = arriving;
    }

    /// Forgets the program of a client of the broker that has disconnected.
    pub(super) fn forget_program(&mut self, taker: Taker) {
        self.programs.remove(&taker.number);
    }

    /// Returns what is known, limited to connections of `user`, or all with `None`.
    pub(super) fn tell(&self, query: &HistoryQuery, user: Option<u32>) -> HistoryAnswer {
        let is_asked = |(flow, life): &(&Flow, &Life)| {
            user.is_none_or(|user| life.uid == user)
                && (!query.away || life.is_away)
                && query.is_between([flow.local, flow.remote])
        };
        let mut found: Vec<_> = self.lives.iter().filter(is_asked).collect();
        let last = |life: &Life| life.moves.back().map(|last| last.at_ms);
        found.sort_by_cached_key(|(_, life)| std::cmp::Reverse(last(life)));
        let most = query
            .most
            .map_or(MOST_TOLD, |most| MOST_TOLD.min(most as usize));
        let left_out = found.len().saturating_sub(most) as u64;
        found.truncate(most);
        let connections = found.into_iter().map(|(flow, life)| life.row(flow));
        HistoryAnswer {
            connections: connections.collect(),
            left_out,
            forgotten: self.forgotten,
        }
    }

    // --- inside ---

    /// Starts a new history, unless the recorded connection with these endpoints is the one that moves now. That is so only if the kernel
    /// last had the recorded connection in this socket.
    fn begin(&mut self, flow: &Flow, taker: Taker, socket: Option<u64>) {
        let is_same = |life: &Life| life.uid == taker.user && Some(life.socket) == socket;
        if self.lives.get(flow).is_some_and(is_same) {
            return;
        }
        let program = self.program_of(taker);
        let fresh = Life {
            uid: taker.user,
            pid: taker.pid,
            program,
            socket: socket.unwrap_or_default(),
            is_away: false,
            is_queued: false,
            is_recent: false,
            moves: VecDeque::new(),
            earlier_moves: 0,
        };
        let Some(before) = self.lives.insert(*flow, fresh) else {
            return;
        };
        self.forgotten += 1;
        if !before.is_queued {
            return;
        }
        if before.uid == taker.user
            && let Some(life) = self.lives.get_mut(flow)
        {
            // The new history takes over the queue entry of the old one.
            life.is_queued = true;
        } else if let Some(of_user) = self.past.get_mut(&before.uid) {
            of_user.retain(|other| other != flow);
            self.past_len -= 1;
        }
    }

    fn program_of(&mut self, taker: Taker) -> Arc<str> {
        let read = || {
            let name = std::fs::read_to_string(format!("/proc/{}/comm", taker.pid));
            // The process chooses this text, and a terminal will show it.
            let name = name.unwrap_or_default();
            name.trim_end().replace(char::is_control, "?").into()
        };
        match taker.pid {
            0 => "".into(),
            _ => Arc::clone(self.programs.entry(taker.number).or_insert_with(read)),
        }
    }

    fn add(&mut self, flow: &Flow, to: Destination, why: Why, took_us: Option<u32>, began_us: u32) {
        let Some(life) = self.lives.get_mut(flow) else {
            return;
        };
        let of_kind = (to, why.clone());
        let has_room = self.moved.len() < MOST_KINDS || self.moved.contains_key(&of_kind);
        let of_kind = if has_room {
            of_kind
        } else {
            (to, "other reasons".into())
        };
        *self.moved.entry(of_kind).or_default() += 1;
        if self.tells_all && self.notices.len() < MOST_NOTICES {
            self.notices.push_back(BrokerNotice::Moved {
                flow: *flow,
                to,
                why: why.clone(),
                took_us,
            });
        }
        let ago = now_us().wrapping_sub(began_us);
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let at_ms = since.unwrap_or_default().as_millis() as u64;
        let at_ms = at_ms.saturating_sub(u64::from(ago / 1000));
        match life.moves.back_mut() {
            Some(last) if to == Destination::Stayed && last.to == to && last.why == why => {
                last.times += 1;
                last.at_ms = at_ms;
            }
            _ => {
                if life.moves.len() == MOST_MOVES {
                    life.moves.pop_front();
                    life.earlier_moves += 1;
                }
                life.moves.push_back(Move {
                    at_ms,
                    began_us,
                    to,
                    why,
                    took_us,
                    times: 1,
                });
            }
        }
        life.is_away = to == Destination::Adapter;
        life.is_recent = life.is_queued;
        if !life.is_away && !life.is_queued {
            life.is_queued = true;
            let uid = life.uid;
            self.past.entry(uid).or_default().push_back(*flow);
            self.past_len += 1;
            self.make_room();
        }
    }

    /// Records how long a connection took to reach the adapter. Returns false if it is still on its way.
    fn arrived(&mut self, flow: &Flow, place: &Place) -> bool {
        let last = self
            .lives
            .get_mut(flow)
            .and_then(|life| life.moves.back_mut());
        let Some(last) = last.filter(|last| last.to == Destination::Adapter) else {
            return true;
        };
        let took_us = place.arrived_us().wrapping_sub(last.began_us);
        // `arrived_us` may be left over from the previous connection at this place; it is then earlier than the start of the move.
        let is_there = took_us < now_us().wrapping_sub(last.began_us).saturating_add(1);
        if is_there && last.took_us.is_none() {
            last.took_us = Some(took_us);
        }
        is_there
    }

    fn make_room(&mut self) {
        while self.past_len > MOST_PAST {
            let most = self
                .past
                .iter_mut()
                .max_by_key(|(_, of_user)| of_user.len());
            let Some((&uid, of_user)) = most else {
                return;
            };
            let Some(flow) = of_user.pop_front() else {
                return;
            };
            match self.lives.get_mut(&flow) {
                // The connection is queued again when it returns to the kernel.
                Some(life) if life.is_away => life.is_queued = false,
                Some(life) if life.is_recent => {
                    life.is_recent = false;
                    of_user.push_back(flow);
                    continue;
                }
                _ => {
                    self.lives.remove(&flow);
                    self.forgotten += 1;
                }
            }
            if of_user.is_empty() {
                self.past.remove(&uid);
            }
            self.past_len -= 1;
        }
    }
}

impl Life {
    fn row(&self, flow: &Flow) -> ConnectionHistory {
        let row = |one: &Move| MoveRow {
            at_ms: one.at_ms,
            to: one.to,
            why: one.why.clone(),
            took_us: one.took_us,
            times: one.times,
        };
        ConnectionHistory {
            local: flow.local,
            remote: flow.remote,
            uid: self.uid,
            pid: self.pid,
            program: self.program.to_string(),
            moves: self.moves.iter().map(row).collect(),
            earlier_moves: self.earlier_moves,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::memory::{Memory, Owner};
    use baton_wire::Endpoint;

    fn flow(number: u32) -> Flow {
        let [_, high, mid, low] = number.to_be_bytes();
        Flow {
            local: Endpoint::new([10, 0, 0, 1].into(), 443),
            remote: Endpoint::new([10, high, mid, low].into(), 50_000),
        }
    }

    fn taker(user: u32) -> Taker {
        Taker {
            number: u64::from(user),
            user,
            pid: std::process::id(),
        }
    }

    fn of(history: &History, flow: &Flow) -> Option<ConnectionHistory> {
        let query = HistoryQuery {
            addr: Some(flow.remote.addr),
            ..HistoryQuery::default()
        };
        history.tell(&query, None).connections.pop()
    }

    #[test]
    fn each_move_is_recorded_with_reason_and_duration() {
        let memory = Memory::create().expect("memory");
        let (mut history, flow) = (History::default(), flow(1));
        let place = memory.place(3).expect("a place");
        let began = now_us();
        let number = place.occupy(&flow, 7, false);
        history.left(&flow, taker(7), 11, MoveReason::Policy, began);
        history.look(|_| Some(place));
        let row = of(&history, &flow).expect("it is away");
        assert_eq!(row.moves[0].took_us, None, "it is on its way");
        assert!(place.pass(number, Owner::Application, Owner::Adapter));
        history.look(|_| Some(place));
        assert!(place.pass(number, Owner::Adapter, Owner::Application));
        let began = history.returning(&flow, place);
        history.returned(&flow, began, 12, MoveReason::Relief);
        history.stayed(&flow, taker(7), 12, "full".to_owned());
        history.stayed(&flow, taker(7), 12, "full".to_owned());
        let row = of(&history, &flow).expect("it is known still");
        let moves: Vec<_> = row
            .moves
            .iter()
            .map(|one| (one.to, &*one.why, one.times))
            .collect();
        let expected = [
            (Destination::Adapter, "policy", 1),
            (Destination::Kernel, "relief", 1),
            (Destination::Stayed, "full", 2),
        ];
        assert_eq!(moves, expected);
        assert!(row.moves[..2].iter().all(|one| one.took_us.is_some()));
        assert_eq!((row.uid, row.pid), (7, std::process::id()));
        assert!(!row.program.is_empty());
    }

    #[test]
    fn a_new_connection_with_the_same_endpoints_has_its_own_history() {
        let (mut history, flow) = (History::default(), flow(1));
        history.left(&flow, taker(7), 11, MoveReason::Policy, now_us());
        history.ended(&flow, Destination::Ended, "closed".to_owned());
        history.left(&flow, taker(7), 12, MoveReason::Policy, now_us());
        assert_eq!(of(&history, &flow).expect("it is away").moves.len(), 1);
        assert_eq!((history.forgotten, history.past_len), (1, 1));
        // The latest connection with this four-tuple is forgotten last.
        history.ended(&flow, Destination::Ended, "closed".to_owned());
        for number in 2..MOST_PAST as u32 + 2 {
            let other = self::flow(number);
            history.left(&other, taker(7), 1, MoveReason::Policy, now_us());
            history.ended(&other, Destination::Ended, "closed".to_owned());
        }
        assert!(of(&history, &flow).is_some());
        assert!(of(&history, &self::flow(2)).is_none());
        history.left(&flow, taker(8), 13, MoveReason::Policy, now_us());
        assert_eq!(history.past_len, MOST_PAST - 1);
    }

    #[test]
    fn users_see_their_own_history_and_operators_see_all() {
        let mut history = History::default();
        for user in [7, 8] {
            history.left(&flow(user), taker(user), 1, MoveReason::Policy, now_us());
        }
        let told = |user| history.tell(&HistoryQuery::default(), user).connections;
        assert_eq!(told(None).len(), 2);
        assert_eq!(told(Some(8)).len(), 1);
        assert_eq!(told(Some(8))[0].uid, 8);
        assert!(told(Some(9)).is_empty());
        let one = HistoryQuery {
            most: Some(1),
            ..HistoryQuery::default()
        };
        let answer = history.tell(&one, None);
        assert_eq!((answer.connections.len(), answer.left_out), (1, 1));
    }

    #[test]
    fn a_user_with_many_connections_loses_only_its_own_oldest_history() {
        let mut history = History::default();
        let end = |history: &mut History, number, user| {
            history.left(&flow(number), taker(user), 1, MoveReason::Policy, now_us());
            history.ended(&flow(number), Destination::Ended, "closed".to_owned());
        };
        end(&mut history, 0, 8);
        history.left(&flow(1), taker(7), 1, MoveReason::Policy, now_us());
        for number in 2..MOST_PAST as u32 + 100 {
            end(&mut history, number, 7);
        }
        assert_eq!(history.lives.len(), MOST_PAST + 1);
        assert_eq!(history.forgotten, 99);
        assert!(of(&history, &flow(0)).is_some(), "another's");
        assert!(of(&history, &flow(1)).is_some(), "it is away");
        assert!(of(&history, &flow(2)).is_none(), "the oldest");
    }

    #[test]
    fn the_history_of_a_connection_that_keeps_moving_is_bounded() {
        let memory = Memory::create().expect("memory");
        let place = memory.place(3).expect("a place");
        let (mut history, flow) = (History::default(), flow(1));
        for round in 0..100 {
            history.left(&flow, taker(7), round, MoveReason::Policy, now_us());
            let began = history.returning(&flow, place);
            history.returned(&flow, began, round + 1, MoveReason::Policy);
        }
        let row = of(&history, &flow).expect("it is known");
        assert_eq!((row.moves.len(), row.earlier_moves), (MOST_MOVES, 192));
        assert_eq!(history.past_len, 1);
    }
}
