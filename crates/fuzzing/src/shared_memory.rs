//! A host and an adapter that communicate through shared memory, to which a third party also writes.

use arbitrary::{Arbitrary, Unstructured};
use baton_bus::Descriptor;
use baton_bus::descriptor::{Request, Response, read_inline, read_peer};
use baton_bus::link::{AdapterLink, DmaId, HostLink, LinkError, Violation};
use baton_iolib::{Geometry, LiveLink, ShmAdapter, ShmHost, pair};
use baton_wire::{Span, Time};
use bytes::Bytes;
use std::fs::File;
use std::os::unix::fs::FileExt;

const GEOMETRY: Geometry = Geometry {
    ring_depth: 8,
    buffers: 4,
    buffer_bytes: 64,
    most_sends: 4,
};
/// Range from the words of the rings to the end of the buffers.
const MEMORY: std::ops::Range<u64> = 128..4096 + 4 * 64;

/// The next action.
#[derive(Debug, Arbitrary)]
enum Step {
    /// The third party writes anywhere.
    Spoil {
        at: u16,
        bytes: [u8; 4],
    },
    /// The third party writes to one of the most important words: ring indices and sleep flags.
    SpoilWord {
        word: u8,
        value: u8,
    },
    /// The third party writes to a slot.
    SpoilSlot {
        slot: u8,
        words: [u64; 4],
    },
    HostPuts {
        descriptors: Vec<[u64; 4]>,
    },
    HostGets,
    HostPlaces {
        len: u8,
    },
    HostReserves,
    HostTakes {
        address: u64,
        len: u32,
    },
    HostFrees {
        which: u8,
    },
    HostSleeps,
    AdapterGets {
        most: u8,
    },
    AdapterPuts {
        descriptors: Vec<[u64; 4]>,
    },
    AdapterReads {
        address: u64,
        len: u32,
    },
    AdapterWrites {
        address: u64,
        len: u8,
    },
    AdapterPolls,
    AdapterSleeps,
}

/// Both sides, and whether each still uses the link. Neither is dropped before the end, because ringing a doorbell without a receiver
/// raises a signal, which a fuzzer, unlike a Rust program, does not ignore.
struct Link {
    host: ShmHost,
    host_goes_on: bool,
    adapter: ShmAdapter,
    adapter_goes_on: bool,
    memory: File,
    /// Buffers that the host uses.
    used: Vec<u64>,
    now: Time,
}

/// Executes permitted actions of host and adapter in any order, while arbitrary bytes appear in their memory. Each side must return values
/// or report the violation.
pub fn shared_memory(data: &[u8]) {
    let (host, adapter, memory) = pair(GEOMETRY).expect("memory can be shared");
    let mut link = Link {
        host,
        host_goes_on: true,
        adapter,
        adapter_goes_on: true,
        memory: memory.into(),
        used: Vec::new(),
        now: Time::ZERO,
    };
    let mut input = Unstructured::new(data);
    while !input.is_empty()
        && let Ok(step) = Step::arbitrary(&mut input)
    {
        link.now += Span::from_ms(1);
        match step {
            Step::Spoil { at, bytes } => {
                let span = MEMORY.end - MEMORY.start - 4;
                link.spoil(MEMORY.start + u64::from(at) % span, &bytes);
            }
            Step::SpoilWord { word, value } => {
                let at = MEMORY.start + u64::from(word % 6) * 128;
                link.spoil(at, &u32::from(value).to_le_bytes());
            }
            Step::SpoilSlot { slot, words } => {
                let at = 1024 + u64::from(slot % 16) * 32;
                link.spoil(at, &Descriptor(words).to_bytes());
            }
            other => link.act(other),
        }
    }
}

impl Link {
    fn spoil(&self, at: u64, bytes: &[u8]) {
        self.memory
            .write_all_at(bytes, at)
            .expect("shared memory can be written");
    }

    fn act(&mut self, step: Step) {
        // A side that reports a violation stops using the link.
        if self.host_goes_on {
            let did = Self::host(&mut self.host, &mut self.used, self.now, &step);
            self.host_goes_on = did.is_ok();
        }
        if self.adapter_goes_on {
            let did = Self::adapter(&mut self.adapter, self.now, &step);
            self.adapter_goes_on = did.is_ok();
        }
    }

