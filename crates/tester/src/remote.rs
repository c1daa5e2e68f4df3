//! A partner that is another machine.
//!
//! Tester and reflector speak in Ethernet frames of the type that IEEE 802 leaves to experiments ([`ETHERTYPE`]). The tester asks, the
//! reflector answers; what is not answered is asked again, and what was answered is answered again alike. A message is JSON
//! ([`Question`], [`Answer`]), in as many frames as it takes, each with a header of 16 bytes before its part:
//!
//! | bytes | field |
//! |---|---|
//! | 0-3 | `BTN1` |
//! | 4-7 | session: a number that the tester has chosen |
//! | 8-11 | number of the question in the session |
//! | 12 | which part this is, from 0 |
//! | 13 | how many there are |
//! | 14-15 | bytes of this part; what follows them is padding |

mod message;
mod reflector;
mod tester_end;

pub use message::{Answer, ETHERTYPE, Question, Welcome};
pub use reflector::Reflector;
pub use tester_end::Remote;
