//! Summary of the content of a timeline, and of omitted events.

use crate::connections::ConnectionTracks;
use crate::sampling::Connections;
use crate::window::Window;
use crate::writer::{Grain, LeftOut, Writer};
use baton_wire::Time;
use std::fmt;
use std::io::Write;

/// Summary of the content of a timeline, and of omitted events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Start of the timeline.
    pub from: Time,
    /// End of the timeline.
    pub to: Time,
    /// Rule that chose the connections with a track.
    pub rule: Connections,
    /// Connections that were opened before the end of the timeline.
    pub opened: u64,
    /// Connections that have a track.
    pub shown: u64,
    /// Events omitted because of the size limit, by [`Grain`].
    pub left_out: [LeftOut; 3],
    /// Size of the timeline, bytes.
    pub bytes: u64,
}

impl Summary {
    /// Summarises everything written until now, or returns `None` if the window has not opened.
    pub fn of<W: Write>(
        writer: &Writer<W>,
        window: &Window,
        connections: &ConnectionTracks,
        now: Time,
    ) -> Option<Self> {
        let (from, to) = window.bounds(now)?;
        let (opened, shown) = connections.counts();
        Some(Self {
            from,
            to,
            rule: connections.rule(),
            opened,
            shown,
            left_out: writer.left_out(),
            bytes: writer.written(),
        })
    }

    /// Returns the summary as text, for readers of the file.
    pub fn facts(&self) -> [(&'static str, String); 4] {
        let [work, connections, samples] = self.left_out;
        let left_out = |what: &str, left: LeftOut| match left.since {
            Some(since) => format!(
                "{} {what} from {:.6} s on",
                left.events,
                since.as_secs_f64()
            ),
            None => format!("no {what}"),
        };
        let left_out = [
            left_out(Grain::Work.name(), work),
            left_out(Grain::Connection.name(), connections),
            left_out(Grain::Sample.name(), samples),
        ];
        let (from, to) = (self.from.as_secs_f64(), self.to.as_secs_f64());
        let shown = format!("{} of {} ({})", self.shown, self.opened, self.rule);
        [
            ("window", format!("{from:.6} s to {to:.6} s")),
            ("connections", shown),
            ("left_out", left_out.join(", ")),
            (
                "units",
                "time in ns; cycles and instructions exact".to_owned(),
            ),
        ]
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [window, connections, left_out, _] = self.facts().map(|(_, words)| words);
        let mib = self.bytes as f64 / f64::from(1 << 20);
        write!(
            f,
            "{window}, {mib:.1} MiB; connections: {connections}; left out: {left_out}"
        )
    }
}
