//! Kinds of picture files.

#[cfg(not(feature = "figures"))]
use super::{Drawn, NotDrawn};
use std::path::Path;

/// A kind of picture file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Picture {
    /// Scalable vector graphics.
    Svg,
    /// Portable network graphics.
    Png,
}

impl Picture {
    /// The kind that the ending of `path` asks for: `.svg` or `.png`.
    pub fn of_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "svg" => Some(Self::Svg),
            "png" => Some(Self::Png),
            _ => None,
        }
    }

    /// There is nothing to draw it with.
    #[cfg(not(feature = "figures"))]
    pub(super) fn of<F>(self, _figure: &F) -> Drawn {
        Err(NotDrawn::because(
            "this program was built without the feature `figures`",
        ))
    }
}
