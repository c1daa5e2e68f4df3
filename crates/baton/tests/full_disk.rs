//! A study that fills its disk.

#[cfg(target_os = "linux")]
mod common;
#[cfg(target_os = "linux")]
use baton_testkit::needs;
use libtest_mimic::Arguments;

#[cfg(not(target_os = "linux"))]
fn main() {
    let _ = Arguments::from_args();
}

#[cfg(target_os = "linux")]
fn main() {
    const ALL: &[(&str, fn())] = &[(
        "what_was_kept_before_the_disk_was_full_stays",
        linux::what_was_kept_before_the_disk_was_full_stays,
    )];
    needs::run(&Arguments::from_args(), needs::Need::Root, ALL);
}

#[cfg(target_os = "linux")]
mod linux {
    use crate::common::{FIXED, Ran, Workbench};
    use std::process::Command;

    /// Runs a study on a small file system until it is full, and continues it with enough space.
    const SCRIPT: &str = r#"
        mkdir small && mount -t tmpfs -o size=400k tmpfs small
        "$1" sweep x.toml --out small/results
        echo "code $?"
        cat small/results/runs/*/* | wc -l
        find small/results/parts small/results/leases -type f | wc -l
        mount -o remount,size=8m small
        exec "$1" sweep x.toml --out small/results
    "#;

    pub fn what_was_kept_before_the_disk_was_full_stays() {
        let bench = Workbench::new();
        let sweep = "[run]\nwarmup_packets = 100\nmeasured_packets = 200\n[sweep]\nnic.mips = { from = 100, to = 4000, step = 100 }\n";
        bench.write("x.toml", &format!("{FIXED}{sweep}"));
        let mut command = Command::new("unshare");
        command.args([
            "--mount",
            "sh",
            "-c",
            SCRIPT,
            "sh",
            env!("CARGO_BIN_EXE_baton"),
        ]);
        command.current_dir(bench.path(""));
        let ran = Ran::of(command.output().expect("unshare can be run")).ok();
        assert!(ran.stderr.contains("No space left on device"), "{ran:?}");
        let mut lines = ran.stdout.lines();
        assert_eq!(lines.next(), Some("code 1"), "{ran:?}");
        let lines_kept: usize = lines
            .next()
            .and_then(|n| n.trim().parse().ok())
            .expect("a number");
        assert!(
            lines_kept > 0 && lines_kept.is_multiple_of(2),
            "two lines for each run: {ran:?}"
        );
        assert_eq!(
            lines.next().map(str::trim),
            Some("0"),
            "no partial file is left: {ran:?}"
        );
        let rest = format!("40 of 40 runs done, {} of them now", 40 - lines_kept / 2);
        ran.says(&[&rest]);
    }
}
