//! The record of a connection on the adapter, in memory that survives the adapter. If little data is in flight, the kernel can continue
//! from it.
//!
//! The adapter writes the record and may be killed between any two words. The first word is a version number, which is odd while the state
//! is invalid. It becomes odd before any packet leaves that contradicts the recorded state, and even again once all words describe the
//! connection.

use baton_iolib::{read_words, write_words};
use baton_tcp::{Essentials, State, WindowScaling};
use baton_wire::{Flow, SeqNr, Span};
use bytes::Bytes;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Number of words of a state.
pub const WORDS: usize = 14;

/// Maximum number of unacknowledged bytes that are recorded with the state.
pub const DATA_BYTES: usize = 1536;

/// Largest shift of window scaling (RFC 7323 2.3).
const LARGEST_SHIFT: u32 = 14;
/// Largest possible window: 64 KiB shifted by [`LARGEST_SHIFT`].
const LARGEST_WINDOW: u32 = 1 << 30;

/// Bits of the options word, above the MSS and two shifts.
const SCALING: u32 = 1 << 24;
const SACK: u32 = 1 << 25;
const TIMESTAMPS: u32 = 1 << 26;
const ROUND_TRIP: u32 = 1 << 27;
const CONGESTION_WINDOW: u32 = 1 << 28;

/// Content of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// The adapter has done nothing with the connection: its state is still that in which it left the kernel.
    Untouched,
    /// The adapter has used the connection, and data is in flight.
    Incomplete,
    /// The connection is in this state.
    Complete([u32; WORDS]),
}

/// Written data of a connection that is not yet acknowledged. It belongs to the record, and is written while the record is invalid.
#[derive(Debug)]
#[repr(C)]
pub struct Data([AtomicU64; DATA_BYTES / 8]);

impl Data {
    /// Writes `parts` one after another. They must fit.
    fn write<'a>(&self, parts: impl Iterator<Item = &'a [u8]>) {
        let mut at = 0;
        for part in parts {
            write_words(&self.0, at, part);
            at += part.len();
        }
    }

    /// Returns the first `len` bytes, or all if there are fewer.
    pub fn read(&self, len: u32) -> Bytes {
        let mut bytes = vec![0; DATA_BYTES.min(len as usize)];
        read_words(&self.0, &mut bytes);
        bytes.into()
    }
}

/// A version number, followed by the words of a state.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Record([AtomicU32; 1 + WORDS]);

impl Record {
    /// Reads the record.
    pub fn read(&self) -> Said {
        let version = self.0[0].load(Ordering::Acquire);
        let state = self.last();
        match version {
            0 => Said::Untouched,
            _ if version % 2 == 1 => Said::Incomplete,
            // The writer is alive and has just begun to write.
            _ if self.0[0].load(Ordering::Relaxed) != version => Said::Incomplete,
            _ => Said::Complete(state),
        }
    }

    /// Returns the current words, which may be a mixture of several states.
    pub fn last(&self) -> [u32; WORDS] {
        std::array::from_fn(|at| self.0[1 + at].load(Ordering::Acquire))
    }

    /// Resets the record of a connection that leaves the kernel, and sets its state, if known.
    pub fn reset(&self, state: Option<&[u32; WORDS]>) {
        self.0[0].store(1, Ordering::Release);
        for (word, value) in self.0[1..].iter().zip(state.into_iter().flatten()) {
            word.store(*value, Ordering::Release);
        }
        self.0[0].store(0, Ordering::Release);
    }

    /// Marks the state as invalid, because data that is about to leave or has arrived is not in it.
    #[inline]
    pub fn spoil(&self) {
        let version = self.0[0].load(Ordering::Relaxed);
        if version.is_multiple_of(2) {
            self.0[0].store(version + 1, Ordering::Release);
        }
    }

    /// Records a state with data, which consists of `parts`.
    pub fn write_with<'a>(
        &self,
        state: &[u32; WORDS],
        data: &Data,
        parts: impl Iterator<Item = &'a [u8]>,
    ) {
        self.spoil();
        // The data must be written after the state is marked as invalid.
        fence(Ordering::Release);
        data.write(parts);
        self.write(state);
    }

    /// Records a state without data.
    #[inline]
    pub fn write(&self, state: &[u32; WORDS]) {
        let version = self.0[0].load(Ordering::Relaxed);
        // Each store becomes visible after all stores before it.
        steps(version, state, |at, word| {
            self.0[at].store(word, Ordering::Release);
        });
    }
}

/// Calls `store` for each step of writing, with the index and the value of a word.
#[inline]
fn steps(version: u32, state: &[u32; WORDS], mut store: impl FnMut(usize, u32)) {
    let odd = version | 1;
    store(0, odd);
    for (at, word) in state.iter().enumerate() {
        store(1 + at, *word);
    }
    // Version zero means untouched.
    store(0, odd.checked_add(1).unwrap_or(2));
}

