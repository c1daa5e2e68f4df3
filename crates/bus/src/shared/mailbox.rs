//! Messages from several threads to one, which they wake up only if it sleeps.

use super::atomic::{AtomicBool, Ordering, fence};
#[cfg(loom)]
use super::testing::queue::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::Arc;
#[cfg(not(loom))]
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// The end from which messages are sent.
#[derive(Debug)]
pub struct Sender<T> {
    queue: SyncSender<T>,
    is_asleep: Arc<AtomicBool>,
}

/// The end at which messages arrive.
#[derive(Debug)]
pub struct Mailbox<T> {
    queue: Receiver<T>,
    /// The message that was found while its owner prepared to sleep.
    found: Option<T>,
    is_asleep: Arc<AtomicBool>,
}

/// A message that was not sent.
#[derive(Debug, PartialEq, Eq)]
pub enum Undelivered<T> {
    /// The mailbox is full.
    Full(T),
    /// The mailbox was dropped.
    Gone(T),
}

/// Creates a mailbox for at most `most` messages.
pub fn mailbox<T>(most: usize) -> (Sender<T>, Mailbox<T>) {
    let (to, from) = sync_channel(most);
    let is_asleep = Arc::new(AtomicBool::new(false));
    let sender = Sender {
        queue: to,
        is_asleep: Arc::clone(&is_asleep),
    };
    let mailbox = Mailbox {
        queue: from,
        found: None,
        is_asleep,
    };
    (sender, mailbox)
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
            is_asleep: Arc::clone(&self.is_asleep),
        }
    }
}

impl<T> Sender<T> {
    /// Sends a message. Returns whether the caller must wake up the mailbox's owner.
    ///
    /// # Errors
    /// Returns the message if the mailbox is full or gone.
    pub fn send(&self, message: T) -> Result<bool, Undelivered<T>> {
        self.queue.try_send(message).map_err(|error| match error {
            TrySendError::Full(message) => Undelivered::Full(message),
            TrySendError::Disconnected(message) => Undelivered::Gone(message),
        })?;
        fence(Ordering::SeqCst);
        let sleeps = self.is_asleep.load(Ordering::Relaxed);
        Ok(sleeps && self.is_asleep.swap(false, Ordering::Relaxed))
    }
}

impl<T> Mailbox<T> {
    /// Takes the oldest message.
    pub fn receive(&mut self) -> Option<T> {
        self.found.take().or_else(|| self.queue.try_recv().ok())
    }

    /// Asks senders to wake up this side from now on. Returns false if there is a message already.
    pub fn prepare_to_sleep(&mut self) -> bool {
        // An exchange, as all changes of this word: a sender never undoes it by an exchange meant for an earlier sleep.
        self.is_asleep.swap(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.found = self.receive();
        if self.found.is_some() {
            self.awake();
        }
        self.found.is_none()
    }

    /// Tells senders that this side is awake.
    pub fn awake(&self) {
        self.is_asleep.swap(false, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_a_sleeper_is_woken_and_only_once() {
        let (to, mut from) = mailbox(8);
        assert_eq!(to.send(1), Ok(false));
        assert!(!from.prepare_to_sleep(), "there is a message");
        assert_eq!(to.send(2), Ok(false));
        assert_eq!((from.receive(), from.receive()), (Some(1), Some(2)));
        assert!(from.prepare_to_sleep());
        assert_eq!((to.send(3), to.send(4)), (Ok(true), Ok(false)));
        assert_eq!((from.receive(), from.receive()), (Some(3), Some(4)));
        assert_eq!(from.receive(), None);
        assert!(from.prepare_to_sleep());
        from.awake();
        assert_eq!(to.send(5), Ok(false));
    }

    #[test]
    fn a_message_that_does_not_fit_comes_back() {
        let (to, from) = mailbox(1);
        assert_eq!(to.send(1), Ok(false));
        assert_eq!(to.send(2), Err(Undelivered::Full(2)));
        drop(from);
        assert_eq!(to.send(3), Err(Undelivered::Gone(3)));
    }
}
