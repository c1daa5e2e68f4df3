//! Asynchronous sockets in the tasks of an executor.

use crate::network::{Network, Side};
use crate::{adapter, listening, pattern, spawn_until_it_waits};
use baton_sockets::{AsyncTcpListener, AsyncTcpStream, TcpListener};
use futures_util::future::{join, join_all};
use futures_util::io::{AsyncReadExt, AsyncWriteExt, copy};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};
use std::time::Duration;

/// A minimal executor, which runs one task on the calling thread and sleeps until the task is woken.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park_timeout(Duration::from_secs(30)),
        }
    }
}

#[test]
fn tasks_echo_over_many_connections() {
    let network = Network::start();
    let (left, _right, listener, address) = listening(&network, 7);
    let listener = AsyncTcpListener::from(listener);
    let server = async {
        let mut connections = Vec::new();
        for _ in 0..8 {
            let (stream, _) = listener.accept().await.expect("a connection");
            connections.push(async move {
                let copied = copy(&stream, &mut &stream).await.expect("echoed");
                (&stream).close().await.expect("shut");
                copied
            });
        }
        join_all(connections).await.iter().sum::<u64>()
    };
    let clients = (0..8).map(|seed| {
        let left = left.clone();
        async move {
            let stream = AsyncTcpStream::connect(&left, address)
                .await
                .expect("a connection");
            let data = pattern(100_000 + seed, seed);
            let mut echo = Vec::new();
            let write = async {
                (&stream).write_all(&data).await.expect("sent");
                (&stream).close().await.expect("shut");
            };
            let ((), read) = join(write, (&stream).read_to_end(&mut echo)).await;
            read.expect("received");
            assert!(echo == data);
            data.len() as u64
        }
    });
    thread::scope(|scope| {
        let server = scope.spawn(|| block_on(server));
        let sent: u64 = block_on(join_all(clients)).iter().sum();
        assert_eq!(server.join().expect("no panic"), sent);
    });
}

#[test]
fn a_refused_connection_and_a_lost_adapter_wake_tasks() {
    let network = Network::start();
    let (left, right) = (
        adapter(&network, Side::Left),
        adapter(&network, Side::Right),
    );
    let refused = block_on(AsyncTcpStream::connect(&left, Side::Right.address(9)));
    assert_eq!(
        refused.expect_err("nobody listens").kind(),
        std::io::ErrorKind::ConnectionRefused
    );
    let listener = TcpListener::bind(&right, Side::Right.address(7)).expect("a free port");
    let listener = AsyncTcpListener::from(listener);
    thread::scope(|scope| {
        let accepts = spawn_until_it_waits(scope, || block_on(listener.accept()).map(drop));
        network.kill(Side::Right);
        assert_eq!(
            accepts.join().expect("no panic").expect_err("lost").kind(),
            std::io::ErrorKind::ConnectionAborted
        );
    });
}
