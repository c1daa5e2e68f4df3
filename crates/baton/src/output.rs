//! Output: text to the terminal, files written whole or not at all.

mod figure;
mod part;
#[cfg(feature = "figures")]
mod picture;

pub use figure::PendingFigure;
pub use part::remove_all_parts;

use crate::failure::Failure;
pub use baton_config::reason;
use baton_report::DEFAULT_WIDTH;
use console::Term;
use part::Part;
use serde::Serialize;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::NamedTempFile;

/// Columns that text may take: `COLUMNS` if that is set, else those of `terminal`; where it is none, 100.
pub fn width(terminal: &Term) -> usize {
    let columns = std::env::var("COLUMNS").ok();
    let columns = columns.and_then(|columns| columns.parse().ok());
    let terminal = || terminal.size_checked().map(|(_, columns)| columns.into());
    columns
        .filter(|columns| *columns > 0)
        .or_else(terminal)
        .unwrap_or(DEFAULT_WIDTH)
}

/// Prints to stdout. That nobody reads on (as in `baton ... | head`) is no failure.
///
/// # Errors
/// Stdout cannot be written for any other reason.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let reason = reason(&error);
            Err(Failure::Failed(format!("cannot write to stdout: {reason}")))
        }
        _ => Ok(()),
    }
}

/// Prints text for people to stdout, as wide as that is.
///
/// # Errors
/// As [`print`].
pub fn print_text(text: &str) -> Result<(), Failure> {
    print(&baton_report::folded(text))
}

/// Prints to stderr, for people. Nothing depends on it, so that it cannot be written is no failure.
pub fn tell(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Whether the user wants to see neither progress nor notes.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Shows neither progress nor notes from now on, or both.
pub fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Whether neither progress nor notes are to be shown.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// What the user should know, on stderr.
pub fn note(text: &str) {
    if !is_quiet() {
        tell(&format!("note: {text}\n"));
    }
}

/// Refuses to write over what the command reads; `flag` is what the user asked for `output` with.
///
/// # Errors
/// They are the same file.
pub fn spare(input: &Path, flag: &str, output: Option<&Path>) -> Result<(), Failure> {
    let Some(output) = output else {
        return Ok(());
    };
    // What does not exist cannot be overwritten.
    let same = fs::canonicalize(output)
        .is_ok_and(|output| fs::canonicalize(input).is_ok_and(|input| input == output));
    if !same {
        return Ok(());
    }
    Err(Failure::BadInput(format!(
        "{flag} {}: would overwrite what is read; expected another path",
        output.display()
    )))
}

/// A file that is to be written. Until [`Self::commit`] the target is untouched; when dropped before, nothing is left.
#[derive(Debug)]
pub struct Pending {
    flag: &'static str,
    target: PathBuf,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// A file beside the target, to be renamed over it.
    Beside(Part),
    /// The target is no regular file (a device, a pipe) and must not be renamed over.
    Target,
}

impl Pending {
    /// Sees that `target` can be written, before anything long begins.
    ///
    /// # Errors
    /// It cannot; `flag` is what the user asked for it with.
    pub fn new(flag: &'static str, target: &Path) -> Result<Self, Failure> {
        let refuse = |reason: String| {
            let target = target.display();
            Failure::BadInput(format!(
                "{flag} {target}: {reason}; expected a path that can be written"
            ))
        };
        if target == Path::new("-") {
            return Err(refuse("only --json goes to stdout".to_owned()));
        }
        // A link is followed: its target is replaced, not the link.
        let resolved = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        let place = match fs::metadata(&resolved) {
            Ok(metadata) if metadata.is_dir() => return Err(refuse("is a directory".to_owned())),
            Ok(metadata) if !metadata.is_file() => {
                OpenOptions::new()
                    .write(true)
                    .open(&resolved)
                    .map_err(|error| refuse(reason(&error)))?;
                Place::Target
            }
            _ => {
                let file = beside(&resolved).map_err(|error| refuse(reason(&error)))?;
                Place::Beside(Part::new(file))
            }
        };
        Ok(Self {
            flag,
            target: resolved,
            place,
        })
    }

    /// Where the content is to be written now.
    pub fn path(&self) -> &Path {
        match &self.place {
            Place::Beside(file) => file.path(),
            Place::Target => &self.target,
        }
    }

    /// Where it is to be in the end.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Writes `content` and commits it.
    ///
    /// # Errors
    /// It cannot be written; the target is as it was.
    pub fn write(self, content: &[u8]) -> Result<(), Failure> {
        self.write_with(|file| file.write_all(content))
    }

    /// Lets `write` write the content and commits it.
    ///
    /// # Errors
    /// It cannot be written; the target is as it was.
    pub fn write_with(
        self,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let written = OpenOptions::new()
            .write(true)
            .open(self.path())
            .and_then(|file| {
                let mut file = BufWriter::new(file);
                write(&mut file)?;
                file.flush()
            });
        written.map_err(|error| self.failed(&error))?;
        self.commit()
    }

    /// Puts what was written to [`Self::path`] in its place.
    ///
    /// # Errors
    /// It cannot be put there; the target is as it was.
    pub fn commit(self) -> Result<(), Failure> {
        match self.place {
            Place::Beside(file) => file
                .persist(&self.target)
                .map(|_: File| ())
                .map_err(|error| {
                    Failure::Failed(format!(
                        "{} {}: cannot write: {}",
                        self.flag,
                        self.target.display(),
                        reason(&error.error)
                    ))
                }),
            Place::Target => Ok(()),
        }
    }

    fn failed(&self, error: &io::Error) -> Failure {
        Failure::Failed(format!(
            "{} {}: cannot write: {}",
            self.flag,
            self.target.display(),
            reason(error)
        ))
    }
}

/// `value` as JSON, with a newline at its end.
///
/// # Errors
/// It cannot be JSON.
pub fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    let mut json = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::Failed(format!("cannot write JSON: {error}")))?;
    json.push('\n');
    Ok(json)
}

