//! Finds a program's file as a shell does, and checks whether a library can be preloaded into it.

use rustix::process::{getgid, getuid};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Start of the file name of the library that `baton live run` preloads.
pub const LIBRARY: &str = "libbaton_preload";

/// Returns whether `text`, such as a value of LD_PRELOAD or /proc/PID/maps, contains the name of that library.
pub fn names_library(text: &[u8]) -> bool {
    text.windows(LIBRARY.len())
        .any(|part| part == LIBRARY.as_bytes())
}

/// The reason why preloading has no effect on a program.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// No file has this name.
    #[error("no such program")]
    NotFound,
    /// The file cannot be executed.
    #[error("it is not executable; expected a program, or a script with `chmod +x`")]
    NotExecutable,
    /// The program has no dynamic loader.
    #[error("it is linked statically, so no library can be preloaded into it")]
    Static,
    /// The program does not make its system calls through the C library.
    #[error(
        "it is a Go program, which makes system calls without the C library: its connections stay in the kernel"
    )]
    Go,
    /// The loader ignores LD_PRELOAD.
    #[error("it is setuid or setgid to another user or group, so nothing is preloaded into it")]
    Privileged,
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
}

impl Unfit {
    /// Returns whether the program can run without the library.
    pub fn runs(&self) -> bool {
        matches!(self, Self::Static | Self::Go | Self::Privileged)
    }
}

/// Maximum depth of interpreters of interpreters, as in the kernel.
const MOST_INTERPRETERS: u32 = 4;
/// The mode bits of setuid and setgid.
const SET_BITS: [u32; 2] = [0o4000, 0o2000];
/// Maximum length of a program's section names that is read, bytes.
const MOST_NAMES_BYTES: u64 = 64 << 10;
/// Type of the program header that names the dynamic loader.
const PT_INTERP: u32 = 3;

/// Returns the program that a shell with the variable PATH `path` would run.
///
/// # Errors
/// There is no such program, or it cannot be executed.
pub fn find(name: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, Unfit> {
    let is_program = |path: &Path| {
        let about = std::fs::metadata(path);
        about.is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    };
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return match path.exists() {
            true if is_program(&path) => Ok(path),
            true => Err(Unfit::NotExecutable),
            false => Err(Unfit::NotFound),
        };
    }
    let path = path.ok_or(Unfit::NotFound)?;
    let mut places = std::env::split_paths(path).map(|place| place.join(name));
    places.find(|path| is_program(path)).ok_or(Unfit::NotFound)
}

/// Checks whether a library can be preloaded into a program, or into the interpreter of a script.
///
/// # Errors
/// The library cannot be preloaded.
pub fn check(program: &Path) -> Result<(), Unfit> {
    check_below(program, MOST_INTERPRETERS)
}

fn check_below(program: &Path, interpreters: u32) -> Result<(), Unfit> {
    let unreadable = |error: std::io::Error| Unfit::Unreadable(error.to_string());
    let about = std::fs::metadata(program).map_err(unreadable)?;
    let own = [getuid().as_raw(), getgid().as_raw()];
    if changes_rights(about.mode(), [about.uid(), about.gid()], own) {
        return Err(Unfit::Privileged);
    }
    let mut file = BufReader::new(File::open(program).map_err(unreadable)?);
    let mut head = [0; 64];
    let len = read_most(&mut file, &mut head).map_err(unreadable)?;
    if head.starts_with(b"#!") && interpreters > 0 {
        file.seek(SeekFrom::Start(2)).map_err(unreadable)?;
        let mut line = Vec::new();
        file.read_until(b'\n', &mut line).map_err(unreadable)?;
        let line = line.trim_ascii();
        let end = line.iter().position(u8::is_ascii_whitespace);
        let name = OsString::from_vec(line[..end.unwrap_or(line.len())].to_vec());
        return check_below(Path::new(&name), interpreters - 1);
    }
    // Other files are left to the kernel or a shell, which refuse them.
    let is_elf_64 = len == head.len() && head.starts_with(b"\x7fELF\x02");
    if is_elf_64 && !has_loader(&mut file, &head).map_err(unreadable)? {
        return Err(Unfit::Static);
    }
    if is_elf_64 && is_go(&mut file, &head).unwrap_or_default() {
        return Err(Unfit::Go);
    }
    Ok(())
}

/// Returns whether a program with this mode and `owner` (user and group) has other rights than the user and the group who start it.
fn changes_rights(mode: u32, owner: [u32; 2], own: [u32; 2]) -> bool {
    let mut ids = SET_BITS.iter().zip(owner).zip(own);
    ids.any(|((bit, owner), own)| mode & bit != 0 && owner != own)
}

