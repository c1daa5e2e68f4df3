//! A NIC's data cache in the hands of a host that does anything with it.

mod model;

use arbitrary::{Arbitrary, Unstructured};
use baton_bus::handoff::{
    CacheCommand, CacheReference, CachedRun, Command, Event, Handle, MainMemory, PartFlags, ToHost,
    ToNic,
};
use baton_nic::{CacheConfig, Config, Firmware, NoMeter, Work};
use baton_tcp::{Event as TcpEvent, ListenerId, Portable, Segment, Stack};
use baton_wire::{Endpoint, Flow, Header, SeqNr, Span, Time};
use bytes::Bytes;
use model::Model;
use std::net::{IpAddr, Ipv4Addr};

/// Size of the cache.
const CACHE_BYTES: u32 = 16 * 1024;
/// Of a part of a packet as a driver makes it.
const MOST_PART_BYTES: u16 = 4096;
/// Few, so that its queues are often full.
const QUEUE_ENTRIES: u32 = 8;
/// Steps that one input may ask for.
const MOST_STEPS: usize = 2000;
const SERVER: Endpoint = Endpoint::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 80);
const CLIENT: Endpoint = Endpoint::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 5000);
/// The one offloaded connection.
const HANDLE: Handle = Handle(0);

/// A place in the cache.
#[derive(Clone, Copy, Debug, Arbitrary)]
enum Place {
    /// In it, or a little beyond.
    Near(u16),
    /// Anywhere.
    Far(u32),
}

impl Place {
    fn offset(self) -> u32 {
        match self {
            Self::Near(place) => u32::from(place) % (CACHE_BYTES + 600),
            Self::Far(place) => place,
        }
    }
}

/// A place, and the number of the insert that is said to have filled it.
#[derive(Clone, Copy, Debug, Arbitrary)]
struct Reference {
    place: Place,
    generation: u8,
}

impl From<Reference> for CacheReference {
    fn from(Reference { place, generation }: Reference) -> Self {
        Self {
            offset: place.offset(),
            generation: generation.into(),
        }
    }
}

/// A part's place in its packet.
#[derive(Clone, Copy, Debug, Arbitrary)]
struct Flags {
    first: bool,
    last: bool,
}

impl From<Flags> for PartFlags {
    fn from(Flags { first, last }: Flags) -> Self {
        Self { first, last }
    }
}

/// A part of a packet after its headers.
#[derive(Clone, Copy, Debug, Arbitrary)]
enum Part {
    Memory { len: u8 },
    Cache { place: Place, len: u16 },
}

/// What happens next.
#[derive(Debug, Arbitrary)]
enum Step {
    /// A whole packet, as a driver describes it.
    Gather {
        parts: [Part; 2],
    },
    Init,
    Insert {
        place: Place,
        len: u16,
        generation: u8,
    },
    AppendHeaders {
        data: u8,
        flags: Flags,
    },
    AppendMemory {
        len: u16,
        flags: Flags,
    },
    AppendCache {
        place: Place,
        len: u16,
        flags: Flags,
    },
    /// As the one before, of any length.
    AppendMuch {
        place: Place,
        len: u32,
        flags: Flags,
    },
    Packet {
        len: u8,
    },
    /// The connection goes to the NIC, if the host has it.
    HandOff {
        runs: Vec<(u16, Option<Reference>)>,
    },
    Send {
        len: u16,
        reference: Option<Reference>,
    },
    Restore,
    /// The NIC does so much.
    Work(u8),
    /// The client takes what was sent to it, and answers.
    Completion,
    /// Frames to the client are lost.
    Lose,
    Wait {
        ms: u16,
    },
    Reset,
}

/// A host, a NIC and a client.
struct World {
    now: Time,
    nic: Firmware<Bytes>,
    client: Stack<Bytes>,
    model: Model,
    /// Frames of the connection on their way to the client.
    to_client: Vec<Segment<Bytes>>,
    /// The connection, while the host has it.
    state: Option<Box<Portable<Bytes>>>,
    /// What the next data from host memory begins with.
    next_byte: u8,
}

