//! Serialization of fields that text formats contain as usual, but that take no bytes within the binary state of a connection:
//! values other than the default follow at the end of that state ([`Portable::to_bytes`](crate::Portable::to_bytes)).

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
