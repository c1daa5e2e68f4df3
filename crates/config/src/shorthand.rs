//! The shorthand of the handoff-policies paper, section 5: Workload-Connections-Priority-LoadControl-Selection-MIPS.
//!
//! A shorthand is only a short form of an experiment file: [`Shorthand::to_toml`].

use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;

/// An experiment of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shorthand {
    /// Workload that the clients request.
    pub workload: WorkloadLetter,
    /// Maximum number of connections on the NIC; 0 for no handoff.
    pub connections: u32,
    /// Host packets before NIC packets (`P`), or first come, first served (`N`).
    pub host_first: bool,
    /// Load control (`L`) or not (`N`).
    pub load_control: bool,
    /// Policy that chooses connections to hand off.
    pub selection: Selection,
    /// Instruction rate of the NIC, millions a second.
    pub mips: u32,
}

/// A workload of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadLetter {
    /// `W`: World Cup log, 2048 clients.
    WorldCup,
    /// `I`: IBM log, 2048 clients.
    Ibm,
    /// `D`: SPECweb99 with 30 % dynamic content, 2048 clients.
    Specweb,
    /// `S`: SPECweb99 with static content only, 4096 clients.
    SpecwebStatic,
}

/// A selection policy of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// First come, first served.
    Fcfs,
    /// `Tn`: at the n-th enqueue to the send buffer.
    Threshold(u32),
}

/// The parts in order, with their accepted values.
const PARTS: [(&str, &str); 6] = [
    (
        "workload",
        "W (World Cup log), I (IBM log), D (SPECweb99) or S (SPECweb99, static content only)",
    ),
    (
        "connections",
        "the most connections that the NIC may hold, 0 for no handoff",
    ),
    (
        "priority",
        "P (host packets first) or N (first come, first served)",
    ),
    ("load control", "L (load control) or N (none)"),
    ("selection", "FCFS or Tn, n the threshold, as in T4"),
    (
        "MIPS",
        "the NIC's instruction rate in millions per second, as in 400",
    ),
];

/// Why a text is not a shorthand.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotShorthand {
    /// The text does not have six parts.
    #[error(
        "{text:?} has {found} of the 6 parts of a shorthand; expected \
         WORKLOAD-CONNECTIONS-PRIORITY-LOADCONTROL-SELECTION-MIPS, as in W-1024-P-N-FCFS-400"
    )]
    Parts {
        /// The text.
        text: String,
        /// Number of parts.
        found: usize,
    },
    /// A part has a value that is not accepted.
    #[error("{text}: part {number}, the {name}, is {found:?}; expected {expected}")]
    Part {
        /// The text.
        text: String,
        /// Number of the part, from 1.
        number: usize,
        /// Name of the part.
        name: &'static str,
        /// Value of the part.
        found: String,
        /// Accepted values.
        expected: &'static str,
    },
}

impl FromStr for Shorthand {
    type Err = NotShorthand;

    fn from_str(text: &str) -> Result<Self, NotShorthand> {
        let parts: Vec<&str> = text.split('-').collect();
        let [
            workload,
            connections,
            priority,
            load_control,
            selection,
            mips,
        ] = parts[..]
        else {
            return Err(NotShorthand::Parts {
                text: text.to_owned(),
                found: parts.len(),
            });
        };
        let wrong = |index: usize| {
            let (name, expected) = PARTS[index];
            let (text, found) = (text.to_owned(), parts[index].to_owned());
            NotShorthand::Part {
                text,
                number: index + 1,
                name,
                found,
                expected,
            }
        };
        Ok(Self {
            workload: WorkloadLetter::from_text(workload).ok_or_else(|| wrong(0))?,
            connections: number(connections).ok_or_else(|| wrong(1))?,
            host_first: one_of(priority, "P", "N").ok_or_else(|| wrong(2))?,
            load_control: one_of(load_control, "L", "N").ok_or_else(|| wrong(3))?,
            selection: Selection::from_text(selection).ok_or_else(|| wrong(4))?,
            mips: number(mips)
                .filter(|&mips| mips > 0)
                .ok_or_else(|| wrong(5))?,
        })
    }
}

