//! Lists of runs that belong together.

use crate::error::StoreError;
use crate::file;
use crate::key::{Digest, Key};
use crate::store::Store;
use crate::table::{Cell, Kind};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The runs of a study, in its order, and how they differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Study {
    /// Name of the study and of its tables.
    pub name: String,
    /// Keys of experiments that the study sets in any of its runs.
    pub columns: Vec<ConfigColumn>,
    /// All runs.
    pub runs: Vec<StudyRun>,
    /// Command that last requested the study, if it was requested by a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// A configuration key that has a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigColumn {
    /// Path of the key, such as `nic.mips`.
    pub path: String,
    /// Type of its values.
    pub kind: Kind,
}

/// A run of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyRun {
    /// Key of the run's result.
    pub key: Key,
    /// Variant of the experiment file, if the file has variants.
    pub variant: Option<String>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Value of each of the study's columns.
    pub values: Vec<Cell>,
}

impl Study {
    /// Writes the study to a store, replacing an earlier study of the same name.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn save(&self, store: &Store) -> Result<(), StoreError> {
        store.write_json(&place(store.root(), &self.name), self)
    }

    /// Reads all studies of the store in a folder.
    ///
    /// # Errors
    /// The studies cannot be read.
    pub fn all(root: &Path) -> Result<Vec<Self>, StoreError> {
        Store::check(root)?;
        let folder = root.join("studies");
        let names = file::names(&folder)?.into_iter();
        let studies = names
            .filter(|name| name.ends_with(".json"))
            .map(|name| file::read_json(&folder.join(name)));
        let studies: Vec<Option<Self>> = studies.collect::<Result<_, _>>()?;
        Ok(studies.into_iter().flatten().collect())
    }

    /// Finds the study that a path names: by its tables, such as `results/mips` or `results/mips.csv`, or as the only study in a folder.
    /// Also returns the folder.
    ///
    /// # Errors
    /// There is no such study, or there are several.
    pub fn find(path: &Path) -> Result<(PathBuf, Self), StoreError> {
        let other = |found: String| StoreError::Other {
            path: path.to_owned(),
            found,
            expected: "a folder of `baton sweep` with one study, or FOLDER/STUDY",
        };
        let (root, name) = match path.is_dir() {
            true => (path, None),
            false => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let ending = |name: &str| {
                    TABLES
                        .iter()
                        .find_map(|ending| name.strip_suffix(ending).map(str::to_owned))
                };
                let root = path.parent().filter(|root| !root.as_os_str().is_empty());
                (
                    root.unwrap_or(Path::new(".")),
                    Some(ending(&name).unwrap_or(name.into_owned())),
                )
            }
        };
        // Report the path that the user named, not the folder that the study might be in.
        let studies = Self::all(root).map_err(|error| match error {
            StoreError::Other {
                found, expected, ..
            } => StoreError::Other {
                path: path.to_owned(),
                found,
                expected,
            },
            error => error,
        });
        let mut studies = studies?;
        let names: Vec<String> = studies.iter().map(|study| study.name.clone()).collect();
        studies.retain(|study| name.as_ref().is_none_or(|name| study.name == *name));
        match studies.len() {
            1 => Ok((root.to_owned(), studies.remove(0))),
            _ if names.is_empty() => Err(other("has no study".to_owned())),
            0 => Err(other(format!(
                "there is no such study; there are {}",
                names.join(", ")
            ))),
            _ => Err(other(format!("has several studies: {}", names.join(", ")))),
        }
    }

    /// Returns a digest of the runs, their order and the names, independent of the command that requested them.
    pub fn digest(&self) -> Key {
        let json =
            serde_json::to_vec(&(&self.name, &self.columns, &self.runs)).expect("a study is JSON");
        Digest::new().part(&json).key()
    }
}

/// File name extensions of a study's tables.
const TABLES: [&str; 2] = [".csv", ".parquet"];

fn place(root: &Path, name: &str) -> PathBuf {
    root.join("studies").join(format!("{name}.json"))
}
