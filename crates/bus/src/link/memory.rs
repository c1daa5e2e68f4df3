//! A link inside one process: host and adapter of a test, or of a program that runs both on one thread.
//!
//! The link enforces every rule of a real one. Requests and responses cross rings of bounded depth; buffers can be read or written only
//! while the host lends them; and tests can inject faults ([`Faults`]).

use super::{AdapterLink, Dma, DmaId, HostLink, Inline, LinkError, Violation};
use crate::Ring;
use crate::descriptor::{Descriptor, FilePlace, Malformed, whole_entries};
use baton_wire::Time;
use std::cell::{Cell, RefCell, RefMut};
use std::collections::VecDeque;
use std::rc::Rc;

/// Address of the host's first buffer. Not 0, so that an unset address is invalid.
const FIRST_ADDRESS: u64 = 0x1_0000;

/// Sizes of a link in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryConfig {
    /// Number of descriptors in each ring.
    pub ring_depth: usize,
    /// Number of buffers of the host.
    pub buffers: usize,
    /// Size of a buffer, bytes.
    pub buffer_bytes: u32,
}

/// Rings of 128 descriptors and buffers of a page (batching 3.1).
impl Default for MemoryConfig {
    fn default() -> Self {
        Self {
            ring_depth: 128,
            buffers: 1024,
            buffer_bytes: 4096,
        }
    }
}

/// Creates a link and returns both ends.
pub fn memory_link<D: Inline>(config: MemoryConfig) -> (MemoryHost<D>, MemoryAdapter<D>) {
    let shared = Rc::new(RefCell::new(Shared {
        to_adapter: Ring::new(config.ring_depth),
        to_host: Ring::new(config.ring_depth),
        buffer_bytes: config.buffer_bytes,
        buffers: (0..config.buffers).map(|_| Buffer::new()).collect(),
        free: (0..config.buffers).rev().collect(),
        files: Vec::new(),
        dma: VecDeque::new(),
        faults: Faults::default(),
    }));
    let faults = shared.borrow().faults.clone();
    let adapter = MemoryAdapter {
        shared: Rc::clone(&shared),
        faults: faults.clone(),
    };
    let host = MemoryHost {
        shared,
        faults,
        joins: false,
    };
    (host, adapter)
}

/// Fault injection for a link, for tests. Clones refer to the same link.
#[derive(Clone, Debug, Default)]
pub struct Faults(Rc<FaultState>);

#[derive(Debug, Default)]
struct FaultState {
    gone: Cell<bool>,
    dma_polls: Cell<u32>,
    closed_to_adapter: Cell<bool>,
    closed_to_host: Cell<bool>,
}

impl Faults {
    /// Makes each end find that the other has gone, as if the other had been dropped.
    pub fn cut(&self) {
        self.0.gone.set(true);
    }

    /// Delays each DMA that starts from now on until it has been polled `polls` times.
    pub fn delay_dma(&self, polls: u32) {
        self.0.dma_polls.set(polls);
    }

    /// Sets whether the adapter's ring refuses requests, even if it has space.
    pub fn refuse_requests(&self, refuse: bool) {
        self.0.closed_to_adapter.set(refuse);
    }

    /// Sets whether the host's ring refuses responses, even if it has space.
    pub fn refuse_responses(&self, refuse: bool) {
        self.0.closed_to_host.set(refuse);
    }

    fn check(&self) -> Result<(), LinkError> {
        if self.0.gone.get() {
            return Err(LinkError::Gone);
        }
        Ok(())
    }
}

/// The host's end of a link in memory.
#[derive(Debug)]
pub struct MemoryHost<D> {
    shared: Rc<RefCell<Shared<D>>>,
    faults: Faults,
    /// Whether data can be appended to a buffer.
    joins: bool,
}

/// The adapter's end of a link in memory.
#[derive(Debug)]
pub struct MemoryAdapter<D> {
    shared: Rc<RefCell<Shared<D>>>,
    faults: Faults,
}

#[derive(Debug)]
struct Shared<D> {
    to_adapter: Ring<Descriptor>,
    to_host: Ring<Descriptor>,
    buffer_bytes: u32,
    buffers: Vec<Buffer<D>>,
    /// Free buffers; the one freed last is taken first.
    free: Vec<usize>,
    files: Vec<File<D>>,
    dma: VecDeque<Pending<D>>,
    faults: Faults,
}

#[derive(Debug)]
struct Buffer<D> {
    /// Changes each time the buffer is freed, so that a late DMA is detected.
    lending: u64,
    state: State<D>,
}

