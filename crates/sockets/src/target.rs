//! Where an adapter is.

use crate::link::HostEnd;
use baton_iolib::{ConnectError, Geometry, ShmHost};
use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where an adapter is.
///
/// ```
/// use baton_sockets::Target;
///
/// let target: Target = "/run/baton.sock".parse()?;
/// assert_eq!(target.to_string(), "/run/baton.sock");
/// # Ok::<(), std::convert::Infallible>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// On this machine, behind the Unix socket of this path; the link is shared memory.
    Path(PathBuf),
}

impl Target {
    /// Attaches to the adapter.
    pub(crate) fn open(&self, wishes: &Geometry) -> Result<HostEnd, ConnectError> {
        match self {
            Self::Path(path) => ShmHost::connect(path, wishes).map(HostEnd::Memory),
        }
    }
}

impl FromStr for Target {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self::Path(text.into()))
    }
}

impl From<&Path> for Target {
    fn from(path: &Path) -> Self {
        Self::Path(path.to_owned())
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(f),
        }
    }
}
