//! The region of on-board memory that holds cached data, for each kind of payload.

use baton_wire::{FramePool, Payload, Pieces, Symbolic};
use bytes::Bytes;
use smallvec::SmallVec;
use std::fmt::Debug;

/// A region of NIC memory: bytes from 0 to its length, zeros at first. It interprets nothing.
pub trait Region<P>: Debug + Send {
    /// A region of `len` bytes.
    fn new(len: u32) -> Self;

    /// Copies `data` to `offset`. The range lies within the region.
    fn store(&mut self, offset: u32, data: &P);

    /// Appends the `len` bytes at `offset` to `out`: what stands there, whatever anybody believes. The range lies within the region.
    fn load(&mut self, offset: u32, len: u32, out: &mut Pieces<P>);

    /// All zeros again.
    fn clear(&mut self);

    /// Asserts its invariants.
    fn check(&self);
}

/// A payload that NIC memory can hold.
pub trait Storable: Payload {
    /// The memory.
    type Region: Region<Self>;
}

impl Storable for Bytes {
    type Region = ByteRegion;
}

impl Storable for Symbolic {
    type Region = SymbolicRegion;
}

/// Memory that holds bytes.
#[derive(Debug)]
pub struct ByteRegion {
    bytes: Vec<u8>,
    /// What is loaded is copied here; used again when nobody refers to it any more.
    transmit: FramePool,
}

/// The transmit buffer: so many pieces of so many bytes. What finds all of them in use gets memory of its own.
const TRANSMIT_BUFFERS: usize = 4;
const TRANSMIT_BYTES: usize = 64 * 1024;

impl Region<Bytes> for ByteRegion {
    fn new(len: u32) -> Self {
        Self {
            bytes: vec![0; len as usize],
            // No cache is no memory.
            transmit: FramePool::new(TRANSMIT_BUFFERS, TRANSMIT_BYTES.min(len as usize)),
        }
    }

    fn store(&mut self, offset: u32, data: &Bytes) {
        let start = offset as usize;
        self.bytes[start..start + data.len()].copy_from_slice(data);
    }

    fn load(&mut self, offset: u32, len: u32, out: &mut Pieces<Bytes>) {
        let (start, len) = (offset as usize, len as usize);
        out.push(self.transmit.copy_of(&self.bytes[start..start + len]));
    }

    fn clear(&mut self) {
        self.bytes.fill(0);
    }

    fn check(&self) {}
}

/// Symbolic memory is kept in cells of so many bytes: those of pages, in which it is mostly filled.
const CELL_BYTES: u32 = 4096;

/// A part of a cell and the name of what was stored there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    start: u32,
    data: Symbolic,
}

impl Run {
    fn end(&self) -> u32 {
        self.start + self.data.len
    }

    /// What is left of it between `start` and `end`.
    fn within(&self, start: u32, end: u32) -> Option<Self> {
        let (from, to) = (self.start.max(start), self.end().min(end));
        (from < to).then(|| Self {
            start: from,
            data: self
                .data
                .slice((from - self.start) as usize, (to - from) as usize),
        })
    }
}

/// Runs in order, none over another. What lies between them was never stored.
type Cell = SmallVec<[Run; 1]>;

/// Writes a range's bytes.
pub type Render = fn(&Symbolic, &mut Vec<u8>);

/// Real bytes beside the names.
#[derive(Debug)]
struct Mirror {
    render: Render,
    bytes: Vec<u8>,
    scratch: Vec<u8>,
}

/// Memory that holds names: each part of it remembers which symbolic range was stored there.
#[derive(Debug)]
pub struct SymbolicRegion {
    cells: Vec<Cell>,
    mirror: Option<Box<Mirror>>,
}

/// The source that stands for zeros, which nobody has stored.
const NOTHING: u64 = 0;

impl SymbolicRegion {
    /// From now on the region also holds real bytes, made by `render`, and asserts at each load that they are those the names
    /// stand for.
    pub fn mirror(&mut self, render: Render) {
        let len = self.cells.len() * CELL_BYTES as usize;
        self.mirror = Some(Box::new(Mirror {
            render,
            bytes: vec![0; len],
            scratch: Vec::new(),
        }));
    }

