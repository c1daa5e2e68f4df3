//! The host sends data, which the adapter echoes, in batches of random sizes. Both sides sleep and poll at random times.

use baton_bus::descriptor::{Action, Buffer, Outcome, Request, Response, Status};
use baton_bus::link::{Dma, DmaId, LinkError};
use baton_bus::{AdapterLink, Descriptor, HostLink};
use baton_iolib::{LiveLink, Spin, wait};
use baton_testkit::Pattern;
use baton_wire::Time;
use bytes::Bytes;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::collections::VecDeque;
use std::time::Duration;

const NOW: Time = Time::ZERO;

/// Sends `count` pieces of data and checks that the adapter echoes them.
pub fn exchange<L: HostLink<Data = Bytes> + LiveLink>(link: &mut L, seed: u64, count: usize) {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut spin = Spin::new(Duration::from_micros(rng.random_range(0..30)));
    let content = Pattern::new(seed);
    let (mut placed, mut placed_bytes) = (0, 0);
    let (mut back, mut back_bytes) = (0, 0);
    let (mut queued, mut responses) = (VecDeque::new(), Vec::new());
    while back < count {
        for _ in 0..rng.random_range(0..6) {
            // Each piece needs two buffers: one with the data to send, and one for the echo.
            if placed < count && link.free_buffers() >= 2 {
                let len = rng.random_range(1..=link.buffer_bytes());
                queued.extend(place(link, content.piece(placed_bytes, len as usize)));
                placed += 1;
                placed_bytes += u64::from(len);
            }
        }
        let batch = queued.make_contiguous();
        let most = rng.random_range(1..=16).min(batch.len());
        let put = link.put(NOW, &batch[..most]).expect("the adapter is alive");
        queued.drain(..put);
        link.get(NOW, &mut responses).expect("the adapter is alive");
        for descriptor in responses.drain(..) {
            let response = Response::decode(&descriptor).expect("a valid descriptor");
            match response.outcome {
                Outcome::Received(Buffer::Memory { address, len }) => {
                    let data = link.take(address, len).expect("a reserved buffer");
                    content.check(back_bytes, &data);
                    back += 1;
                    back_bytes += data.len() as u64;
                }
                Outcome::Sent { .. } => link.free(response.socket.into()),
                other => panic!("{other:?}"),
            }
        }
        if queued.is_empty() || put == 0 {
            wait(link, &mut spin, Some(Duration::from_millis(5))).expect("the system can wait");
        }
    }
    assert!(queued.is_empty());
    // The last sent buffer may not be free yet, because its response follows the echoed data.
    while link.free_buffers() < 32 {
        link.get(NOW, &mut responses).expect("the adapter is alive");
        for descriptor in responses.drain(..) {
            link.free(descriptor.socket().into());
        }
    }
}

/// Returns a request for the echo and a request that sends the data. The socket number of both is the address of the sent buffer.
fn place<L: HostLink<Data = Bytes>>(link: &mut L, data: Bytes) -> [Descriptor; 2] {
    let len = data.len() as u32;
    let from = link.place(data).expect("a free buffer");
    let to = link.reserve().expect("a free buffer");
    let request = |action| {
        Request {
            socket: from as u32,
            tag: 0,
            action,
        }
        .encode()
    };
    let data = Buffer::Memory { address: from, len };
    [
        request(Action::Receive { address: to, len }),
        request(Action::send(data, false)),
    ]
}

/// Echoes all received data until the host is gone.
pub fn echo<L: AdapterLink<Data = Bytes> + LiveLink>(link: &mut L) {
    let mut rng = Pcg64::seed_from_u64(7);
    let mut spin = Spin::new(Duration::from_micros(10));
    let mut work = Echo::default();
    while work.turn(link, rng.random_range(1..=16)).is_ok() {
        let timeout = Some(Duration::from_millis(5));
        wait(link, &mut spin, timeout).expect("the system can wait");
    }
}

#[derive(Default)]
struct Echo {
    requests: Vec<Descriptor>,
    /// Addresses of the buffers for echoed data.
    receives: VecDeque<u64>,
    /// Data that is being read from the host: the socket number and the length.
    sends: VecDeque<(u32, u32)>,
    responses: VecDeque<Descriptor>,
}

impl Echo {
    fn turn<L: AdapterLink<Data = Bytes>>(
        &mut self,
        link: &mut L,
        most: usize,
    ) -> Result<(), LinkError> {
        link.get(NOW, most, &mut self.requests)?;
        for descriptor in self.requests.drain(..) {
            let request = Request::decode(&descriptor).expect("a valid descriptor");
            match request.action {
                Action::Receive { address, .. } => self.receives.push_back(address),
                Action::Send {
                    data: Buffer::Memory { address, len },
                    ..
                } => {
                    link.read(NOW, DmaId(request.socket), address, len)?;
                    self.sends.push_back((request.socket, len));
                }
                other => panic!("{other:?}"),
            }
        }
        while let Some(dma) = link.poll_dma(NOW)? {
            if let Dma::Read { id, data } = dma {
                self.give_back(link, id, data)?;
            }
        }
        let taken = link.put(NOW, self.responses.make_contiguous())?;
        self.responses.drain(..taken);
        Ok(())
    }

    fn give_back<L: AdapterLink<Data = Bytes>>(
        &mut self,
        link: &mut L,
        id: DmaId,
        data: Bytes,
    ) -> Result<(), LinkError> {
        let (socket, len) = self.sends.pop_front().expect("a read was requested");
        assert_eq!(
            (id, data.len() as u32),
            (DmaId(socket), len),
            "reads complete in order"
        );
        let address = self
            .receives
            .pop_front()
            .expect("the receive request precedes the data");
        link.write(NOW, DmaId(u32::MAX), address, data)?;
        let received = Outcome::Received(Buffer::Memory { address, len });
        let cumulative = false;
        for outcome in [received, Outcome::Sent { len, cumulative }] {
            let response = Response {
                socket,
                tag: 0,
                status: Status::Ok,
                outcome,
            };
            self.responses.push_back(response.encode());
        }
        Ok(())
    }
}