#[derive(Debug)]
enum State<D> {
    Free,
    /// Data that the adapter may read.
    Placed(D),
    /// A buffer that the adapter may write, and the data written so far.
    Reserved(Option<D>),
}

/// A file, by its content.
#[derive(Debug)]
struct File<D> {
    content: D,
    /// Whether the host uses it for a SEND.
    is_lent: bool,
}

#[derive(Debug)]
struct Pending<D> {
    polls_left: u32,
    id: DmaId,
    buffer: usize,
    lending: u64,
    kind: Kind<D>,
}

#[derive(Debug)]
enum Kind<D> {
    Read { start: usize, len: usize },
    ReadFile { place: FilePlace, len: usize },
    Write { start: usize, data: D },
}

impl<D> Buffer<D> {
    fn new() -> Self {
        Self {
            lending: 0,
            state: State::Free,
        }
    }
}

impl<D: Inline> Shared<D> {
    fn address(&self, buffer: usize) -> u64 {
        FIRST_ADDRESS + buffer as u64 * u64::from(self.buffer_bytes)
    }

    /// Returns the buffer that contains the `len` bytes at `address`, and their offset in it.
    fn find(&self, address: u64, len: u32) -> Result<(usize, usize), Violation> {
        let wrong = Violation::Range { address, len };
        let bytes = u64::from(self.buffer_bytes);
        let offset = address.checked_sub(FIRST_ADDRESS).ok_or(wrong)?;
        let (buffer, start) = (offset / bytes, offset % bytes);
        if buffer >= self.buffers.len() as u64 || start + u64::from(len) > bytes {
            return Err(wrong);
        }
        Ok((buffer as usize, start as usize))
    }

    fn lend(&mut self, state: State<D>) -> Option<u64> {
        let buffer = self.free.pop()?;
        debug_assert!(matches!(self.buffers[buffer].state, State::Free));
        self.buffers[buffer].state = state;
        Some(self.address(buffer))
    }

    fn give_back(&mut self, buffer: usize) -> State<D> {
        let slot = &mut self.buffers[buffer];
        slot.lending += 1;
        let state = std::mem::replace(&mut slot.state, State::Free);
        assert!(!matches!(state, State::Free), "a buffer is freed once");
        self.free.push(buffer);
        state
    }

    fn begin(&mut self, id: DmaId, buffer: usize, kind: Kind<D>) {
        self.dma.push_back(Pending {
            polls_left: self.faults.0.dma_polls.get(),
            id,
            buffer,
            lending: self.buffers[buffer].lending,
            kind,
        });
    }

    /// Executes a DMA if its buffer is still lent.
    fn finish(&mut self, pending: Pending<D>) -> Result<Dma<D>, Violation> {
        let address = self.address(pending.buffer);
        let id = pending.id;
        if let Kind::ReadFile { place, len } = pending.kind {
            let content = &self.files[place.file as usize].content;
            let start = usize::try_from(place.offset).unwrap_or(usize::MAX);
            return Ok(match start.saturating_add(len) <= content.len() {
                true => Dma::Read {
                    id,
                    data: content.slice(start, len),
                },
                false => Dma::Failed { id },
            });
        }
        let buffer = &mut self.buffers[pending.buffer];
        let is_lent = buffer.lending == pending.lending;
        match (pending.kind, &mut buffer.state) {
            (Kind::Read { start, len }, State::Placed(data)) if is_lent => {
                let data = data.slice(start, len);
                Ok(Dma::Read { id, data })
            }
            (Kind::Write { start, data }, State::Reserved(written)) if is_lent => {
                let len = data.len() as u32;
                if !append(written, start, data) {
                    let address = address + start as u64;
                    return Err(Violation::Range { address, len });
                }
                Ok(Dma::Written { id })
            }
            (Kind::Read { len, .. } | Kind::ReadFile { len, .. }, _) => Err(Violation::Range {
                address,
                len: len as u32,
            }),
            (Kind::Write { data, .. }, _) => Err(Violation::Range {
                address,
                len: data.len() as u32,
            }),
        }
    }
}

/// Appends `data` at the end of `written`, or replaces `written` if `start` is 0.
fn append<D: Inline>(written: &mut Option<D>, start: usize, data: D) -> bool {
    match written {
        Some(before) if start > 0 => {
            let both = before.followed_by(&data).filter(|_| before.len() == start);
            let fits = both.is_some();
            *written = both;
            fits
        }
        _ => {
            *written = Some(data);
            start == 0
        }
    }
}