/// Parses a number of digits only; `parse` would accept a sign.
fn number(text: &str) -> Option<u32> {
    text.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| text.parse().ok())?
}

fn one_of(text: &str, yes: &str, no: &str) -> Option<bool> {
    if text == yes {
        Some(true)
    } else {
        (text == no).then_some(false)
    }
}

impl WorkloadLetter {
    fn from_text(text: &str) -> Option<Self> {
        match text {
            "W" => Some(Self::WorldCup),
            "I" => Some(Self::Ibm),
            "D" => Some(Self::Specweb),
            "S" => Some(Self::SpecwebStatic),
            _ => None,
        }
    }

    /// Returns whether a text begins with the letter of a workload, as shorthands do.
    pub fn begins(text: &str) -> bool {
        let first = text.split('-').next();
        first.is_some_and(|letter| Self::from_text(letter).is_some())
    }

    /// Returns whether the workload replays a log.
    pub const fn is_log(self) -> bool {
        matches!(self, Self::WorldCup | Self::Ibm)
    }

    const fn clients(self) -> u32 {
        match self {
            Self::WorldCup | Self::Ibm | Self::Specweb => 2048,
            Self::SpecwebStatic => 4096,
        }
    }

    /// Returns the workload section. Logs are not part of the program: unless a log is given, a generated one is replayed.
    const fn section(self) -> &'static str {
        match self {
            Self::WorldCup => "kind = \"generated\"\npreset = \"worldcup-lifetimes\"",
            Self::Ibm => "kind = \"generated\"\npreset = \"ibm\"",
            Self::Specweb => "kind = \"specweb\"\nclients = 2048\ndynamic_percent = 30",
            Self::SpecwebStatic => "kind = \"specweb\"\nclients = 4096\ndynamic_percent = 0",
        }
    }
}

impl Selection {
    fn from_text(text: &str) -> Option<Self> {
        if text == "FCFS" {
            return Some(Self::Fcfs);
        }
        let threshold = number(text.strip_prefix('T')?)?;
        (threshold > 0).then_some(Self::Threshold(threshold))
    }
}

impl Shorthand {
    /// Returns the experiment file that the shorthand stands for.
    pub fn to_toml(self) -> String {
        let scheduler = if self.host_first {
            "host-first"
        } else {
            "fcfs"
        };
        let selection = match self.selection {
            // If the NIC may hold no connection, none is selected, so that no handoff fails.
            _ if self.connections == 0 => "policy = \"never\"".to_owned(),
            Selection::Fcfs => "policy = \"fcfs\"".to_owned(),
            Selection::Threshold(n) => format!("policy = \"threshold\"\nenqueues = {n}"),
        };
        let mut text = String::new();
        let mut section = |head: &str, body: &str| {
            writeln!(text, "\n[{head}]\n{body}").expect("writing to a string does not fail");
        };
        section("workload", self.workload.section());
        section(
            "clients",
            &format!("connections = {}", self.workload.clients()),
        );
        section("host.kernel.selection", &selection);
        section("nic", &format!("mips = {}", self.mips));
        section(
            "nic.firmware",
            &format!(
                "hard_limit = {}\nscheduler = \"{scheduler}\"",
                self.connections
            ),
        );
        section(
            "nic.firmware.load_control",
            &format!("enabled = {}", self.load_control),
        );
        format!("name = \"{self}\"\nprofile = \"handoff-2006\"\n{text}")
    }
}

impl fmt::Display for WorkloadLetter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WorldCup => "W",
            Self::Ibm => "I",
            Self::Specweb => "D",
            Self::SpecwebStatic => "S",
        })
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fcfs => f.write_str("FCFS"),
            Self::Threshold(n) => write!(f, "T{n}"),
        }
    }
}

impl fmt::Display for Shorthand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            workload,
            connections,
            selection,
            mips,
            ..
        } = self;
        let priority = if self.host_first { 'P' } else { 'N' };
        let load_control = if self.load_control { 'L' } else { 'N' };
        write!(
            f,
            "{workload}-{connections}-{priority}-{load_control}-{selection}-{mips}"
        )
    }
}

#[cfg(test)]
mod tests;
