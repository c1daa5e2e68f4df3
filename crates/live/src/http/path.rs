//! Maps the target of a request to a file below the root.

use super::status::Status;
use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

/// Returns the decoded path below the root that a request target names (RFC 9112 3.2, RFC 3986 2.1 and 5.2.4).
///
/// # Errors
/// The target is not a valid path, or leads out of the root.
pub(super) fn relative_path(target: &str) -> Result<PathBuf, Status> {
    let path = target
        .strip_prefix("http://")
        .map_or(Some(target), |absolute| {
            absolute.find('/').map(|start| &absolute[start..])
        })
        .unwrap_or("/");
    let path = path.split(['?', '#']).next().unwrap_or(path);
    if !path.starts_with('/') {
        return Err(Status::BadRequest);
    }
    let decoded = decode(path)?;
    if decoded.contains(['\0', '\\']) {
        return Err(Status::BadRequest);
    }
    let mut relative = PathBuf::new();
    for component in Path::new(decoded.trim_start_matches('/')).components() {
        match component {
            Component::Normal(name) => relative.push(name),
            Component::CurDir => {}
            // Refuse `..` even if the path stays inside the root: no honest client sends it.
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(Status::Forbidden);
            }
        }
    }
    Ok(relative)
}

fn decode(path: &str) -> Result<Cow<'_, str>, Status> {
    if !path.contains('%') {
        return Ok(Cow::Borrowed(path));
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        if byte != b'%' {
            bytes.push(byte);
            rest = tail;
            continue;
        }
        let digit = |index: usize| {
            let byte = *tail.get(index)?;
            char::from(byte).to_digit(16).map(|digit| digit as u8)
        };
        let (Some(high), Some(low)) = (digit(0), digit(1)) else {
            return Err(Status::BadRequest);
        };
        bytes.push(high << 4 | low);
        rest = &tail[2..];
    }
    String::from_utf8(bytes)
        .map(Cow::Owned)
        .map_err(|_| Status::BadRequest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_become_paths_below_the_root() {
        for (target, path) in [
            ("/", ""),
            ("/a/b.txt", "a/b.txt"),
            ("//a//b.txt", "a/b.txt"),
            ("/./a", "a"),
            ("/a%20b?query=/../x", "a b"),
            ("/%C3%A4", "ä"),
            ("http://host:80/a", "a"),
            ("http://host", ""),
        ] {
            assert_eq!(relative_path(target), Ok(PathBuf::from(path)), "{target}");
        }
    }

    #[test]
    fn no_target_leads_out_of_the_root() {
        for (target, status) in [
            ("/..", Status::Forbidden),
            ("/a/../../etc/passwd", Status::Forbidden),
            ("/%2e%2e/etc/passwd", Status::Forbidden),
            ("/a/..", Status::Forbidden),
            ("/..%2f..%2fetc", Status::Forbidden),
            ("/a\\..\\b", Status::BadRequest),
            ("/a%00b", Status::BadRequest),
            ("/%zz", Status::BadRequest),
            ("/%f", Status::BadRequest),
            ("/%ff", Status::BadRequest),
            ("a", Status::BadRequest),
            ("*", Status::BadRequest),
        ] {
            assert_eq!(relative_path(target), Err(status), "{target}");
        }
    }
}
