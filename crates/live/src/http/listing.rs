//! A folder as a page.

use super::files::status_of;
use super::path::encode;
use super::status::Status;
use std::fmt::Write;
use std::path::Path;

/// Entries shown at most.
const MOST_ENTRIES: usize = 10_000;

/// A plain page of the files in `folder`; hidden ones are left out.
pub(super) fn page(folder: &Path) -> Result<String, Status> {
    let entries = folder.read_dir().map_err(|error| status_of(&error))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let mut name = entry.file_name().into_string().ok()?;
            if name.starts_with('.') {
                return None;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                name.push('/');
            }
            Some(name)
        })
        .take(MOST_ENTRIES)
        .collect();
    names.sort_unstable();
    let mut page =
        String::from("<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>Files</title>\n<ul>\n");
    for name in names {
        let link = encode(&name);
        let written = writeln!(page, "<li><a href=\"./{link}\">{}</a>", escape(&name));
        debug_assert!(written.is_ok(), "memory takes what is written");
    }
    page.push_str("</ul>\n");
    Ok(page)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
