//! The applications that a broker can ask where their connections are.

use baton_sockets::broker::ApplicationPlaces;
use baton_sockets::broker::messages::{self, DONE, TELL};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Applications that are asked at most.
const MOST: usize = 4096;
/// One that lives answers sooner.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Who can be asked.
#[derive(Debug, Default)]
pub(super) struct Applications(Mutex<Vec<Application>>);

#[derive(Debug)]
struct Application {
    stream: UnixStream,
    pid: u32,
    user: u32,
}

impl Applications {
    /// Another one can be asked, by this stream.
    pub(super) fn add(&self, stream: UnixStream, pid: u32, user: u32) {
        let is_limited = messages::limit_waits(&stream, LONGEST_WAIT).is_ok();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if is_limited && all.len() < MOST {
            all.push(Application { stream, pid, user });
        }
    }

    /// Asks those of a user, or all for root. Who does not answer is not asked again.
    pub(super) fn places(&self, user: u32) -> Vec<ApplicationPlaces> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut told = Vec::new();
        // All at once: each needs a moment before it looks.
        let may_ask = |application: &Application| user == 0 || application.user == user;
        all.retain(|application| {
            let asked = || messages::send(&application.stream, TELL, &[], &[]).is_ok();
            !may_ask(application) || asked()
        });
        all.retain(|application| {
            if !may_ask(application) {
                return true;
            }
            let answer = application.answer();
            let is_there = answer.is_some();
            told.extend(answer);
            is_there
        });
        told
    }
}

impl Application {
    fn answer(&self) -> Option<ApplicationPlaces> {
        let answer = messages::receive(&self.stream).ok()??;
        let places = match answer.kind {
            DONE => serde_json::from_slice(&answer.body).ok()?,
            _ => return None,
        };
        let pid = self.pid;
        Some(ApplicationPlaces { pid, places })
    }
}
