//! Tests of the language: faults in dialogues are found and reported with their line.

use crate::run;
use libtest_mimic::Trial;

/// Dialogue, line of its fault, and words of the message.
const FAULTS: [(&str, &str, usize, &str); 15] = [
    ("nothing", "# only a comment\n", 1, "at least one step"),
    (
        "unknown_command",
        "plain\nlisten\nfrobnicate",
        3,
        "expected a command, found `frobnicate",
    ),
    ("unknown_flag", "listen\n< X 0:0", 2, "expected flags"),
    (
        "wrong_length",
        "listen\n< S 0:10(11)",
        2,
        "is 10 bytes long, not 11",
    ),
    (
        "ack_without_flag",
        "listen\n< S 0:0 ack 1",
        2,
        "expected `ack N` with the flag `.`",
    ),
    (
        "unknown_option",
        "listen\n< S 0:0 <mms 5>",
        2,
        "found `mms 5`",
    ),
    (
        "unknown_parameter",
        "config mms = 5\nlisten",
        1,
        "unknown field `mms`",
    ),
    (
        "nonsense_parameter",
        "config mss = 5\nlisten",
        1,
        "mss is 5; expected at least 64",
    ),
    ("bad_time", "listen\n+1.x < S 0:0", 2, "expected seconds"),
    (
        "back_in_time",
        "listen\n@2 < S 0:0\n> S. 0:0 ack 1\n@1 close",
        4,
        "it is 2.000 already",
    ),
    (
        "missing_segment",
        "plain\naccepted\n> . 1:1 ack 1",
        3,
        "sent: nothing",
    ),
    (
        "other_segment",
        "plain\naccepted\nwrite 10\n> P. 1:12(11) ack 1",
        4,
        "@0.000 > P. 1:12(11) ack 1\nsent\n    @0.000 > P. 1:11(10) ack 1 win 10000 <> noecn",
    ),
    (
        "short_row",
        "plain\naccepted <mss 1000>\nwrite 1000\n2> P. 1:1001(1000) ack 1",
        4,
        "@0.000 > P. 1001:2001(1000) ack 1\nsent: nothing",
    ),
    (
        "late_segment",
        "plain\naccepted <mss 1000>\nwrite 10\n+0.001 > P. 1:11(10) ack 1",
        4,
        "@0.001 > P. 1:11(10) ack 1\nsent\n    @0.000 >",
    ),
    (
        "unexpected_segment",
        "plain\naccepted\nwrite 10\nclose",
        4,
        "sent but not expected",
    ),
];

/// Returns one test for each fault.
pub fn trials() -> impl Iterator<Item = Trial> {
    FAULTS.into_iter().map(|(name, text, line, words)| {
        Trial::test(format!("language/{name}"), move || {
            let fault = run(text).err().ok_or("the fault was not found")?;
            if fault.line == line && fault.message.contains(words) {
                Ok(())
            } else {
                Err(format!("expected line {line}: {words}\ngot {fault:?}").into())
            }
        })
    })
}
