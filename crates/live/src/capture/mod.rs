//! Captures the frames of an engine as they pass, as pcapng: to a file that was open at the start, or to clients that request a capture
//! while the engine runs.
//!
//! Each client has a queue of bytes. Frames for which the queue has no space are not captured but counted as lost; the engine never waits.

mod blocks;

pub use blocks::{CaptureBlock, Merge};

use crate::port::CounterSink;
use baton_timeline::Way;
use baton_wire::{
    CaptureWriter, Endpoint, Flow, FrameNotes, Packet, Time, decode_frame_unverified,
};
use serde::{Deserialize, Serialize};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Maximum number of clients with a capture at the same time.
const MOST_CLIENTS: usize = 4;
/// Maximum number of bytes that wait for one client.
const MOST_WAITING_BYTES: usize = 16 << 20;
/// Number of bytes that are buffered before a write to the file.
const FILE_BUFFER_BYTES: usize = 1 << 20;

/// Selects the frames that a client wants, and how much of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CaptureSpec {
    /// Selects segments with this address at one end; `None` selects all frames.
    pub addr: Option<IpAddr>,
    /// Selects segments with this port at one end: the end with `addr` if that is given.
    pub port: Option<u16>,
    /// Number of bytes of each frame to keep; `None` keeps all.
    pub snap_bytes: Option<u32>,
}

impl CaptureSpec {
    /// Returns whether the client wants this frame.
    pub fn wants(&self, frame: &[u8]) -> bool {
        if self.addr.is_none() && self.port.is_none() {
            return true;
        }
        let is_it = |end: &Endpoint| {
            self.addr.is_none_or(|addr| addr == end.addr)
                && self.port.is_none_or(|port| port == end.port)
        };
        decode_frame_unverified(frame)
            .is_ok_and(|(packet, _)| is_it(&packet.src) || is_it(&packet.dst))
    }
}

/// Returns the connection of a received or sent frame, from this host's perspective.
pub(crate) fn flow_of(way: Way, frame: &[u8]) -> Option<Flow> {
    let (Packet { src, dst, .. }, _) = decode_frame_unverified(frame).ok()?;
    let (local, remote) = match way {
        Way::In => (dst, src),
        Way::Out => (src, dst),
    };
    Some(Flow { local, remote })
}

/// All captures of an engine.
#[derive(Default)]
pub struct Captures {
    file: Option<File>,
    clients: Vec<Client>,
    /// Wall-clock time of [`Time::ZERO`], since 1970.
    epoch: Duration,
    written: u64,
    lost: u64,
}

struct File {
    writer: CaptureWriter<Box<dyn Write>>,
    failure: Option<io::Error>,
}

struct Client {
    stream: UnixStream,
    spec: CaptureSpec,
    /// Bytes for the client. The first `sent` of them have been sent.
    writer: CaptureWriter<Vec<u8>>,
    sent: usize,
    frames: u64,
    lost: u64,
    /// Number of frames lost since the last captured frame.
    lost_since: u64,
    /// Whether the client has closed its sending direction: the capture ends once the remaining bytes are sent.
    is_over: bool,
}

impl Captures {
    /// Creates an empty set of captures. `epoch` is the wall-clock time of [`Time::ZERO`], since 1970.
    pub(crate) fn new(epoch: Duration) -> Self {
        Self {
            epoch,
            ..Self::default()
        }
    }

    /// Writes all frames to `writer` from now on, for the interface with this name. A writer that fails does not stop the traffic; missing
    /// frames are counted, and [`Captures::flush`] reports the error.
    ///
    /// # Errors
    /// The first write fails.
    pub fn capture_to(&mut self, writer: impl Write + 'static, interface: &str) -> io::Result<()> {
        let buffered = BufWriter::with_capacity(FILE_BUFFER_BYTES, writer);
        let writer = CaptureWriter::new(Box::new(buffered) as Box<dyn Write>, interface)?;
        self.file = Some(File {
            writer: writer.with_epoch(self.epoch),
            failure: None,
        });
        Ok(())
    }

    /// Sends the frames that `spec` selects to `stream`, which is non-blocking, as a capture file, until the peer closes its sending
    /// direction.
    ///
    /// # Errors
    /// There are too many captures already.
    pub(crate) fn send_to(
        &mut self,
        stream: UnixStream,
        spec: CaptureSpec,
        interface: &str,
    ) -> Result<(), String> {
        if self.clients.len() >= MOST_CLIENTS {
            return Err(format!(
                "{MOST_CLIENTS} captures are already running; end one of them"
            ));
        }
        let writer =
            CaptureWriter::new(Vec::new(), interface).map_err(|error| error.to_string())?;
        self.clients.push(Client {
            stream,
            spec,
            writer: writer.with_epoch(self.epoch),
            sent: 0,
            frames: 0,
            lost: 0,
            lost_since: 0,
            is_over: false,
        });
        Ok(())
    }