/// Encodes a state at the time `at_ms` of the system's clock. `unacknowledged` is the number of written bytes that are not acknowledged.
#[inline]
pub fn encode(state: &Essentials<Bytes>, unacknowledged: u32, at_ms: u32) -> [u32; WORDS] {
    let WindowScaling { send, receive } = state.window_scaling.unwrap_or(WindowScaling {
        send: 0,
        receive: 0,
    });
    let flag = |is_set: bool, bit| if is_set { bit } else { 0 };
    let options = u32::from(state.mss)
        | u32::from(send) << 16
        | u32::from(receive) << 20
        | flag(state.window_scaling.is_some(), SCALING)
        | flag(state.sack, SACK)
        | flag(state.timestamp.is_some(), TIMESTAMPS)
        | flag(state.round_trip.is_some(), ROUND_TRIP)
        | flag(state.congestion_window.is_some(), CONGESTION_WINDOW);
    let us = |span: Span| u32::try_from(span.as_us()).unwrap_or(u32::MAX);
    let (round_trip, variance) = state.round_trip.unwrap_or_default();
    [
        options,
        state.send_una.0,
        state.send_window,
        state.send_window_seq.0,
        state.largest_send_window,
        state.receive_next.0,
        state.receive_edge.0,
        state.timestamp.unwrap_or_default(),
        us(round_trip),
        us(variance),
        state.congestion_window.unwrap_or_default(),
        at_ms,
        state.send_next - state.send_una,
        unacknowledged,
    ]
}

/// Returns the number of bytes of data that belong to a state.
pub fn data_len(words: &[u32; WORDS]) -> u32 {
    words[WORDS - 1]
}

/// Returns the state as if nothing were unacknowledged: everything up to its `send_una` was sent, and nothing after it.
pub fn without_data(words: &[u32; WORDS]) -> [u32; WORDS] {
    let mut words = *words;
    words[WORDS - 2..].fill(0);
    words
}

