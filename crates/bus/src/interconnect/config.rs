//! Configuration of a machine's interconnect.

use std::fmt;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::{
    Ideal, Interconnect, InterconnectError, PciConfig, PciExpress, PciExpressConfig, PciXConfig,
    SharedBus,
};

/// Configuration of an interconnect: a table with its `kind`, or the name of a [preset](InterconnectConfig::preset).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum InterconnectConfig {
    /// An interconnect that takes no time, but counts everything.
    #[default]
    Ideal,
    /// A conventional PCI bus.
    Pci(PciConfig),
    /// A PCI-X bus.
    PciX(PciXConfig),
    /// PCI Express links.
    PciExpress(PciExpressConfig),
}

impl InterconnectConfig {
    /// Checks whether such an interconnect can be built.
    ///
    /// # Errors
    /// Names the invalid field, its value and the accepted values.
    pub fn validate(&self) -> Result<(), InterconnectError> {
        match self {
            Self::Ideal => Ok(()),
            Self::Pci(config) => config.validate(),
            Self::PciX(config) => config.validate(),
            Self::PciExpress(config) => config.validate(),
        }
    }

    /// Builds the interconnect with this number of devices.
    ///
    /// # Errors
    /// Fails like [`validate`](Self::validate), or if the number of devices is 0 or too large for their identifiers.
    pub fn build(&self, devices: usize) -> Result<Box<dyn Interconnect>, InterconnectError> {
        self.validate()?;
        if !(1..=256).contains(&devices) {
            return Err(InterconnectError::new("devices", devices, "1 to 256"));
        }
        Ok(match self {
            Self::Ideal => Box::new(Ideal::new(devices)),
            Self::Pci(config) => Box::new(SharedBus::pci(config, devices)),
            Self::PciX(config) => Box::new(SharedBus::pci_x(config, devices)),
            Self::PciExpress(config) => Box::new(PciExpress::new(config, devices)),
        })
    }
}

/// The table form, whose deserialisation serde derives.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
enum ByKind {
    Ideal,
    Pci(PciConfig),
    PciX(PciXConfig),
    PciExpress(PciExpressConfig),
}

impl From<ByKind> for InterconnectConfig {
    fn from(config: ByKind) -> Self {
        match config {
            ByKind::Ideal => Self::Ideal,
            ByKind::Pci(config) => Self::Pci(config),
            ByKind::PciX(config) => Self::PciX(config),
            ByKind::PciExpress(config) => Self::PciExpress(config),
        }
    }
}

impl<'de> Deserialize<'de> for InterconnectConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameOrTable)
    }
}

struct NameOrTable;

impl<'de> Visitor<'de> for NameOrTable {
    type Value = InterconnectConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a table with `kind`, or one of {}",
            InterconnectConfig::PRESETS
        )
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        InterconnectConfig::preset(name)
            .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(name), &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        ByKind::deserialize(MapAccessDeserializer::new(map)).map(Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Machine {
        interconnect: InterconnectConfig,
    }

    fn read(toml: &str) -> Result<InterconnectConfig, String> {
        toml::from_str::<Machine>(toml)
            .map(|machine| machine.interconnect)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn an_interconnect_is_a_name_or_a_table() {
        assert_eq!(
            read("interconnect = \"pci-64-33\""),
            Ok(InterconnectConfig::Pci(PciConfig::default()))
        );
        assert_eq!(
            read("[interconnect]\nkind = \"pci-express\"\ngeneration = 3\nlanes = 8"),
            Ok(InterconnectConfig::PciExpress(PciExpressConfig {
                generation: 3,
                lanes: 8,
                ..PciExpressConfig::default()
            }))
        );
        assert_eq!(
            read("interconnect = { kind = \"ideal\" }"),
            Ok(InterconnectConfig::Ideal)
        );
    }

    #[test]
    fn every_kind_round_trips() {
        for name in ["ideal", "pci-32-33", "pci-x-133", "pcie-6-x32"] {
            let config = InterconnectConfig::preset(name).unwrap();
            let json = serde_json::to_string(&config).unwrap();
            assert_eq!(
                serde_json::from_str::<InterconnectConfig>(&json).unwrap(),
                config
            );
        }
    }

    #[test]
    fn invalid_interconnects_are_named() {
        assert!(
            read("interconnect = \"isa\"")
                .unwrap_err()
                .contains("pci-64-33")
        );
        assert!(
            read("[interconnect]\nkind = \"pci\"\nwitdh = 3")
                .unwrap_err()
                .contains("witdh")
        );
        let Ok(config) = read("[interconnect]\nkind = \"pci\"\nclock_mhz = 100") else {
            panic!("well formed");
        };
        let error = config.build(2).unwrap_err();
        assert_eq!(error.to_string(), "clock_mhz = 100: expected 33 or 66");
        let config = InterconnectConfig::PciExpress(PciExpressConfig {
            completion_bytes: 512,
            ..PciExpressConfig::default()
        });
        assert_eq!(
            config.validate().unwrap_err().to_string(),
            "completion_bytes = 512: expected read_completion_boundary_bytes = 64 to max_payload_bytes = 256"
        );
        assert_eq!(
            InterconnectConfig::Ideal.build(0).unwrap_err().to_string(),
            "devices = 0: expected 1 to 256"
        );
    }
}
