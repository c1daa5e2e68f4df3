//! Passes every input of every corpus to its target.

use baton_fuzzing::TARGETS;
use std::fs;
use std::path::Path;

#[test]
fn every_input_of_the_corpora_passes() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, target) in TARGETS {
        let mut count = 0;
        let folder = corpora.join(name);
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
        for entry in entries {
            let path = entry.expect("a folder can be listed").path();
            let input = fs::read(&path).expect("an input can be read");
            let outcome = std::panic::catch_unwind(|| target(&input));
            assert!(outcome.is_ok(), "{} fails", path.display());
            count += 1;
        }
        assert!(count > 0, "{name} has a corpus");
    }
}
