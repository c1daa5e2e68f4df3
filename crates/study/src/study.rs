//! Which runs belong together.

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
    /// What it is called; its tables are named by it.
    pub name: String,
    /// Keys of experiments that the study sets, in any of its runs.
    pub columns: Vec<ConfigColumn>,
    /// All runs.
    pub runs: Vec<StudyRun>,
    /// The command that asked for it last, where it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// A key of experiments that has a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigColumn {
    /// Its path, as `nic.mips`.
    pub path: String,
    /// What its values are.
    pub kind: Kind,
}

/// A run of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyRun {
    /// Where its result is.
    pub key: Key,
    /// The variant of the experiment file, if that has variants.
    pub variant: Option<String>,
    /// Seed of everything that is drawn.
    pub seed: u64,
    /// The value for each of the study's columns.
    pub values: Vec<Cell>,
}

impl Study {
    /// Notes the study in a store, in the place of an earlier one of the same name.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn save(&self, store: &Store) -> Result<(), StoreError> {
        store.write_json(&place(store.root(), &self.name), self)
    }

    /// All studies that a folder has results for.
    ///
    /// # Errors
    /// They cannot be read.
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

    /// The study that a path names: that of its tables, as `results/mips` or `results/mips.csv`, or the only one in a folder. Also returns the
    /// folder.
    ///
    /// # Errors
    /// There is none, or are several.
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
        // What the user named has none, not the folder that it might be in.
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
                "there is no such study, but {}",
                names.join(", ")
            ))),
            _ => Err(other(format!("has several studies: {}", names.join(", ")))),
        }
    }

    /// Changes with its runs, their order and what they are called, whoever asked for them.
    pub fn digest(&self) -> Key {
        let json =
            serde_json::to_vec(&(&self.name, &self.columns, &self.runs)).expect("a study is JSON");
        Digest::new().part(&json).key()
    }
}

/// Endings of the tables of a study.
const TABLES: [&str; 2] = [".csv", ".parquet"];

fn place(root: &Path, name: &str) -> PathBuf {
    root.join("studies").join(format!("{name}.json"))
}
