//! Two hosts that run smoltcp.

use crate::{FRAME_LEN, Pair, REQUEST_LEN, RESPONSE_LEN};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{self, Device, DeviceCapabilities, Medium};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr};
use std::collections::VecDeque;

/// Time that passes in each iteration.
const STEP: Duration = Duration::from_micros(10);

/// One end of a link. The frames that it sends move to the other end, and the memory of frames is reused.
#[derive(Default)]
struct Port {
    arrived: VecDeque<Vec<u8>>,
    sent: VecDeque<Vec<u8>>,
    spare: Vec<Vec<u8>>,
}

struct Receive<'a> {
    frame: Vec<u8>,
    spare: &'a mut Vec<Vec<u8>>,
}

struct Transmit<'a> {
    sent: &'a mut VecDeque<Vec<u8>>,
    frame: Vec<u8>,
}

impl phy::RxToken for Receive<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        let result = f(&self.frame);
        self.spare.push(self.frame);
        result
    }
}

impl phy::TxToken for Transmit<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(mut self, len: usize, f: F) -> R {
        self.frame.resize(len, 0);
        let result = f(&mut self.frame);
        self.sent.push_back(self.frame);
        result
    }
}

impl Device for Port {
    type RxToken<'a> = Receive<'a>;
    type TxToken<'a> = Transmit<'a>;

    fn receive(&mut self, _now: Instant) -> Option<(Receive<'_>, Transmit<'_>)> {
        let frame = self.arrived.pop_front()?;
        let answer = self.spare.pop().unwrap_or_default();
        let receive = Receive {
            frame,
            spare: &mut self.spare,
        };
        Some((
            receive,
            Transmit {
                sent: &mut self.sent,
                frame: answer,
            },
        ))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Transmit<'_>> {
        let frame = self.spare.pop().unwrap_or_default();
        Some(Transmit {
            sent: &mut self.sent,
            frame,
        })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = FRAME_LEN;
        capabilities
    }
}

struct Host {
    interface: Interface,
    port: Port,
    sockets: SocketSet<'static>,
    handles: Vec<SocketHandle>,
    /// Number of bytes of the current request or response that have arrived, by connection.
    arrived: Vec<usize>,
}

pub struct Hosts {
    hosts: [Host; 2],
    now: Instant,
    block: Vec<u8>,
}

impl Pair for Hosts {
    fn new(connections: usize, buffer_len: usize) -> Self {
        let mut hosts = [1, 2].map(|last| Host::new(last, connections, buffer_len));
        for at in 0..connections {
            let [client, server] = &mut hosts;
            let socket = server.sockets.get_mut::<Socket>(server.handles[at]);
            socket.listen(80).expect("a free port");
            let socket = client.sockets.get_mut::<Socket>(client.handles[at]);
            let remote = (IpAddress::v4(10, 0, 0, 2), 80);
            socket
                .connect(client.interface.context(), remote, 10_000 + at as u16)
                .expect("a free port");
        }
        let block = vec![7; 64 << 10];
        let mut pair = Self {
            hosts,
            now: Instant::ZERO,
            block,
        };
        let open = |host: &Host| {
            host.handles
                .iter()
                .all(|&handle| host.sockets.get::<Socket>(handle).may_send())
        };
        while !pair.hosts.iter().all(open) {
            pair.turn();
        }
        pair
    }

    fn bulk(&mut self, len: u64) {
        let (mut written, mut received) = (0, 0);
        while received < len {
            let client = &mut self.hosts[0];
            let socket = client.sockets.get_mut::<Socket>(client.handles[0]);
            while written < len && socket.can_send() {
                let most = (len - written).min(self.block.len() as u64) as usize;
                written += socket.send_slice(&self.block[..most]).expect("it is open") as u64;
            }
            self.turn();
            received += self.hosts[1].read(0) as u64;
        }
    }

    fn requests(&mut self, count: u64) {
        let (mut asked, mut answered) = (0, 0);
        for at in 0..self.hosts[0].handles.len() {
            self.hosts[0].write(at, &self.block[..REQUEST_LEN]);
            asked += 1;
        }
        while answered < asked {
            for (side, whole) in [(0, RESPONSE_LEN), (1, REQUEST_LEN)] {
                self.poll(side);
                let host = &mut self.hosts[side];
                let mut wrote = false;
                for at in 0..host.handles.len() {
                    host.arrived[at] += host.read(at);
                    while host.arrived[at] >= whole {
                        host.arrived[at] -= whole;
                        answered += u64::from(side == 0);
                        let answer = match side {
                            0 if asked == count => continue,
                            0 => REQUEST_LEN,
                            _ => RESPONSE_LEN,
                        };
                        asked += u64::from(side == 0);
                        host.write(at, &self.block[..answer]);
                        wrote = true;
                    }
                }
                // Send written data immediately, as Baton does.
                if wrote {
                    self.poll(side);
                }
            }
            self.now += STEP;
        }
    }
}

impl Hosts {
    /// Lets both hosts exchange frames, and advances time.
    fn turn(&mut self) {
        for side in [0, 1] {
            self.poll(side);
        }
        self.now += STEP;
    }

    /// Lets one host process its frames, and carries the frames that it sends to the other host.
    fn poll(&mut self, side: usize) {
        let host = &mut self.hosts[side];
        host.interface
            .poll(self.now, &mut host.port, &mut host.sockets);
        let [from, to] = self
            .hosts
            .get_disjoint_mut([side, 1 - side])
            .expect("two hosts");
        to.port.arrived.append(&mut from.port.sent);
        // The receiver now owns the memory of these frames. A sender without spare memory takes that which the receiver no longer needs.
        if from.port.spare.is_empty() {
            std::mem::swap(&mut from.port.spare, &mut to.port.spare);
        }
    }
}

impl Host {
    fn new(last: u8, connections: usize, buffer_len: usize) -> Self {
        let mut port = Port::default();
        let config = Config::new(EthernetAddress([2, 0, 0, 0, 0, last]).into());
        let mut interface = Interface::new(config, &mut port, Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            addresses
                .push(IpCidr::new(IpAddress::v4(10, 0, 0, last), 24))
                .expect("there is space for one address");
        });
        let mut sockets = SocketSet::new(Vec::new());
        let handles = (0..connections).map(|_| {
            let buffer = || SocketBuffer::new(vec![0; buffer_len]);
            let mut socket = Socket::new(buffer(), buffer());
            // This is smoltcp's default unless a Cargo feature is enabled, which another test needs.
            socket.set_congestion_control(CongestionControl::None);
            sockets.add(socket)
        });
        let handles = handles.collect();
        Self {
            interface,
            port,
            sockets,
            handles,
            arrived: vec![0; connections],
        }
    }

    /// Reads all data that a connection has received, and returns its length.
    fn read(&mut self, at: usize) -> usize {
        let socket = self.sockets.get_mut::<Socket>(self.handles[at]);
        let mut len = 0;
        while socket.can_recv() {
            len += socket
                .recv(|data| (data.len(), data.len()))
                .expect("it is open");
        }
        len
    }

    fn write(&mut self, at: usize, data: &[u8]) {
        let socket = self.sockets.get_mut::<Socket>(self.handles[at]);
        assert_eq!(socket.send_slice(data), Ok(data.len()));
    }
}
