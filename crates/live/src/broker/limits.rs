//! Limits on what each user, and all users together, may use of a broker, so that a user who takes as much as possible harms nobody else.
//!
//! Root and the user of the broker are the operators: they have an account of their own, which no other user's share reduces.

use rustc_hash::FxHashMap;
use rustix::process::{Resource, Rlimit, getrlimit, getuid, setrlimit};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A limited resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resources {
    /// Connections to the broker.
    Clients,
    /// Applications that can be asked where their connections are.
    Subscriptions,
    /// Memory of messages that are not small, bytes.
    Bytes,
    /// Requests that are being served.
    Turns,
    /// Questions of a user to all of its applications.
    Questions,
    /// Ports that are kept for connections out of the kernel.
    Ports,
}

/// Number of [`Resources`].
const RESOURCES: usize = 6;

/// Limits of one resource.
#[derive(Clone, Copy, Debug)]
struct Bound {
    of_user: u64,
    /// Of all users together, without the operators.
    of_users: u64,
    of_operators: u64,
}

const MIB: u64 = 1 << 20;

/// Limits of each resource, in the order of [`Resources`].
const BOUNDS: [Bound; RESOURCES] = [
    Bound {
        of_user: 256,
        of_users: 1024,
        of_operators: 1024,
    },
    Bound {
        of_user: 512,
        of_users: 4096,
        of_operators: 1024,
    },
    Bound {
        of_user: 16 * MIB,
        of_users: 64 * MIB,
        of_operators: 64 * MIB,
    },
    // `Limits::new` raises a user's limit to half the number of processors, if that is more.
    Bound {
        of_user: 2,
        of_users: 1024,
        of_operators: 64,
    },
    Bound {
        of_user: 1,
        of_users: 16,
        of_operators: 16,
    },
    // Set by `Limits::new`.
    Bound {
        of_user: 0,
        of_users: 0,
        of_operators: 0,
    },
];

/// Descriptors reserved for the operators and the broker itself; if this is more than half of all descriptors, half of them are reserved.
const RESERVED_DESCRIPTORS: u64 = 256;

/// Average time between two requests of a user that is not an operator. A move there and back takes two requests.
const BETWEEN_REQUESTS: Duration = Duration::from_micros(100);
/// Burst of requests allowed after a pause.
const MOST_AT_ONCE: u32 = 2000;

baton_named::named! {
    /// A limit that was hit.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Limit {
        /// Clients of one user: another client was rejected.
        ClientsOfUser => "clients_of_user",
        /// Clients of all users.
        Clients => "clients",
        /// Descriptors of the broker: a client or a subscription was rejected.
        Descriptors => "descriptors",
        /// Subscriptions of one user.
        SubscriptionsOfUser => "subscriptions_of_user",
        /// Subscriptions of one process.
        SubscriptionsOfProcess => "subscriptions_of_process",
        /// Subscriptions of all users.
        Subscriptions => "subscriptions",
        /// A message was longer than its kind allows or came with too many files: its client was disconnected.
        Excess => "excess",
        /// A message was not complete in time: its client was disconnected.
        LateMessage => "late_message",
        /// A message waited for memory, because its user had used up its share.
        BytesOfUser => "bytes_of_user",
        /// A message waited for memory, because all users together had used up theirs.
        Bytes => "bytes",
        /// There was no memory for a message in time: its client was disconnected.
        NoMemory => "no_memory",
        /// A request waited for other requests of its user.
        TurnsOfUser => "turns_of_user",
        /// A request waited for requests of all users.
        Turns => "turns",
        /// A client did not read its answer in time and was disconnected.
        UnreadAnswer => "unread_answer",
        /// A user asked where its connections are while an earlier question was still unanswered.
        Questions => "questions",
        /// An application gave no timely and valid answer to where its connections are, and is not asked again.
        BadAnswer => "bad_answer",
        /// A line for the operator was suppressed.
        Notices => "notices",
        /// A connection stayed in the kernel because its user has the maximum number of kept ports.
        PortsOfUser => "ports_of_user",
        /// A connection stayed in the kernel because all users have the maximum number of kept ports.
        Ports => "ports",
    }
}

