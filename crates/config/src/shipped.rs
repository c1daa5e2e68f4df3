//! Experiments and profiles that ship with the program. The build finds them in their folders.

/// A TOML file that is part of the program.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// File name without `.toml`.
    pub name: &'static str,
    /// Content of the file.
    pub text: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// Name of the profile that sets nothing.
pub const DEFAULTS: &str = "defaults";

impl Shipped {
    /// Returns the first sentence of the comment at the head of the file.
    pub fn about(&self) -> String {
        let head = self.text.lines().map_while(|line| line.strip_prefix('#'));
        let paragraph: Vec<&str> = head
            .map(str::trim)
            .take_while(|line| !line.is_empty())
            .collect();
        first_sentence(&paragraph.join(" ")).to_owned()
    }
}

/// Returns the text up to the first full stop or question mark that ends a sentence, or the whole text.
pub fn first_sentence(text: &str) -> &str {
    let ends = text.match_indices(['.', '?']).map(|(at, _)| at + 1);
    // Abbreviations and numbers do not end a sentence.
    let mut ends = ends.filter(|&end| {
        let mut rest = text[end..].chars();
        let abbreviated = text[..end].ends_with("al.");
        match (rest.next(), rest.next()) {
            (None, _) => true,
            (Some(' '), Some(next)) => !abbreviated && !next.is_lowercase(),
            _ => false,
        }
    });
    ends.next()
        .map_or(text, |end| text[..end].trim_end_matches('.'))
}

/// Returns the file of this name.
pub fn find(all: &[Shipped], name: &str) -> Option<Shipped> {
    all.iter().copied().find(|shipped| shipped.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_ends_before_the_next() {
        for (text, first) in [
            ("One. Two.", "One"),
            ("Which (3.1)? Tn waits.", "Which (3.1)?"),
            ("By Freimuth et al. in 2004", "By Freimuth et al. in 2004"),
            ("No stop", "No stop"),
        ] {
            assert_eq!(first_sentence(text), first);
        }
    }

    #[test]
    fn shipped_files_describe_themselves() {
        for shipped in EXPERIMENTS.iter().chain(PROFILES).chain(NICS).chain(HOSTS) {
            let about = shipped.about();
            assert!(about.len() > 20, "{}: {about:?}", shipped.name);
        }
        assert!(find(EXPERIMENTS, "handoff-table1").is_some());
        assert!(find(PROFILES, "handoff-2006").is_some());
    }
}
