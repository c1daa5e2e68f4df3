//! `baton live capture`: writes frames of a running adapter, and of the kernel beside it, into one file.

use crate::cli::{CaptureArgs, CaptureTarget, EndFilter};
use crate::failure::Failure;
use crate::output::{note, tell};
use crate::runner::Interrupt;
use baton_live::port::Overheard;
use baton_live::{
    CaptureBlock, CaptureSpec, LONGEST_ANSWER, Merge, Places, Question, Refused, Snapshot, ask,
    ask_for,
};
use baton_report::{counted, grouped};
use baton_wire::{CaptureWriter, FrameNotes, Span, Time};
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Pause between two checks for new frames.
const PAUSE: Duration = Duration::from_millis(1);
/// How long frames are held back to sort them by time. Those of the adapter and those of the kernel arrive with different delays.
const ORDERING: Duration = Duration::from_millis(200);
/// Maximum time until the adapter has sent its remaining frames.
const LONGEST_REST: Duration = Duration::from_secs(2);
/// Maximum number of bytes read from the adapter before the kernel's frames are read.
const MOST_BYTES_AT_ONCE: usize = 4 << 20;
/// Maximum number of frames read from the kernel before the adapter's frames are read.
const MOST_AT_ONCE: usize = 256;
const SERVER: &str = "`baton live adapter`";

/// Runs the command until it is interrupted, or until it has the requested frames.
///
/// # Errors
/// Fails if no adapter answers, if the adapter refuses, or if the file cannot be written.
pub fn execute(arguments: &CaptureArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let control = arguments.control.clone();
    let control = control.unwrap_or_else(|| Places::here().control());
    let (snapshot, spec) = plan(arguments, &control, interrupt)?;
    let kernel = kernel(arguments, &snapshot);
    let path = arguments.write.display();
    let refuse = |error| {
        Failure::BadInput(format!(
            "--write {path}: {error}; expected a path that can be written"
        ))
    };
    let file: Box<dyn Write> = match arguments.write == Path::new("-") {
        true => Box::new(io::stdout().lock()),
        false => Box::new(File::create(&arguments.write).map_err(refuse)?),
    };
    let stream = ask_for(&control, SERVER, &Question::Capture(spec))?;
    let mut capture = Capture {
        stream,
        bytes: Vec::new(),
        kernel,
        spec,
        merge: Merge::default(),
        file: BufWriter::new(file),
        written: 0,
        most: arguments.count.unwrap_or(u64::MAX),
        lost: 0,
        has_begun: false,
        is_over: false,
    };
    tell(&format!(
        "capturing on {}; interrupt to end\n",
        snapshot.interface
    ));
    let end = arguments
        .seconds
        .map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let outcome =
        capture.run(|| interrupt.count() > 0 || end.is_some_and(|end| Instant::now() >= end));
    outcome.map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => Failure::BadInput(error.to_string()),
        _ => Failure::Failed(format!("--write {path}: {error}")),
    })?;
    tell(&format!(
        "{} written, {} lost\n",
        counted(capture.written, "frame"),
        grouped(capture.lost)
    ));
    Ok(())
}

/// Returns the adapter's snapshot, and the specification of the frames to capture.
fn plan(
    arguments: &CaptureArgs,
    control: &Path,
    interrupt: &Interrupt,
) -> Result<(Snapshot, CaptureSpec), Failure> {
    let asked = control.to_owned();
    let answer = interrupt.during(move || ask(&asked, SERVER))??;
    let snapshot: Snapshot = serde_json::from_slice(&answer).map_err(|error| {
        Failure::Failed(format!(
            "--control {}: cannot read the answer; the process there may be another version of baton: {error}",
            control.display()
        ))
    })?;
    let EndFilter { addr, port } = match &arguments.of {
        None => EndFilter::default(),
        Some(CaptureTarget::End(end)) => *end,
        Some(CaptureTarget::Interface(name)) if *name == snapshot.interface => EndFilter::default(),
        Some(CaptureTarget::Interface(name)) => {
            return Err(Failure::BadInput(format!(
                "{name}: the adapter uses the interface {}; expected that name, or an address, a port or both, such as 10.9.0.1:443",
                snapshot.interface
            )));
        }
    };
    let spec = CaptureSpec {
        addr,
        port,
        snap_bytes: arguments.snap,
    };
    Ok((snapshot, spec))
}

/// Returns the capture of the kernel's frames, if the adapter is beside a kernel and this process has the permission.
fn kernel(arguments: &CaptureArgs, snapshot: &Snapshot) -> Option<Kernel> {
    let is_beside = snapshot.counters.contains_key("captured.flows");
    if arguments.adapter_only || !is_beside {
        return None;
    }
    let opened = Overheard::open(&snapshot.interface).map_err(|error| error.to_string());
    let writer = CaptureWriter::new(Vec::new(), &snapshot.interface);
    match (opened, writer) {
        (Ok(overheard), Ok(mut writer)) => {
            // The file begins with the header of the adapter's capture.
            writer.get_mut().clear();
            let epoch = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            Some(Kernel {
                overheard,
                writer: writer.with_epoch(epoch),
                epoch,
            })
        }
        (Err(why), _) => {
            note(&format!("the kernel's frames are not captured: {why}"));
            None
        }
        (_, Err(_)) => None,
    }
}