/// Returns whether Go's linker has made a program, judging by the names of its sections.
fn is_go(file: &mut (impl Read + Seek), head: &[u8; 64]) -> std::io::Result<bool> {
    let u16_at = |at: usize| u16::from_ne_bytes([head[at], head[at + 1]]);
    let offset = head[40..48].try_into().map_or(0, u64::from_ne_bytes);
    let (size, of_names) = (u64::from(u16_at(58)), u64::from(u16_at(62)));
    file.seek(SeekFrom::Start(offset.saturating_add(of_names * size)))?;
    let mut section = [0; 40];
    file.read_exact(&mut section)?;
    let [at, len] = [24, 32].map(|at| {
        let word: Option<&[u8; 8]> = section[at..].first_chunk();
        word.map_or(0, |word| u64::from_ne_bytes(*word))
    });
    file.seek(SeekFrom::Start(at))?;
    let mut names = Vec::new();
    file.take(len.min(MOST_NAMES_BYTES))
        .read_to_end(&mut names)?;
    let mut names = names.split(|&byte| byte == 0);
    Ok(names.any(|name| matches!(name, b".go.buildinfo" | b".note.go.buildid")))
}

/// Returns whether a program of this machine's byte order names a dynamic loader.
fn has_loader(file: &mut (impl Read + Seek), head: &[u8; 64]) -> std::io::Result<bool> {
    let u16_at = |at: usize| u16::from_ne_bytes([head[at], head[at + 1]]);
    let offset = head[32..40].try_into().map_or(0, u64::from_ne_bytes);
    let (size, count) = (u64::from(u16_at(54)), u64::from(u16_at(56)));
    for index in 0..count {
        file.seek(SeekFrom::Start(offset.saturating_add(index * size)))?;
        let mut kind = [0; 4];
        file.read_exact(&mut kind)?;
        if u32::from_ne_bytes(kind) == PT_INTERP {
            return Ok(true);
        }
    }
    Ok(false)
}

fn read_most(file: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut len = 0;
    while len < buffer.len() {
        match file.read(&mut buffer[len..])? {
            0 => break,
            more => len += more,
        }
    }
    Ok(len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;

    fn program(name: &str, content: &[u8], mode: u32) -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().expect("a temporary directory");
        let path = place.path().join(name);
        std::fs::write(&path, content).expect("room");
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("it is ours");
        (place, path)
    }

    /// Builds a program with one program header of this type.
    fn elf(kind: u32) -> Vec<u8> {
        let mut file = vec![0; 64 + 56];
        file[..5].copy_from_slice(b"\x7fELF\x02");
        file[32..40].copy_from_slice(&64_u64.to_ne_bytes());
        file[54..56].copy_from_slice(&56_u16.to_ne_bytes());
        file[56..58].copy_from_slice(&1_u16.to_ne_bytes());
        file[64..68].copy_from_slice(&kind.to_ne_bytes());
        file
    }

    #[test]
    fn programs_without_a_loader_are_static() {
        let (_place, path) = program("static", &elf(1), 0o755);
        assert_eq!(check(&path), Err(Unfit::Static));
        let (_place, path) = program("dynamic", &elf(PT_INTERP), 0o755);
        assert_eq!(check(&path), Ok(()));
    }

    #[test]
    fn go_programs_are_known_by_their_sections() {
        let mut file = elf(PT_INTERP);
        let (sections, names) = (file.len() as u64, b"\0.text\0.go.buildinfo\0");
        file[40..48].copy_from_slice(&sections.to_ne_bytes());
        file[58..60].copy_from_slice(&64_u16.to_ne_bytes());
        file[60..62].copy_from_slice(&1_u16.to_ne_bytes());
        let mut section = [0; 64];
        section[24..32].copy_from_slice(&(sections + 64).to_ne_bytes());
        section[32..40].copy_from_slice(&(names.len() as u64).to_ne_bytes());
        file.extend(section);
        let without = [&file[..], b"\0.text\0"].concat();
        file.extend(names);
        let (_place, path) = program("go", &file, 0o755);
        assert_eq!(check(&path), Err(Unfit::Go));
        let (_place, path) = program("c", &without, 0o755);
        assert_eq!(check(&path), Ok(()));
    }

    #[test]
    fn setuid_and_setgid_programs_are_refused() {
        for (mode, owner, own, expected) in [
            (0o4755, [0, 0], [1000, 1000], true),
            (0o2755, [1000, 5], [1000, 1000], true),
            (0o755, [0, 0], [1000, 1000], false),
            // Root gains no rights by its own setuid program.
            (0o6755, [0, 0], [0, 0], false),
        ] {
            assert_eq!(changes_rights(mode, owner, own), expected, "{mode:o}");
        }
    }

    #[test]
    fn a_script_is_judged_by_its_interpreter() {
        let (_place, interpreter) = program("interpreter", &elf(1), 0o755);
        let script = format!("#! {} -x\n", interpreter.display());
        let (_other, path) = program("script", script.as_bytes(), 0o755);
        assert_eq!(check(&path), Err(Unfit::Static));
    }

    #[test]
    fn programs_are_found_as_shells_find_them() {
        let path = std::env::var_os("PATH");
        let find = |name| find(name, path.as_deref());
        assert!(find(OsStr::new("sh")).is_ok_and(|path| path.is_absolute()));
        assert_eq!(find(OsStr::new("/no/such/program")), Err(Unfit::NotFound));
        let (_place, data) = program("data", b"data", 0o644);
        assert_eq!(find(data.as_os_str()), Err(Unfit::NotExecutable));
    }
}
