//! Output: text to the terminal, and files that are written completely or not at all.

mod figure;
mod part;
#[cfg(feature = "print")]
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

/// Returns the width of text in columns: `COLUMNS` if it is set, else the width of `terminal`, or 100 if there is no terminal.
pub fn width(terminal: &Term) -> usize {
    let columns = std::env::var("COLUMNS").ok();
    let columns = columns.and_then(|columns| columns.parse().ok());
    let terminal = || terminal.size_checked().map(|(_, columns)| columns.into());
    columns
        .filter(|columns| *columns > 0)
        .or_else(terminal)
        .unwrap_or(DEFAULT_WIDTH)
}

/// Prints to stdout. A reader that has closed the pipe (as in `baton ... | head`) is not a failure.
///
/// # Errors
/// Fails if stdout cannot be written for another reason.
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

/// Prints text for people to stdout, folded to its width.
///
/// # Errors
/// Fails like [`print`].
pub fn print_text(text: &str) -> Result<(), Failure> {
    print(&baton_report::folded(text))
}

/// Prints a message for people to stderr. Errors are ignored, because nothing depends on the message.
pub fn tell(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Whether the user wants to see neither progress nor notes.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Switches progress and notes off or on.
pub fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Returns whether progress and notes are off.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints a note for the user to stderr.
pub fn note(text: &str) {
    if !is_quiet() {
        tell(&format!("note: {text}\n"));
    }
}

/// Refuses to overwrite a file that the command reads; `flag` is the option that names `output`.
///
/// # Errors
/// Fails if they are the same file.
pub fn spare(input: &Path, flag: &str, output: Option<&Path>) -> Result<(), Failure> {
    let Some(output) = output else {
        return Ok(());
    };
    // A file that does not exist cannot be overwritten.
    let same = fs::canonicalize(output)
        .is_ok_and(|output| fs::canonicalize(input).is_ok_and(|input| input == output));
    if !same {
        return Ok(());
    }
    Err(Failure::BadInput(format!(
        "{flag} {}: would overwrite an input file; expected another path",
        output.display()
    )))
}

/// A file that will be written. The target does not change until [`Self::commit`]; if the value is dropped before that, no file is left.
#[derive(Debug)]
pub struct Pending {
    flag: &'static str,
    target: PathBuf,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// A file next to the target, which will be renamed to it.
    Beside(Part),
    /// The target is not a regular file (but a device or a pipe), and must not be replaced.
    Target,
}

impl Pending {
    /// Checks that `target` can be written, before any long work.
    ///
    /// # Errors
    /// Fails if it cannot; `flag` is the option that names it.
    pub fn new(flag: &'static str, target: &Path) -> Result<Self, Failure> {
        let refuse = |reason: String| {
            let target = target.display();
            Failure::BadInput(format!(
                "{flag} {target}: {reason}; expected a path that can be written"
            ))
        };
        if target == Path::new("-") {
            return Err(refuse("only --json can write to stdout".to_owned()));
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

    /// Returns the path to write the content to.
    pub fn path(&self) -> &Path {
        match &self.place {
            Place::Beside(file) => file.path(),
            Place::Target => &self.target,
        }
    }

    /// Returns the final path.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Writes `content` and commits it.
    ///
    /// # Errors
    /// Fails if the content cannot be written; the target is unchanged.
    pub fn write(self, content: &[u8]) -> Result<(), Failure> {
        self.write_with(|file| file.write_all(content))
    }

    /// Calls `write` to write the content, and commits it.
    ///
    /// # Errors
    /// Fails if the content cannot be written; the target is unchanged.
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

    /// Moves the content at [`Self::path`] to the target.
    ///
    /// # Errors
    /// Fails if the content cannot be moved; the target is unchanged.
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

/// Returns `value` as JSON that ends with a newline.
///
/// # Errors
/// Fails if the value cannot be represented as JSON.
pub fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    let mut json = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::Failed(format!("cannot write JSON: {error}")))?;
    json.push('\n');
    Ok(json)
}

/// Destination of `--json`.
#[derive(Debug)]
pub enum JsonOutput {
    /// Stdout; tables then go to stderr.
    Stdout,
    /// A file; tables go to stdout as usual.
    File(Pending),
}

impl JsonOutput {
    /// Checks that `path` can be written; `-` is stdout.
    ///
    /// # Errors
    /// Fails if it cannot.
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
    /// Fails if either cannot be written.
    pub fn write(self, value: &impl Serialize, tables: &str) -> Result<(), Failure> {
        let json = to_json(value)?;
        match self {
            Self::Stdout => {
                tell(&baton_report::folded(tables));
                print(&json)
            }
            Self::File(file) => {
                // The tables are printed even if the disk is full, so that the results are not lost.
                let written = file.write(json.as_bytes());
                print_text(tables)?;
                written
            }
        }
    }
}

/// Creates a file with a unique name in the folder of `target`, with the usual permissions of a new file.
fn beside(target: &Path) -> io::Result<NamedTempFile> {
    let folder = match target.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => return Err(io::Error::other("is in no folder")),
    };
    if target.file_name().is_none() {
        return Err(io::Error::other("does not name a file"));
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
    fn a_dropped_output_leaves_no_file() {
        let folder = folder();
        let target = folder.path().join("out.json");
        fs::write(&target, "before").expect("a file");
        drop(Pending::new("--json", &target).expect("can be written"));
        assert_eq!(files(folder.path()), ["out.json"]);
        assert_eq!(fs::read_to_string(&target).expect("a file"), "before");
    }

    #[test]
    fn a_written_output_replaces_the_target() {
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
