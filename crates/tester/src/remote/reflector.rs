//! The reflector: an interface that does tasks for a tester on another machine.

use super::message::{Answer, Assembly, ETHERTYPE, Key, Question, VERSION, Welcome, parts_of};
use crate::environment::mac_text;
use crate::error::TesterError;
use crate::signal::Signal;
use crate::station::Station;
use crate::task::{FROM_NIC, TO_NIC, Task};
use baton_live::port::EtherSocket;
use baton_live::within;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often the reflector checks whether it has to stop.
const LOOK: Duration = Duration::from_millis(50);
/// Silence after which a tester is considered gone.
const LONGEST_SILENCE: Duration = Duration::from_secs(10);

/// Thread of a trial in progress, which returns the station when it is done.
type Work = JoinHandle<(Station, Result<(), TesterError>)>;

/// State of the station.
enum State {
    Idle(Station),
    Ready(Station, Box<Task>),
    Working(Work, Arc<Signal>),
}

/// The current tester.
struct Asker {
    mac: [u8; 6],
    session: u32,
    heard: Instant,
}

/// An interface that takes part in tests of other machines.
pub struct Reflector {
    socket: EtherSocket,
    welcome: Welcome,
    state: Option<State>,
    asker: Option<Asker>,
    /// The last answer, in case the tester did not receive it.
    last: Option<(Key, Vec<Vec<u8>>)>,
}

impl Reflector {
    /// Creates a reflector with this station, which is on an interface of `namespace`.
    ///
    /// # Errors
    /// There is no permission.
    pub fn new(
        station: Station,
        namespace: Option<&str>,
        welcome: Welcome,
    ) -> Result<Self, TesterError> {
        let name = station.link().name.clone();
        let socket = within(namespace, || EtherSocket::open(&name, ETHERTYPE))??;
        Ok(Self {
            socket,
            welcome,
            state: Some(State::Idle(station)),
            asker: None,
            last: None,
        })
    }

    /// Answers questions until `stop` returns true; calls `news` when testers come and go.
    ///
    /// # Errors
    /// The interface no longer exists.
    pub fn run(
        &mut self,
        stop: impl Fn() -> bool,
        mut news: impl FnMut(&str),
    ) -> Result<(), TesterError> {
        let mut assembly = Assembly::default();
        while !stop() {
            let frame = self.socket.receive(LOOK)?;
            if let Some((from, frame)) = frame
                && let Some((key, question)) = assembly.handle(&frame)
            {
                self.answer(from, key, question, &mut news)?;
            }
            if let Some(asker) = self
                .asker
                .take_if(|asker| asker.heard.elapsed() > LONGEST_SILENCE)
            {
                news(&format!("tester {} has disconnected", mac_text(asker.mac)));
                self.give_up()?;
            }
        }
        self.give_up()
    }

    fn answer(
        &mut self,
        from: [u8; 6],
        key: Key,
        question: Question,
        news: &mut impl FnMut(&str),
    ) -> Result<(), TesterError> {
        if let Some((_, parts)) = self.last.as_ref().filter(|(last, _)| *last == key) {
            // The tester repeats its question because the answer was lost or late: send the same answer again.
            for part in parts {
                self.socket.send(from, part)?;
            }
            return Ok(());
        }
        let answer = match self.admit(from, key.session, &question, news) {
            Ok(()) => match self.act(question) {
                Ok(answer) => answer,
                Err(error) => Answer::Refused {
                    reason: error.to_string(),
                },
            },
            Err(reason) => Answer::Refused { reason },
        };
        let parts = parts_of(key, &answer);
        for part in &parts {
            self.socket.send(from, part)?;
        }
        self.last = Some((key, parts));
        Ok(())
    }

    /// Admits one tester at a time.
    fn admit(
        &mut self,
        from: [u8; 6],
        session: u32,
        question: &Question,
        news: &mut impl FnMut(&str),
    ) -> Result<(), String> {
        if let Some(asker) = &mut self.asker {
            if (asker.mac, asker.session) == (from, session) {
                asker.heard = Instant::now();
                return Ok(());
            }
            if asker.mac != from {
                return Err(format!("a test of {} is running", mac_text(asker.mac)));
            }
        }
        match question {
            Question::Hello { version } if version != VERSION => Err(format!(
                "this end runs Baton {VERSION} and the other {version}; both must have the same version"
            )),
            Question::Hello { .. } => {
                news(&format!("tester {} has connected", mac_text(from)));
                self.asker = Some(Asker {
                    mac: from,
                    session,
                    heard: Instant::now(),
                });
                Ok(())
            }
            _ => Err("expected a hello message first".to_owned()),
        }
    }

    fn act(&mut self, question: Question) -> Result<Answer, TesterError> {
        match question {
            Question::Hello { .. } => {
                self.give_up()?;
                Ok(Answer::Welcome(Box::new(self.welcome.clone())))
            }
            Question::Prepare { task } => {
                self.give_up()?;
                if let Some(State::Idle(mut station)) = self.state.take() {
                    let ready = station.prepare();
                    self.state = Some(State::Ready(station, task));
                    ready?;
                }
                Ok(Answer::Done)
            }
            Question::Go => self.go(),
            Question::Status { handed } => self.status(handed),
            Question::Abort => {
                self.give_up()?;
                Ok(Answer::Done)
            }
        }
    }

    fn go(&mut self) -> Result<Answer, TesterError> {
        let (mut station, task) = match self.state.take() {
            Some(State::Ready(station, task)) => (station, task),
            other => {
                self.state = other;
                let message = "expected a task before the start".to_owned();
                return Err(TesterError::BadInput(message));
            }
        };
        let signal = Arc::new(Signal::default());
        let of_thread = Arc::clone(&signal);
        let work = thread::spawn(move || {
            let done = station.run(&task, &of_thread);
            (station, done)
        });
        self.state = Some(State::Working(work, signal));
        Ok(Answer::Done)
    }

    fn status(&mut self, handed: [Option<u64>; 2]) -> Result<Answer, TesterError> {
        let (work, signal) = match self.state.take() {
            Some(State::Working(work, signal)) => (work, signal),
            other => {
                self.state = other;
                let message = "no trial is running".to_owned();
                return Err(TesterError::BadInput(message));
            }
        };
        for (stream, handed) in (0..).zip(handed) {
            if let Some(handed) = handed
                && signal.handed(stream).is_none()
            {
                signal.done(stream, handed);
            }
        }
        if !work.is_finished() {
            let handed = [FROM_NIC, TO_NIC].map(|stream| signal.handed(stream));
            self.state = Some(State::Working(work, signal));
            return Ok(Answer::Working { handed });
        }
        let (mut station, done) = joined(work);
        let outcome = station.finish();
        self.state = Some(State::Idle(station));
        done?;
        Ok(Answer::Outcome(Box::new(outcome?)))
    }

    /// Aborts the task in progress.
    fn give_up(&mut self) -> Result<(), TesterError> {
        let station = match self.state.take() {
            Some(State::Working(work, signal)) => {
                signal.abort();
                joined(work).0
            }
            Some(State::Idle(station) | State::Ready(station, _)) => station,
            None => return Ok(()),
        };
        self.state = Some(State::Idle(station));
        Ok(())
    }
}

fn joined(work: Work) -> (Station, Result<(), TesterError>) {
    match work.join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
