//! Serialization of a number that used to follow a boolean switch, since removed. The binary state of a connection still contains
//! the switch's byte, so that programs with and without the switch can read each other's state.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Default of the removed switch.
const SWITCH: bool = true;

pub(crate) fn serialize<S: Serializer>(value: &u32, serializer: S) -> Result<S::Ok, S::Error> {
    match serializer.is_human_readable() {
        true => value.serialize(serializer),
        false => (SWITCH, value).serialize(serializer),
    }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(source: D) -> Result<u32, D::Error> {
    match source.is_human_readable() {
        true => u32::deserialize(source),
        false => <(bool, u32)>::deserialize(source).map(|(_, value)| value),
    }
}
