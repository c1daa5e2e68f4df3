//! Runs the tests of the Python package, `python/tests`, with the extension module of this build, in an environment under `target`.
//!
//! The tests are ignored, with a message, if the machine has no Python with the module `venv`, or no network to download libraries the
//! first time.

use libtest_mimic::{Arguments, Failed, Trial};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Files of tests that need no more than `requirements.txt`.
const TESTS: [&str; 8] = [
    "test_run.py",
    "test_tables.py",
    "test_study.py",
    "test_policies.py",
    "test_logs.py",
    "test_package.py",
    "test_docs.py",
    "test_notebook.py",
];

fn main() {
    let arguments = Arguments::from_args();
    let place = Place::new();
    let ready = match arguments.list {
        true => Ok(()),
        false => place.prepare(),
    };
    if let Err(reason) = &ready {
        // Written here, because `--quiet` suppresses the list of tests.
        eprintln!("{} files of tests are ignored: {reason}", TESTS.len());
    }
    let trials = TESTS.map(|name| {
        let place = place.clone();
        let trial = Trial::test(name, move || place.test(name));
        let reason = ready.as_ref().err().cloned().unwrap_or_default();
        trial.with_kind(reason).with_ignored_flag(ready.is_err())
    });
    libtest_mimic::run(&arguments, trials.into()).exit();
}

/// Folders that the tests use.
#[derive(Clone)]
struct Place {
    /// The package and its tests in the repository.
    sources: PathBuf,
    /// The output of this build.
    built: PathBuf,
    /// The virtual environment, and the package with its extension module.
    work: PathBuf,
}

impl Place {
    fn new() -> Self {
        let test = std::env::current_exe().expect("a test has a path");
        let built = test.ancestors().nth(2).expect("a folder of the build");
        Self {
            sources: Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python"),
            work: built.join("python"),
            built: built.to_owned(),
        }
    }

    fn python(&self) -> PathBuf {
        self.work.join("venv/bin/python")
    }

    /// Creates the virtual environment if it is missing or its requirements have changed, and the package.
    fn prepare(&self) -> Result<(), String> {
        let requirements = self.sources.join("tests/requirements.txt");
        let wanted = fs::read_to_string(&requirements).expect("the requirements can be read");
        let stamp = self.work.join("requirements.txt");
        if fs::read_to_string(&stamp).ok().as_deref() != Some(&wanted) {
            let venv = self.work.join("venv");
            run(Command::new("python3")
                .args(["-m", "venv", "--clear"])
                .arg(&venv))
            .map_err(|why| format!("needs Python with `venv`: {why}"))?;
            let mut pip = Command::new(self.python());
            pip.args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "-r",
            ]);
            run(pip.arg(&requirements))
                .map_err(|why| format!("needs a network for Python's packages: {why}"))?;
            fs::write(&stamp, wanted).expect("the stamp can be written");
        }
        self.lay_out();
        Ok(())
    }

    /// Copies the package's files into one folder, as in a wheel.
    fn lay_out(&self) {
        let package = self.work.join("package/baton");
        fs::create_dir_all(&package).expect("a folder");
        for entry in fs::read_dir(self.sources.join("baton")).expect("the package") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name");
            if path.is_file() {
                fs::copy(&path, package.join(name)).expect("it can be copied");
            }
        }
        // The newer library is used: the one next to the program is only updated if this crate is built by itself.
        let places = ["", "deps"].map(|folder| self.built.join(folder));
        let libraries = places.map(|place| place.join("libbaton_python.so"));
        let modified = |path: &&PathBuf| fs::metadata(path).and_then(|file| file.modified()).ok();
        let library = libraries.iter().max_by_key(modified);
        let library = library.expect("there are two places");
        let module = package.join("_baton.abi3.so");
        // Another process may have loaded the old module, so do not overwrite it.
        let _ = fs::remove_file(&module);
        fs::copy(library, module).expect("the library is built with the tests");
    }

    fn test(&self, name: &str) -> Result<(), Failed> {
        let mut pytest = Command::new(self.python());
        pytest
            .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-c"])
            .arg(self.sources.join("pyproject.toml"))
            .arg(self.sources.join("tests").join(name))
            .env("PYTHONPATH", self.work.join("package"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("BATON", self.built.join("baton"));
        run(&mut pytest).map_err(Failed::from)
    }
}

/// Runs a command; on failure, returns its output.
fn run(command: &mut Command) -> Result<(), String> {
    let said = |output: &Output| {
        let text = [&output.stdout[..], &output.stderr[..]].concat();
        String::from_utf8_lossy(&text).into_owned()
    };
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(said(&output)),
        Err(error) => Err(format!("{:?}: {error}", command.get_program())),
    }
}