/// Where `--json` goes.
#[derive(Debug)]
pub enum JsonOutput {
    /// To stdout; tables then go to stderr.
    Stdout,
    /// To a file; tables go to stdout as ever.
    File(Pending),
}

impl JsonOutput {
    /// Sees that `path` can be written; `-` is stdout.
    ///
    /// # Errors
    /// It cannot.
    pub fn new(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            baton_report::set_width(width(&Term::stderr()));
            Ok(Self::Stdout)
        } else {
            Pending::new("--json", path).map(Self::File)
        }
    }

    /// Writes `value` as JSON, and `tables` for people.
    ///
    /// # Errors
    /// One of the two cannot be written.
    pub fn write(self, value: &impl Serialize, tables: &str) -> Result<(), Failure> {
        let json = to_json(value)?;
        match self {
            Self::Stdout => {
                tell(&baton_report::folded(tables));
                print(&json)
            }
            Self::File(file) => {
                // What was measured is not lost with a disk that is full.
                let written = file.write(json.as_bytes());
                print_text(tables)?;
                written
            }
        }
    }
}

/// A file of a name of its own in the folder of `target`, readable as any other new file would be.
fn beside(target: &Path) -> io::Result<NamedTempFile> {
    let folder = match target.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => return Err(io::Error::other("has no folder")),
    };
    if target.file_name().is_none() {
        return Err(io::Error::other("names no file"));
    }
    if !folder.is_dir() {
        return Err(io::Error::other(format!(
            "there is no folder {}",
            folder.display()
        )));
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".baton-").suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a folder for temporary files")
    }

    fn files(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect()
    }

    #[test]
    fn what_is_dropped_leaves_nothing() {
        let folder = folder();
        let target = folder.path().join("out.json");
        fs::write(&target, "before").expect("a file");
        drop(Pending::new("--json", &target).expect("can be written"));
        assert_eq!(files(folder.path()), ["out.json"]);
        assert_eq!(fs::read_to_string(&target).expect("a file"), "before");
    }

    #[test]
    fn what_is_written_replaces_the_target() {
        let folder = folder();
        let target = folder.path().join("out.json");
        fs::write(&target, "something longer").expect("a file");
        Pending::new("--json", &target)
            .expect("can be written")
            .write(b"new")
            .expect("is written");
        assert_eq!(fs::read_to_string(&target).expect("a file"), "new");
        assert_eq!(files(folder.path()), ["out.json"]);
    }

    #[test]
    fn a_missing_folder_and_a_folder_are_refused() {
        let folder = folder();
        for target in [
            folder.path().join("none/out.json"),
            folder.path().to_owned(),
        ] {
            let refused = Pending::new("--json", &target).expect_err("cannot be written");
            assert!(
                matches!(&refused, Failure::BadInput(m) if m.starts_with("--json ")),
                "{refused}"
            );
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_device_is_written_and_stays_a_device() {
        Pending::new("--json", Path::new("/dev/null"))
            .expect("can be written")
            .write(b"x")
            .expect("is written");
        assert!(!fs::metadata("/dev/null").expect("a device").is_file());
    }
}