/// The accounts of all users.
#[derive(Debug)]
pub(super) struct Limits {
    bounds: [Bound; RESOURCES],
    /// Number of descriptors available to clients and subscriptions of users that are not operators.
    descriptors: u64,
    accounts: Mutex<Accounts>,
    acted: [AtomicU64; Limit::ALL.len()],
}

#[derive(Debug, Default)]
struct Accounts {
    /// Accounts by user. All operators share root's.
    users: FxHashMap<u32, Account>,
    /// Usage of all users together, without the operators.
    used: [u64; RESOURCES],
}

#[derive(Debug, Default)]
struct Account {
    used: [u64; RESOURCES],
    /// Number of requests that wait until they may be served.
    waiting: usize,
    turn_is_free: Arc<Condvar>,
    /// Time at which the user's next request would be due if the requests were evenly spaced. `None` before the first request.
    due: Option<Instant>,
}

/// An amount of a resource that a user holds until this is dropped.
#[derive(Debug)]
pub(super) struct Share {
    limits: Arc<Limits>,
    user: u32,
    of: Resources,
    amount: u64,
}

impl Limits {
    /// Creates limits for a kernel that gives this number of ports to connections.
    pub(super) fn new(ports: u64) -> Arc<Self> {
        // Raise the limit to the maximum for this process.
        let all = getrlimit(Resource::Nofile).maximum;
        let raised = Rlimit {
            current: all,
            maximum: all,
        };
        let _ = setrlimit(Resource::Nofile, raised);
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let mut bounds = BOUNDS;
        let turns = &mut bounds[Resources::Turns as usize].of_user;
        *turns = (*turns).max(processors as u64 / 2);
        // Half of the ports remain for new connections. Each takes a descriptor.
        let quarter = ports.min(descriptors) / 4;
        bounds[Resources::Ports as usize] = Bound {
            of_user: quarter / 2,
            of_users: quarter,
            of_operators: quarter,
        };
        Arc::new(Self {
            bounds,
            descriptors: descriptors - RESERVED_DESCRIPTORS.min(descriptors / 2),
            accounts: Mutex::default(),
            acted: [const { AtomicU64::new(0) }; Limit::ALL.len()],
        })
    }