/// The kernel's side of a capture.
struct Kernel {
    overheard: Overheard,
    writer: CaptureWriter<Vec<u8>>,
    /// Time that the writer's times count from.
    epoch: Duration,
}

impl Kernel {
    /// Returns the next frame as a block, with the time when it passed, or `None` if no frame waits.
    fn next(&mut self, spec: &CaptureSpec) -> io::Result<Option<(Duration, CaptureBlock)>> {
        while let Some((stamped, frame)) = self.overheard.receive()? {
            if !spec.wants(frame) {
                continue;
            }
            let notes = FrameNotes {
                is_inbound: Some(!stamped.is_outgoing),
                comment: Some(match stamped.is_outgoing {
                    true => "sent by the kernel",
                    false => "received by the kernel: the connection is not on the adapter",
                }),
                lost_before: 0,
            };
            let kept = spec
                .snap_bytes
                .map_or(frame.len(), |most| frame.len().min(most as usize));
            let at = Time::ZERO + Span::from(stamped.at.saturating_sub(self.epoch));
            self.writer
                .write_noted(at, &frame[..kept], stamped.len.max(kept), notes)?;
            let mut written = None;
            CaptureBlock::take_all(self.writer.get_mut(), |block| {
                written = Some((stamped.at, block));
                Ok(())
            })?;
            return Ok(written);
        }
        Ok(None)
    }
}

struct Capture {
    stream: UnixStream,
    /// Received bytes that are not yet a whole block.
    bytes: Vec<u8>,
    kernel: Option<Kernel>,
    spec: CaptureSpec,
    merge: Merge,
    file: BufWriter<Box<dyn Write>>,
    written: u64,
    most: u64,
    lost: u64,
    has_begun: bool,
    /// Whether the adapter has sent everything.
    is_over: bool,
}

impl Capture {
    fn run(&mut self, is_to_end: impl Fn() -> bool) -> io::Result<()> {
        self.stream.set_nonblocking(true)?;
        let begun = Instant::now();
        while !self.is_over && self.written < self.most && !is_to_end() {
            let is_busy = self.take_in()?;
            if !self.has_begun && begun.elapsed() > LONGEST_ANSWER {
                return Err(ErrorKind::TimedOut.into());
            }
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            self.write_until(now.saturating_sub(ORDERING))?;
            if !is_busy {
                thread::sleep(PAUSE);
            }
        }
        self.finish()
    }

    /// Reads frames that have arrived. Returns whether there were any.
    fn take_in(&mut self) -> io::Result<bool> {
        let mut any = false;
        if let Some(kernel) = &mut self.kernel {
            for _ in 0..MOST_AT_ONCE {
                let Some((at, block)) = kernel.next(&self.spec)? else {
                    break;
                };
                any = true;
                self.merge.add(at, block);
            }
            self.lost += kernel.overheard.take_lost();
        }
        while self.bytes.len() < MOST_BYTES_AT_ONCE {
            let mut bytes = [0; 64 << 10];
            match self.stream.read(&mut bytes) {
                Ok(0) => {
                    self.is_over = true;
                    break;
                }
                Ok(len) => {
                    self.bytes.extend(&bytes[..len]);
                    any = true;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.take_blocks()?;
        Ok(any)
    }

    fn take_blocks(&mut self) -> io::Result<()> {
        if !self.has_begun && self.bytes.first() == Some(&b'{') {
            let Ok(Refused { refused }) = serde_json::from_slice(&self.bytes) else {
                return Ok(());
            };
            return Err(io::Error::new(ErrorKind::InvalidInput, refused));
        }
        let Self {
            bytes,
            merge,
            file,
            lost,
            has_begun,
            ..
        } = self;
        CaptureBlock::take_all(bytes, |block| {
            *has_begun = true;
            match (block.frame_at(), block.totals()) {
                (Some(at), _) => merge.add(at, block),
                (None, Some((_, of_adapter))) => *lost += of_adapter,
                // All other blocks belong to the header of the file.
                (None, None) => file.write_all(block.bytes())?,
            }
            Ok(())
        })
    }

    fn write_until(&mut self, until: Duration) -> io::Result<()> {
        // Frames wait until the header, which precedes them, has arrived.
        while self.has_begun && self.written < self.most {
            let Some(block) = self.merge.poll(until) else {
                break;
            };
            self.file.write_all(block.bytes())?;
            self.written += 1;
        }
        self.file.flush()
    }

    /// Reads the frames that the adapter has not sent yet.
    fn finish(&mut self) -> io::Result<()> {
        let _ = self.stream.shutdown(Shutdown::Write);
        let limit = Instant::now() + LONGEST_REST;
        // Frames that pass from now on were not requested.
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        self.kernel = None;
        while !self.is_over && Instant::now() < limit {
            if !self.take_in()? {
                thread::sleep(PAUSE);
            }
        }
        self.write_until(now)?;
        self.write_totals(now)
    }

    /// Writes the numbers of frames of both sides.
    fn write_totals(&mut self, now: Duration) -> io::Result<()> {
        let mut writer = CaptureWriter::new(Vec::new(), "")?.with_epoch(now);
        writer.get_mut().clear();
        let all = self.written + self.lost;
        writer.write_totals(Time::ZERO, all, self.lost)?;
        self.file.write_all(&writer.into_inner())?;
        self.file.flush()
    }
}