    fn store_in_cell(cell: &mut Cell, run: Run) {
        let covers_all = cell
            .iter()
            .all(|old| run.start <= old.start && old.end() <= run.end());
        if covers_all {
            cell.clear();
            cell.push(run);
            return;
        }
        let old = std::mem::take(cell);
        cell.extend(old.iter().filter_map(|old| old.within(0, run.start)));
        cell.push(run);
        cell.extend(
            old.iter()
                .filter_map(|old| old.within(run.end(), CELL_BYTES)),
        );
    }
}

/// The cells that `len` bytes at `offset` lie in: index, first byte within the cell, bytes.
fn cells(offset: u32, len: u32) -> impl Iterator<Item = (usize, u32, u32)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        (done < len).then(|| {
            let at = offset + done;
            let start = at % CELL_BYTES;
            let part = (CELL_BYTES - start).min(len - done);
            done += part;
            ((at / CELL_BYTES) as usize, start, part)
        })
    })
}

/// Appends a piece, joined to the last one if that is not among the `first`, which came from elsewhere.
fn append(out: &mut Pieces<Symbolic>, first: usize, piece: Symbolic) {
    let joined = out[first..]
        .last_mut()
        .is_some_and(|last| last.try_append(&piece));
    if !joined {
        out.push(piece);
    }
}

impl Region<Symbolic> for SymbolicRegion {
    fn new(len: u32) -> Self {
        Self {
            cells: vec![Cell::new(); len.div_ceil(CELL_BYTES) as usize],
            mirror: None,
        }
    }

    fn store(&mut self, offset: u32, data: &Symbolic) {
        let mut taken = 0;
        for (cell, start, len) in cells(offset, data.len) {
            let data = data.slice(taken, len as usize);
            taken += len as usize;
            Self::store_in_cell(&mut self.cells[cell], Run { start, data });
        }
        if let Some(mirror) = self.mirror.as_deref_mut() {
            mirror.scratch.clear();
            (mirror.render)(data, &mut mirror.scratch);
            let start = offset as usize;
            mirror.bytes[start..start + data.len()].copy_from_slice(&mirror.scratch);
        }
    }

    fn load(&mut self, offset: u32, len: u32, out: &mut Pieces<Symbolic>) {
        let first = out.len();
        for (cell, start, len) in cells(offset, len) {
            let (mut at, end) = (start, start + len);
            let hole = |at: u32, end: u32| Symbolic {
                source: NOTHING,
                offset: u64::from(at),
                len: end - at,
            };
            for run in &self.cells[cell] {
                let Some(part) = run.within(at, end) else {
                    continue;
                };
                if part.start > at {
                    append(out, first, hole(at, part.start));
                }
                append(out, first, part.data);
                at = part.end();
            }
            if at < end {
                append(out, first, hole(at, end));
            }
        }
        if let Some(mirror) = self.mirror.as_deref_mut() {
            mirror.scratch.clear();
            for piece in &out[first..] {
                (mirror.render)(piece, &mut mirror.scratch);
            }
            let start = offset as usize;
            assert_eq!(
                mirror.scratch,
                mirror.bytes[start..start + len as usize],
                "memory holds the bytes that its names stand for"
            );
        }
    }

    fn clear(&mut self) {
        self.cells.iter_mut().for_each(Cell::clear);
        if let Some(mirror) = self.mirror.as_deref_mut() {
            mirror.bytes.fill(0);
        }
    }

    fn check(&self) {
        for cell in &self.cells {
            assert!(
                cell.iter()
                    .zip(cell.iter().skip(1))
                    .all(|(a, b)| a.end() <= b.start),
                "no part of memory has two names: {cell:?}"
            );
            assert!(
                cell.iter()
                    .all(|run| run.data.len > 0 && run.end() <= CELL_BYTES),
                "each name stands in its cell: {cell:?}"
            );
        }
    }
}

#[cfg(test)]
mod tests;
