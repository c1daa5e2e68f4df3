//! Sockets for the tasks of any executor.

use crate::Adapter;
use crate::adapter::Handle;
use crate::listener::TcpListener;
use crate::poll::sealed::Sealed;
use crate::stream::{TcpStream, outgoing};
use futures_io::{AsyncRead, AsyncWrite};
use std::future::poll_fn;
use std::io::Result;
use std::net::{Shutdown, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A connection for tasks. Implements [`AsyncRead`] and [`AsyncWrite`] of `futures-io`, which work with every executor.
///
/// ```no_run
/// use baton_sockets::{Adapter, AsyncTcpStream};
/// # async fn hello() -> std::io::Result<()> {
/// let adapter = Adapter::connect("/run/baton/adapter.sock")?;
/// let stream = AsyncTcpStream::connect(&adapter, "10.9.0.1:7".parse().unwrap()).await?;
/// println!("connected to {}", stream.get_ref().peer_addr()?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AsyncTcpStream {
    stream: TcpStream,
}

impl AsyncTcpStream {
    /// Opens a connection.
    ///
    /// # Errors
    /// The errors of [`TcpStream::connect`].
    pub async fn connect(adapter: &Adapter, peer: SocketAddr) -> Result<Self> {
        Self::opened(TcpStream::start(adapter, peer)?).await
    }

    /// Opens a connection with TCP Fast Open (RFC 7413), with the beginning of `data`. Returns how many bytes of `data` were taken.
    ///
    /// # Errors
    /// The errors of [`TcpStream::connect_fast_open`].
    pub async fn connect_fast_open(
        adapter: &Adapter,
        peer: SocketAddr,
        data: &[u8],
    ) -> Result<(Self, usize)> {
        let (stream, taken) = TcpStream::begin_fast_open(adapter, peer, data, false)?;
        Ok((Self::opened(stream).await?, taken))
    }

    /// Waits until a connection that is being opened is established.
    async fn opened(stream: TcpStream) -> Result<Self> {
        let handle = Arc::clone(stream.handle());
        poll_fn(|context| handle.poll_for(context, |core, waiter| stream.connected(core, waiter)))
            .await?;
        Ok(Self { stream })
    }

    /// Returns the connection, for its options and addresses.
    pub fn get_ref(&self) -> &TcpStream {
        &self.stream
    }

    fn handle(&self) -> &Handle {
        self.stream.handle()
    }
}

/// Converts a connection that a thread has opened or accepted.
impl From<TcpStream> for AsyncTcpStream {
    fn from(stream: TcpStream) -> Self {
        Self { stream }
    }
}

impl AsyncRead for &AsyncTcpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<Result<usize>> {
        let max = buffer.len();
        let data = self.handle().poll_for(context, |core, waiter| {
            self.stream.try_receive(core, max, waiter)
        });
        data.map_ok(|data| {
            buffer[..data.len()].copy_from_slice(&data);
            data.len()
        })
    }
}

impl AsyncWrite for &AsyncTcpStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<Result<usize>> {
        let data = outgoing(data);
        self.handle().poll_for(context, |core, waiter| {
            self.stream.try_send(core, &data, waiter)
        })
    }

    /// Does nothing: no data is buffered here.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Shuts down the sending direction.
    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(self.stream.shutdown(Shutdown::Write))
    }
}

impl AsyncRead for AsyncTcpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut &*self).poll_read(context, buffer)
    }
}

impl AsyncWrite for AsyncTcpStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut &*self).poll_write(context, data)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(self.stream.shutdown(Shutdown::Write))
    }
}

/// A listener for tasks.
#[derive(Debug)]
pub struct AsyncTcpListener {
    listener: TcpListener,
}

impl AsyncTcpListener {
    /// Waits for a connection.
    ///
    /// # Errors
    /// The errors of [`TcpListener::accept`].
    pub async fn accept(&self) -> Result<(AsyncTcpStream, SocketAddr)> {
        let handle = self.listener.handle();
        let listener = &self.listener;
        let (socket, peer) = poll_fn(|context| {
            handle.poll_for(context, |core, waiter| {
                listener
                    .tell_loss(core.host.losses_of_listeners())
                    .or_else(|| core.accept(listener.socket(), waiter))
                    .map(|accepted| accepted.map(|socket| (socket, core.host.peer(socket))))
            })
        })
        .await?;
        let (stream, peer) = listener.stream(socket, peer);
        Ok((stream.into(), peer))
    }

    /// Returns the listener, for its address.
    pub fn get_ref(&self) -> &TcpListener {
        &self.listener
    }
}

/// Converts a listener that a thread has bound. Binding takes only a moment.
impl From<TcpListener> for AsyncTcpListener {
    fn from(listener: TcpListener) -> Self {
        Self { listener }
    }
}
