//! Tables have the documented columns, and the same content as CSV and Parquet. Results list all names, even of counts that are 0.

use baton_sim::NoObserver;
use baton_sim::config::{Experiment, WorkloadConfig};
use baton_study::table::{self, Cell, Kind, metrics};
use baton_study::{
    ConfigColumn, Head, Inputs, Key, Outcome, Patience, Store, Study, StudyRun, identify,
};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Returns an experiment with few packets.
fn experiment(mips: u32) -> Experiment {
    let fixed = serde_json::json!({"kind": "fixed", "bytes": 4000, "requests": 3});
    let mut experiment = Experiment {
        workload: workload(fixed),
        ..Experiment::default()
    };
    experiment.clients.connections = 8;
    experiment.nic.mips = mips;
    experiment.run.warmup_packets = Some(100);
    experiment.run.measured_packets = 500;
    experiment
}

fn workload(json: serde_json::Value) -> WorkloadConfig {
    serde_json::from_value(json).expect("a workload")
}

/// Returns a store and a study with two measured runs and one that failed.
fn filled(folder: &Path) -> (Store, Study) {
    let store = Store::open(folder, Patience::default()).expect("a store");
    let mut inputs = Inputs::load(&store);
    let mut runs = Vec::new();
    for mips in [200, 400, 800] {
        let mut experiment = experiment(mips);
        let key = identify(&mut experiment, "sources", &mut inputs).expect("a key");
        let outcome = match mips {
            800 => Outcome::Failed("a rule was broken, \"badly\"".to_owned()),
            _ => {
                let results = baton_sim::run(&experiment, "commit", &[], &mut NoObserver);
                Outcome::Measured(Box::new(results.expect("it runs")))
            }
        };
        let head = Head::new(key, "program", 0.1, &outcome);
        store.put(&head, &outcome).expect("it can be stored");
        runs.push(StudyRun {
            key,
            variant: None,
            seed: 1,
            values: vec![Cell::Integer(mips.into()), Cell::text("a,b")],
        });
    }
    let column = |path: &str, kind| ConfigColumn {
        path: path.to_owned(),
        kind,
    };
    let study = Study {
        name: "mips".to_owned(),
        columns: vec![
            column("nic.mips", Kind::Integer),
            column("interconnect", Kind::Text),
        ],
        runs,
        command: None,
    };
    (store, study)
}

fn cells(line: &str) -> Vec<&str> {
    line.split(',').collect()
}

#[test]
fn every_run_has_every_column() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, study) = filled(folder.path());
    let written = table::write(&store, &study).expect("tables");
    assert_eq!(
        (written.rows, written.failed, written.was_current),
        (3, 1, false)
    );
    let again = table::write(&store, &study).expect("tables");
    assert_eq!((again.failed, again.was_current), (1, true));
    let text = fs::read_to_string(folder.path().join("mips.csv")).expect("a table");
    let lines: Vec<&str> = text.lines().collect();
    let head = cells(lines[0]);
    assert_eq!(head.len(), 4 + 2 + 3 + metrics::ALL.len());
    assert_eq!(
        head[..6],
        [
            "study",
            "run",
            "variant",
            "seed",
            "config.nic.mips",
            "config.interconnect"
        ]
    );
    assert_eq!(lines.len(), 4);
    let place = |name: &str| {
        head.iter()
            .position(|column| *column == name)
            .expect("a column")
    };
    // The quoted text that contains a comma counts as two cells here.
    let measured = cells(lines[1]);
    let packets: u64 = measured[place("packets") + 1]
        .parse()
        .expect("a whole number");
    assert!((500..600).contains(&packets), "{packets}");
    assert_eq!(measured[place("disk_reads") + 1], "", "there is no disk");
    assert!(
        lines[3].contains("failed,\"a rule was broken, \"\"badly\"\"\",,,"),
        "{}",
        lines[3]
    );
    let parts = fs::read_to_string(folder.path().join("mips.parts.csv")).expect("a table");
    assert!(parts.starts_with("run,quantity,part,value\n"));
    assert!(parts.contains(",bus_to_nic_bytes,content,"));
    let series = fs::read_to_string(folder.path().join("mips.series.csv")).expect("a table");
    assert!(series.starts_with("run,time_us,open_connections,"));
}

