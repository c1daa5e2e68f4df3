//! Middleware that writes what passes to a capture file.

use super::{Batch, CounterSink, LinkInfo, Port};
use baton_wire::{CaptureWriter, Time};
use bytes::Bytes;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// A port and a capture file (pcapng) of all that it gave and took, stamped with the engine's time in nanoseconds.
///
/// Frames that find no room when sent are written when they are taken. A file that cannot be written any more does not
/// stop the traffic; what is missing is counted.
pub struct Capture<T, W: Write> {
    inner: T,
    writer: CaptureWriter<W>,
    written: u64,
    lost: u64,
    failure: Option<io::Error>,
}

impl<T: Port, W: Write> Capture<T, W> {
    /// Starts the file. `epoch` is the wall-clock time of [`Time::ZERO`] since 1970.
    ///
    /// # Errors
    /// `writer` cannot be written; the port comes back.
    pub fn new(inner: T, writer: W, epoch: Duration) -> Result<Self, (io::Error, T)> {
        let writer = match CaptureWriter::new(writer, &inner.link().name) {
            Ok(writer) => writer,
            Err(error) => return Err((error, inner)),
        };
        Ok(Self {
            inner,
            writer: writer.with_epoch(epoch),
            written: 0,
            lost: 0,
            failure: None,
        })
    }

    fn write(&mut self, now: Time, frame: &[u8]) {
        if self.failure.is_some() {
            self.lost += 1;
            return;
        }
        match self.writer.write_frame(now, frame, frame.len()) {
            Ok(()) => self.written += 1,
            Err(error) => {
                self.lost += 1;
                self.failure = Some(error);
            }
        }
    }
}

impl<T: Port, W: Write> Port for Capture<T, W> {
    fn receive(&mut self, now: Time, frames: &mut Vec<Bytes>) -> io::Result<()> {
        let before = frames.len();
        self.inner.receive(now, frames)?;
        for frame in &frames[before..] {
            self.write(now, frame);
        }
        Ok(())
    }

    fn send(&mut self, now: Time, batch: &mut Batch) -> io::Result<()> {
        // What the port takes is known only afterwards, when it is gone: copies are kept until then.
        let copies: Vec<Bytes> = batch.iter().map(Bytes::copy_from_slice).collect();
        self.inner.send(now, batch)?;
        let taken = copies.len() - batch.len();
        for frame in &copies[..taken] {
            self.write(now, frame);
        }
        Ok(())
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.fd()
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.inner.poll_timeout()
    }

    fn link(&self) -> &LinkInfo {
        self.inner.link()
    }

    fn counters(&self, sink: &mut dyn CounterSink) {
        sink.counter("capture.frames", self.written);
        sink.counter("capture.lost", self.lost);
        self.inner.counters(sink);
    }

    fn flush(&mut self) -> io::Result<()> {
        let outcome = match self.failure.take() {
            Some(error) => Err(error),
            None => self.writer.flush(),
        };
        self.inner.flush()?;
        outcome
    }
}