    fn host(
        host: &mut ShmHost,
        used: &mut Vec<u64>,
        now: Time,
        step: &Step,
    ) -> Result<(), LinkError> {
        match *step {
            Step::HostPuts { ref descriptors } => {
                let descriptors = entries(descriptors);
                assert!(host.put(now, &descriptors)? <= descriptors.len());
            }
            Step::HostGets => {
                let mut responses = Vec::new();
                host.get(now, &mut responses)?;
                look_at(&responses);
            }
            Step::HostPlaces { len } => match host.place(vec![1; len.into()].into()) {
                Ok(address) => used.push(address),
                Err(data) => assert!(used.len() == 4 || data.len() > 64),
            },
            Step::HostReserves => used.extend(host.reserve()),
            Step::HostTakes { address, len } => {
                // Even numbers select addresses of buffers.
                let address = if address % 2 == 0 {
                    address / 2 % 5 * 64
                } else {
                    address
                };
                let len = if len % 2 == 0 { len / 2 % 70 } else { len };
                let data = host.take(address, len).map_err(LinkError::from)?;
                assert_eq!(data.len(), len as usize);
                used.retain(|&it| it != address);
            }
            Step::HostFrees { which } if !used.is_empty() => {
                host.free(used.swap_remove(usize::from(which) % used.len()));
            }
            Step::HostSleeps => {
                let _ = (host.has_news()?, host.prepare_to_sleep()?);
            }
            _ => {}
        }
        assert_eq!(host.free_buffers() + used.len(), 4, "no buffer is lost");
        Ok(())
    }

    fn adapter(adapter: &mut ShmAdapter, now: Time, step: &Step) -> Result<(), LinkError> {
        match *step {
            Step::AdapterGets { most } => {
                let mut requests = Vec::new();
                adapter.get(now, most.into(), &mut requests)?;
                look_at(&requests);
            }
            Step::AdapterPuts { ref descriptors } => {
                let descriptors = entries(descriptors);
                assert!(adapter.put(now, &descriptors)? <= descriptors.len());
            }
            Step::AdapterReads { address, len } => {
                let address = if address % 2 == 0 {
                    address % 300
                } else {
                    address
                };
                in_bounds(
                    adapter.read(now, DmaId(0), address, len % 70),
                    address,
                    len % 70,
                )?;
            }
            Step::AdapterWrites { address, len } => {
                let address = if address % 2 == 0 {
                    address % 300
                } else {
                    address
                };
                let data = Bytes::from(vec![2; len.into()]);
                in_bounds(
                    adapter.write(now, DmaId(1), address, data),
                    address,
                    len.into(),
                )?;
            }
            Step::AdapterPolls => while adapter.poll_dma(now)?.is_some() {},
            Step::AdapterSleeps => {
                let _ = (adapter.has_news()?, adapter.prepare_to_sleep()?);
            }
            _ => {}
        }
        Ok(())
    }
}

/// Checks that a transfer within bounds succeeds, and that any other is reported as a violation.
fn in_bounds(result: Result<(), LinkError>, address: u64, len: u32) -> Result<(), LinkError> {
    let inside = len <= 64 && u128::from(address) + u128::from(len) <= 4 * 64;
    match result {
        Ok(()) => assert!(inside),
        Err(LinkError::Violation(Violation::Range { .. } | Violation::Length(_))) => {
            assert!(!inside);
        }
        Err(_) => unreachable!("both sides are connected"),
    }
    result
}

/// Turns the words into complete entries, each padded to its length, as either side might put them.
fn entries(words: &[[u64; 4]]) -> Vec<Descriptor> {
    let mut entries = Vec::new();
    for &words in words.iter().take(8) {
        let head = Descriptor(words);
        let len = 1 + head.continuations();
        if len <= 8 {
            entries.push(head);
            entries.resize(entries.len() + len - 1, Descriptor::default());
        }
    }
    entries
}

/// Decodes descriptors as either side would.
fn look_at(descriptors: &[Descriptor]) {
    assert!(
        descriptors.len() <= 16,
        "at most twice as many as the ring holds"
    );
    for (at, descriptor) in descriptors.iter().enumerate() {
        let _ = (Request::decode(descriptor), Response::decode(descriptor));
        let _ = read_peer(descriptor);
        let _ = read_inline(&descriptors[at..], &mut [0; 240]);
    }
}
