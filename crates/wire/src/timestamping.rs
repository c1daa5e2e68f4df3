//! The timestamps of bytes that a socket may request (SO_TIMESTAMPING; Linux, networking/timestamping), with Linux's numbers.

/// The stages of a sent byte (SCM_TSTAMP_*).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Stage {
    /// The byte was passed to the interface for the first time.
    Sent = 0,
    /// The byte was passed to the packet scheduler; without one, to the interface.
    Scheduled = 1,
    /// The byte was acknowledged, with all bytes before it.
    Acknowledged = 2,
}

impl Stage {
    /// All stages.
    pub const ALL: [Self; 3] = [Self::Sent, Self::Scheduled, Self::Acknowledged];
}

bitflags::bitflags! {
    /// A set of stages.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Stages: u8 {
        /// [`Stage::Sent`].
        const SENT = 1 << Stage::Sent as u8;
        /// [`Stage::Scheduled`].
        const SCHEDULED = 1 << Stage::Scheduled as u8;
        /// [`Stage::Acknowledged`].
        const ACKNOWLEDGED = 1 << Stage::Acknowledged as u8;
    }
}

impl From<Stage> for Stages {
    fn from(stage: Stage) -> Self {
        Self::from_bits_retain(1 << stage as u8)
    }
}

bitflags::bitflags! {
    /// The options of a socket (SOF_TIMESTAMPING_*).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Timestamping: u32 {
        /// Requests the time at which bytes are passed to the interface.
        const TX_SOFTWARE = 1 << 1;
        /// Requests the time at which received bytes arrived.
        const RX_SOFTWARE = 1 << 3;
        /// Reports the times that software has taken.
        const SOFTWARE = 1 << 4;
        /// Reports contain the number of the byte.
        const OPT_ID = 1 << 7;
        /// Requests the time at which bytes are passed to the packet scheduler.
        const TX_SCHED = 1 << 8;
        /// Requests the time at which bytes are acknowledged.
        const TX_ACK = 1 << 9;
        /// Reports contain no data.
        const OPT_TSONLY = 1 << 11;
        /// Hardware timestamps come from a specified clock, which no interface here has.
        const BIND_PHC = 1 << 15;
        /// Bytes are numbered from the next byte written, not from the first byte that is not acknowledged.
        const OPT_ID_TCP = 1 << 16;
        /// Accepted options without effect here: hardware timestamps, control messages.
        const OTHERS = 1 | 1 << 2 | 1 << 5 | 1 << 6 | 1 << 10 | 1 << 12 | 1 << 13 | 1 << 14 | 1 << 17;
    }
}

impl Timestamping {
    /// Options that a single call may set for its own bytes, regardless of the socket's.
    pub const OF_CALL: Self = Self::TX_SOFTWARE.union(Self::TX_SCHED).union(Self::TX_ACK);
    /// Options that are both needed for reports of arrival times.
    pub const OF_ARRIVAL: Self = Self::RX_SOFTWARE.union(Self::SOFTWARE);

    /// Decodes the value of the option; returns `None` if it is invalid.
    pub fn from_option(value: i32) -> Option<Self> {
        let asked = Self::from_bits(value as u32)?;
        let numbered = asked.contains(Self::OPT_ID) || !asked.contains(Self::OPT_ID_TCP);
        numbered.then_some(asked)
    }

    /// Returns the options that apply to the bytes of a call, which may set its own.
    #[must_use]
    pub fn with_call(self, asks: Option<Self>) -> Self {
        match asks {
            Some(asks) => (self - Self::OF_CALL) | (asks & Self::OF_CALL),
            None => self,
        }
    }

    /// Returns the stages whose times are requested.
    pub fn stages(self) -> Stages {
        let mut stages = Stages::empty();
        stages.set(Stages::SENT, self.contains(Self::TX_SOFTWARE));
        stages.set(Stages::SCHEDULED, self.contains(Self::TX_SCHED));
        stages.set(Stages::ACKNOWLEDGED, self.contains(Self::TX_ACK));
        stages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_counter_without_numbers_is_refused() {
        assert_eq!(Timestamping::from_option(1 << 16), None);
        assert_eq!(Timestamping::from_option(1 << 30), None);
        assert!(Timestamping::from_option(1 << 16 | 1 << 7).is_some());
    }

    #[test]
    fn a_call_can_request_its_own_timestamps() {
        let set = Timestamping::TX_ACK | Timestamping::OPT_ID;
        assert_eq!(set.with_call(None).stages(), Stages::ACKNOWLEDGED);
        let call = set.with_call(Some(Timestamping::TX_SOFTWARE | Timestamping::SOFTWARE));
        assert_eq!(call, Timestamping::TX_SOFTWARE | Timestamping::OPT_ID);
        assert_eq!(call.stages(), Stages::SENT);
        assert_eq!(Timestamping::OF_CALL.stages(), Stages::all());
    }
}
