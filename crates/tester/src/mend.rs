//! Changes to interfaces, and how they are undone, however the program ends.
//!
//! Before a change, the old state is written to a file, one per process. Dropping [`Changes`] restores it. If a process was killed, the
//! next process restores the state when it starts.

use crate::error::TesterError;
use baton_live::port::{InterfaceError, LinkWatch, Offload, Offloads, bring};
use baton_live::within;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Folder of the files.
pub const FOLDER: &str = "/run/baton-bench";

/// Old state of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Was {
    interface: String,
    namespace: Option<String>,
    state: State,
}

/// State that may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// The interface was down.
    Down,
    /// Generic receive offload (GRO) was on.
    GenericReceiveOn,
}

/// Content of a process's file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    process: u32,
    /// Start time of the process, in kernel ticks, since process ids are reused.
    started: u64,
    /// Interfaces that the process tests.
    interfaces: Vec<(Option<String>, String)>,
    was: Vec<Was>,
}

/// Changes that this process has made. Dropping this value undoes them.
#[derive(Debug)]
pub struct Changes {
    folder: PathBuf,
    record: Record,
    /// Descriptions of what was restored after other processes.
    pub mended: Vec<String>,
}

impl Changes {
    /// Undoes the changes of processes that no longer exist, and claims these interfaces.
    ///
    /// # Errors
    /// Another process tests one of the interfaces, or the folder cannot be written.
    pub fn begin(
        folder: &Path,
        interfaces: Vec<(Option<String>, String)>,
    ) -> Result<Self, TesterError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::PermissionDenied => TesterError::BadInput(format!(
                "no permission to write to the directory {}; run as root",
                folder.display()
            )),
            _ => TesterError::Failed(format!("{}: {error}", folder.display())),
        };
        fs::create_dir_all(folder).map_err(failed)?;
        let mut mended = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let Some(record) = Record::read(&path) else {
                continue;
            };
            if start_of(record.process) != Some(record.started) {
                mended.extend(record.was.iter().rev().filter_map(Was::put_back));
                fs::remove_file(&path).map_err(failed)?;
            } else if let Some((_, name)) = record
                .interfaces
                .iter()
                .find(|one| interfaces.contains(one))
            {
                return Err(TesterError::BadInput(format!(
                    "{name} is being tested by another process ({}); wait for it or end it",
                    record.process
                )));
            }
        }
        let process = std::process::id();
        let changes = Self {
            folder: folder.to_owned(),
            record: Record {
                process,
                started: start_of(process).unwrap_or_default(),
                interfaces,
                was: Vec::new(),
            },
            mended,
        };
        changes.save().map_err(failed)?;
        Ok(changes)
    }

    /// Brings an interface up if it is down.
    ///
    /// # Errors
    /// The interface does not exist, or there is no permission.
    pub fn bring_up(
        &mut self,
        namespace: Option<&str>,
        interface: &str,
    ) -> Result<(), TesterError> {
        let is_up = within(namespace, || {
            Ok::<_, InterfaceError>(LinkWatch::of(interface)?.state()?.is_up)
        })??;
        if is_up {
            return Ok(());
        }
        self.note(namespace, interface, State::Down)?;
        within(namespace, || bring(interface, true))??;
        Ok(())
    }

    /// Switches off offloads that merge received segments, where they are on.
    ///
    /// # Errors
    /// The interface does not exist, or there is no permission.
    pub fn receive_unjoined(
        &mut self,
        namespace: Option<&str>,
        interface: &str,
    ) -> Result<(), TesterError> {
        let offloads = Offloads::of(interface);
        if !within(namespace, || offloads.is_on(Offload::GenericReceive))?? {
            return Ok(());
        }
        self.note(namespace, interface, State::GenericReceiveOn)?;
        within(namespace, || {
            offloads.switch(Offload::GenericReceive, false)
        })??;
        Ok(())
    }

    /// Records an old state before it is changed.
    fn note(
        &mut self,
        namespace: Option<&str>,
        interface: &str,
        state: State,
    ) -> Result<(), TesterError> {
        self.record.was.push(Was {
            interface: interface.to_owned(),
            namespace: namespace.map(str::to_owned),
            state,
        });
        self.save()
            .map_err(|error| TesterError::Failed(format!("{}: {error}", self.folder.display())))
    }

    /// Writes the record atomically.
    fn save(&self) -> io::Result<()> {
        let mut file = NamedTempFile::new_in(&self.folder)?;
        serde_json::to_writer(&mut file, &self.record)?;
        file.flush()?;
        file.as_file().sync_all()?;
        file.persist(self.path())?;
        Ok(())
    }

    fn path(&self) -> PathBuf {
        self.folder.join(format!("{}.json", self.record.process))
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        for was in self.record.was.iter().rev() {
            // The next start retries what cannot be undone now.
            let _ = was.put_back();
        }
        let _ = fs::remove_file(self.path());
    }
}

impl Record {
    /// Reads a record; returns `None` for other files in the folder.
    fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }
}

impl Was {
    /// Restores the state, and describes it; returns `None` if the interface no longer exists.
    fn put_back(&self) -> Option<String> {
        let name = &self.interface;
        let put_back = || match self.state {
            State::Down => bring(name, false),
            State::GenericReceiveOn => Offloads::of(name).switch(Offload::GenericReceive, true),
        };
        let done = within(self.namespace.as_deref(), put_back);
        let what = match self.state {
            State::Down => "down",
            State::GenericReceiveOn => "gro on",
        };
        matches!(done, Ok(Ok(()))).then(|| format!("{name}: {what}"))
    }
}

/// Returns when a process started; `None` if it does not exist.
fn start_of(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The preceding name, in brackets, may contain blanks and brackets.
    let (_, rest) = stat.rsplit_once(')')?;
    const FIELD: usize = 19;
    rest.split_whitespace().nth(FIELD)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interfaces() -> Vec<(Option<String>, String)> {
        vec![(None, "baton-none".to_owned())]
    }

    #[test]
    fn a_record_lasts_as_long_as_its_process() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("records");
        let changes = Changes::begin(&path, interfaces()).expect("nobody else");
        let record = Record::read(&changes.path()).expect("it is written");
        assert_eq!(record.process, std::process::id());
        let again = Changes::begin(&path, interfaces()).expect_err("it is taken");
        assert!(again.to_string().contains("tested by another"), "{again}");
        drop(changes);
        assert_eq!(fs::read_dir(&path).expect("a folder").count(), 0);
    }

    #[test]
    fn changes_of_a_dead_process_are_undone_and_other_files_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let record = Record {
            process: std::process::id(),
            // An earlier process with the same id.
            started: 1,
            interfaces: interfaces(),
            was: vec![Was {
                interface: "baton-none".to_owned(),
                namespace: None,
                state: State::Down,
            }],
        };
        let left = folder.path().join("77.json");
        fs::write(&left, serde_json::to_vec(&record).expect("JSON")).expect("a file");
        fs::write(folder.path().join("other"), "text").expect("a file");
        let changes = Changes::begin(folder.path(), interfaces()).expect("nobody is there");
        assert_eq!(
            changes.mended,
            Vec::<String>::new(),
            "the interface is gone"
        );
        assert!(!left.exists());
        drop(changes);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }

    #[test]
    fn the_start_of_a_process_is_known() {
        assert!(start_of(std::process::id()).is_some());
        assert_eq!(start_of(u32::MAX), None);
    }
}
