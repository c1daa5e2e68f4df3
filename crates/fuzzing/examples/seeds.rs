//! Writes the first inputs of each corpus: something of every kind that a target knows, for the fuzzer to change.
//!
//! `cargo run -p baton-fuzzing --example seeds`

use baton_bus::Descriptor;
use baton_bus::descriptor::{
    Action, Buffer, Close, Moment, Opcode, Outcome, Peer, Request, Response, SocketInfo,
    SocketOption, Status, Times, write_inline, write_peer,
};
use baton_fuzzing::SPELLED;
use baton_sockets::broker::messages::{
    GIVE_BACK, PLACES, POLICY, RECOVER, REFUSED, Recovery, SUBSCRIBE,
};
use baton_tcp::{Config, Essentials, Moved, State};
use baton_wire::{
    Ecn, Endpoint, FastOpenCookie, FastOpenOption, Flags, Flow, Header, Link, Options, Packet,
    SackBlock, SeqNr, Stage, Stages, Timestamps, encode_frame, encode_packet,
};
use baton_workload::log::Format;
use bytes::Bytes;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// States that a conversation may start in.
const STARTS: u32 = 13;
/// Bytes of a conversation's seed.
const CONVERSATION_LEN: usize = 300;

/// Applications, and bytes of each.
const APPLICATIONS: u64 = 12;
const APPLICATION_LEN: usize = 4000;

fn main() -> std::io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let corpora = root.join("fuzz/corpus");
    packets(&corpora.join("packet"))?;
    conversations(&corpora.join("segments"))?;
    conversations(&corpora.join("portable"))?;
    conversations(&corpora.join("frame"))?;
    applications(&corpora.join("application"))?;
    brokers(&corpora.join("broker"))?;
    rings(&corpora.join("descriptors"))?;
    conversations(&corpora.join("shared_memory"))?;
    conversations(&corpora.join("stream"))?;
    logs(&corpora.join("access_log"))?;
    captures(&corpora.join("capture"))?;
    experiments(&root.join("experiments"), &corpora.join("experiment"))
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join(name), bytes)
}

fn packets(folder: &Path) -> std::io::Result<()> {
    let all = Options {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 1, echo: 2 }),
        ..Options::default()
    };
    let cookie = Options {
        fast_open: Some(FastOpenOption::new(
            FastOpenCookie::new(&[1, 2, 3, 4, 5, 6, 7, 8]).expect("a cookie"),
        )),
        ..all
    };
    let block = |start: u32| SackBlock {
        start: SeqNr(start),
        end: SeqNr(start + 1000),
    };
    let sack = Options {
        timestamps: all.timestamps,
        sack: [block(1000), block(3000), block(5000)]
            .into_iter()
            .collect(),
        ..Options::default()
    };
    let kinds: [(&str, Flags, Options, &[u8]); 5] = [
        ("syn", Flags::SYN, all, b""),
        ("fast_open", Flags::SYN, cookie, b"GET / HTTP/1.1\r\n\r\n"),
        ("ack", Flags::ACK, sack, b""),
        (
            "data",
            Flags::ACK | Flags::PSH,
            Options::default(),
            b"GET / HTTP/1.1\r\n\r\n",
        ),
        ("reset", Flags::RST, Options::default(), b""),
    ];
    let addresses = [("v4", "10.0.0.1", "10.0.0.2"), ("v6", "fd00::1", "fd00::2")];
    for (kind, flags, options, payload) in kinds {
        for (version, src, dst) in addresses {
            let end = |addr: &str, port| {
                let addr: IpAddr = addr.parse().expect("an address");
                Endpoint::new(addr, port)
            };
            let packet = Packet {
                src: end(src, 5000),
                dst: end(dst, 80),
                ecn: Ecn::Capable0,
                header: Header {
                    seq: SeqNr(7),
                    ack: SeqNr(9),
                    flags,
                    window: 1000,
                    options,
                },
            };
            let mut bytes = Vec::new();
            encode_packet(&packet, payload, &mut bytes).expect("a right packet");
            write(folder, &format!("packet-{kind}-{version}"), &bytes)?;
            bytes.clear();
            let link = Link::between(packet.src.addr, packet.dst.addr);
            encode_frame(link, &packet, payload, &mut bytes).expect("a right frame");
            write(folder, &format!("frame-{kind}-{version}"), &bytes)?;
        }
    }
    Ok(())
}

