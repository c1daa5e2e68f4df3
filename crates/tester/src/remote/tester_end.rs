//! The tester's end of the protocol: a peer that delegates its tasks to a reflector.

use super::message::{Answer, Assembly, ETHERTYPE, Key, Question, VERSION, Welcome, parts_of};
use crate::environment::mac_text;
use crate::error::TesterError;
use crate::peer::Peer;
use crate::signal::Signal;
use crate::task::{FROM_NIC, Outcome, TO_NIC, Task, Work};
use baton_live::port::EtherSocket;
use baton_live::within;
use std::thread;
use std::time::{Duration, Instant};

/// Time after which an unanswered question is repeated, and the maximum number of attempts.
const AGAIN: Duration = Duration::from_millis(100);
const MOST_TIMES: u32 = 30;
/// How often this end checks the participants on this machine. It asks the reflector less often, to add few frames to those being counted.
const LOOK: Duration = Duration::from_millis(20);
const STATUS_EVERY: Duration = Duration::from_secs(1);
/// How long after the expected end of a task the reflector is given up.
const LONGEST_END: Duration = Duration::from_secs(20);

/// A reflector on the link of an interface.
#[derive(Debug)]
pub struct Remote {
    socket: EtherSocket,
    mac: [u8; 6],
    session: u32,
    number: u32,
    outcome: Option<Outcome>,
}

impl Remote {
    /// Connects to the reflector with address `mac` on the link of `interface`.
    ///
    /// # Errors
    /// The reflector does not answer, or has another version.
    pub fn greet(
        interface: &str,
        namespace: Option<&str>,
        mac: [u8; 6],
    ) -> Result<(Self, Welcome), TesterError> {
        let socket = within(namespace, || EtherSocket::open(interface, ETHERTYPE))??;
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let mut remote = Self {
            socket,
            mac,
            session: since.unwrap_or_default().subsec_nanos() ^ std::process::id(),
            number: 0,
            outcome: None,
        };
        let hello = Question::Hello {
            version: VERSION.to_owned(),
        };
        match remote.ask(&hello)? {
            Answer::Welcome(welcome) => Ok((remote, *welcome)),
            other => Err(remote.surprised(&other)),
        }
    }

    fn ask(&mut self, question: &Question) -> Result<Answer, TesterError> {
        self.number += 1;
        let key = Key {
            session: self.session,
            number: self.number,
        };
        let parts = parts_of(key, question);
        let mut assembly = Assembly::default();
        for _ in 0..MOST_TIMES {
            for part in &parts {
                self.socket.send(self.mac, part)?;
            }
            let until = Instant::now() + AGAIN;
            while let Some((from, frame)) = self
                .socket
                .receive(until.saturating_duration_since(Instant::now()))?
            {
                if from != self.mac {
                    continue;
                }
                match assembly.handle(&frame) {
                    Some((of, Answer::Refused { reason })) if of == key => {
                        return Err(TesterError::BadInput(self.says(&reason)));
                    }
                    Some((of, answer)) if of == key => return Ok(answer),
                    _ => {}
                }
            }
        }
        Err(TesterError::BadInput(format!(
            "no reflector answers at {} on the link of {}; start `baton bench reflect --iface IFACE` there, and check that the address is that of \
             IFACE",
            mac_text(self.mac),
            self.socket.link().name
        )))
    }

    fn says(&self, what: &str) -> String {
        format!("the reflector {} says: {what}", mac_text(self.mac))
    }

    fn surprised(&self, answer: &Answer) -> TesterError {
        TesterError::Failed(self.says(&format!("{answer:?}, which was not requested")))
    }

    fn done(&mut self, question: &Question) -> Result<(), TesterError> {
        match self.ask(question)? {
            Answer::Done => Ok(()),
            other => Err(self.surprised(&other)),
        }
    }

    /// Reports what this end has done; returns true when the reflector has finished its task.
    fn exchange(&mut self, signal: &Signal) -> Result<bool, TesterError> {
        let handed = [FROM_NIC, TO_NIC].map(|stream| signal.handed(stream));
        match self.ask(&Question::Status { handed })? {
            Answer::Working { handed } => {
                for (stream, handed) in (0..).zip(handed) {
                    if let Some(handed) = handed
                        && signal.handed(stream).is_none()
                    {
                        signal.done(stream, handed);
                    }
                }
                Ok(false)
            }
            Answer::Outcome(outcome) => {
                // With TCP, the first end that is done ends both. With datagrams, the outcome gives the number of frames.
                if outcome.tcp.is_some() {
                    signal.done(FROM_NIC, 0);
                }
                if let Some(departures) = outcome.departures {
                    signal.done(TO_NIC, departures.handed);
                }
                self.outcome = Some(*outcome);
                Ok(true)
            }
            other => Err(self.surprised(&other)),
        }
    }
}

/// Returns the maximum duration of a task, as far as it is known beforehand.
fn length(task: &Task) -> Duration {
    let ns = match &task.work {
        Work::Datagrams {
            send: Some((_, sending)),
            ..
        } => match sending.rate {
            Some(_) => sending.duration_ns,
            None => 0,
        },
        Work::Datagrams { .. } => 0,
        Work::Tcp(task) => task.warm_up_ns + task.duration_ns,
    };
    Duration::from_nanos(ns)
}

impl Peer for Remote {
    fn mac(&self) -> [u8; 6] {
        self.mac
    }

    fn is_here(&self) -> bool {
        false
    }

    fn prepare(&mut self, task: &Task) -> Result<(), TesterError> {
        self.outcome = None;
        self.done(&Question::Prepare {
            task: Box::new(task.clone()),
        })
    }

    fn run(&mut self, task: &Task, signal: &Signal) -> Result<(), TesterError> {
        self.done(&Question::Go)?;
        let start = Instant::now();
        let mut asked = start;
        let length = length(task);
        // A reflector that only receives is done only after this end has sent.
        let receives = matches!(&task.work, Work::Datagrams { send: None, .. });
        loop {
            thread::sleep(LOOK);
            if signal.is_aborted() {
                return self.done(&Question::Abort);
            }
            let may_be_done = match receives {
                true => signal.handed(FROM_NIC).is_some(),
                false => start.elapsed() >= length || signal.handed(FROM_NIC).is_some(),
            };
            if may_be_done || asked.elapsed() >= STATUS_EVERY {
                asked = Instant::now();
                if self.exchange(signal)? {
                    return Ok(());
                }
            }
            if !receives && start.elapsed() > length + LONGEST_END {
                let message = self.says("nothing about the end of the trial");
                return Err(TesterError::Failed(message));
            }
        }
    }

    fn finish(&mut self) -> Result<Outcome, TesterError> {
        Ok(self.outcome.take().unwrap_or_default())
    }
}
