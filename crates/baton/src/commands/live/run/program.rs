//! Whether a library can be preloaded into a program.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Why not.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("no such program")]
    NotFound,
    #[error("it cannot be executed; expected a program (chmod +x makes a script one)")]
    NotExecutable,
    #[error("it is linked statically: no library can be preloaded into it")]
    Static,
    #[error("it has other rights than its caller (setuid or setgid): nothing is preloaded into it")]
    Privileged,
    #[error("it cannot be read: {0}")]
    Unreadable(String),
}

/// Interpreters of interpreters that are looked at, as the kernel does.
const MOST_INTERPRETERS: u32 = 4;
/// The bits of setuid and setgid.
const OTHER_RIGHTS: u32 = 0o6000;
/// The type of a program header that names the dynamic loader.
const PT_INTERP: u32 = 3;

/// The program that a shell would run.
///
/// # Errors
/// There is none, or what there is cannot be executed.
pub fn find(name: &OsStr) -> Result<PathBuf, Unfit> {
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
    let path = std::env::var_os("PATH").ok_or(Unfit::NotFound)?;
    let mut places = std::env::split_paths(&path).map(|place| place.join(name));
    places.find(|path| is_program(path)).ok_or(Unfit::NotFound)
}

/// Whether a library can be preloaded into a program, or into the interpreter of a script.
///
/// # Errors
/// It cannot be.
pub fn check(program: &Path) -> Result<(), Unfit> {
    check_below(program, MOST_INTERPRETERS)
}

fn check_below(program: &Path, interpreters: u32) -> Result<(), Unfit> {
    let unreadable = |error: std::io::Error| Unfit::Unreadable(error.to_string());
    let about = std::fs::metadata(program).map_err(unreadable)?;
    if about.mode() & OTHER_RIGHTS != 0 {
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
    // What is neither is for the kernel, or a shell, to refuse.
    let is_elf_64 = len == head.len() && head.starts_with(b"\x7fELF\x02");
    if is_elf_64 && !has_loader(&mut file, &head).map_err(unreadable)? {
        return Err(Unfit::Static);
    }
    Ok(())
}

/// Whether a program of this machine's byte order names a dynamic loader.
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

    /// A program with one program header of this type.
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
    fn programs_with_other_rights_are_refused() {
        let (_place, path) = program("setuid", &elf(PT_INTERP), 0o4755);
        assert_eq!(check(&path), Err(Unfit::Privileged));
    }

    #[test]
    fn of_a_script_the_interpreter_counts() {
        let (_place, interpreter) = program("interpreter", &elf(1), 0o755);
        let script = format!("#! {} -x\n", interpreter.display());
        let (_other, path) = program("script", script.as_bytes(), 0o755);
        assert_eq!(check(&path), Err(Unfit::Static));
    }

    #[test]
    fn programs_are_found_as_shells_find_them() {
        assert!(find(OsStr::new("sh")).is_ok_and(|path| path.is_absolute()));
        assert_eq!(find(OsStr::new("/no/such/program")), Err(Unfit::NotFound));
        let (_place, path) = program("data", b"data", 0o644);
        assert_eq!(find(path.as_os_str()), Err(Unfit::NotExecutable));
    }
}