/// A state to start in, and steps that a simple generator draws.
fn conversations(folder: &Path) -> std::io::Result<()> {
    for start in 0..STARTS {
        let choice = (u64::from(start) << 32) / u64::from(STARTS) + (1 << 24);
        let mut bytes = (choice as u32).to_le_bytes().to_vec();
        draw(u64::from(start) + 1, CONVERSATION_LEN, &mut bytes);
        write(folder, &format!("start-{start}"), &bytes)?;
    }
    Ok(())
}

/// Steps that a simple generator draws.
fn applications(folder: &Path) -> std::io::Result<()> {
    for seed in 0..APPLICATIONS {
        let mut bytes = Vec::new();
        draw(seed, APPLICATION_LEN, &mut bytes);
        write(folder, &format!("seed-{seed}"), &bytes)?;
    }
    Ok(())
}

/// What applications and brokers say to each other.
fn brokers(folder: &Path) -> std::io::Result<()> {
    let recovery = Recovery {
        flow: connection().state.flow,
        sent: SeqNr(1005),
        received: SeqNr(2018),
    };
    let recovery = serde_json::to_vec(&recovery)?;
    // Options, SND.UNA, three of windows, RCV.NXT and the edge.
    let remains = [
        1460_u32, 1005, 65_535, 2000, 65_535, 2018, 67_553, 0, 0, 0, 0, 0,
    ];
    let remains = remains.map(u32::to_le_bytes).concat();
    write(folder, "remains", &remains)?;
    let said: [(&str, u32, &[u8]); 6] = [
        ("recover", RECOVER, &recovery),
        ("give_back", GIVE_BACK, &connection().to_bytes()),
        ("policy", POLICY, b"ports:80=t4,*=never"),
        ("places", PLACES, br#"[{"pid":7,"places":[]}]"#),
        ("subscribe", SUBSCRIBE, b""),
        ("refused", REFUSED, b"a socket of another user"),
    ];
    for (name, kind, body) in said {
        let len = body.len() as u32;
        let bytes = [&kind.to_ne_bytes(), &len.to_ne_bytes(), body].concat();
        write(folder, name, &bytes)?;
    }
    Ok(())
}

/// A connection with data on both sides.
fn connection() -> Moved<Bytes> {
    let end = |addr: &str, port| Endpoint::new(addr.parse().expect("an address"), port);
    let essentials = Essentials {
        flow: Flow {
            local: end("10.0.0.1", 80),
            remote: end("10.0.0.2", 5000),
        },
        state: State::Established,
        send_una: SeqNr(1000),
        send_next: SeqNr(1005),
        send_buffer: vec![Bytes::from_static(b"HTTP/1.1 200 OK")],
        send_window: 65_535,
        send_window_seq: SeqNr(2000),
        largest_send_window: 65_535,
        receive_next: SeqNr(2018),
        receive_edge: SeqNr(2018 + 65_535),
        receive_buffer: vec![Bytes::from_static(b"GET / HTTP/1.1\r\n\r\n")],
        mss: 1460,
        window_scaling: None,
        sack: true,
        timestamp: Some(7),
        round_trip: None,
        congestion_window: None,
    };
    Moved::new(essentials.into_portable(&Config::default()))
}

/// Fills `bytes` up to `len`.
fn draw(seed: u64, len: usize, bytes: &mut Vec<u8>) {
    let mut state = seed;
    while bytes.len() < len {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        bytes.push((state >> 56) as u8);
    }
}

/// Rings: the requests of a connection, and their answers.
fn rings(folder: &Path) -> std::io::Result<()> {
    write(folder, "requests", &ring(&requests()))?;
    write(folder, "responses", &ring(&responses()))
}

fn ring(descriptors: &[Descriptor]) -> Vec<u8> {
    let records = descriptors.iter().map(|descriptor| descriptor.to_bytes());
    records.flatten().collect()
}

fn requests() -> Vec<Descriptor> {
    let local = Endpoint::new(IpAddr::from([10, 0, 0, 1]), 80);
    let remote = Endpoint::new(IpAddr::from([0xfd; 16]), 5000);
    let memory = Buffer::Memory {
        address: 4096,
        len: 100,
    };
    let accept = Action::Accept {
        first: 2,
        count: 3,
        timeout_us: 50,
    };
    let option = Action::SetOption {
        option: SocketOption::NoDelay,
        value: 1,
    };
    let actions = [
        Action::Socket,
        Action::Bind(local),
        Action::Listen { backlog: 5 },
        accept,
        Action::Connect(remote),
        option,
        Action::Status,
        Action::Receive {
            address: 8192,
            len: 4096,
        },
        Action::send(memory, true),
        Action::CacheInit,
        Action::CacheInsert {
            address: 4096,
            len: 4096,
            offset: 512,
        },
        Action::SendCached {
            offset: 600,
            len: 1000,
            more: true,
        },
        Action::Cancel { target: 3 },
        Action::SetOption {
            option: SocketOption::Times,
            value: Times::all().bits(),
        },
        Action::Send {
            data: memory,
            more: false,
            times: Stages::all(),
        },
        Action::Close(Close::Both),
    ];
    let mut all: Vec<_> = (1..)
        .zip(actions)
        .map(|(tag, action)| {
            Request {
                socket: 1,
                tag,
                action,
            }
            .encode()
        })
        .collect();
    let data = [7; 40];
    let action = Action::send(
        Buffer::Inline {
            len: data.len() as u16,
        },
        false,
    );
    let (socket, tag) = (1, 99);
    let mut head = Request {
        socket,
        tag,
        action,
    }
    .encode();
    let mut tail = Vec::new();
    write_inline(&mut head, &data, &mut tail);
    all.push(head);
    all.extend(tail);
    all
}

fn responses() -> Vec<Descriptor> {
    let remote = Endpoint::new(IpAddr::from([10, 0, 0, 2]), 5000);
    let memory = Buffer::Memory {
        address: 8192,
        len: 100,
    };
    let outcomes = [
        Outcome::Done(Opcode::Socket),
        Outcome::Accepted(remote),
        Outcome::Sent {
            len: 100,
            cumulative: true,
        },
        Outcome::Received(memory),
        Outcome::Status(SocketInfo::default()),
        Outcome::PeerClosed,
        Outcome::Over,
        Outcome::Time {
            what: Moment::Reached {
                stage: Stage::Acknowledged,
                byte: 99,
            },
            at_ns: 1 << 40,
        },
        Outcome::Time {
            what: Moment::Arrived,
            at_ns: 1 << 40,
        },
        Outcome::AcceptedBulk { count: 2 },
    ];
    let mut all: Vec<_> = (1..)
        .zip(outcomes)
        .map(|(tag, outcome)| {
            let (socket, status) = (1, Status::Ok);
            Response {
                socket,
                tag,
                status,
                outcome,
            }
            .encode()
        })
        .collect();
    all.extend([3, 4].map(|socket| write_peer(Peer { socket, remote })));
    all
}

fn logs(folder: &Path) -> std::io::Result<()> {
    for (choice, format) in (0_u8..).zip(Format::ALL) {
        let line = format.example().replace("<tab>", "\t");
        let text = match format {
            Format::W3c => format!("{line}\n1998-07-01 00:00:01 h GET /a 200 5\n"),
            Format::Csv => format!("{line}\n893973604,h,GET,\"/a,b\",200,5\n"),
            Format::LogFormat => {
                format!("{line}\nh [30/Apr/1998:22:00:04 +0000] \"GET /a HTTP/1.0\" 200 5\n")
            }
            _ => format!("{line}\n"),
        };
        let name = format.name();
        let kinds = if format == Format::LogFormat {
            &[("spelled", SPELLED)][..]
        } else {
            &[("named", choice), ("found", 0xff)]
        };
        for (kind, first) in kinds {
            let bytes = [&[*first], text.as_bytes()].concat();
            write(folder, &format!("{kind}-{name}"), &bytes)?;
        }
    }
    let more = [
        (
            "json",
            "json:client=who.ip,time=when\n{\"who\":{\"ip\":[\"h\"]},\"when\":\"1e3\",\"path\":\"/a\"}\n",
        ),
        (
            "csv",
            "csv:client=who\nwho;time;url;bytes\nh;893973604.5;/a;-\n",
        ),
        (
            "times",
            "%h %{%d/%b/%Y}t %{%T}t %m %U%q %O %{X-Forwarded-For}i\nh 30/Apr/1998 22:00:04 GET /a?b 9 10.0.0.1, h\n",
        ),
        (
            "nginx",
            "$remote_addr [$time_iso8601] \"$request\" ${status}\nh [1998-04-30T22:00:04Z] \"GET /\\\"a\" 200\n",
        ),
    ];
    for (name, text) in more {
        let bytes = [&[SPELLED], text.as_bytes()].concat();
        write(folder, &format!("spelled-{name}"), &bytes)?;
    }
    Ok(())
}

/// A handshake in each format of captures.
fn captures(folder: &Path) -> std::io::Result<()> {
    let (client, server) = (
        Endpoint::new(IpAddr::from([10, 0, 0, 1]), 40_000),
        Endpoint::new(IpAddr::from([10, 0, 0, 2]), 80),
    );
    let segments = [
        (client, server, Flags::SYN, 1, 0),
        (server, client, Flags::SYN | Flags::ACK, 10, 2),
        (client, server, Flags::ACK | Flags::FIN, 2, 11),
        (server, client, Flags::ACK | Flags::RST, 11, 3),
    ];
    let mut packets = Vec::new();
    for (src, dst, flags, seq, ack) in segments {
        let packet = Packet {
            src,
            dst,
            ecn: Ecn::Capable0,
            header: Header {
                seq: SeqNr(seq),
                ack: SeqNr(ack),
                flags,
                window: 1000,
                options: Options::default(),
            },
        };
        let mut bytes = Vec::new();
        encode_packet(&packet, b"abc", &mut bytes).expect("a right packet");
        packets.push(bytes);
    }
    let mut erf = Vec::new();
    let mut pcap = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    pcap.extend([0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 101, 0, 0, 0]);
    let mut pcapng = vec![0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a];
    pcapng.extend([
        1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 28, 0, 0, 0,
    ]);
    pcapng.extend([
        1, 0, 0, 0, 20, 0, 0, 0, 101, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0,
    ]);
    for (second, packet) in (0_u8..).zip(&packets) {
        let len = packet.len() as u8;
        erf.extend([
            0,
            0,
            0,
            0,
            second,
            0,
            0,
            56,
            22,
            0,
            0,
            16 + len,
            0,
            0,
            0,
            len,
        ]);
        erf.extend_from_slice(packet);
        pcap.extend([second, 0, 0, 56, 0, 0, 0, 0, len, 0, 0, 0, len, 0, 0, 0]);
        pcap.extend_from_slice(packet);
        let padded = len.next_multiple_of(4);
        let block = 32 + padded;
        pcapng.extend([6, 0, 0, 0, block, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        pcapng.extend([second, 0, 0, 0, len, 0, 0, 0, len, 0, 0, 0]);
        pcapng.extend_from_slice(packet);
        pcapng.resize(pcapng.len() + usize::from(padded - len), 0);
        pcapng.extend([block, 0, 0, 0]);
    }
    write(folder, "erf", &erf)?;
    write(folder, "pcap", &pcap)?;
    write(folder, "pcapng", &pcapng)
}

/// The experiments that come with the program.
fn experiments(shipped: &Path, folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(shipped)? {
        let path: PathBuf = entry?.path();
        if let Some(name) = path.file_stem() {
            write(folder, &name.to_string_lossy(), &fs::read(&path)?)?;
        }
    }
    let small = b"name = \"x\"\nmeasure_packets = 1000\n[workload]\nkind = \"specweb\"\n[nic]\nmips = 400\n";
    write(folder, "small", small)
}
