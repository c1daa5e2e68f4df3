//! Puts into the program the commit that it is built from, a digest of the sources that determine results, and the experiments and profiles
//! that ship with it.

use siphasher::sip128::{Hasher128, SipHasher24};
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let commit = git(&["rev-parse", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=BATON_COMMIT={commit}");
    println!("cargo::rustc-env=BATON_SOURCES={}", digest_of_sources());
    println!("cargo::rerun-if-changed=build.rs");
    ship(&["experiments", "profiles", "profiles/nics", "profiles/hosts"]);
    // HEAD changes with the branch, the log of HEAD with every commit. A path that does not exist would make every build run this script
    // again.
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) =
            git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists())
        {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}

/// The crates whose code a result depends on.
const SIMULATOR: [&str; 12] = [
    "apps", "bus", "cache", "host", "kernel", "named", "nic", "sim", "stats", "tcp", "wire",
    "workload",
];

/// Returns a digest of the sources of these crates and of the versions of their dependencies. It distinguishes programs whose
/// commit is the same or unknown, and stays the same if a new commit changes no source.
fn digest_of_sources() -> String {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets this variable"))
        .join("../..");
    let mut files = vec![root.join("Cargo.lock")];
    for name in SIMULATOR {
        let folder = root.join("crates").join(name);
        files.push(folder.join("Cargo.toml"));
        find_files(&folder.join("src"), &mut files);
    }
    files.sort();
    let mut hasher = SipHasher24::new();
    for file in files {
        println!("cargo::rerun-if-changed={}", file.display());
        let name = file
            .strip_prefix(&root)
            .expect("the file is below the folder")
            .to_string_lossy();
        let content = fs::read(&file).unwrap_or_default();
        for part in [name.as_bytes(), &content] {
            hasher.write_u64(part.len() as u64);
            hasher.write(part);
        }
    }
    format!("{:032x}", hasher.finish128().as_u128())
}

fn find_files(folder: &Path, files: &mut Vec<PathBuf>) {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder).expect("a folder of the repository") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => find_files(&path, files),
            false => files.push(path),
        }
    }
}

/// Returns the output of git, or `None` without git or a repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// Writes a list of the TOML files in each of these folders of the repository, with their content.
fn ship(folders: &[&str]) {
    let variable = |name| PathBuf::from(env::var_os(name).expect("cargo sets this variable"));
    let root = variable("CARGO_MANIFEST_DIR").join("../..");
    let mut code = String::new();
    for folder in folders {
        let path = root.join(folder);
        println!("cargo::rerun-if-changed={}", path.display());
        let entries = fs::read_dir(&path).expect("a folder of the repository");
        let mut files: Vec<PathBuf> = entries
            .map(|entry| entry.expect("an entry").path())
            .collect();
        files.retain(|file| {
            file.extension()
                .is_some_and(|extension| extension == "toml")
        });
        files.sort();
        let list = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_uppercase();
        writeln!(
            code,
            "/// All files of `{folder}/`.\npub const {list}: &[Shipped] = &["
        )
        .expect("writing to a string does not fail");
        for file in files {
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            writeln!(
                code,
                "Shipped {{ name: {name:?}, text: include_str!({file:?}) }},"
            )
            .expect("writing to a string does not fail");
        }
        code.push_str("];\n");
    }
    fs::write(variable("OUT_DIR").join("shipped.rs"), code).expect("cargo's folder can be written");
}
