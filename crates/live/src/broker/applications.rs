//! The applications that a broker can ask where their connections are.

use super::limits::{Limit, Limits, Resources, Share};
use baton_sockets::broker::messages::{
    self, DONE, Incoming, MOST_SMALL_BYTES, Most, Progress, TELL,
};
use baton_sockets::kernel::{ApplicationAnswer, PlaceRow};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt::Write;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum number of subscriptions per process. A process that has forked, or has just found the next broker, may have several.
const MOST_OF_PROCESS: usize = 4;
/// Time within which all applications that are asked at the same time must answer.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Minimum interval between checks for answers.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);
/// Maximum interval between attempts to ask an application that another thread is asking.
const LONGEST_LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};
/// Maximum number of reasons in one answer.
const MOST_REASONS: usize = 64;
/// Maximum length of an application's answer in bytes.
const MOST_ANSWER_BYTES: usize = 4 << 20;

/// The applications that can be asked.
#[derive(Debug)]
pub(super) struct Applications {
    all: Mutex<Vec<Arc<Application>>>,
    limits: Arc<Limits>,
}

#[derive(Debug)]
struct Application {
    stream: Arc<UnixStream>,
    pid: u32,
    user: u32,
    /// Whether a thread waits for the application's answer.
    is_asked: AtomicBool,
    _share: Share,
}

/// A question to one application.
struct Question {
    application: Arc<Application>,
    outcome: Outcome,
}

enum Outcome {
    /// The application was not asked yet: another thread may be asking it.
    Busy,
    /// The application was asked, and this much of the answer has arrived.
    Asked(Incoming, Option<Share>),
    /// The application has answered: the fields of a JSON object, and the memory charged for them.
    Told {
        places: String,
        _memory: Option<Share>,
    },
    /// The application has not answered, for this reason.
    Silent(&'static str),
    /// The application has disconnected.
    Gone,
}

impl Applications {
    pub(super) fn new(limits: Arc<Limits>) -> Self {
        Self {
            all: Mutex::default(),
            limits,
        }
    }

    /// Adds an application that can be asked through `stream`, which must be non-blocking. If there are too many, the stream is closed.
    pub(super) fn add(&self, stream: Arc<UnixStream>, pid: u32, user: u32) {
        let mut all = self.lock();
        let is_same = |other: &&Arc<Application>| other.pid == pid && other.user == user;
        let share = match all.iter().filter(is_same).count() < MOST_OF_PROCESS {
            true => self.limits.take(user, Resources::Subscriptions, 1),
            false => Err(Limit::SubscriptionsOfProcess),
        };
        // Applications whose process has exited are removed first.
        let share = share.or_else(|_| {
            all.retain(|other| other.user != user || !other.is_gone());
            match all.iter().filter(is_same).count() < MOST_OF_PROCESS {
                true => self.limits.take(user, Resources::Subscriptions, 1),
                false => Err(Limit::SubscriptionsOfProcess),
            }
        });
        match share {
            Ok(share) => all.push(Arc::new(Application {
                stream,
                pid,
                user,
                is_asked: AtomicBool::new(false),
                _share: share,
            })),
            Err(limit) => self.limits.count(limit),
        }
    }

    /// Asks the applications of `user`, or of all users if that is root, at the same time. An application without a timely and valid answer
    /// is named in the result, and not asked again. Returns [`ApplicationPlaces`](baton_sockets::broker::ApplicationPlaces) as JSON, and the
    /// memory charged for it.
    ///
    /// # Errors
    /// Another question of this user is unanswered.
    pub(super) fn places(&self, user: u32) -> Result<(Vec<u8>, Share), Limit> {
        let _one_at_a_time = self.limits.take(user, Resources::Questions, 1)?;
        let may_ask = |application: &&Arc<Application>| user == 0 || application.user == user;
        let mut questions: Vec<Question> = self
            .lock()
            .iter()
            .filter(may_ask)
            .map(|application| Question {
                application: Arc::clone(application),
                outcome: Outcome::Busy,
            })
            .collect();
        let limit = Instant::now() + LONGEST_WAIT;
        while Instant::now() < limit {
            let mut are_answered = true;
            for question in &mut questions {
                question.go_on(&self.limits);
                are_answered &= question.is_answered();
            }
            if are_answered {
                break;
            }
            wait(&questions);
            // An answer that arrives byte by byte must not keep this thread busy.
            thread::sleep(BETWEEN_LOOKS);
        }
        self.part_with_silent(&mut questions);
        let text = written(&questions);
        let share = self
            .limits
            .charge(user, Resources::Bytes, text.len() as u64);
        Ok((text.into_bytes(), share))
    }

