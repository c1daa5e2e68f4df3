//! Captures of simulated links, as files that packet tools read.

use crate::config::Experiment;
use baton_apps::symbolic::render;
use baton_tcp::Segment;
use baton_wire::{CaptureWriter, Packet, Symbolic, Time, encode_frame};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::IpAddr;
use std::path::PathBuf;

/// Which link to capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// All frames at the server's NICs.
    Server,
    /// Only those of one client, by its number.
    Client(u32),
}

/// A capture to be made during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// What to capture.
    pub link: Link,
    /// The pcapng file to write.
    pub path: PathBuf,
}

/// All captures of a run.
#[derive(Default)]
pub(super) struct Taps {
    taps: Vec<Tap>,
    error: Option<io::Error>,
    payload: Vec<u8>,
    frame: Vec<u8>,
}

struct Tap {
    client: Option<IpAddr>,
    writer: CaptureWriter<BufWriter<File>>,
}

impl Taps {
    pub(super) fn new(captures: &[Capture], experiment: &Experiment) -> io::Result<Self> {
        let taps = captures
            .iter()
            .map(|capture| Tap::new(capture, experiment))
            .collect::<io::Result<_>>()?;
        Ok(Self {
            taps,
            error: None,
            payload: Vec::new(),
            frame: Vec::new(),
        })
    }

    #[inline]
    pub(super) fn frame(&mut self, now: Time, segment: &Segment<Symbolic>) {
        if !self.taps.is_empty() && self.error.is_none() {
            self.write(now, segment)
                .unwrap_or_else(|error| self.error = Some(error));
        }
    }

    fn write(&mut self, now: Time, segment: &Segment<Symbolic>) -> io::Result<()> {
        self.payload.clear();
        for piece in &segment.payload {
            render(piece, &mut self.payload);
        }
        let packet = Packet {
            src: segment.src,
            dst: segment.dst,
            ecn: segment.ecn,
            header: segment.header,
        };
        let link = baton_wire::Link::between(segment.src.addr, segment.dst.addr);
        self.frame.clear();
        encode_frame(link, &packet, &self.payload, &mut self.frame).map_err(io::Error::other)?;
        for tap in &mut self.taps {
            if tap
                .client
                .is_none_or(|addr| addr == segment.src.addr || addr == segment.dst.addr)
            {
                tap.writer.write_frame(now, &self.frame, self.frame.len())?;
            }
        }
        Ok(())
    }

    /// The first error of a write, once.
    pub(super) fn error(&mut self) -> io::Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }

    /// Completes all files.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.taps
            .drain(..)
            .try_for_each(|tap| tap.writer.into_inner().flush())
    }
}

impl Tap {
    fn new(capture: &Capture, experiment: &Experiment) -> io::Result<Self> {
        let (client, name) = match capture.link {
            Link::Server => (None, "server".to_owned()),
            Link::Client(number) => (
                Some(super::clients::client_addr(experiment, number)),
                format!("client {number}"),
            ),
        };
        let file = BufWriter::new(File::create(&capture.path)?);
        Ok(Self {
            client,
            writer: CaptureWriter::new(file, &name)?,
        })
    }
}
