//! The NICs of a server: all alike, or of several kinds.

use super::{Experiment, Invalid, NicConfig, OffloadAdapterConfig, one_to};
use crate::machine::MOST_NICS;
use baton_bus::interconnect::InterconnectConfig;
use schemars::JsonSchema;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, DeserializeOwned, Deserializer, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;
use toml::{Table, Value};

/// The NICs of a server: `nics = 2`, or `[[nics]]` for each kind.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum NicsConfig {
    /// This many NICs, all configured by [`Experiment::nic`].
    Alike(#[schemars(range(min = 1, max = MOST_NICS))] u32),
    /// NICs of these kinds, in order.
    Kinds(Vec<NicKind>),
}

/// NICs of one kind. All keys except the first three override those of [`Experiment::nic`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-differs-from" = "nic"))]
pub struct NicKind {
    /// Name of the kind in results.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Number of NICs of this kind.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = MOST_NICS))]
    pub count: u32,
    /// Keys that override those of `offload.adapter`.
    #[serde(default, skip_serializing_if = "Table::is_empty")]
    #[schemars(with = "OffloadAdapterConfig", extend("x-differs-from" = "offload.adapter"))]
    pub adapter: Table,
    /// Keys that override those of `nic`.
    #[serde(flatten)]
    #[schemars(with = "NicConfig")]
    pub nic: Table,
}

fn one() -> u32 {
    1
}

impl From<u32> for NicsConfig {
    fn from(count: u32) -> Self {
        Self::Alike(count)
    }
}

impl<'de> Deserialize<'de> for NicsConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountOrKinds)
    }
}

struct CountOrKinds;

impl<'de> Visitor<'de> for CountOrKinds {
    type Value = NicsConfig;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            to,
            "how many NICs there are, or a table for each kind ([[nics]])"
        )
    }

    fn visit_u64<E: de::Error>(self, count: u64) -> Result<NicsConfig, E> {
        let alike = u32::try_from(count).map(NicsConfig::Alike);
        alike.map_err(|_| E::invalid_value(Unexpected::Unsigned(count), &self))
    }

    fn visit_i64<E: de::Error>(self, count: i64) -> Result<NicsConfig, E> {
        let alike = u32::try_from(count).map(NicsConfig::Alike);
        alike.map_err(|_| E::invalid_value(Unexpected::Signed(count), &self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, kinds: A) -> Result<NicsConfig, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(kinds)).map(NicsConfig::Kinds)
    }
}

impl NicsConfig {
    /// Returns the number of NICs.
    pub fn count(&self) -> u32 {
        match self {
            Self::Alike(count) => *count,
            Self::Kinds(kinds) => kinds
                .iter()
                .fold(0, |sum, kind| sum.saturating_add(kind.count)),
        }
    }

    /// Returns the kinds that differ from `nic`.
    fn kinds(&self) -> &[NicKind] {
        match self {
            Self::Alike(_) => &[],
            Self::Kinds(kinds) => kinds,
        }
    }
}

impl Experiment {
    /// Returns one copy of the experiment per NIC, in order. `nic` and `offload.adapter` have the values of that NIC, and keys that follow
    /// from its hardware have the hardware's values. An ideal interconnect is replaced by the bus of the first NIC with hardware.
    ///
    /// # Errors
    /// A kind of NIC sets a key that no NIC has.
    pub(crate) fn of_nics(&self) -> Result<Vec<Self>, Invalid> {
        let mut all = Vec::with_capacity(self.nics.count() as usize);
        for (number, kind) in self.nics.kinds().iter().enumerate() {
            let of_kind = self.of_kind(number, kind)?;
            all.extend(std::iter::repeat_n(of_kind, kind.count as usize));
        }
        if all.is_empty() {
            all = vec![self.clone(); self.nics.count() as usize];
        }
        let mut hardware = all.iter().filter_map(|one| one.nic.hardware.as_ref());
        let bus = match &self.interconnect {
            InterconnectConfig::Ideal => hardware.next().map(|first| first.bus.clone()),
            other => Some(other.clone()),
        };
        for one in &mut all {
            one.interconnect = bus.clone().unwrap_or_default();
            one.use_hardware();
        }
        Ok(all)
    }

    /// Returns the name of each NIC in results.
    pub(crate) fn nic_names(&self) -> impl Iterator<Item = &str> {
        let kinds = self.nics.kinds().iter();
        let named = kinds.flat_map(|kind| (0..kind.count).map(|_| kind.name.as_str()));
        named.chain(std::iter::repeat(""))
    }

    fn of_kind(&self, number: usize, kind: &NicKind) -> Result<Self, Invalid> {
        let path = format!("nics.{number}");
        let mut of_kind = self.clone();
        let mut own = kind.nic.clone();
        if let Some(hardware) = own.remove("hardware") {
            let read = hardware.try_into().map_err(|error: toml::de::Error| {
                let path = format!("{path}.hardware");
                Invalid::new(&path, error.message(), "the hardware of a NIC")
            });
            of_kind.nic.hardware = Some(read?);
        }
        of_kind.nic = differing(&of_kind.nic, &own, &path)?;
        let path = format!("{path}.adapter");
        of_kind.offload.adapter = differing(&self.offload.adapter, &kind.adapter, &path)?;
        Ok(of_kind)
    }

