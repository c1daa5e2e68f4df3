//! Maps the descriptors of scenarios, which count from 3, to those that the object returned.

use libc::c_int;

/// Added to a descriptor that no call has returned. The object returns no descriptors as high as this.
const NOBODYS: c_int = 1_000_000;

/// Descriptors in use.
#[derive(Clone, Debug, Default)]
pub struct Descriptors {
    /// The scenario's number and the object's number of each descriptor.
    pairs: Vec<(c_int, c_int)>,
}

/// Returns the indices of the words of a call that are descriptors.
fn places(call: &str) -> &'static [usize] {
    match call {
        "socket" | "epoll_create" | "pipe" => &[],
        "epoll_ctl" => &[1, 3],
        "splice" => &[1, 2],
        _ => &[1],
    }
}

impl Descriptors {
    /// Replaces the descriptors of a call by the object's numbers.
    pub fn translate(&self, call: &str) -> String {
        let mut words: Vec<_> = call.split_whitespace().map(str::to_owned).collect();
        for &place in places(words.first().map_or("", String::as_str)) {
            if let Some(word) = words.get_mut(place)
                && let Ok(fd) = word.parse()
            {
                *word = self.given(fd).to_string();
            }
        }
        words.join(" ")
    }

    /// Closes the remaining descriptors by the C library's function.
    pub fn close(&mut self) {
        for (_, given) in self.pairs.drain(..) {
            // SAFETY: only this scenario uses the descriptor.
            unsafe { libc::close(given) };
        }
    }

    fn given(&self, fd: c_int) -> c_int {
        let known = self.pairs.iter().find(|(name, _)| *name == fd);
        match known {
            Some((_, given)) => *given,
            None if fd < 0 => fd,
            None => NOBODYS + fd,
        }
    }

    /// Returns the result of a call with the scenario's numbers. A new descriptor gets the number that `expected` gives it.
    pub fn name(&mut self, call: &str, expected: &str, got: &str) -> String {
        let mut words = call.split_whitespace();
        match words.next().unwrap_or_default() {
            "socket" | "accept" | "epoll_create" | "pipe" if !got.starts_with('-') => {
                let numbers = |text: &str| -> Vec<c_int> {
                    let words = text.split_whitespace();
                    words.filter_map(|word| word.parse().ok()).collect()
                };
                let (names, given) = (numbers(expected), numbers(got));
                if names.len() != given.len() {
                    return got.to_owned();
                }
                for pair in names.into_iter().zip(given) {
                    self.pairs.retain(|known| known.0 != pair.0);
                    self.pairs.push(pair);
                }
                expected.to_owned()
            }
            "close" if got == "0" => {
                let closed = words.next().and_then(|word| word.parse().ok());
                self.pairs.retain(|(name, _)| Some(*name) != closed);
                got.to_owned()
            }
            "epoll_wait" if got.contains(':') => self.name_events(got),
            _ => got.to_owned(),
        }
    }

    /// Replaces the descriptors of events of the form `FD:CONDITIONS`.
    fn name_events(&self, got: &str) -> String {
        let named = got.split_whitespace().map(|event| {
            let (given, conditions) = event.split_once(':').unwrap_or((event, ""));
            let mut pairs = self.pairs.iter();
            let name = pairs.find(|(_, known)| known.to_string() == given);
            name.map_or(event.to_owned(), |(name, _)| format!("{name}:{conditions}"))
        });
        named.collect::<Vec<_>>().join(" ")
    }
}