    /// Closes the streams of applications that have not answered, and counts them.
    fn part_with_silent(&self, questions: &mut [Question]) {
        let mut silent = Vec::new();
        for question in questions {
            match question.outcome {
                Outcome::Asked(..) => {
                    question.outcome = Outcome::Silent("it sent no complete answer within 1 s");
                }
                Outcome::Silent(_) | Outcome::Gone => {}
                Outcome::Busy | Outcome::Told { .. } => continue,
            }
            if matches!(question.outcome, Outcome::Silent(_)) {
                self.limits.count(Limit::BadAnswer);
            }
            let _ = question.application.stream.shutdown(Shutdown::Both);
            silent.push(Arc::clone(&question.application));
        }
        let is_silent = |one: &Arc<Application>| silent.iter().any(|other| Arc::ptr_eq(one, other));
        if !silent.is_empty() {
            self.lock().retain(|application| !is_silent(application));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Application>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Application {
    /// Returns whether the other end is closed.
    fn is_gone(&self) -> bool {
        let mut fds = [PollFd::new(&*self.stream, PollFlags::RDHUP)];
        let ready = poll(&mut fds, Some(&Timespec::default()));
        ready.is_ok_and(|ready| ready > 0)
    }
}

impl Question {
    /// Sends the question, and receives what has arrived of the answer. Never waits.
    fn go_on(&mut self, limits: &Arc<Limits>) {
        let application = &self.application;
        if matches!(self.outcome, Outcome::Busy) {
            if application.is_asked.swap(true, Ordering::Acquire) {
                return;
            }
            // If the buffer has no space for the question, nothing is sent.
            let asked = messages::send_until(&application.stream, TELL, &[], &[], Instant::now());
            self.outcome = match asked {
                Ok(()) => Outcome::Asked(Incoming::default(), None),
                Err(_) if application.is_gone() => Outcome::Gone,
                Err(_) => Outcome::Silent("it does not receive the broker's questions"),
            };
        }
        let Outcome::Asked(incoming, share) = &mut self.outcome else {
            return;
        };
        let most = |_| Most {
            bytes: MOST_ANSWER_BYTES,
            files: 0,
        };
        let outcome = match incoming.read(&application.stream, most) {
            Ok(Progress::Waits) => return,
            Ok(Progress::Announced(len)) if len > MOST_SMALL_BYTES => {
                match limits.take(application.user, Resources::Bytes, len as u64) {
                    Ok(bytes) => {
                        *share = Some(bytes);
                        return;
                    }
                    Err(_) => Outcome::Silent("its answer exceeds its user's memory at the broker"),
                }
            }
            Ok(Progress::Announced(_)) => return self.go_on(limits),
            Ok(Progress::Whole(message)) if message.kind == DONE => match checked(message.body) {
                Some(places) => Outcome::Told {
                    places,
                    _memory: share.take(),
                },
                None => Outcome::Silent("its answer is invalid"),
            },
            Ok(Progress::Whole(_)) => Outcome::Silent("its answer is invalid"),
            Ok(Progress::Gone) => Outcome::Gone,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Outcome::Silent("its answer is too long")
            }
            Err(_) => Outcome::Silent("its answer was cut off"),
        };
        self.outcome = outcome;
        if matches!(self.outcome, Outcome::Told { .. }) {
            // Other threads may ask this application before the remaining ones have answered.
            self.application.is_asked.store(false, Ordering::Release);
        }
    }

    fn is_answered(&self) -> bool {
        !matches!(self.outcome, Outcome::Busy | Outcome::Asked(..))
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        if !matches!(self.outcome, Outcome::Busy | Outcome::Told { .. }) {
            self.application.is_asked.store(false, Ordering::Release);
        }
    }
}

/// Waits until more of an answer arrives.
fn wait(questions: &[Question]) {
    let asked = questions
        .iter()
        .filter(|question| matches!(question.outcome, Outcome::Asked(..)));
    let mut fds: Vec<_> = asked
        .map(|question| PollFd::new(&*question.application.stream, PollFlags::IN))
        .collect();
    let _ = poll(&mut fds, Some(&LONGEST_LOOK));
}

/// Returns the fields of an answer, if it is valid JSON without control characters that a terminal would interpret.
fn checked(body: Vec<u8>) -> Option<String> {
    let answer: ApplicationAnswer = serde_json::from_slice(&body).ok()?;
    let is_plain = |text: &str| !text.contains(char::is_control);
    let is_shown = |row: &PlaceRow| is_plain(&row.place) && row.why.as_deref().is_none_or(is_plain);
    let is_good = answer.places.iter().all(is_shown)
        && answer.kept.len() <= MOST_REASONS
        && answer.kept.keys().all(|why| is_plain(why));
    let mut text = String::from_utf8(body).ok().filter(|_| is_good)?;
    let (start, end) = (text.find('{')?, text.rfind('}')?);
    text.truncate(end);
    text.drain(..=start);
    Some(text)
}

/// Combines the answers to JSON. Copies their bytes, because the parsed form takes more memory.
fn written(questions: &[Question]) -> String {
    let mut text = String::from("[");
    for question in questions {
        let pid = question.application.pid;
        let separator = if text.len() > 1 { "," } else { "" };
        let silent = |why: &str| format!(r#""places":[],"silent":"{why}""#);
        let told = match &question.outcome {
            Outcome::Told { places, .. } => places.clone(),
            Outcome::Silent(why) => silent(why),
            Outcome::Busy | Outcome::Asked(..) => silent("another client is asking it"),
            Outcome::Gone => continue,
        };
        let written = write!(text, r#"{separator}{{"pid":{pid},{told}}}"#);
        debug_assert!(written.is_ok(), "memory takes everything");
    }
    text.push(']');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_answers_are_passed_on() {
        let checked = |text: &str| checked(text.as_bytes().to_vec());
        let good = r#" {"places":[],"kept":{"shared":2}} "#;
        let expected = r#""places":[],"kept":{"shared":2}"#;
        assert_eq!(checked(good).as_deref(), Some(expected));
        for bad in [
            r#"{"places":[],"pid":1}"#,
            "{\"places\":[],\"kept\":{\"\\u001b[2J\":1}}",
            r#"{"kept":{}}"#,
            "[]",
        ] {
            assert_eq!(checked(bad), None, "{bad}");
        }
    }
}