/// Decodes the state of a connection that has not changed since its words were written, as of `now_ms`, with its data. Returns `None` if no
/// connection can be in such a state.
pub fn decode(
    flow: Flow,
    words: &[u32; WORDS],
    data: Bytes,
    now_ms: u32,
) -> Option<Essentials<Bytes>> {
    let [
        options,
        send_una,
        send_window,
        send_window_seq,
        largest_send_window,
        receive_next,
        receive_edge,
        timestamp,
        round_trip_us,
        variance_us,
        congestion_window,
        at_ms,
        in_flight,
        unacknowledged,
    ] = *words;
    let (send, receive) = (options >> 16 & 0xf, options >> 20 & 0xf);
    let has = |bit| options & bit != 0;
    let offered = receive_edge.wrapping_sub(receive_next);
    let windows = [send_window, largest_send_window, offered];
    let is_sound = send.max(receive) <= LARGEST_SHIFT
        && windows.iter().all(|window| *window <= LARGEST_WINDOW)
        && options & 0xffff > 0
        && unacknowledged as usize == data.len()
        && in_flight <= unacknowledged;
    is_sound.then(|| Essentials {
        flow,
        state: State::Established,
        send_una: SeqNr(send_una),
        send_next: SeqNr(send_una) + in_flight,
        send_buffer: (!data.is_empty()).then_some(data).into_iter().collect(),
        send_window,
        send_window_seq: SeqNr(send_window_seq),
        largest_send_window,
        receive_next: SeqNr(receive_next),
        receive_edge: SeqNr(receive_edge),
        receive_buffer: Vec::new(),
        mss: options as u16,
        window_scaling: has(SCALING).then_some(WindowScaling {
            send: send as u8,
            receive: receive as u8,
        }),
        sack: has(SACK),
        // A tick is a millisecond, here as in the kernel, and the connection's clock has kept running.
        timestamp: has(TIMESTAMPS).then(|| timestamp.wrapping_add(now_ms.wrapping_sub(at_ms))),
        round_trip: has(ROUND_TRIP).then(|| {
            let us = |value: u32| Span::from_us(value.into());
            (us(round_trip_us), us(variance_us))
        }),
        congestion_window: has(CONGESTION_WINDOW).then_some(congestion_window),
        // The kernel, which will continue the connection, cannot be given a threshold.
        slow_start_threshold: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_testkit::for_each_seed;
    use baton_wire::Endpoint;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    fn flow() -> Flow {
        Flow {
            local: Endpoint::new([10, 0, 0, 1].into(), 80),
            remote: Endpoint::new([10, 0, 0, 2].into(), 4000),
        }
    }

    fn none() -> Data {
        Data(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    fn any(random: &mut Pcg64Mcg) -> Essentials<Bytes> {
        let receive_next = SeqNr(random.random());
        let send_una = SeqNr(random.random());
        let data: Vec<u8> = (0..random.random_range(0..=DATA_BYTES))
            .map(|_| random.random())
            .collect();
        let [send_window, largest_send_window, offered] =
            [(); 3].map(|()| random.random_range(0..=LARGEST_WINDOW));
        Essentials {
            flow: flow(),
            state: State::Established,
            send_una,
            send_next: send_una + random.random_range(0..=data.len() as u32),
            send_buffer: (!data.is_empty())
                .then(|| data.into())
                .into_iter()
                .collect(),
            send_window,
            send_window_seq: SeqNr(random.random()),
            largest_send_window,
            receive_next,
            receive_edge: receive_next + offered,
            receive_buffer: Vec::new(),
            mss: random.random_range(1..=u16::MAX),
            window_scaling: random.random_bool(0.5).then(|| WindowScaling {
                send: random.random_range(0..=14),
                receive: random.random_range(0..=14),
            }),
            sack: random.random(),
            timestamp: random.random_bool(0.5).then(|| random.random()),
            round_trip: random.random_bool(0.5).then(|| {
                let us = [(); 2].map(|()| Span::from_us(random.random::<u32>().into()));
                (us[0], us[1])
            }),
            congestion_window: random.random_bool(0.5).then(|| random.random()),
            slow_start_threshold: None,
        }
    }

    #[test]
    fn a_state_is_read_as_it_was_written_at_a_later_time() {
        for_each_seed(1000, |seed| {
            let random = &mut Pcg64Mcg::seed_from_u64(seed);
            let (state, at, later) = (any(random), random.random::<u32>(), random.random::<u32>());
            let whole = state.send_buffer.first().cloned().unwrap_or_default();
            let words = encode(&state, whole.len() as u32, at);
            let (record, data) = (Record::default(), none());
            let cut = random.random_range(0..=whole.len());
            let again = random.random_range(0..=cut);
            let parts = [&whole[..again], &whole[again..cut], &whole[cut..]];
            record.write_with(&words, &data, parts.into_iter());
            assert_eq!(record.read(), Said::Complete(words));
            let data = data.read(data_len(&words));
            let read = decode(flow(), &words, data, at.wrapping_add(later)).expect("it is sound");
            let timestamp = state.timestamp.map(|value| value.wrapping_add(later));
            assert_eq!(read, Essentials { timestamp, ..state });
        });
    }

    #[test]
    fn impossible_values_are_not_a_state() {
        let options = 1460;
        let sound = [options, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert!(decode(flow(), &sound, Bytes::new(), 0).is_some());
        for (at, word) in [
            (0, 0),
            (0, options | 15 << 16),
            (0, options | 15 << 20),
            (2, LARGEST_WINDOW + 1),
            (4, u32::MAX),
            // The window's right edge lies before the next expected byte.
            (5, 1),
            // More bytes were sent than written, or bytes are missing.
            (12, 1),
            (13, 1),
        ] {
            let mut words = sound;
            words[at] = word;
            assert_eq!(
                decode(flow(), &words, Bytes::new(), 0),
                None,
                "word {at}: {word}"
            );
        }
    }

    /// The writer can be killed before each step, and so can the next writer.
    #[test]
    fn a_torn_state_is_never_read() {
        for_each_seed(300, |seed| {
            let random = &mut Pcg64Mcg::seed_from_u64(seed);
            let record = Record::default();
            let mut expected = Said::Untouched;
            for _ in 0..20 {
                let state: [u32; WORDS] = std::array::from_fn(|_| random.random());
                let version = record.0[0].load(Ordering::Relaxed);
                let killed_at = random.random_range(0..=WORDS + 4);
                let mut done = 0;
                steps(version, &state, |at, word| {
                    if done < killed_at {
                        record.0[at].store(word, Ordering::Release);
                    }
                    done += 1;
                });
                expected = match killed_at {
                    0 => expected,
                    _ if killed_at < done => Said::Incomplete,
                    _ => Said::Complete(state),
                };
                assert_eq!(record.read(), expected);
                if random.random_bool(0.3) {
                    record.spoil();
                    expected = Said::Incomplete;
                    assert_eq!(record.read(), expected);
                }
                if random.random_bool(0.1) {
                    record.reset(Some(&state));
                    expected = Said::Untouched;
                    assert_eq!((record.read(), record.last()), (expected, state));
                }
            }
        });
    }

    #[test]
    fn versions_wrap_without_reading_as_untouched() {
        let record = Record::default();
        record.0[0].store(u32::MAX - 1, Ordering::Relaxed);
        let state = [7; WORDS];
        record.write(&state);
        assert_eq!(record.read(), Said::Complete(state));
    }
}
