//! Synthetic logs: a few parameters and a seed determine a [`Log`], which is analysed and replayed like a real one.
//!
//! A generator has three independent parts, each as simple as the measurements that it must reproduce allow:
//!
//! - *Files*: popularity and size of each file, by Zipf's law or by classes of equal popularity.
//! - *References*: the order in which files are requested. Every file gets its exact number of references. Each reference is placed at
//!   random in the log, or (with probability `burst_share`) a short `gap` after the file's previous one. Temporal locality therefore does
//!   not change popularity.
//! - *Connections*: the number of requests of each, the pauses between them, and the client that opens it. The requests of all connections,
//!   in order of time, take the references in order.
//!
//! Sizes within a connection are independent of each other and of the connection's length, whereas in real logs images follow their pages.
//! The lifetime rows of a fit's error show the effect.

mod connections;
mod distribution;
mod files;
mod presets;
mod references;

pub use connections::ConnectionSpec;
pub use distribution::{Distribution, Step};
pub use files::{FileClass, Files};
pub use presets::{Preset, PublishedTrace};
pub use references::LocalitySpec;

pub(crate) use files::FileTable;
pub(crate) use references::references;

use crate::log::{Format, Log, Method, Names, Request};
use crate::source::FileSet;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Start of generated logs: 1998-05-01 00:00:00 UTC, in seconds since 1970.
const START_S: u64 = 893_980_800;

/// What a generated log is like. Written by hand as TOML, chosen as a [`Preset`], or fitted to a log
/// ([`crate::fit::Fit`]).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GeneratorSpec {
    /// Order of references.
    #[serde(default)]
    pub locality: LocalitySpec,
    /// Connections.
    pub connections: ConnectionSpec,
    /// Popularity and sizes.
    pub files: Files,
}

/// An invalid parameter of a [`GeneratorSpec`].
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{field} is {value}; expected {expected}")]
pub struct SpecError {
    /// Path of the field.
    pub field: String,
    /// Its value.
    pub value: f64,
    /// Description of valid values.
    pub expected: &'static str,
}

impl SpecError {
    fn unless(
        ok: bool,
        field: impl FnOnce() -> String,
        value: f64,
        expected: &'static str,
    ) -> Result<(), Self> {
        if ok {
            Ok(())
        } else {
            Err(Self {
                field: field(),
                value,
                expected,
            })
        }
    }
}

impl GeneratorSpec {
    /// Checks all parameters.
    ///
    /// # Errors
    /// The first invalid parameter.
    pub fn check(&self) -> Result<(), SpecError> {
        self.files.check()?;
        self.locality.check()?;
        self.connections.check()
    }

    /// Generates a log of `requests` requests. The same specification, seed and number always give the same log.
    ///
    /// Times are whole seconds, as in Common Log Format. Connections conform to the rule of the papers ([`crate::SessionRule::PAPERS`]):
    /// pauses within a connection are under 15 seconds, and pauses between two connections of a client are longer.
    ///
    /// # Errors
    /// If [`Self::check`] fails.
    pub fn generate(&self, seed: u64, requests: u32) -> Result<Log, SpecError> {
        self.check()?;
        let mut random = Pcg64::seed_from_u64(seed);
        let table = FileTable::new(&self.files);
        let order = references(&table, &self.locality, requests, &mut random);
        let slots = connections::slots(&self.connections, requests, &mut random);
        let request = |(&file, slot): (&u32, &connections::Slot)| {
            let size = table.sizes[file as usize];
            let sent = size > 0 && !random.random_bool(table.not_modified[file as usize]);
            Request {
                time_us: (START_S + slot.time_us / 1_000_000) * 1_000_000,
                bytes: if sent { size } else { 0 },
                client: slot.client,
                file,
                status: if sent { 200 } else { 304 },
                method: Method::Get,
            }
        };
        let requests: Vec<Request> = order.iter().zip(&slots).map(request).collect();
        Ok(log(requests, table.sizes))
    }
}

/// Creates a log of these requests, with invented names for files and clients.
fn log(requests: Vec<Request>, sizes: Vec<u64>) -> Log {
    let clients = requests.iter().map(|r| r.client + 1).max().unwrap_or(0);
    let mut urls = Names::default();
    for file in 0..sizes.len() {
        urls.insert(format!("/f{file}").as_bytes());
    }
    let mut names = Names::default();
    for client in 0..clients {
        names.insert(format!("c{client}").as_bytes());
    }
    Log {
        requests,
        files: FileSet::new(sizes),
        urls,
        clients: names,
        ..Log::empty(Format::Common)
    }
}

#[cfg(test)]
mod tests;
