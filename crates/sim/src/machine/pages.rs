//! An application that sends pages while it generates them, piece by piece, with a cork (batching 3.1, "cork timer").

use crate::EventQueue;
use crate::config::PagesConfig;
use baton_apps::MeteredSockets;
use baton_apps::symbolic::SymbolicHttp;
use baton_apps::web::{Http, Parsed, Request};
use baton_host::{Ready, Receive, SocketId};
use baton_kernel::Op;
use baton_wire::{Span, Symbolic, Time};
use std::collections::VecDeque;

/// State of a connection, which first receives a request and then sends the page.
#[derive(Debug, Default)]
struct Page {
    received: VecDeque<Symbolic>,
    request: Option<Request>,
    /// Content bytes written so far.
    written: u64,
    /// Whether the socket's buffer had no space for a whole piece.
    blocked: bool,
}

/// The application.
#[derive(Debug)]
pub(super) struct Pages {
    config: PagesConfig,
    http: SymbolicHttp,
    /// Pages by socket.
    pages: Vec<Option<Page>>,
    /// Times at which the next piece of each page is ready.
    pieces: EventQueue<SocketId>,
}

impl Pages {
    pub(super) fn new(config: PagesConfig) -> Self {
        Self {
            config,
            http: SymbolicHttp,
            pages: Vec::new(),
            pieces: EventQueue::new(),
        }
    }

    /// Returns when the next piece of any page is ready.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.pieces.peek_time()
    }

    /// Writes the pieces that are ready by `now`.
    pub(super) fn handle_timeouts(
        &mut self,
        now: Time,
        sockets: &mut impl MeteredSockets<Symbolic>,
    ) {
        while let Some(socket) = self.pieces.pop_due(now) {
            sockets.work(Op::AppLoop, 1);
            self.write(now, sockets, socket);
        }
    }

    /// Handles one event.
    pub(super) fn step(
        &mut self,
        now: Time,
        sockets: &mut impl MeteredSockets<Symbolic>,
        ready: Ready,
    ) {
        sockets.work(Op::AppLoop, 1);
        match ready {
            Ready::Acceptable => self.accept(sockets),
            Ready::Readable(socket) => self.read(now, sockets, socket),
            Ready::Writable(socket) => {
                let page = self.page(socket);
                if page.is_some_and(|page| std::mem::take(&mut page.blocked)) {
                    self.write(now, sockets, socket);
                }
            }
        }
    }

    fn page(&mut self, socket: SocketId) -> Option<&mut Page> {
        self.pages.get_mut(socket.0 as usize)?.as_mut()
    }

    fn accept(&mut self, sockets: &mut impl MeteredSockets<Symbolic>) {
        while let Some(socket) = sockets.accept() {
            let index = socket.0 as usize;
            if index >= self.pages.len() {
                self.pages.resize_with(index + 1, || None);
            }
            self.pages[index] = Some(Page::default());
        }
    }

    fn read(&mut self, now: Time, sockets: &mut impl MeteredSockets<Symbolic>, socket: SocketId) {
        let Some(page) = self
            .pages
            .get_mut(socket.0 as usize)
            .and_then(Option::as_mut)
        else {
            return;
        };
        loop {
            match sockets.receive(socket, usize::MAX) {
                Receive::Data(data) => page.received.push_back(data),
                Receive::WouldBlock => break,
                Receive::EndOfStream | Receive::Gone => return self.close(sockets, socket),
            }
        }
        if page.request.is_none()
            && let Parsed::Request(request) = self.http.parse(&mut (), &mut page.received)
        {
            page.request = Some(request);
            sockets.set_cork(socket, true);
            let head = self.http.head(&request);
            // The first write always finds free buffer space.
            if sockets.send(socket, head).is_err() {
                return self.close(sockets, socket);
            }
            self.write(now, sockets, socket);
        }
    }

    /// Writes the next piece.
    fn write(&mut self, now: Time, sockets: &mut impl MeteredSockets<Symbolic>, socket: SocketId) {
        let PagesConfig {
            piece_bytes,
            interval_us,
        } = self.config;
        let Some(page) = self
            .pages
            .get_mut(socket.0 as usize)
            .and_then(Option::as_mut)
        else {
            return;
        };
        let Some(request) = page.request else { return };
        let left = request.content_len - page.written;
        let len = left.min(u64::from(piece_bytes)) as u32;
        let piece = self.http.content(&request, page.written, len);
        let taken = match piece.map(|piece| sockets.send(socket, piece)) {
            Some(Ok(taken)) => taken as u64,
            Some(Err(_)) | None => return self.close(sockets, socket),
        };
        page.written += taken;
        if page.written == request.content_len {
            self.close(sockets, socket);
        } else if taken < u64::from(len) {
            page.blocked = true;
        } else {
            let next = now + Span::from_us(interval_us.into());
            self.pieces.push(next, socket);
        }
    }

    fn close(&mut self, sockets: &mut impl MeteredSockets<Symbolic>, socket: SocketId) {
        self.pages[socket.0 as usize] = None;
        sockets.close(socket);
    }
}