/// A host gives any commands of the data cache in any order, and offloads a connection that refers to it: the NIC keeps every
/// invariant, and sends what stands in its memory or refuses by name.
pub fn data_cache(data: &[u8]) {
    let mut world = World::new();
    let mut input = Unstructured::new(data);
    for _ in 0..MOST_STEPS {
        if input.is_empty() {
            break;
        }
        let Ok(step) = Step::arbitrary(&mut input) else {
            break;
        };
        world.step(step);
        world.nic.check();
    }
    while world.work() {}
    world.nic.check();
    world.model.assert_idle();
}

impl World {
    fn new() -> Self {
        let config = Config {
            descriptor_queue_entries: QUEUE_ENTRIES,
            cache: CacheConfig {
                kib: CACHE_BYTES / 1024,
                ..CacheConfig::default()
            },
            ..Config::default()
        };
        let mut nic = Firmware::new(config, baton_tcp::Config::default(), 1);
        nic.note_reads();
        let (client, state) = connected();
        Self {
            now: Time::ZERO,
            nic,
            client,
            model: Model::new(CACHE_BYTES),
            to_client: Vec::new(),
            state: Some(state),
            next_byte: 0,
        }
    }

    /// Data of the host, unlike what it gave before.
    fn data(&mut self, len: u16) -> Bytes {
        self.next_byte = self.next_byte.wrapping_add(41);
        let first = self.next_byte;
        (0..len).map(|at| first.wrapping_add(at as u8)).collect()
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Gather { parts } => self.gather(parts),
            Step::HandOff { runs } => self.hand_off(&runs),
            Step::Send { len, reference } => {
                let data = self.data(len);
                self.command(Command::Send {
                    handle: HANDLE,
                    data,
                    cached: reference.map(CacheReference::from),
                });
            }
            Step::Restore => self.command(Command::Restore { handle: HANDLE }),
            Step::Work(most) => {
                for _ in 0..most {
                    if !self.work() {
                        break;
                    }
                }
            }
            Step::Completion => self.answer(),
            Step::Lose => self.to_client.clear(),
            Step::Wait { ms } => {
                self.now += Span::from_ms(ms.into());
                self.nic.handle_timeouts(self.now);
            }
            Step::Reset => {
                self.nic.reset();
                self.model.reset();
                self.take();
            }
            in_order => self.in_packet_order(in_order),
        }
    }

    fn gather(&mut self, [first, last]: [Part; 2]) {
        let flags = |first, last| Flags { first, last };
        self.in_packet_order(Step::AppendHeaders {
            data: 0,
            flags: flags(true, false),
        });
        for (part, is_last) in [(first, false), (last, true)] {
            let flags = flags(false, is_last);
            self.in_packet_order(match part {
                Part::Memory { len } => Step::AppendMemory {
                    len: len.into(),
                    flags,
                },
                Part::Cache { place, len } => Step::AppendCache {
                    place,
                    len: len % MOST_PART_BYTES,
                    flags,
                },
            });
        }
    }

    /// What stands in line with packets.
    fn in_packet_order(&mut self, step: Step) {
        let append_cache = |place: Place, len, flags: Flags| {
            ToNic::Cache(CacheCommand::AppendCache {
                offset: place.offset(),
                len,
                flags: flags.into(),
            })
        };
        let descriptor = match step {
            Step::Init => ToNic::Cache(CacheCommand::Init),
            Step::Insert {
                place,
                len,
                generation,
            } => ToNic::Cache(CacheCommand::Insert {
                data: self.data(len % (2 * MOST_PART_BYTES)),
                offset: place.offset(),
                generation: generation.into(),
            }),
            Step::AppendHeaders { data, flags } => ToNic::Cache(CacheCommand::AppendMemory {
                part: MainMemory::Headers(self.segment(data)),
                flags: flags.into(),
            }),
            Step::AppendMemory { len, flags } => ToNic::Cache(CacheCommand::AppendMemory {
                part: MainMemory::Data(self.data(len)),
                flags: flags.into(),
            }),
            Step::AppendCache { place, len, flags } => append_cache(place, len.into(), flags),
            Step::AppendMuch { place, len, flags } => append_cache(place, len, flags),
            Step::Packet { len } => ToNic::Packet(self.segment(len)),
            _ => unreachable!("it is no packet and no command of the cache"),
        };
        let given = descriptor.clone();
        if self.nic.handle_descriptor(self.now, descriptor).is_ok() {
            self.model.given(given);
        }
    }

    /// A packet of a connection that the host has, with the number by which the model knows it.
    fn segment(&mut self, len: u8) -> Segment<Bytes> {
        let data = self.data(len.into());
        Segment {
            src: SERVER,
            dst: CLIENT,
            ecn: Default::default(),
            header: Header {
                seq: SeqNr(self.model.next_number()),
                ..Header::default()
            },
            payload: std::iter::once(data).collect(),
        }
    }

    fn command(&mut self, command: Command<Bytes>) {
        // If its queue is full the host goes without.
        let _ = self
            .nic
            .handle_descriptor(self.now, ToNic::Command(command));
    }

    fn hand_off(&mut self, runs: &[(u16, Option<Reference>)]) {
        let Some(state) = self.state.take() else {
            return;
        };
        let run = |&(len, reference): &(u16, Option<Reference>)| CachedRun {
            len: len.into(),
            cached: reference.map(CacheReference::from),
        };
        let command = Command::Handoff {
            handle: HANDLE,
            state,
            cached: runs.iter().map(run).collect(),
        };
        let given = self
            .nic
            .handle_descriptor(self.now, ToNic::Command(command));
        if let Err(ToNic::Command(Command::Handoff { state, .. })) = given {
            self.state = Some(state);
        }
    }

    /// The NIC does one piece of work, if it has any.
    fn work(&mut self) -> bool {
        let refused = self.nic.stats().cache.refused.total();
        let Some(work) = self.nic.poll_work(self.now, &mut NoMeter) else {
            return false;
        };
        if work == Work::Cache {
            self.model.command_done(self.nic.stats());
        }
        let sent = self.take();
        if work == Work::HostSend {
            let refused = self.nic.stats().cache.refused.total() - refused;
            assert_eq!(sent + refused, 1, "a packet is sent, or refused by name");
        }
        true
    }

    /// Takes what comes out; gives how many packets of the host were sent.
    fn take(&mut self) -> u64 {
        let mut sent = 0;
        while let Some(frame) = self.nic.poll_frame() {
            if frame.host_since.is_some() {
                sent += 1;
                self.model.sent(&frame.segment);
            } else {
                self.to_client.push(frame.segment);
            }
        }
        while self.nic.poll_read().is_some() {}
        while let Some(upcall) = self.nic.poll_upcall() {
            match upcall.item {
                ToHost::Event(
                    Event::Restored { state, .. }
                    | Event::Handoff {
                        result: Err((_, state)),
                        ..
                    },
                ) => self.state = Some(state),
                ToHost::Event(Event::CacheReady(bytes)) => assert_eq!(bytes, CACHE_BYTES),
                ToHost::Event(_) | ToHost::Packet(_) | ToHost::Sent(_) => {}
            }
        }
        sent
    }

    fn answer(&mut self) {
        for segment in self.to_client.drain(..) {
            self.client.handle_segment(self.now, segment);
        }
        while let Some((conn, event)) = self.client.poll_event() {
            if event == TcpEvent::Readable {
                while let Some(data) = self.client.read(conn, usize::MAX) {
                    self.client.consume(conn, data.len());
                }
            }
        }
        while let Some((_, segment)) = self.client.poll_transmit(self.now) {
            // What is dropped is sent again, or not.
            let _ = self.nic.handle_frame(self.now, segment);
        }
    }
}

/// A client, and the server's end of its connection.
fn connected() -> (Stack<Bytes>, Box<Portable<Bytes>>) {
    let config = baton_tcp::Config::default;
    let (mut client, mut server) = (Stack::new(config(), 2), Stack::new(config(), 3));
    let listener: ListenerId = server.listen(SERVER, 1);
    let flow = Flow {
        local: CLIENT,
        remote: SERVER,
    };
    client.connect(Time::ZERO, flow).expect("it is the first");
    let mut idle = false;
    while !idle {
        idle = true;
        while let Some((_, segment)) = client.poll_transmit(Time::ZERO) {
            server.handle_segment(Time::ZERO, segment);
            idle = false;
        }
        while let Some((_, segment)) = server.poll_transmit(Time::ZERO) {
            client.handle_segment(Time::ZERO, segment);
            idle = false;
        }
    }
    let conn = server.accept(listener).expect("it is established");
    (client, Box::new(server.export(Time::ZERO, conn)))
}
