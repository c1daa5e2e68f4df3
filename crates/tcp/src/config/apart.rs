//! Fields that are as they are in text, and take no room among the bytes of a connection's state: where they say anything, it
//! stands at the end ([`Portable::to_bytes`](crate::Portable::to_bytes)).

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) fn serialize<T: Serialize, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match serializer.is_human_readable() {
        true => value.serialize(serializer),
        false => serializer.serialize_unit(),
    }
}

pub(crate) fn deserialize<'de, T, D>(source: D) -> Result<T, D::Error>
where
    T: Deserialize<'de> + Default,
    D: Deserializer<'de>,
{
    match source.is_human_readable() {
        true => T::deserialize(source),
        false => <()>::deserialize(source).map(|()| T::default()),
    }
}