    /// Checks the constraints on each kind of NIC that types cannot express.
    pub(super) fn validate_nics(&self) -> Result<(), Invalid> {
        one_to(MOST_NICS, "nics", self.nics.count())?;
        for (number, kind) in self.nics.kinds().iter().enumerate() {
            one_to(MOST_NICS, &format!("nics.{number}.count"), kind.count)?;
            let of_kind = self.of_kind(number, kind)?;
            let sound = of_kind.validate_nic();
            sound.map_err(|invalid| invalid.of_kind(number))?;
        }
        Ok(())
    }
}

impl Invalid {
    /// Changes the path of an error to the section of a kind of NIC, if the key is in a section that kinds may override.
    fn of_kind(mut self, number: usize) -> Self {
        for (section, own) in [("nic.", ""), ("offload.adapter.", "adapter.")] {
            if let Some(key) = self.path.strip_prefix(section) {
                self.path = format!("nics.{number}.{own}{key}");
                break;
            }
        }
        self
    }
}

/// Returns `general`, changed by `difference`, which is at `path` in the experiment.
fn differing<T: Serialize + DeserializeOwned>(
    general: &T,
    difference: &Table,
    path: &str,
) -> Result<T, Invalid> {
    let refused = |error: &dyn fmt::Display| Invalid::new(path, error, "values that fit the keys");
    let mut table = Table::try_from(general).map_err(|error| refused(&error))?;
    lay_over(&mut table, difference, path)?;
    let whole = Value::Table(table).try_into();
    whole.map_err(|error: toml::de::Error| refused(&error.message()))
}

/// Merges `over` into `table`: tables are merged recursively, other values are replaced by values of the same type.
fn lay_over(table: &mut Table, over: &Table, path: &str) -> Result<(), Invalid> {
    for (key, value) in over {
        let path = format!("{path}.{key}");
        let known = table
            .keys()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(", ");
        match (table.get_mut(key), value) {
            (None, _) => {
                let expected = format!("one of the keys {known}");
                return Err(Invalid::new(&path, "an unknown key", &expected));
            }
            (Some(Value::Table(below)), Value::Table(over)) => lay_over(below, over, &path)?,
            (Some(below), over) if below.same_type(over) => *below = over.clone(),
            (Some(below), over) => {
                let expected = format!("a value such as {below}");
                return Err(Invalid::new(&path, over, &expected));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses the NICs of an experiment. `baton-config` reads its other keys.
    fn nics(text: &str) -> Result<NicsConfig, toml::de::Error> {
        let mut table: Table = toml::from_str(text)?;
        table.remove("nics").expect("NICs").try_into()
    }

    fn experiment(text: &str) -> Experiment {
        Experiment {
            nics: nics(text).expect("NICs"),
            ..Experiment::default()
        }
    }

    #[test]
    fn kinds_of_nics_differ_in_the_keys_that_they_set() {
        let text = "[[nics]]\nmips = 600\n\
                    [[nics]]\nname = 'small'\ncount = 2\nfirmware.hard_limit = 1\nadapter.piece = 'all'";
        let mut experiment = experiment(text);
        experiment.nic.mips = 300;
        experiment.nic.firmware.hard_limit = 5;
        experiment.offload.adapter.interface.ring_depth = 64;
        assert_eq!(experiment.validate(), Ok(()));
        let seen: Vec<_> = experiment.of_nics().unwrap();
        let of_nic: Vec<_> = seen
            .iter()
            .map(|seen| (seen.nic.mips, seen.nic.firmware.hard_limit))
            .collect();
        assert_eq!(of_nic, [(600, 5), (300, 1), (300, 1)]);
        let adapters = seen.iter().map(|seen| &seen.offload.adapter);
        let pieces: Vec<_> = adapters
            .map(|adapter| (format!("{:?}", adapter.piece), adapter.interface.ring_depth))
            .collect();
        let expected = [("One", 64), ("All", 64), ("All", 64)];
        assert_eq!(
            pieces,
            expected.map(|(piece, depth)| (piece.to_owned(), depth))
        );
        let names: Vec<_> = experiment.nic_names().take(4).collect();
        assert_eq!(names, ["", "small", "small", ""]);
    }

    #[test]
    fn invalid_nics_are_refused_with_the_path_of_the_key() {
        let refused = |text: &str| experiment(text).validate().unwrap_err().to_string();
        for (text, message) in [
            ("nics = 0", "nics: 0; expected 1 to 64"),
            ("nics = []", "nics: 0; expected 1 to 64"),
            (
                "[[nics]]\ncount = 60\n[[nics]]\ncount = 5",
                "nics: 65; expected 1 to 64",
            ),
            (
                "[[nics]]\ncount = 0\n[[nics]]",
                "nics.0.count: 0; expected 1 to 64",
            ),
            (
                "[[nics]]\n[[nics]]\nmisp = 1",
                "nics.1.misp: an unknown key; expected one of the keys dma, ",
            ),
            (
                "[[nics]]\nfirmware.hard = 1",
                "nics.0.firmware.hard: an unknown key",
            ),
            (
                "[[nics]]\nmips = 'fast'",
                "nics.0.mips: \"fast\"; expected a value such as 400",
            ),
            ("[[nics]]\nmips = -1", "nics.0: invalid value: integer `-1`"),
            ("[[nics]]\nmips = 0", "nics.0.mips: 0; expected"),
            (
                "[[nics]]\nadapter.wake_up.jitter_percent = 101",
                "nics.0.adapter.wake_up.jitter_percent: 101; expected at most 100",
            ),
        ] {
            let found = refused(text);
            assert!(found.starts_with(message), "{text}: {found}");
        }
        let unread = nics("nics = 'two'").unwrap_err();
        assert!(
            unread.message().contains("how many NICs there are"),
            "{unread}"
        );
    }
}
