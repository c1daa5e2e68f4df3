//! Digests of all that determines a result.

use serde::{Deserialize, Serialize};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::fmt;
use std::hash::Hasher;
use std::str::FromStr;

/// The key under which a run's result is stored; equal runs have equal keys.
///
/// It is 128 bits of SipHash-2-4: the probability that two of a million runs share a key is 10^-27. The hash does not prevent anybody from
/// constructing two runs with the same key, but they would only deceive themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Key(u128);

impl Key {
    /// Returns the start of the key, which is enough to distinguish the runs of a study.
    pub fn short(self) -> String {
        format!("{:012x}", self.0 >> 80)
    }
}

/// 32 hexadecimal digits.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.to_string()
    }
}

/// A text is not a [`Key`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the key of a run; expected 32 hexadecimal digits")]
pub struct NoKey(String);

impl FromStr for Key {
    type Err = NoKey;

    fn from_str(text: &str) -> Result<Self, NoKey> {
        let is_key = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let number = u128::from_str_radix(text, 16).ok().filter(|_| is_key);
        number.map(Self).ok_or_else(|| NoKey(text.to_owned()))
    }
}

impl TryFrom<String> for Key {
    type Error = NoKey;

    fn try_from(text: String) -> Result<Self, NoKey> {
        text.parse()
    }
}

/// Digests a sequence of parts.
#[derive(Clone, Debug)]
pub struct Digest(SipHasher24);

impl Digest {
    /// Creates an empty digest.
    pub fn new() -> Self {
        Self(SipHasher24::new())
    }

    /// Adds a part. The boundaries between parts matter.
    #[must_use]
    pub fn part(mut self, bytes: &[u8]) -> Self {
        self.0.write(&(bytes.len() as u64).to_le_bytes());
        self.0.write(bytes);
        self
    }

    /// Adds more bytes of a stream.
    pub fn stream(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    /// Returns the digest of everything that was added.
    pub fn key(&self) -> Key {
        Key(self.0.finish128().as_u128())
    }
}

impl Default for Digest {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_key_is_parsed_back() {
        let key = Digest::new().part(b"a").key();
        assert_eq!(key.to_string().parse(), Ok(key));
        assert!(key.to_string().starts_with(&key.short()));
        for text in [
            "",
            "12",
            "+2345678901234567890123456789012",
            &"g".repeat(32),
        ] {
            assert!(text.parse::<Key>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_boundaries_of_parts_change_the_key() {
        let key = |parts: &[&str]| {
            let digest = parts
                .iter()
                .fold(Digest::new(), |d, p| d.part(p.as_bytes()));
            digest.key()
        };
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_ne!(key(&["abc"]), key(&["abc", ""]));
        // Keys outlive the program and must never change.
        assert_eq!(key(&["baton"]).to_string(), RECORDED);
    }

    /// The key of one part, `baton`.
    const RECORDED: &str = "5f031553534811a9b609a2bbb779bd8b";
}
