//! Model-checks the algorithm: tries every order of the two sides' steps that the memory model allows, up to a number of preemptions. The
//! checker reports a lost wake-up as a deadlock.

use super::memory::Side;
use super::testing::{OwnMemory, inline_request, request};
use super::{End, mailbox};
use crate::descriptor::Descriptor;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

/// Maximum number of preemptions in one run. Two or three reveal the bugs of this kind of algorithm.
const PREEMPTIONS: usize = 3;

/// A doorbell that rings until its owner has heard it.
#[derive(Default)]
struct Bell {
    rings: Mutex<bool>,
    rung: Condvar,
}

impl Bell {
    fn ring(&self) {
        *self.rings.lock().unwrap() = true;
        self.rung.notify_one();
    }

    fn wait(&self) {
        let mut rings = self.rings.lock().unwrap();
        while !*rings {
            rings = self.rung.wait(rings).unwrap();
        }
        *rings = false;
    }
}

/// A side with its own doorbell and that of the other side.
struct Party {
    end: End<Arc<OwnMemory>>,
    own_bell: Arc<Bell>,
    other_bell: Arc<Bell>,
}

impl Party {
    fn pair(depth: usize) -> (Self, Self) {
        let memory = Arc::new(OwnMemory::new(depth));
        let (host_bell, adapter_bell) = (Arc::<Bell>::default(), Arc::<Bell>::default());
        let party = |side, own_bell: &Arc<Bell>, other_bell: &Arc<Bell>| Self {
            end: End::new(Arc::clone(&memory), side),
            own_bell: Arc::clone(own_bell),
            other_bell: Arc::clone(other_bell),
        };
        (
            party(Side::Host, &host_bell, &adapter_bell),
            party(Side::Adapter, &adapter_bell, &host_bell),
        )
    }

    fn sleep(&mut self) {
        if self.end.prepare_to_sleep().unwrap() {
            self.own_bell.wait();
            self.end.awake();
        }
    }

    /// Puts all descriptors, and sleeps while there is no space.
    fn put_all(&mut self, mut descriptors: &[Descriptor]) {
        while !descriptors.is_empty() {
            let put = self.end.put(descriptors).unwrap();
            if put.ring {
                self.other_bell.ring();
            }
            descriptors = &descriptors[put.taken..];
            if !descriptors.is_empty() {
                self.sleep();
            }
        }
    }

    /// Gets `expected` descriptors, and sleeps while there are none.
    fn get_all(&mut self, most: usize, expected: usize) -> Vec<Descriptor> {
        let mut got = Vec::new();
        while got.len() < expected {
            let before = got.len();
            if self.end.get(most, &mut got).unwrap() {
                self.other_bell.ring();
            }
            if got.len() == before {
                self.sleep();
            }
        }
        got
    }
}

fn check(test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(PREEMPTIONS);
    model.check(test);
}

/// Checks that one side gets all `batches` that the other side puts, `most` at a time.
fn transfer(depth: usize, most: usize, batches: fn() -> Vec<Vec<Descriptor>>) {
    check(move || {
        let (mut host, mut adapter) = Party::pair(depth);
        let sent = batches().concat();
        let host = thread::spawn(move || {
            for batch in batches() {
                host.put_all(&batch);
            }
        });
        assert_eq!(adapter.get_all(most, sent.len()), sent);
        host.join().unwrap();
    });
}

#[test]
fn single_entries_are_never_lost_and_wake_the_sleeper() {
    transfer(2, usize::MAX, || {
        (1..=3).map(|n| vec![request(n)]).collect()
    });
}

#[test]
fn a_full_ring_wakes_the_side_that_waits_for_space() {
    transfer(1, usize::MAX, || {
        (1..=3).map(|n| vec![request(n)]).collect()
    });
}

#[test]
fn batches_become_visible_as_a_whole() {
    transfer(2, usize::MAX, || {
        vec![vec![request(1), request(2)], vec![request(3), request(4)]]
    });
}

#[test]
fn the_rest_of_a_batch_keeps_its_side_awake() {
    transfer(2, 1, || {
        vec![vec![request(1), request(2)], vec![request(3)]]
    });
}

#[test]
fn entries_of_several_descriptors_stay_whole() {
    transfer(4, usize::MAX, || {
        vec![inline_request(1, 17), inline_request(2, 49)]
    });
}

/// Both sides send and answer, and each sleeps until entries or space become available.
#[test]
fn requests_and_responses_cross_the_ring() {
    check(|| {
        let (mut host, mut adapter) = Party::pair(1);
        let adapter = thread::spawn(move || {
            for _ in 0..2 {
                let got = adapter.get_all(1, 1);
                adapter.put_all(&got);
            }
        });
        host.put_all(&[request(1)]);
        host.put_all(&[request(2)]);
        assert_eq!(host.get_all(usize::MAX, 2), [request(1), request(2)]);
        adapter.join().unwrap();
    });
}

/// Lazy entries that do not wake up a side that masks them are found when something else wakes it up.
#[test]
fn a_side_that_masks_lazy_entries_finds_all_entries() {
    check(|| {
        let (mut host, mut adapter) = Party::pair(1);
        adapter.end.mask_lazy(true);
        let adapter = thread::spawn(move || adapter.get_all(usize::MAX, 2));
        let first = host.end.put_lazily(&[request(1)]).unwrap();
        if first.ring {
            host.other_bell.ring();
        }
        host.put_all(&[request(2)]);
        assert_eq!(adapter.join().unwrap(), [request(1), request(2)]);
    });
}

/// A side that wakes up by itself, as by a timer, and then sleeps for something else, is still woken up.
#[test]
fn a_side_that_wakes_by_itself_is_still_notified_later() {
    check(|| {
        let (mut host, mut adapter) = Party::pair(1);
        let adapter = thread::spawn(move || adapter.get_all(1, 2));
        let first = host.end.put(&[request(1)]).unwrap();
        if first.ring {
            host.other_bell.ring();
        }
        // If short of space, the host prepares to sleep and is woken up immediately, as by a timer.
        let second = host.end.put(&[request(2)]).unwrap();
        if second.ring {
            host.other_bell.ring();
        }
        if host.end.prepare_to_sleep().unwrap() {
            host.end.awake();
        }
        if second.taken == 0 {
            host.put_all(&[request(2)]);
        }
        assert_eq!(adapter.join().unwrap(), [request(1), request(2)]);
    });
}

/// Two threads send to a third, which sleeps while its mailbox is empty.
#[test]
fn a_mailbox_loses_no_message_and_wakes_its_sleeper() {
    check(|| {
        let (to, mut from) = mailbox(2);
        let bell = Arc::<Bell>::default();
        let sender = |message: u32| {
            let (to, bell) = (to.clone(), Arc::clone(&bell));
            thread::spawn(move || {
                if to.send(message).unwrap() {
                    bell.ring();
                }
            })
        };
        let senders = [sender(1), sender(2)];
        let mut sum = 0;
        while sum < 3 {
            match from.receive() {
                Some(message) => sum += message,
                None if from.prepare_to_sleep() => {
                    bell.wait();
                    from.awake();
                }
                None => {}
            }
        }
        for sender in senders {
            sender.join().unwrap();
        }
    });
}
