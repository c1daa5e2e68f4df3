use super::*;
use shipped::Shipped;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn request(folder: &tempfile::TempDir, text: &str) -> Request {
    let path = folder.path().join("x.toml");
    fs::write(&path, text).expect("a file");
    Request {
        experiment: path.display().to_string(),
        ..Request::default()
    }
}

fn setting(text: &str) -> Setting {
    text.parse().expect("a setting")
}

#[test]
fn text_is_planned_like_a_file() {
    let text = "profile = \"handoff-2006\"\nnic.mips = \"fast\"\n";
    let request = |text: &str| Request {
        experiment: "experiment".to_owned(),
        text: Some(text.to_owned()),
        ..Request::default()
    };
    let refused = plan(&request(text)).expect_err("no number").to_string();
    assert!(refused.starts_with("experiment:2:12: "), "{refused}");
    let planned = plan_one(&request(&text.replace("\"fast\"", "7"))).expect("an experiment");
    assert_eq!((&*planned.name, planned.nic.mips), ("experiment", 7));
}

#[test]
fn each_layer_overrides_the_one_before() {
    let folder = folder();
    fs::write(
        folder.path().join("machine.toml"),
        "[nic]\nmips = 1\n[host]\nclock_mhz = 1\n[run]\nseed = 10\n",
    )
    .expect("a file");
    let text = "profile = \"machine.toml\"\nrun.seed = 20\nnic.mips = 2\n\
                [[variants]]\nname = \"a\"\nset = { \"nic.mips\" = 3 }\n[[variants]]\nname = \"b\"\n";
    let mut request = request(&folder, text);
    let values = |request: &Request| -> Vec<(String, u32, u32, u64)> {
        let value = |run: &Planned| {
            let Experiment {
                name,
                host,
                nic,
                run,
                ..
            } = &run.experiment;
            (name.clone(), host.clock_mhz, nic.mips, run.seed)
        };
        plan(request)
            .expect("a plan")
            .runs
            .iter()
            .map(value)
            .collect()
    };
    assert_eq!(
        values(&request),
        [("a".to_owned(), 1, 3, 20), ("b".to_owned(), 1, 2, 20)]
    );
    request.settings = vec![
        setting("nic.mips=4"),
        setting("run.seed=30"),
        setting("run.seed=40"),
    ];
    assert_eq!(
        values(&request),
        [("a".to_owned(), 1, 4, 40), ("b".to_owned(), 1, 4, 40)]
    );
}

#[test]
fn the_name_of_a_shorthand_says_what_flags_change() {
    let name = |settings: &[&str]| {
        let request = Request {
            experiment: "W-4096-P-N-FCFS-400".to_owned(),
            settings: settings.iter().map(|text| setting(text)).collect(),
            ..Request::default()
        };
        let mut plan = plan(&request).expect("a plan");
        plan.name_changes();
        plan.runs[0].experiment.name.clone()
    };
    let usual = name(&["run.seed=3"]);
    assert!(
        usual.starts_with("W-4096-P-N-FCFS-400") && !usual.contains('='),
        "{usual}"
    );
    assert_eq!(name(&["nic.mips=1600"]), format!("{usual} nic.mips=1600"));
    assert_eq!(name(&["nic.mips=400"]), usual);
}

