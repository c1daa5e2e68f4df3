//! What the peers and the server say to each other: bytes that each side knows beforehand. What the server says is a file, as it is when
//! the conversation begins.

use baton_host::{FileContent, FileId};
use baton_testkit::Pattern;
use bytes::Bytes;

/// The bytes that one side of a conversation sends.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    pub bytes: Pattern,
    pub len: usize,
    /// The file that it is, and its revision.
    pub file: Option<(FileId, u32)>,
}

/// One side's progress.
#[derive(Clone, Debug)]
pub struct Side {
    pub says: Script,
    pub hears: Script,
    pub said: usize,
    pub heard: usize,
    pub shut: bool,
    pub heard_end: bool,
}

impl Side {
    pub fn new(says: Script, hears: Script) -> Self {
        Self {
            says,
            hears,
            said: 0,
            heard: 0,
            shut: false,
            heard_end: false,
        }
    }

    pub fn hear(&mut self, data: &[u8]) {
        self.hears.bytes.check(self.heard as u64, data);
        self.heard += data.len();
        assert!(self.heard <= self.hears.len, "no more than was sent");
    }

    pub fn hear_end(&mut self) {
        assert_eq!(self.heard, self.hears.len, "the end comes after all of it");
        self.heard_end = true;
    }

    pub fn next(&self, most: usize) -> Bytes {
        let left = self.says.len - self.said;
        self.says.bytes.piece(self.said as u64, most.min(left))
    }

    /// What is still to be said, as content of a file.
    pub fn content(&self) -> Option<FileContent> {
        let (file, revision) = self.says.file?;
        Some(FileContent {
            file,
            revision,
            file_len: self.says.len as u64,
            offset: self.said as u64,
            len: (self.says.len - self.said) as u64,
        })
    }

    pub fn has_said_all(&self) -> bool {
        self.said == self.says.len
    }
}
