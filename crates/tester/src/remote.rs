//! Partners on other machines.
//!
//! Tester and reflector communicate by Ethernet frames with the type that IEEE 802 reserves for experiments ([`ETHERTYPE`]). The tester
//! asks, and the reflector answers. Unanswered questions are repeated, and repeated questions get the same answer again. A message is JSON
//! ([`Question`], [`Answer`]), split into as many frames as needed, each with a header of 16 bytes before its part:
//!
//! | bytes | field |
//! |---|---|
//! | 0-3 | `BTN1` |
//! | 4-7 | session: a number chosen by the tester |
//! | 8-11 | number of the question in the session |
//! | 12 | number of this part, from 0 |
//! | 13 | number of parts |
//! | 14-15 | bytes in this part; padding may follow |

mod message;
mod reflector;
mod tester_end;

pub use message::{Answer, ETHERTYPE, Question, Welcome};
pub use reflector::Reflector;
pub use tester_end::Remote;