#[test]
fn a_profile_overrides_the_one_that_it_names() {
    let folder = folder();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    write("faster.toml", "profile = \"sub/base.toml\"\nnic.mips = 2\n");
    write(
        "sub/base.toml",
        "profile = \"bottom.toml\"\nnic.mips = 1\nrun.seed = 7\n",
    );
    write("sub/bottom.toml", "host.clock_mhz = 3\nrun.seed = 6\n");
    let planned = plan(&request(&folder, "profile = \"faster.toml\"\n")).expect("a plan");
    let run = &planned.runs[0];
    let Experiment {
        host,
        nic,
        run: of_run,
        ..
    } = &run.experiment;
    assert_eq!((host.clock_mhz, nic.mips, of_run.seed), (3, 2, 7));
    let path = folder.path().join("faster.toml").display().to_string();
    assert_eq!(run.short["profile"].as_str(), Some(path.as_str()));

    let refused = |text: &str| {
        write("sub/bottom.toml", text);
        let planned = plan(&request(&folder, "profile = \"faster.toml\"\n"));
        planned.expect_err("it cannot be").to_string()
    };
    for (text, expected) in [
        ("profile = \"base.toml\"", "too many profiles"),
        ("profile = 5", "expected the name or path of a profile"),
        (
            "profile = \"none.toml\"",
            "there is no profile \"none.toml\"",
        ),
    ] {
        let error = refused(text);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_profile_from_the_command_line_replaces_that_of_the_file() {
    let folder = folder();
    let mut request = request(&folder, "profile = \"does-not-exist\"\n");
    assert!(plan(&request).is_err());
    request.profile = Some("handoff-2006".to_owned());
    let plan = plan(&request).expect("a plan");
    assert_eq!(plan.runs[0].experiment.tcp.rto_initial_ms, 3000);
    assert_eq!(plan.runs[0].short["profile"].as_str(), Some("handoff-2006"));
}

#[test]
fn an_experiment_has_its_own_name_or_that_of_its_file() {
    let folder = folder();
    let name = |text| {
        plan(&request(&folder, text)).expect("a plan").runs[0]
            .experiment
            .name
            .clone()
    };
    assert_eq!(name("profile = \"defaults\"\n"), "x");
    assert_eq!(
        name("profile = \"defaults\"\nname = \"my run\"\n"),
        "my run"
    );
}

#[test]
fn a_log_is_searched_next_to_the_file_that_names_it() {
    let folder = folder();
    let log = folder.path().join("x.log");
    fs::write(&log, "a log").expect("a file");
    let mut request = request(
        &folder,
        "profile = \"defaults\"\n[workload]\nkind = \"log\"\npath = \"x.log\"\npersistent_s = 5\n",
    );
    let workload = |request: &Request| {
        plan(request).expect("a plan").runs[0]
            .experiment
            .workload
            .clone()
    };
    assert_eq!(
        workload(&request),
        WorkloadConfig::Log {
            path: log,
            format: None,
            allow_skipped: false,
            persistent_s: 5,
            pipeline_s: None,
            order: Default::default(),
        }
    );
    let other = folder.path().join("other.log");
    fs::write(&other, "a log").expect("a file");
    request.log = Some(other.clone());
    assert_eq!(
        workload(&request),
        WorkloadConfig::Log {
            path: other,
            format: None,
            allow_skipped: false,
            persistent_s: 5,
            pipeline_s: None,
            order: Default::default(),
        }
    );
}

#[test]
fn the_short_form_leaves_out_values_of_machine_and_defaults() {
    let folder = folder();
    let mut request = request(&folder, "profile = \"handoff-2006\"\n[nic]\nmips = 800\n");
    request.settings = vec![setting("run.seed=7")];
    let expected = "name = \"x\"\nprofile = \"handoff-2006\"\n[nic]\nmips = 800\n[run]\nseed = 7\n";
    assert_eq!(
        plan(&request).expect("a plan").runs[0].short,
        expected.parse().expect("TOML")
    );
}

#[test]
fn the_defaults_and_all_profiles_are_valid() {
    let folder = folder();
    let mut request = request(&folder, "");
    for Shipped { name, .. } in shipped::PROFILES {
        request.profile = Some((*name).to_owned());
        plan(&request).unwrap_or_else(|failure| panic!("{name}: {failure}"));
    }
}

#[test]
fn experiments_are_read_as_they_are_written() {
    for nics in [
        "nics = 3",
        "[[nics]]\nmips = 600\n[[nics]]\nname = 'b'\nfirmware.cache.kib = 64\nadapter.piece = 'one'",
    ] {
        let before: Experiment = toml::from_str(nics).expect("an experiment");
        let text = toml::to_string(&before).expect("TOML");
        assert_eq!(toml::from_str(&text), Ok(before.clone()), "{text}");
        let json = serde_json::to_string(&before).expect("JSON");
        let again: Experiment = serde_json::from_str(&json).expect("an experiment");
        assert_eq!(again, before);
    }
}
