//! Controllers that users of this crate provide.

use super::controller::{Acked, Controller, Loss, Window};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Creates a controller. The first argument is the connection's seed, which outsiders cannot guess: the only source of randomness.
/// The second is the state that [`Controller::save`] returned when the connection was exported, or `None` for a new connection.
pub type Factory = dyn Fn(u64, Option<&[u8]>) -> Box<dyn Controller> + Send + Sync;

/// Maximum length of a name, bytes (Linux's TCP_CA_NAME_MAX without the terminating zero).
const LONGEST_NAME: usize = 15;

/// A custom controller: its name and its factory.
///
/// Serialized parameters and connections contain only the name. After deserialization the factory is missing: a stack
/// accepts a connection with such a controller if the stack's own parameters name the same controller.
#[derive(Clone, Copy)]
pub struct Custom {
    name: [u8; LONGEST_NAME],
    factory: Option<&'static Factory>,
}

impl Custom {
    /// Creates a controller with this name, of which only the first 15 bytes count.
    pub const fn new(name: &str, factory: &'static Factory) -> Self {
        let mut custom = Self::unknown(name);
        custom.factory = Some(factory);
        custom
    }

    const fn unknown(name: &str) -> Self {
        let mut bytes = [0; LONGEST_NAME];
        let mut index = 0;
        while index < LONGEST_NAME && index < name.len() {
            bytes[index] = name.as_bytes()[index];
            index += 1;
        }
        Self {
            name: bytes,
            factory: None,
        }
    }

    /// Returns the controller's name.
    pub fn name(&self) -> &str {
        let len = self.name.iter().position(|&byte| byte == 0);
        let name = &self.name[..len.unwrap_or(LONGEST_NAME)];
        match std::str::from_utf8(name) {
            Ok(name) => name,
            // The name was cut within a character.
            Err(error) => std::str::from_utf8(&name[..error.valid_up_to()]).unwrap_or_default(),
        }
    }

    /// Reports whether the controller has a factory.
    pub fn is_known(&self) -> bool {
        self.factory.is_some()
    }

    fn make(&self, seed: u64, saved: Option<&[u8]>) -> Option<Box<dyn Controller>> {
        self.factory.map(|factory| factory(seed, saved))
    }
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for Custom {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Custom {}

impl Serialize for Custom {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Custom {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        match name.len() {
            1..=LONGEST_NAME => Ok(Self::unknown(&name)),
            len => Err(D::Error::invalid_length(len, &"a name of 1 to 15 bytes")),
        }
    }
}

/// A custom controller of one connection.
#[derive(Debug)]
pub(crate) struct Outsider {
    custom: Custom,
    seed: u64,
    pub(super) controller: Box<dyn Controller>,
}

impl Outsider {
    pub(super) fn new(custom: Custom, seed: u64) -> Self {
        let controller = custom.make(seed, None);
        Self {
            custom,
            seed,
            controller: controller.unwrap_or_else(|| Box::new(Unmade::default())),
        }
    }

    pub(super) fn custom(&self) -> Custom {
        self.custom
    }

    /// Recreates a deserialized controller with the factory of `custom`. Returns true if there was no saved state.
    pub(super) fn revive(&mut self, custom: Custom) -> bool {
        if self.custom.is_known() {
            return false;
        }
        let saved = self.controller.save();
        let saved = (!saved.is_empty()).then_some(&saved[..]);
        let anew = saved.is_none();
        if let Some(controller) = custom.make(self.seed, saved) {
            self.custom = custom;
            self.controller = controller;
        }
        anew
    }
}

impl Clone for Outsider {
    fn clone(&self) -> Self {
        Self {
            controller: self.controller.as_ref().clone_boxed(),
            ..*self
        }
    }
}

impl PartialEq for Outsider {
    fn eq(&self, other: &Self) -> bool {
        self.custom == other.custom && self.controller.save() == other.controller.save()
    }
}

/// Placeholder for a deserialized controller until its factory recreates it. No connection runs with a placeholder: a stack
/// does not accept a connection whose controller it cannot create.
#[derive(Clone, Debug, Default)]
struct Unmade {
    saved: Vec<u8>,
}

impl Controller for Unmade {
    fn on_growth(&mut self, _window: Window, _acked: &Acked) -> u32 {
        0
    }

    fn on_loss(&mut self, window: Window, _loss: &Loss) -> u32 {
        window.threshold
    }

    fn save(&self) -> Vec<u8> {
        self.saved.clone()
    }
}

/// Serialized form of [`Outsider`].
#[derive(Serialize, Deserialize)]
struct Written {
    custom: Custom,
    seed: u64,
    saved: Vec<u8>,
}

impl Serialize for Outsider {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = Written {
            custom: self.custom,
            seed: self.seed,
            saved: self.controller.save(),
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Outsider {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Written {
            custom,
            seed,
            saved,
        } = Written::deserialize(deserializer)?;
        Ok(Self {
            custom,
            seed,
            controller: Box::new(Unmade { saved }),
        })
    }
}