#[test]
fn metrics_match_the_recorded_list() {
    let mut text = format!("version {}\n", table::VERSION);
    for metric in metrics::ALL {
        let kind = format!("{:?}", metric.kind()).to_lowercase();
        let _ = writeln!(text, "{} {kind}", metric.name);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/columns.txt");
    let recorded = fs::read_to_string(&path).unwrap_or_default();
    let is_same_version = recorded.lines().next() == text.lines().next();
    let gone = recorded
        .lines()
        .filter(|line| !text.lines().any(|now| now == *line));
    let gone: Vec<&str> = gone.collect();
    assert!(
        !is_same_version || gone.is_empty(),
        "the columns {gone:?} were removed, which needs a new version"
    );
    if std::env::var_os("BATON_RECORD").is_some() {
        fs::write(&path, &text).expect("can be written");
    } else {
        assert_eq!(recorded, text, "BATON_RECORD=1 writes {}", path.display());
    }
}

#[test]
fn names_end_with_units() {
    let units = [
        "s",
        "us",
        "ms",
        "mbps",
        "percent",
        "bytes",
        "kb",
        "cycles",
        "packets",
        "segments",
        "instructions",
    ];
    for metric in metrics::ALL {
        let unit = metric.name.rsplit('_').next().expect("a word");
        let counted = unit.ends_with('s') || unit == "read";
        assert!(units.contains(&unit) || counted, "{}", metric.name);
        assert_eq!(
            metrics::ALL
                .iter()
                .filter(|other| other.name == metric.name)
                .count(),
            1
        );
    }
}

#[test]
fn a_key_covers_everything_that_decides_a_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path(), Patience::default()).expect("a store");
    let key = |mut experiment: Experiment, sources: &str| -> Key {
        let mut inputs = Inputs::load(&store);
        let key = identify(&mut experiment, sources, &mut inputs).expect("a key");
        assert_eq!(experiment.name, key.short());
        inputs.save().expect("it can be stored");
        key
    };
    let first = key(experiment(200), "a");
    let named = Experiment {
        name: "another".to_owned(),
        ..experiment(200)
    };
    assert_eq!(key(named, "a"), first);
    let mut seed = experiment(200);
    seed.run.seed = 2;
    let others = [
        key(seed, "a"),
        key(experiment(201), "a"),
        key(experiment(200), "b"),
    ];
    assert!(others.iter().all(|other| *other != first));
    // The key depends on the content of a log, not on its path.
    let on_log = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("a file");
        let workload = workload(serde_json::json!({"kind": "log", "path": path}));
        key(
            Experiment {
                workload,
                ..experiment(200)
            },
            "a",
        )
    };
    let one = on_log("a.log", "x");
    assert_eq!(on_log("b.log", "x"), one);
    assert_ne!(on_log("b.log", "y"), one);
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_has_what_csv_has() {
    use parquet::basic::Type as Physical;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    let folder = tempfile::tempdir().expect("a folder");
    let (store, study) = filled(folder.path());
    table::write(&store, &study).expect("tables");
    for name in ["mips", "mips.parts", "mips.series"] {
        let path = |ending: &str| folder.path().join(format!("{name}.{ending}"));
        let csv = csv::Reader::from_path(path("csv"));
        let mut csv = csv.expect("a table");
        let file = fs::File::open(path("parquet")).expect("a table");
        let file = SerializedFileReader::new(file).expect("a Parquet file");
        let metadata = file.metadata().file_metadata();
        let version = metadata.key_value_metadata().into_iter().flatten();
        let mut version = version.filter(|pair| pair.key == "baton.schema");
        assert_eq!(
            version.next().and_then(|pair| pair.value.clone()),
            Some("1".to_owned())
        );
        let columns = metadata.schema_descr().columns().to_vec();
        let head: Vec<String> = columns
            .iter()
            .map(|column| column.name().to_owned())
            .collect();
        assert_eq!(csv.headers().expect("a header"), head);
        let mut rows = file.get_row_iter(None).expect("rows");
        for record in csv.records() {
            let record = record.expect("a row");
            let row = rows
                .next()
                .expect("the same number of rows")
                .expect("a row");
            for ((text, (_, field)), column) in
                record.iter().zip(row.get_column_iter()).zip(&columns)
            {
                use parquet::record::Field;
                let same = match field {
                    Field::Null => text.is_empty(),
                    Field::Long(number) => text == number.to_string(),
                    Field::Double(number) => text.parse() == Ok(*number),
                    Field::Str(own) => text == own,
                    Field::Bool(truth) => text == truth.to_string(),
                    _ => false,
                };
                assert!(same, "{}: {text} {field:?}", column.name());
                let is_whole = matches!(field, Field::Long(_));
                assert!(!is_whole || column.physical_type() == Physical::INT64);
            }
        }
        assert!(rows.next().is_none());
    }
}

/// If the wire loses everything, nothing can be measured. The results then have null, and not 0, for what was not measured.
#[test]
fn a_run_without_measurements_has_all_columns_but_no_numbers() {
    let mut experiment = experiment(400);
    experiment.run.warmup_packets = Some(20_000);
    experiment.run.measured_packets = 30_000;
    experiment.run.limit_s = 5;
    let results = |experiment: &Experiment| {
        baton_sim::run(experiment, "commit", &[], &mut NoObserver).expect("it runs")
    };
    let some = serde_json::to_value(results(&experiment)).expect("JSON");
    experiment.wire.loss = 1.0;
    let none = results(&experiment);
    assert!(none.measured_nothing() && none.clients.response_ms.mean.is_none());
    let none = serde_json::to_value(none).expect("JSON");
    let nothing = |path: &str| {
        let value = none.pointer(path).expect(path);
        assert!(value.is_null(), "{path}: {value}");
        assert!(!some.pointer(path).expect(path).is_null(), "{path}");
    };
    nothing("/clients/request_rate");
    nothing("/clients/content_mbps");
    nothing("/clients/response_ms/mean");
    nothing("/clients/response_ms/p99");
    nothing("/content_kept_off_bus_percent");
    nothing("/host/idle_percent");
    nothing("/nic/idle_percent");
    nothing("/host/host_packets/cycles");
    let names = |value: &serde_json::Value, path: &str| -> Vec<String> {
        let counts = value.pointer(path).and_then(|counts| counts.as_object());
        counts.expect(path).keys().cloned().collect()
    };
    for counts in [
        "/clients/failed",
        "/host/drops",
        "/nic/drops",
        "/handoff/not_offloaded",
    ] {
        assert_eq!(names(&none, counts), names(&some, counts), "{counts}");
        assert!(names(&none, counts).len() >= 4, "{counts}");
    }
}
