//! Settings that change while a script runs, as a script's `sysctl` commands do on a host.

use crate::flags::{FlagsError, Settings};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// A file to which scripts append lines of flags. Each line is applied once.
#[derive(Debug)]
pub(crate) struct Changes {
    path: PathBuf,
    /// Number of bytes that were read.
    taken: u64,
}

/// Why changes were not applied.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChangesError {
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
    #[error("{0}: {1}")]
    Flags(PathBuf, FlagsError),
}

impl Changes {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            taken: 0,
        }
    }

    /// Applies new complete lines to `settings`. Returns false if there are none, or the file does not exist yet.
    pub(crate) fn take(&mut self, settings: &mut Settings) -> Result<bool, ChangesError> {
        let fault = |error| ChangesError::File(self.path.clone(), error);
        let mut file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            opened => opened.map_err(fault)?,
        };
        let mut text = String::new();
        file.seek(SeekFrom::Start(self.taken)).map_err(fault)?;
        file.read_to_string(&mut text).map_err(fault)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        self.taken += whole as u64;
        for line in text[..whole].lines() {
            let wrong = |error| ChangesError::Flags(self.path.clone(), error);
            settings.take(line).map_err(wrong)?;
        }
        Ok(whole > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Gso;
    use std::io::Write;

    #[test]
    fn whole_lines_are_applied_once() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let path = place.path().join("settings");
        let mut changes = Changes::new(&path);
        let mut settings = Settings::default();
        assert!(!changes.take(&mut settings).expect("no file is no error"));
        let mut file = File::create(&path).expect("a file");
        file.write_all(b"gso=off,mtu=1400\nsack=o").expect("room");
        assert!(changes.take(&mut settings).expect("good flags"));
        assert!(settings.gso == Gso::Off && settings.mtu == 1400 && settings.tcp.sack);
        assert!(!changes.take(&mut settings).expect("nothing new"));
        file.write_all(b"ff\n").expect("room");
        assert!(changes.take(&mut settings).expect("good flags"));
        assert!(!settings.tcp.sack);
        file.write_all(b"sack=perhaps\n").expect("room");
        let message = changes.take(&mut settings).expect_err("bad flags");
        assert!(
            message
                .to_string()
                .ends_with("settings: sack=perhaps: expected on or off")
        );
        assert!(!changes.take(&mut settings).expect("it was taken"));
    }
}