/// Moves whole entries from `from` to the ring, as far as they fit.
fn put(ring: &mut Ring<Descriptor>, from: &[Descriptor]) -> usize {
    let taken = whole_entries(from, ring.free());
    let pushed = ring.try_extend(&from[..taken]);
    debug_assert!(pushed, "there was room");
    taken
}

/// Moves whole entries out of the ring: at most `most` descriptors, but at least one entry.
fn get(
    ring: &mut Ring<Descriptor>,
    most: usize,
    to: &mut Vec<Descriptor>,
) -> Result<(), LinkError> {
    let Some(first) = ring.front() else {
        return Ok(());
    };
    let first = 1 + first.continuations();
    if first > ring.len() {
        let missing = first - ring.len();
        return Err(Violation::Malformed(Malformed::Truncated { missing }).into());
    }
    let count = whole_entries(ring.as_slice(), most.max(first));
    to.extend_from_slice(&ring.as_slice()[..count]);
    ring.drop_front(count);
    Ok(())
}

impl<D> MemoryHost<D> {
    /// Sets whether data can be appended to a buffer ([`HostLink::append`]). Initially it cannot.
    pub fn set_joins(&mut self, joins: bool) {
        self.joins = joins;
    }

    /// Returns the fault injection of this link.
    pub fn faults(&self) -> Faults {
        self.faults.clone()
    }

    fn shared(&self) -> Result<RefMut<'_, Shared<D>>, LinkError> {
        self.faults.check()?;
        Ok(self.shared.borrow_mut())
    }
}

impl<D: Inline> MemoryHost<D> {
    /// Lends a file with this content to the adapter, for one SEND. Returns the address of its first byte.
    pub fn lend(&mut self, content: D) -> u64 {
        let mut shared = self.shared.borrow_mut();
        shared.files.push(File {
            content,
            is_lent: true,
        });
        let file = shared.files.len() as u32 - 1;
        FilePlace { file, offset: 0 }.address()
    }

    /// Replaces the content of a file that has been lent.
    pub fn change_file(&mut self, address: u64, content: D) {
        let place = FilePlace::at(address).expect("an address in a file");
        self.shared.borrow_mut().files[place.file as usize].content = content;
    }

    /// Returns the number of files that the host uses.
    pub fn lent_files(&self) -> usize {
        let shared = self.shared.borrow();
        shared.files.iter().filter(|file| file.is_lent).count()
    }

    /// Returns whether the buffer at this address holds placed data that satisfies the predicate.
    pub fn is_placed(&self, address: u64, is_it: impl FnOnce(&D) -> bool) -> bool {
        let shared = self.shared.borrow();
        let buffer = shared.find(address, 0).ok();
        buffer.is_some_and(|(buffer, _)| match &shared.buffers[buffer].state {
            State::Placed(data) => is_it(data),
            State::Free | State::Reserved(_) => false,
        })
    }
}

impl<D> MemoryAdapter<D> {
    /// Returns the fault injection of this link.
    pub fn faults(&self) -> Faults {
        self.faults.clone()
    }

    fn shared(&self) -> Result<RefMut<'_, Shared<D>>, LinkError> {
        self.faults.check()?;
        Ok(self.shared.borrow_mut())
    }
}

impl<D> Drop for MemoryHost<D> {
    fn drop(&mut self) {
        self.faults.cut();
    }
}

impl<D> Drop for MemoryAdapter<D> {
    fn drop(&mut self) {
        self.faults.cut();
    }
}

impl<D: Inline> HostLink for MemoryHost<D> {
    type Data = D;

    fn put(&mut self, _now: Time, requests: &[Descriptor]) -> Result<usize, LinkError> {
        let mut shared = self.shared()?;
        if self.faults.0.closed_to_adapter.get() {
            return Ok(0);
        }
        Ok(put(&mut shared.to_adapter, requests))
    }

    fn get(&mut self, _now: Time, responses: &mut Vec<Descriptor>) -> Result<(), LinkError> {
        get(&mut self.shared()?.to_host, usize::MAX, responses)
    }

    fn buffer_bytes(&self) -> u32 {
        self.shared.borrow().buffer_bytes
    }

    fn free_buffers(&self) -> usize {
        self.shared.borrow().free.len()
    }

    fn place(&mut self, data: D) -> Result<u64, D> {
        let mut shared = self.shared.borrow_mut();
        if shared.free.is_empty() || data.len() > shared.buffer_bytes as usize {
            return Err(data);
        }
        Ok(shared
            .lend(State::Placed(data))
            .expect("a free buffer has been seen"))
    }

