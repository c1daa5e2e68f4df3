//! `baton demo`.

use crate::common::{Ran, Workbench};

/// Runs the demo in a narrow terminal. Below the table, the output repeats the name of each run that is marked as not steady, and
/// gives the reason.
#[test]
fn the_output_fits_and_each_mark_in_the_table_is_explained() {
    let bench = Workbench::new();
    let mut command = bench.command(&["demo"]);
    let ran = Ran::of(command.env("COLUMNS", "60").output().expect("it starts")).ok();
    ran.fits(60);
    let text = ran.stdout;
    for line in text.lines() {
        if let Some((name, _)) = line.split_once(" * ") {
            let explained = format!("\n* {}: ", name.trim());
            assert!(
                text.contains(&explained),
                "{explained:?} is not in:\n{text}"
            );
        }
    }
    assert!(
        !text.contains("--warmup"),
        "the demo has no such option:\n{text}"
    );
}