    /// Counts a limit that was hit.
    pub(super) fn count(&self, limit: Limit) {
        self.acted[limit as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how often each limit was hit, by name.
    pub(super) fn counters(&self) -> BTreeMap<&'static str, u64> {
        let acted = self.acted.iter().map(|count| count.load(Ordering::Relaxed));
        Limit::ALL.map(Limit::name).into_iter().zip(acted).collect()
    }

    /// Gives a user an amount of a resource.
    ///
    /// # Errors
    /// The limit that prevents this. It is not counted as a limit that was hit.
    pub(super) fn take(
        self: &Arc<Self>,
        user: u32,
        of: Resources,
        amount: u64,
    ) -> Result<Share, Limit> {
        let mut accounts = self.lock();
        self.check(&accounts, user, of, amount)?;
        accounts.add(user, of, amount);
        Ok(self.share(user, of, amount))
    }

    /// Charges a user for an amount that it already has, whatever the limits.
    pub(super) fn charge(self: &Arc<Self>, user: u32, of: Resources, amount: u64) -> Share {
        self.lock().add(user, of, amount);
        self.share(user, of, amount)
    }

    /// Waits until a request of this user may be served. A user with many requests waits for its own earlier requests.
    pub(super) fn turn(self: &Arc<Self>, user: u32) -> Share {
        let wait = self.lock().pace(user, Instant::now());
        if !wait.is_zero() {
            self.count(Limit::TurnsOfUser);
            thread::sleep(wait);
        }
        let mut accounts = self.lock();
        let mut has_waited = false;
        while let Err(limit) = self.check(&accounts, user, Resources::Turns, 1) {
            if !has_waited {
                self.count(limit);
            }
            has_waited = true;
            let account = accounts.users.entry(account_of(user)).or_default();
            account.waiting += 1;
            let free = Arc::clone(&account.turn_is_free);
            accounts = free.wait(accounts).unwrap_or_else(PoisonError::into_inner);
            if let Some(account) = accounts.users.get_mut(&account_of(user)) {
                account.waiting -= 1;
            }
        }
        accounts.add(user, Resources::Turns, 1);
        self.share(user, Resources::Turns, 1)
    }

    /// Returns whether a user has used up its memory.
    pub(super) fn is_out_of_memory(&self, user: u32) -> bool {
        self.check(&self.lock(), user, Resources::Bytes, 1).is_err()
    }

    fn check(
        &self,
        accounts: &Accounts,
        user: u32,
        of: Resources,
        amount: u64,
    ) -> Result<(), Limit> {
        let bound = self.bounds[of as usize];
        let account = accounts.users.get(&account_of(user));
        let used = account.map_or(0, |account| account.used[of as usize]);
        let (of_user, of_all) = match of {
            Resources::Clients => (Limit::ClientsOfUser, Limit::Clients),
            Resources::Subscriptions => (Limit::SubscriptionsOfUser, Limit::Subscriptions),
            Resources::Bytes => (Limit::BytesOfUser, Limit::Bytes),
            Resources::Turns => (Limit::TurnsOfUser, Limit::Turns),
            Resources::Questions => (Limit::Questions, Limit::Questions),
            Resources::Ports => (Limit::PortsOfUser, Limit::Ports),
        };
        if is_operator(user) {
            return match used + amount <= bound.of_operators {
                true => Ok(()),
                false => Err(of_user),
            };
        }
        if used + amount > bound.of_user {
            return Err(of_user);
        }
        if accounts.used[of as usize] + amount > bound.of_users {
            return Err(of_all);
        }
        let descriptors = match of {
            Resources::Clients => DESCRIPTORS_OF_CLIENT,
            Resources::Subscriptions | Resources::Ports => 1,
            _ => 0,
        };
        if descriptors > 0 && accounts.descriptors() + descriptors > self.descriptors {
            return Err(Limit::Descriptors);
        }
        Ok(())
    }

    fn share(self: &Arc<Self>, user: u32, of: Resources, amount: u64) -> Share {
        Share {
            limits: Arc::clone(self),
            user,
            of,
            amount,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Descriptors of a client: its stream, and the socket that a request refers to.
const DESCRIPTORS_OF_CLIENT: u64 = 2;

impl Accounts {
    fn add(&mut self, user: u32, of: Resources, amount: u64) {
        let account = self.users.entry(account_of(user)).or_default();
        account.used[of as usize] += amount;
        if !is_operator(user) {
            self.used[of as usize] += amount;
        }
    }

    /// Returns how long a request of this user must wait for the requests before it.
    fn pace(&mut self, user: u32, now: Instant) -> Duration {
        if is_operator(user) {
            return Duration::ZERO;
        }
        let account = self.users.entry(account_of(user)).or_default();
        let earliest = now.checked_sub(BETWEEN_REQUESTS * MOST_AT_ONCE);
        let due = account.due.max(earliest).unwrap_or(now);
        account.due = Some(due + BETWEEN_REQUESTS);
        due.saturating_duration_since(now)
    }

    /// Returns the number of descriptors in use by users that are not operators.
    fn descriptors(&self) -> u64 {
        let used = |of: Resources| self.used[of as usize];
        let singles = used(Resources::Subscriptions) + used(Resources::Ports);
        used(Resources::Clients) * DESCRIPTORS_OF_CLIENT + singles
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut accounts = self.limits.lock();
        let of = self.of as usize;
        if !is_operator(self.user) {
            accounts.used[of] -= self.amount;
        }
        let user = account_of(self.user);
        let Some(account) = accounts.users.get_mut(&user) else {
            return debug_assert!(false, "who has something has an account");
        };
        account.used[of] -= self.amount;
        if self.of == Resources::Turns {
            account.turn_is_free.notify_one();
        }
        let is_idle = |due: Instant| due + BETWEEN_REQUESTS * MOST_AT_ONCE < Instant::now();
        if account.used == [0; RESOURCES] && account.waiting == 0 && account.due.is_none_or(is_idle)
        {
            accounts.users.remove(&user);
        }
    }
}

/// Returns whether this user is an operator.
pub(super) fn is_operator(user: u32) -> bool {
    user == 0 || user == getuid().as_raw()
}

fn account_of(user: u32) -> u32 {
    if is_operator(user) { 0 } else { user }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of ports that the kernel gives to connections by default.
    const PORTS: u64 = 28_232;
    const HOSTILE: u32 = 40_001;
    const OTHER: u32 = 40_002;

    /// Takes amounts of a resource until a limit is hit. Also returns this limit.
    fn take_all(
        limits: &Arc<Limits>,
        user: u32,
        of: Resources,
        amount: u64,
    ) -> (Vec<Share>, Limit) {
        let mut shares = Vec::new();
        loop {
            match limits.take(user, of, amount) {
                Ok(share) => shares.push(share),
                Err(limit) => return (shares, limit),
            }
        }
    }

    #[test]
    fn a_user_at_its_limit_does_not_reduce_the_share_of_others() {
        let limits = Arc::new(Limits {
            descriptors: u64::MAX,
            ..Arc::into_inner(Limits::new(PORTS)).expect("nobody else has it")
        });
        for (of, amount, limit) in [
            (Resources::Clients, 1, Limit::ClientsOfUser),
            (Resources::Subscriptions, 1, Limit::SubscriptionsOfUser),
            (Resources::Bytes, 1 << 20, Limit::BytesOfUser),
            (Resources::Turns, 1, Limit::TurnsOfUser),
            (Resources::Questions, 1, Limit::Questions),
            (Resources::Ports, 1, Limit::PortsOfUser),
        ] {
            let (held, reached) = take_all(&limits, HOSTILE, of, amount);
            assert_eq!(reached, limit);
            let (theirs, _) = take_all(&limits, OTHER, of, amount);
            assert_eq!(held.len(), theirs.len(), "{of:?}");
            drop((held, theirs));
            // Many users together may leave nothing for another user, but they never take the operators' share.
            let many: Vec<_> = (0..5000)
                .flat_map(|user| take_all(&limits, HOSTILE + user, of, amount).0)
                .collect();
            assert!(limits.take(OTHER + 5000, of, amount).is_err(), "{of:?}");
            assert!(limits.take(0, of, amount).is_ok(), "{of:?}");
            drop(many);
            assert!(limits.lock().users.is_empty(), "{of:?}");
        }
    }

    #[test]
    fn descriptors_are_reserved_for_operators() {
        let limits = Arc::new(Limits {
            descriptors: 100,
            ..Arc::into_inner(Limits::new(PORTS)).expect("nobody else has it")
        });
        let (clients, limit) = take_all(&limits, HOSTILE, Resources::Clients, 1);
        assert_eq!((clients.len(), limit), (50, Limit::Descriptors));
        assert!(limits.take(0, Resources::Clients, 1).is_ok());
        drop(clients);
        let (subscriptions, limit) = take_all(&limits, HOSTILE, Resources::Subscriptions, 1);
        assert_eq!((subscriptions.len(), limit), (100, Limit::Descriptors));
    }

    #[test]
    fn requests_that_come_too_fast_wait_for_those_before_them() {
        let mut accounts = Accounts::default();
        let now = Instant::now();
        let waits: Vec<_> = (0..3000).map(|_| accounts.pace(HOSTILE, now)).collect();
        let at_once = waits.iter().filter(|wait| wait.is_zero()).count();
        assert_eq!(at_once, MOST_AT_ONCE as usize + 1);
        assert_eq!(waits[2999], BETWEEN_REQUESTS * (2999 - MOST_AT_ONCE));
        assert_eq!(accounts.pace(OTHER, now), Duration::ZERO);
        assert_eq!(accounts.pace(0, now), Duration::ZERO);
        let later = now + Duration::from_secs(1);
        assert_eq!(accounts.pace(HOSTILE, later), Duration::ZERO);
    }

    #[test]
    fn a_user_waits_only_for_its_own_requests() {
        let limits = Limits::new(PORTS);
        let (mut held, _) = take_all(&limits, HOSTILE, Resources::Turns, 1);
        let waits = Arc::clone(&limits);
        let waiting = thread::spawn(move || drop(waits.turn(HOSTILE)));
        while limits.counters()["turns_of_user"] == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        for _ in 0..1000 {
            drop(limits.turn(OTHER));
        }
        assert!(!waiting.is_finished());
        held.pop();
        waiting.join().expect("it gets its turn");
    }
}
