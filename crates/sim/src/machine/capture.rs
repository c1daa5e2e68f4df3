//! Captures of simulated links, as files that packet tools can read.

use super::RunError;
use super::timeline::{Recorder, Timeline};
use crate::config::Experiment;
use baton_apps::symbolic::render;
use baton_tcp::Segment;
use baton_timeline::{Summary, Way};
use baton_wire::{CaptureWriter, Endpoint, Packet, Symbolic, Time, encode_frame};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::IpAddr;
use std::path::PathBuf;

/// The link to capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// All frames at the server's NICs.
    Server,
    /// Only the frames of the client with this number.
    Client(u32),
}

/// A capture to write during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The link to capture.
    pub link: Link,
    /// The pcapng file to write.
    pub path: PathBuf,
}

/// Name under which frames that never arrive are recorded.
pub(super) const LOST_ON_WIRE: &str = "wire";

/// All captures of a run, and its timeline. All frames at the server's NICs pass through here.
pub(super) struct Taps {
    taps: Vec<Tap>,
    recorder: Option<Box<Recorder>>,
    /// Whether there is any capture or timeline.
    listens: bool,
    frames: u64,
    /// Client of the last frame, if there is a timeline.
    last: Option<Endpoint>,
    error: Option<RunError>,
    payload: Vec<u8>,
    frame: Vec<u8>,
}

struct Tap {
    client: Option<IpAddr>,
    writer: CaptureWriter<BufWriter<File>>,
}

impl Taps {
    pub(super) fn new(
        captures: &[Capture],
        timeline: Option<&Timeline>,
        experiment: &Experiment,
    ) -> Result<Self, RunError> {
        let recorder = timeline.map(|timeline| Recorder::new(timeline, experiment));
        let recorder = recorder.transpose().map_err(RunError::Timeline)?;
        let taps: Vec<_> = captures
            .iter()
            .map(|capture| Tap::new(capture, experiment))
            .collect::<io::Result<_>>()?;
        Ok(Self {
            listens: !taps.is_empty() || recorder.is_some(),
            taps,
            recorder: recorder.map(Box::new),
            frames: 0,
            last: None,
            error: None,
            payload: Vec::new(),
            frame: Vec::new(),
        })
    }

    /// Returns the number of frames so far.
    pub(super) fn frames(&self) -> u64 {
        self.frames
    }

    /// Returns the recorder of the timeline, if there is one.
    #[inline]
    pub(super) fn recorder(&mut self) -> Option<&mut Recorder> {
        self.recorder.as_deref_mut()
    }

    /// Records a frame that arrives at a NIC from its wire, or leaves the NIC.
    #[inline]
    pub(super) fn frame(&mut self, now: Time, way: Way, segment: &Segment<Symbolic>) {
        self.frames += 1;
        if self.listens && self.error.is_none() {
            self.tell(now, way, segment);
        }
    }

    #[inline(never)]
    fn tell(&mut self, now: Time, way: Way, segment: &Segment<Symbolic>) {
        if !self.taps.is_empty() {
            let written = self.write(now, segment);
            self.error = written.err().map(RunError::Capture);
        }
        if let Some(recorder) = &mut self.recorder {
            self.last = Some(recorder.frame(now, way, segment));
            let error = recorder.error().err();
            self.error = self.error.take().or(error.map(RunError::Timeline));
        }
    }

    /// Records that a frame of a client's connection was lost, with `name` as the reason.
    #[cold]
    pub(super) fn lost(&mut self, now: Time, client: Endpoint, name: &'static str) {
        if let Some(recorder) = &mut self.recorder {
            recorder.lost(now, client, name);
        }
    }

    /// Records that the last frame that passed here was lost.
    #[cold]
    pub(super) fn lost_last(&mut self, now: Time, name: &'static str) {
        if let Some(client) = self.last {
            self.lost(now, client, name);
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

    /// Returns the first error of a write, once.
    #[inline]
    pub(super) fn error(&mut self) -> Result<(), RunError> {
        match self.error {
            None => Ok(()),
            Some(_) => self.error.take().map_or(Ok(()), Err),
        }
    }

    /// Completes all files. Returns a summary of the timeline, if there is one.
    pub(super) fn finish(
        &mut self,
        now: Time,
        experiment: &Experiment,
        commit: &str,
    ) -> Result<Option<Summary>, RunError> {
        self.taps
            .drain(..)
            .try_for_each(|tap| tap.writer.into_inner().flush())?;
        let Some(recorder) = &mut self.recorder else {
            return Ok(None);
        };
        let summary = recorder.finish(now, experiment, commit);
        let summary = summary.map_err(RunError::Timeline)?;
        summary.map(Some).ok_or(RunError::Unreached { ended: now })
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