    fn append(&mut self, address: u64, used: u32, data: &D) -> bool {
        if !self.joins {
            return false;
        }
        let mut shared = self.shared.borrow_mut();
        let len = used + data.len() as u32;
        let Ok((buffer, 0)) = shared.find(address, len) else {
            return false;
        };
        let State::Placed(before) = &mut shared.buffers[buffer].state else {
            return false;
        };
        let is_end = before.len() == used as usize;
        let Some(both) = before.followed_by(data).filter(|_| is_end) else {
            return false;
        };
        *before = both;
        true
    }

    fn reserve(&mut self) -> Option<u64> {
        self.shared.borrow_mut().lend(State::Reserved(None))
    }

    fn take(&mut self, address: u64, len: u32) -> Result<D, Violation> {
        let mut shared = self.shared.borrow_mut();
        let wrong = Violation::Range { address, len };
        let (buffer, start) = shared.find(address, len)?;
        match &shared.buffers[buffer].state {
            State::Reserved(Some(data)) if start == 0 && data.len() >= len as usize => {
                let data = data.slice(0, len as usize);
                shared.give_back(buffer);
                Ok(data)
            }
            _ => Err(wrong),
        }
    }

    /// Panics if the buffer or file was not lent, which in a test is a bug of the host.
    fn free(&mut self, address: u64) {
        let mut shared = self.shared.borrow_mut();
        if let Some(place) = FilePlace::at(address) {
            let file = &mut shared.files[place.file as usize];
            assert!(std::mem::take(&mut file.is_lent), "a use ends once");
            return;
        }
        let (buffer, start) = shared.find(address, 0).expect("an address of a buffer");
        assert_eq!(start, 0, "a buffer's address is that of its first byte");
        shared.give_back(buffer);
    }
}

impl<D: Inline> AdapterLink for MemoryAdapter<D> {
    type Data = D;

    fn get(
        &mut self,
        _now: Time,
        most: usize,
        requests: &mut Vec<Descriptor>,
    ) -> Result<(), LinkError> {
        get(&mut self.shared()?.to_adapter, most, requests)
    }

    fn put(&mut self, _now: Time, responses: &[Descriptor]) -> Result<usize, LinkError> {
        let mut shared = self.shared()?;
        if self.faults.0.closed_to_host.get() {
            return Ok(0);
        }
        Ok(put(&mut shared.to_host, responses))
    }

    fn read(&mut self, _now: Time, id: DmaId, address: u64, len: u32) -> Result<(), LinkError> {
        let mut shared = self.shared()?;
        let len_bytes = len as usize;
        if let Some(place) = FilePlace::at(address) {
            let file = shared.files.get(place.file as usize);
            if !file.is_some_and(|file| file.is_lent) {
                return Err(Violation::Range { address, len }.into());
            }
            let len = len_bytes;
            shared.begin(id, 0, Kind::ReadFile { place, len });
            return Ok(());
        }
        let (buffer, start) = shared.find(address, len)?;
        match &shared.buffers[buffer].state {
            State::Placed(data) if start + len_bytes <= data.len() => {}
            _ => return Err(Violation::Range { address, len }.into()),
        }
        let kind = Kind::Read {
            start,
            len: len_bytes,
        };
        shared.begin(id, buffer, kind);
        Ok(())
    }

    /// A buffer may be written piece by piece, as far as it can [hold](Inline::followed_by) the pieces.
    fn write(&mut self, _now: Time, id: DmaId, address: u64, data: D) -> Result<(), LinkError> {
        let mut shared = self.shared()?;
        let len = u32::try_from(data.len()).map_err(|_| Violation::Length(u32::MAX))?;
        let (buffer, start) = shared.find(address, len)?;
        if !matches!(shared.buffers[buffer].state, State::Reserved(_)) {
            return Err(Violation::Range { address, len }.into());
        }
        shared.begin(id, buffer, Kind::Write { start, data });
        Ok(())
    }

    fn poll_dma(&mut self, _now: Time) -> Result<Option<Dma<D>>, LinkError> {
        let mut shared = self.shared()?;
        let Some(first) = shared.dma.front_mut() else {
            return Ok(None);
        };
        if first.polls_left > 0 {
            first.polls_left -= 1;
            return Ok(None);
        }
        let pending = shared.dma.pop_front().expect("the first has been seen");
        Ok(Some(shared.finish(pending)?))
    }
}