    /// Returns whether any capture is running.
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.file.is_some() || !self.clients.is_empty()
    }

    /// Captures a frame that has passed; `why` gives the path that the frame took, with the reason.
    pub(crate) fn frame(&mut self, now: Time, way: Way, frame: &[u8], why: Option<&'static str>) {
        let notes = FrameNotes {
            is_inbound: Some(way == Way::In),
            comment: why,
            lost_before: 0,
        };
        if let Some(file) = &mut self.file {
            let written = match file.failure {
                Some(_) => false,
                None => {
                    let written = file.writer.write_noted(now, frame, frame.len(), notes);
                    written.map_err(|error| file.failure = Some(error)).is_ok()
                }
            };
            self.written += u64::from(written);
            self.lost += u64::from(!written);
        }
        for client in &mut self.clients {
            match client.frame(now, frame, notes) {
                Some(true) => self.written += 1,
                Some(false) => self.lost += 1,
                None => {}
            }
        }
    }

    /// Sends to clients as much as they accept, and removes clients that are gone. Never blocks.
    pub(crate) fn serve(&mut self, now: Time) {
        self.clients.retain_mut(|client| client.go_on(now));
    }

    /// Writes buffered frames to the file.
    ///
    /// # Errors
    /// The first error of a write.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.file {
            Some(file) => match file.failure.take() {
                Some(error) => Err(error),
                None => file.writer.flush(),
            },
            None => Ok(()),
        }
    }

    /// Reports the counters of captures.
    pub(crate) fn counters(&self, sink: &mut dyn CounterSink) {
        let running = self.clients.len() + usize::from(self.file.is_some());
        sink.counter("capture.running", running as u64);
        sink.counter("capture.frames", self.written);
        sink.counter("capture.lost", self.lost);
    }
}

impl Client {
    /// Captures the frame if the client wants it. Returns whether the queue had space, or `None` if the frame is not wanted.
    fn frame(&mut self, now: Time, frame: &[u8], notes: FrameNotes<'_>) -> Option<bool> {
        if self.is_over || !self.spec.wants(frame) {
            return None;
        }
        self.frames += 1;
        let kept = self
            .spec
            .snap_bytes
            .map_or(frame.len(), |most| frame.len().min(most as usize));
        if self.writer.get_mut().len() - self.sent + kept > MOST_WAITING_BYTES {
            self.lost += 1;
            self.lost_since += 1;
            return Some(false);
        }
        let notes = FrameNotes {
            lost_before: std::mem::take(&mut self.lost_since),
            ..notes
        };
        let written = self
            .writer
            .write_noted(now, &frame[..kept], frame.len(), notes);
        Some(written.is_ok())
    }

