//! Notes the commit that the program is built from, which results carry; whether it has `baton live`; and takes in the experiments and
//! profiles that ship with it.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let commit = git(&["rev-parse", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=BATON_COMMIT={commit}");
    println!("cargo::rustc-check-cfg=cfg(live)");
    // A feature cannot depend on the target.
    let linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    if linux && env::var_os("CARGO_FEATURE_LIVE").is_some() {
        println!("cargo::rustc-cfg=live");
    }
    println!("cargo::rerun-if-changed=build.rs");
    ship(&["experiments", "profiles"]);
    // HEAD changes with the branch, the log of HEAD with every commit. A path that does not exist would make every
    // build run this again.
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) =
            git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists())
        {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}

/// What git says, if there is git and a repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// Writes a list of the TOML files of each folder at the root of the repository, with what is in them.
fn ship(folders: &[&str]) {
    let variable = |name| PathBuf::from(env::var_os(name).expect("cargo sets it"));
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
        let list = folder.to_uppercase();
        writeln!(
            code,
            "/// All files of `{folder}/`.\npub const {list}: &[Shipped] = &["
        )
        .expect("a string takes it");
        for file in files {
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            writeln!(
                code,
                "Shipped {{ name: {name:?}, text: include_str!({file:?}) }},"
            )
            .expect("a string takes it");
        }
        code.push_str("];\n");
    }
    fs::write(variable("OUT_DIR").join("shipped.rs"), code).expect("cargo's folder can be written");
}
