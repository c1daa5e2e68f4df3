//! The service that the server offers its clients.

use super::{Invalid, WorkloadConfig, one_to, positive};
use baton_apps::web;
use baton_kernel::FileCacheConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the server does for its clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "kebab-case")]
pub enum ApplicationConfig {
    /// A web server: files, and content generated for each response.
    Web(web::Config),
    /// A web server that sends each page piece by piece while it generates the page, with a cork (batching 3.1, "cork timer"), and then
    /// closes the connection.
    Pages(PagesConfig),
    /// A live stream, which sends a block at regular intervals to each client that requests it (data-caching 6.4). Clients use a `fixed`
    /// workload with files of the block's size.
    Live(LiveConfig),
    /// A server of remote files, which are read and written in ranges (data-caching 6.4). Clients use a `remote-files` workload.
    RemoteFiles,
}

impl Default for ApplicationConfig {
    fn default() -> Self {
        Self::Web(web::Config::default())
    }
}

/// How pages are generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PagesConfig {
    /// Bytes that are written at a time.
    #[schemars(range(min = 1))]
    pub piece_bytes: u32,
    /// Time between two pieces, microseconds.
    pub interval_us: u32,
}

/// A live stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LiveConfig {
    /// Bytes of a block.
    #[schemars(range(min = 1, max = MOST_BLOCK_BYTES))]
    pub block_bytes: u32,
    /// Time between two blocks, microseconds.
    #[schemars(range(min = 1))]
    pub interval_us: u32,
    /// Tell the kernel that blocks are not requested again, so that each leaves a NIC's cache as soon as it is delivered.
    pub evict_delivered: bool,
}

/// 4 Mb/s in blocks of half a second.
impl Default for LiveConfig {
    fn default() -> Self {
        Self {
            block_bytes: 250_000,
            interval_us: 500_000,
            evict_delivered: true,
        }
    }
}

/// Maximum size of a block. A block is one file, which is kept in memory.
const MOST_BLOCK_BYTES: u32 = 1 << 30;

/// Returns the kind of a workload in quotes, as configurations write it.
fn quoted(workload: &WorkloadConfig) -> String {
    format!("{:?}", workload.kind())
}

impl ApplicationConfig {
    /// Returns whether the server closes a connection after its first response; otherwise the client closes the connection.
    pub(crate) fn closes(&self) -> bool {
        match self {
            Self::Web(config) => !config.keep_alive,
            Self::Pages(_) => true,
            Self::Live(_) | Self::RemoteFiles => false,
        }
    }

    /// Checks the constraints that types cannot express, and that clients ask for what the server offers.
    pub(super) fn validate(
        &self,
        workload: &WorkloadConfig,
        files: &FileCacheConfig,
    ) -> Result<(), Invalid> {
        let kind = "workload.kind";
        match (self, workload) {
            (Self::Live(live), WorkloadConfig::Fixed(fixed)) => {
                one_to(
                    MOST_BLOCK_BYTES,
                    "application.block_bytes",
                    live.block_bytes,
                )?;
                positive("application.interval_us", live.interval_us.into())?;
                if fixed.bytes != u64::from(live.block_bytes) || fixed.dynamic {
                    let expected =
                        format!("{}, the value of application.block_bytes", live.block_bytes);
                    return Err(Invalid::new("workload.bytes", fixed.bytes, &expected));
                }
                Ok(())
            }
            (Self::Live(_), other) => {
                let expected = "\"fixed\", because application.kind is \"live\"";
                Err(Invalid::new(kind, quoted(other), expected))
            }
            (Self::RemoteFiles, WorkloadConfig::RemoteFiles(_)) => Ok(()),
            (Self::RemoteFiles, other) => {
                let expected = "\"remote-files\", because application.kind is \"remote-files\"";
                Err(Invalid::new(kind, quoted(other), expected))
            }
            (Self::Web(_), WorkloadConfig::RemoteFiles(_)) => {
                let expected = "\"remote-files\", because workload.kind is \"remote-files\"";
                Err(Invalid::new("application.kind", "\"web\"", expected))
            }
            (Self::Web(web), _) => {
                let turn = web.turn_bytes.map_or(1, u64::from);
                if web.file_io != web::FileIo::Sendfile && files.kib > 0 {
                    let expected = "0, because only \"sendfile\" (application.file_io) waits for pages that are not in memory";
                    return Err(Invalid::new(
                        "host.kernel.file_cache.kib",
                        files.kib,
                        expected,
                    ));
                }
                positive("application.turn_bytes", turn)
            }
            (Self::Pages(_), WorkloadConfig::RemoteFiles(_)) => {
                let expected = "\"remote-files\", because workload.kind is \"remote-files\"";
                Err(Invalid::new("application.kind", "\"pages\"", expected))
            }
            (Self::Pages(pages), _) => {
                positive("application.piece_bytes", pages.piece_bytes.into())
            }
        }
    }
}
