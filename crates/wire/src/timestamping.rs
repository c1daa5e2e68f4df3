//! Which times of a byte's way are told to who asks (SO_TIMESTAMPING; Linux, networking/timestamping), by Linux's numbers.

/// What becomes of a byte that is sent (SCM_TSTAMP_*).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Stage {
    /// It was handed to the interface, for the first time.
    Sent = 0,
    /// It went to the packet scheduler: where there is none, when it was handed to the interface.
    Scheduled = 1,
    /// It was acknowledged, and all before it.
    Acknowledged = 2,
}

impl Stage {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Sent, Self::Scheduled, Self::Acknowledged];
}

bitflags::bitflags! {
    /// Some of the stages.
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
    /// What a socket asked for (SOF_TIMESTAMPING_*).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Timestamping: u32 {
        /// When bytes are handed to the interface.
        const TX_SOFTWARE = 1 << 1;
        /// When they arrived.
        const RX_SOFTWARE = 1 << 3;
        /// Software's times are told.
        const SOFTWARE = 1 << 4;
        /// Reports have the number of the byte.
        const OPT_ID = 1 << 7;
        /// When bytes go to the packet scheduler.
        const TX_SCHED = 1 << 8;
        /// When they are acknowledged.
        const TX_ACK = 1 << 9;
        /// Reports come without data.
        const OPT_TSONLY = 1 << 11;
        /// The times of hardware come from a clock that is named, which no interface here has.
        const BIND_PHC = 1 << 15;
        /// Bytes are numbered from the next one written, not from the first that is not acknowledged.
        const OPT_ID_TCP = 1 << 16;
        /// What is accepted and means nothing here: hardware's times, control messages.
        const OTHERS = 1 | 1 << 2 | 1 << 5 | 1 << 6 | 1 << 10 | 1 << 12 | 1 << 13 | 1 << 14 | 1 << 17;
    }
}

impl Timestamping {
    /// What a call may ask for its own bytes, whatever the socket asked for.
    pub const OF_CALL: Self = Self::TX_SOFTWARE.union(Self::TX_SCHED).union(Self::TX_ACK);
    /// The times of arrivals are told.
    pub const OF_ARRIVAL: Self = Self::RX_SOFTWARE.union(Self::SOFTWARE);

    /// The value of the option; none when it means nothing.
    pub fn from_option(value: i32) -> Option<Self> {
        let asked = Self::from_bits(value as u32)?;
        let numbered = asked.contains(Self::OPT_ID) || !asked.contains(Self::OPT_ID_TCP);
        numbered.then_some(asked)
    }

    /// The same for the bytes of a call that asks for itself.
    #[must_use]
    pub fn with_call(self, asks: Option<Self>) -> Self {
        match asks {
            Some(asks) => (self - Self::OF_CALL) | (asks & Self::OF_CALL),
            None => self,
        }
    }

    /// The stages whose times are asked for.
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
    fn the_counter_of_bytes_without_numbers_means_nothing() {
        assert_eq!(Timestamping::from_option(1 << 16), None);
        assert_eq!(Timestamping::from_option(1 << 30), None);
        assert!(Timestamping::from_option(1 << 16 | 1 << 7).is_some());
    }

    #[test]
    fn a_call_asks_for_itself() {
        let set = Timestamping::TX_ACK | Timestamping::OPT_ID;
        assert_eq!(set.with_call(None).stages(), Stages::ACKNOWLEDGED);
        let call = set.with_call(Some(Timestamping::TX_SOFTWARE | Timestamping::SOFTWARE));
        assert_eq!(call, Timestamping::TX_SOFTWARE | Timestamping::OPT_ID);
        assert_eq!(call.stages(), Stages::SENT);
        assert_eq!(Timestamping::OF_CALL.stages(), Stages::all());
    }
}
