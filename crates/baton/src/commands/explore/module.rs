//! The simulator as a WebAssembly module: finds the module and embeds it into a page.

use crate::failure::Failure;
use crate::output::reason;
use base64::prelude::{BASE64_STANDARD, Engine};
use baton_config::SOURCES;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const MODULE: &str = "baton_explorer.wasm";
const TARGET: &str = "wasm32-unknown-unknown";
/// Commands that build the module.
const BUILD: &str = "rustup target add wasm32-unknown-unknown && \
    cargo rustc --profile page --target wasm32-unknown-unknown -p baton-explorer --crate-type cdylib";

/// Returns the newest module, next to the program or in Cargo's target folder, that contains the same simulator as this program.
///
/// # Errors
/// Fails if there is none, or if it cannot be read.
pub fn find() -> Result<Vec<u8>, Failure> {
    let own = std::env::current_exe();
    let own = own.map_err(|error| {
        Failure::Failed(format!("cannot find the path of this program: {error}"))
    })?;
    find_for(&own)
}

fn find_for(program: &Path) -> Result<Vec<u8>, Failure> {
    let beside = program.with_file_name(MODULE);
    let mut places: Vec<PathBuf> = [&beside]
        .into_iter()
        .filter(|path| path.exists())
        .cloned()
        .collect();
    places.extend(built(program));
    let age = |path: &PathBuf| path.metadata().and_then(|file| file.modified()).ok();
    places.sort_by_key(age);
    for path in places.iter().rev() {
        let module = fs::read(path).map_err(|error| {
            Failure::Failed(format!(
                "{}: cannot read: {}",
                path.display(),
                reason(&error)
            ))
        })?;
        // The module contains the digest of its sources.
        let sources = SOURCES.as_bytes();
        if module.windows(sources.len()).any(|part| part == sources) {
            return Ok(module);
        }
    }
    let message = match places.last() {
        None => format!("{}: no such file", beside.display()),
        Some(other) => format!(
            "{}: contains another version of the simulator than this program",
            other.display()
        ),
    };
    Err(Failure::BadInput(format!(
        "{message}; build it with: {BUILD}"
    )))
}

/// Returns the modules of all profiles in the Cargo target folder that contains the program.
fn built(program: &Path) -> Vec<PathBuf> {
    let folder = program
        .parent()
        .and_then(Path::parent)
        .map(|target| target.join(TARGET));
    let profiles = folder
        .and_then(|folder| fs::read_dir(folder).ok())
        .into_iter()
        .flatten();
    let modules = profiles.filter_map(|profile| Some(profile.ok()?.path().join(MODULE)));
    modules.filter(|path| path.exists()).collect()
}

/// Returns the module, or a log, compressed as text.
///
/// # Errors
/// Fails if it cannot be compressed.
pub fn packed(content: &[u8]) -> Result<String, Failure> {
    let compressed = || -> io::Result<Vec<u8>> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(content)?;
        encoder.finish()
    };
    let compressed = compressed().map_err(|error| Failure::Failed(error.to_string()))?;
    Ok(BASE64_STANDARD.encode(compressed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_of_other_sources_is_refused_with_the_build_command() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("release/baton");
        let profile = folder.path().join(TARGET).join("page");
        fs::create_dir_all(&profile).expect("a folder");
        let refused = |why: &str| {
            let message = find_for(&program).expect_err("refused").to_string();
            assert!(
                message.contains(why) && message.contains("cargo rustc"),
                "{message}"
            );
        };
        refused("no such file");
        fs::write(profile.join(MODULE), "of old sources").expect("a file");
        refused("another version");
        let module = format!("older and newer {SOURCES} bytes");
        fs::write(profile.join(MODULE), &module).expect("a file");
        assert_eq!(find_for(&program), Ok(module.into_bytes()));
    }
}
