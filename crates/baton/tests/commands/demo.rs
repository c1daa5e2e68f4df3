//! `baton demo`.

use crate::common::Workbench;

/// Names of runs that are marked as not steady stand again below the table, with the reason.
#[test]
fn each_mark_in_the_table_is_explained() {
    let text = Workbench::new().baton("demo").ok().stdout;
    let mut marked = 0;
    for line in text.lines() {
        if let Some((name, _)) = line.split_once(" * ") {
            let explained = format!("\n* {}: ", name.trim());
            assert!(
                text.contains(&explained),
                "{explained:?} is not in:\n{text}"
            );
            marked += 1;
        }
    }
    assert_eq!(
        text.matches("\n* not steady: ").count(),
        usize::from(marked > 0)
    );
}