    /// Sends queued bytes. Returns false if the client is gone or has received everything.
    fn go_on(&mut self, now: Time) -> bool {
        if !self.is_over {
            match self.stream.read(&mut [0; 64]) {
                Ok(0) => {
                    self.is_over = true;
                    let _ = self.writer.write_totals(now, self.frames, self.lost);
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        let waiting = self.writer.get_mut();
        while self.sent < waiting.len() {
            match self.stream.write(&waiting[self.sent..]) {
                Ok(0) => return false,
                Ok(len) => self.sent += len,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    // Discard sent bytes once there are enough to be worth the copy.
                    if self.sent > MOST_WAITING_BYTES {
                        waiting.drain(..self.sent);
                        self.sent = 0;
                    }
                    return true;
                }
                Err(_) => return false,
            }
        }
        waiting.clear();
        self.sent = 0;
        !self.is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_wire::{Ecn, Flags, Header, Link, Options, SeqNr, encode_frame};
    use pcap_file::pcapng::{Block, PcapNgReader};
    use std::net::Shutdown;

    fn frame(port: u16) -> Vec<u8> {
        let end = |last, port| Endpoint::new([10, 0, 0, last].into(), port);
        let packet = Packet {
            src: end(1, port),
            dst: end(2, 80),
            ecn: Ecn::NotCapable,
            header: Header {
                seq: SeqNr(1),
                ack: SeqNr(1),
                flags: Flags::ACK,
                window: 1000,
                options: Options::default(),
            },
        };
        let mut frame = Vec::new();
        let link = Link::between(packet.src.addr, packet.dst.addr);
        encode_frame(link, &packet, &[0; 1000], &mut frame).expect("one version of IP");
        frame
    }

    #[test]
    fn frames_are_selected_whose_checksum_is_left_to_hardware() {
        let mut frame = frame(4000);
        let last = frame.len() - 1;
        frame[last] ^= 1;
        let spec = CaptureSpec {
            port: Some(80),
            ..CaptureSpec::default()
        };
        assert!(spec.wants(&frame));
        let flow = flow_of(Way::Out, &frame).expect("a segment");
        assert_eq!((flow.local.port, flow.remote.port), (4000, 80));
    }

    fn client(captures: &mut Captures, spec: CaptureSpec) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        ours.set_nonblocking(true).expect("it can be set");
        captures.send_to(ours, spec, "eth0").expect("there is room");
        theirs
    }

    /// Returns the options of a capture's frames (comment, direction, lost frames) and of its totals.
    fn blocks(file: &[u8]) -> Vec<String> {
        let mut reader = PcapNgReader::new(file).expect("a capture");
        let mut blocks = Vec::new();
        while let Some(block) = reader.next_block() {
            match block.expect("it is whole") {
                Block::EnhancedPacket(packet) => blocks.push(format!("{:?}", packet.options)),
                Block::InterfaceStatistics(totals) => blocks.push(format!("{:?}", totals.options)),
                _ => {}
            }
        }
        blocks
    }

    #[test]
    fn clients_get_matching_frames_until_they_stop_the_capture() {
        let mut captures = Captures::new(Duration::ZERO);
        assert!(!captures.is_active());
        let spec = CaptureSpec {
            port: Some(5000),
            ..CaptureSpec::default()
        };
        let mut theirs = client(&mut captures, spec);
        for port in [5000, 5001, 5000] {
            captures.frame(Time::ZERO, Way::Out, &frame(port), Some("sent"));
        }
        captures.serve(Time::ZERO);
        assert!(captures.is_active());
        theirs.shutdown(Shutdown::Write).expect("it is open");
        captures.serve(Time::ZERO);
        assert!(!captures.is_active(), "it is gone");
        let mut file = Vec::new();
        theirs.read_to_end(&mut file).expect("the file");
        let sent = "[Comment(\"sent\"), Flags(2)]";
        assert_eq!(blocks(&file), [sent, sent, "[IsbIfRecv(2), IsbIfDrop(0)]"]);
    }

    #[test]
    fn frames_lost_by_a_slow_client_are_counted_and_others_lose_none() {
        let mut captures = Captures::new(Duration::ZERO);
        let mut slow = client(&mut captures, CaptureSpec::default());
        let snap_bytes = Some(60);
        let spec = CaptureSpec {
            snap_bytes,
            ..CaptureSpec::default()
        };
        let mut quick = client(&mut captures, spec);
        let reading = std::thread::spawn(move || {
            let mut file = Vec::new();
            quick.shutdown(Shutdown::Write).expect("it is open");
            quick.read_to_end(&mut file).expect("the file");
            file
        });
        let frame = frame(5000);
        let all = 2 * MOST_WAITING_BYTES / frame.len();
        (0..all).for_each(|_| captures.frame(Time::ZERO, Way::In, &frame, None));
        while !reading.is_finished() {
            captures.serve(Time::ZERO);
        }
        let file = reading.join().expect("no panic");
        let quick = blocks(&file);
        assert_eq!(quick.len(), all + 1);
        assert_eq!(quick[all], format!("[IsbIfRecv({all}), IsbIfDrop(0)]"));
        let reading = std::thread::spawn(move || {
            slow.shutdown(Shutdown::Write).expect("it is open");
            let mut file = Vec::new();
            slow.read_to_end(&mut file).expect("the file");
            file
        });
        while captures.is_active() {
            captures.serve(Time::ZERO);
        }
        let file = reading.join().expect("no panic");
        let slow = blocks(&file);
        let kept = slow.len() - 1;
        assert!(kept < all, "it had no room for all");
        assert_eq!(
            slow[kept],
            format!("[IsbIfRecv({all}), IsbIfDrop({})]", all - kept)
        );
        assert_eq!(captures.lost, (all - kept) as u64);
    }

    #[test]
    fn the_number_of_captures_is_limited() {
        let mut captures = Captures::new(Duration::ZERO);
        let _clients: Vec<_> = (0..MOST_CLIENTS)
            .map(|_| client(&mut captures, CaptureSpec::default()))
            .collect();
        let (ours, _theirs) = UnixStream::pair().expect("a pair");
        let refused = captures.send_to(ours, CaptureSpec::default(), "eth0");
        assert!(refused.is_err_and(|why| why.contains("captures are already running")));
    }
}
