//! Conversations between peers and server. Each side knows all bytes beforehand. The server sends the revision of a file that is current when
//! the conversation begins.

use baton_host::{FileContent, FileId};
use baton_testkit::Pattern;
use bytes::Bytes;

/// The bytes that one side of a conversation sends.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    pub bytes: Pattern,
    pub len: usize,
    /// The file and revision that the bytes are from.
    pub file: Option<(FileId, u32)>,
}

/// One side's progress.
#[derive(Clone, Debug)]
pub struct Side {
    pub says: Script,
    pub expects: Script,
    pub said: usize,
    pub received: usize,
    pub shut: bool,
    pub received_end: bool,
}

impl Side {
    pub fn new(says: Script, expects: Script) -> Self {
        Self {
            says,
            expects,
            said: 0,
            received: 0,
            shut: false,
            received_end: false,
        }
    }

    pub fn receive(&mut self, data: &[u8]) {
        self.expects.bytes.check(self.received as u64, data);
        self.received += data.len();
        assert!(
            self.received <= self.expects.len,
            "no more arrives than was sent"
        );
    }

    pub fn receive_end(&mut self) {
        assert_eq!(
            self.received, self.expects.len,
            "the stream ends after all data"
        );
        self.received_end = true;
    }

    pub fn next(&self, most: usize) -> Bytes {
        let left = self.says.len - self.said;
        self.says.bytes.piece(self.said as u64, most.min(left))
    }

    /// Returns the data that is still to be sent, as content of a file.
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
