//! Messages between tester and reflector, and their encoding in frames.

use crate::environment::{Environment, Interface};
use crate::task::{Outcome, Task};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Type of the frames: IEEE 802 Local Experimental Ethertype 1.
pub const ETHERTYPE: u16 = 0x88b5;

const MAGIC: [u8; 4] = *b"BTN1";
const HEADER_BYTES: usize = 16;
/// Bytes of a message in one frame, less than the minimum MTU of Ethernet.
const PART_BYTES: usize = 1_400;
/// Both ends must have the same version, since tasks and outcomes depend on the program.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Message from the tester.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Asks the reflector to identify itself.
    Hello {
        /// The tester's version.
        version: String,
    },
    /// Asks the reflector to prepare for a task.
    Prepare {
        /// The reflector's task.
        task: Box<Task>,
    },
    /// Starts the task.
    Go,
    /// Asks for progress, and reports which streams the tester has sent completely.
    Status {
        /// Number of frames of each stream whose sender is done.
        handed: [Option<u64>; 2],
    },
    /// Aborts the task.
    Abort,
}

/// Message from the reflector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Identifies the reflector.
    Welcome(Box<Welcome>),
    /// The request was fulfilled.
    Done,
    /// The task is in progress.
    Working {
        /// Number of frames of each stream whose sender is done.
        handed: [Option<u64>; 2],
    },
    /// Outcome of the task.
    Outcome(Box<Outcome>),
    /// The request cannot be fulfilled.
    Refused {
        /// The reason, in words.
        reason: String,
    },
}

/// Identification of a reflector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    /// The reflector's version.
    pub version: String,
    /// The reflector's machine.
    pub environment: Environment,
    /// The reflector's interface.
    pub interface: Interface,
}

/// Identifies the message that a frame is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) session: u32,
    pub(super) number: u32,
}

/// Splits a message into frames, without Ethernet headers.
///
/// # Panics
/// The message needs more than 255 frames, which no message of this protocol does.
pub(super) fn parts_of(key: Key, message: &impl Serialize) -> Vec<Vec<u8>> {
    let text = serde_json::to_vec(message).expect("messages are plain data");
    let chunks: Vec<&[u8]> = text.chunks(PART_BYTES).collect();
    let count = u8::try_from(chunks.len()).expect("a message of some kilobytes");
    let part = |(number, chunk): (u8, &&[u8])| {
        let mut part = Vec::with_capacity(HEADER_BYTES + chunk.len());
        part.extend_from_slice(&MAGIC);
        part.extend_from_slice(&key.session.to_be_bytes());
        part.extend_from_slice(&key.number.to_be_bytes());
        part.extend_from_slice(&[number, count]);
        part.extend_from_slice(&(chunk.len() as u16).to_be_bytes());
        part.extend_from_slice(chunk);
        part
    };
    (0..).zip(&chunks).map(part).collect()
}

/// Reassembles a message.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    key: Option<Key>,
    parts: Vec<Option<Vec<u8>>>,
}

impl Assembly {
    /// Handles a frame without its Ethernet header, and returns the message that the frame completes, if any. The frame may have any
    /// content.
    pub(super) fn handle<M: DeserializeOwned>(&mut self, frame: &[u8]) -> Option<(Key, M)> {
        let (header, rest) = frame.split_first_chunk::<HEADER_BYTES>()?;
        let word = |at: usize| {
            u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let key = Key {
            session: word(4),
            number: word(8),
        };
        let (number, count) = (usize::from(header[12]), usize::from(header[13]));
        let part = rest.get(..usize::from(u16::from_be_bytes([header[14], header[15]])))?;
        if header[..4] != MAGIC || number >= count {
            return None;
        }
        if self.key != Some(key) || self.parts.len() != count {
            self.key = Some(key);
            self.parts = vec![None; count];
        }
        self.parts[number] = Some(part.to_vec());
        let whole: Option<Vec<&[u8]>> = self.parts.iter().map(Option::as_deref).collect();
        let message = serde_json::from_slice(&whole?.concat());
        self.key = None;
        Some((key, message.ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: Key = Key {
        session: 7,
        number: 9,
    };

    fn long() -> Answer {
        let mut outcome = Outcome::default();
        for number in 0..300 {
            let name = format!("rx_queue_{number}_packets");
            outcome.counts.driver.insert(name, number);
        }
        Answer::Outcome(Box::new(outcome))
    }

    #[test]
    fn messages_of_several_frames_are_put_together_in_any_order() {
        let answer = long();
        let parts = parts_of(KEY, &answer);
        assert!(parts.len() > 2, "it is long");
        assert!(parts.iter().all(|part| part.len() <= 1_500));
        let mut assembly = Assembly::default();
        let mut found = None;
        for part in parts.iter().rev() {
            assert_eq!(found, None, "only with the last part");
            let padded = [part.as_slice(), &[0; 30]].concat();
            found = assembly.handle::<Answer>(&padded);
        }
        assert_eq!(found, Some((KEY, answer)));
    }

    #[test]
    fn parts_of_different_messages_are_not_mixed() {
        let answer = long();
        let other = Key { number: 10, ..KEY };
        let mut assembly = Assembly::default();
        let old = parts_of(KEY, &answer);
        assert_eq!(assembly.handle::<Answer>(&old[0]), None);
        let parts = parts_of(other, &answer);
        let last = parts.len() - 1;
        for part in &parts[..last] {
            assert_eq!(assembly.handle::<Answer>(part), None);
        }
        assert_eq!(assembly.handle(&parts[last]), Some((other, answer)));
    }

    proptest! {
        #[test]
        fn any_frame_is_handled(frame: Vec<u8>, mut header: [u8; 16], rest: Vec<u8>) {
            let mut assembly = Assembly::default();
            prop_assert_eq!(assembly.handle::<Question>(&frame), None);
            header[..4].copy_from_slice(&MAGIC);
            let _ = assembly.handle::<Question>(&[&header[..], &rest].concat());
        }
    }
}
