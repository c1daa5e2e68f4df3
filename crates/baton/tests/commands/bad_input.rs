//! Invalid input is refused with exit code 2 and a message that says where the error is and what was expected.

use crate::common::{FIXED, Workbench};

/// Runs an experiment file with this text and the profile `defaults`.
fn run_text(text: &str) -> crate::common::Ran {
    let bench = Workbench::new();
    bench.write("x.toml", text);
    let ran = bench.run_short("x.toml", &["--profile", "defaults", "--json", "out.json"]);
    assert_eq!(bench.files(), ["x.toml"], "nothing is left behind");
    ran
}

#[test]
fn an_unknown_key_is_named_with_the_nearest_one() {
    run_text("[nic]\nmisp = 600\n").refused(&[
        "x.toml:2:1:",
        "unknown key `misp` in [nic]",
        "did you mean `mips`?",
    ]);
    run_text("[host.l3]\nsize_kib = 1\n").refused(&[
        "x.toml:1:",
        "unknown key `l3` in [host]",
        "did you mean `l1`?",
    ]);
    run_text("seeed = 1\n").refused(&["x.toml:1:1:", "unknown key `seeed` in an experiment"]);
    run_text("[nic]\nhard_limit = 5\n")
        .refused(&["x.toml:2:1:", "did you mean `nic.firmware.hard_limit`?"]);
}

#[test]
fn a_value_of_the_wrong_type_is_named_with_the_right_one() {
    run_text("[nic]\nmips = \"fast\"\n").refused(&[
        "x.toml:2:8:",
        "nic.mips: found \"fast\"",
        "expected a whole number",
    ]);
    run_text("[run]\ncheck = 1\n").refused(&["x.toml:2:9:", "found 1; expected true or false"]);
    run_text("[nic.firmware]\nscheduler = \"lifo\"\n").refused(&[
        "x.toml:2:13:",
        "\"lifo\"",
        "\"fcfs\", \"host-first\"",
    ]);
    run_text("host = 5\n").refused(&["x.toml:1:8:", "found 5; expected a table"]);
}

#[test]
fn negative_sizes_and_impossible_geometries_are_refused() {
    run_text("[host.l2]\nsize_kib = -5\n").refused(&[
        "x.toml:2:12:",
        "host.l2.size_kib: found -5",
        "from 1 to",
    ]);
    run_text("[host.l2]\nways = 0\n").refused(&["x.toml:2:8:", "host.l2.ways: found 0; expected"]);
    run_text("[host.l2]\nsize_kib = 1000\n").refused(&[
        "x.toml:2:12:",
        "host.l2.size_kib: found 1000",
        "power of two",
    ]);
    run_text("[nic.firmware]\nhard_limit = 4000000000\n")
        .refused(&["x.toml:2:14:", "nic.firmware.hard_limit"]);
    run_text("[clients]\nconnections = 0\n")
        .refused(&["x.toml:2:15:", "clients.connections: found 0"]);
}

#[test]
fn sizes_that_would_take_all_memory_are_refused() {
    run_text("[clients]\nconnections = 4294967295\n").refused(&[
        "x.toml:2:15:",
        "clients.connections",
        "1 to 1000000",
    ]);
    run_text("[host.kernel]\nhash_buckets = 4294967295\n").refused(&[
        "x.toml:2:16:",
        "host.kernel.hash_buckets",
        "1 to 16777216",
    ]);
    let workload = |rest: &str| run_text(&format!("[workload]\n{rest}\n"));
    workload("kind = \"generated\"\npreset = \"demo\"\nrequests = 4294967295").refused(&[
        "x.toml:4:12:",
        "workload.requests",
        "1 to 100000000",
    ]);
    workload("kind = \"specweb\"\nclients = 4294967295").refused(&[
        "x.toml:3:11:",
        "workload.clients",
        "1 to 1000000",
    ]);
    workload("kind = \"fixed\"\nbytes = 1\nrequests = 4294967295")
        .refused(&["x.toml:4:12:", "workload.requests"]);
    workload("kind = \"fixed\"\nbytes = 2147483648").refused(&[
        "x.toml:3:9:",
        "workload.bytes",
        "from 0 to 2147483647",
    ]);
    let bench = Workbench::new();
    bench
        .baton("generate demo --requests 4294967295 --out x")
        .refused(&["--requests", "1..=100000000"]);
    assert!(bench.files().is_empty());
}

#[test]
fn an_error_deep_in_a_workload_is_reported_at_its_place() {
    run_text("[workload]\nkind = \"generator\"\n[workload.spec]\nfoo = 1\n")
        .refused(&["x.toml:4:1:", "unknown key `foo` in [workload.spec]"]);
    run_text("[workload]\nkind = \"specweb\"\n[workload.throttle]\nmin_bps = 1\nmax_bps = \"x\"\n")
        .refused(&["x.toml:5:11:", "workload.throttle.max_bps: found \"x\""]);
}

#[test]
fn rates_and_queues_of_zero_are_refused() {
    run_text("[nic.firmware]\ndescriptor_queue_entries = 0\n").refused(&[
        "x.toml:2:28:",
        "nic.firmware.descriptor_queue_entries",
        "from 1 to 4294967295",
    ]);
    let throttle = |rates: &str| {
        run_text(&format!(
            "[workload]\nkind = \"specweb\"\nthrottle = {rates}\n"
        ))
    };
    throttle("{ min_bps = 0, max_bps = 0 }").refused(&["x.toml:3:", "workload.throttle.max_bps"]);
    throttle("{ min_bps = 2, max_bps = 1 }").refused(&["x.toml:3:", "workload.throttle.min_bps"]);
    run_text("[workload]\nkind = \"fixed\"\nbytes = 1\nconnections_per_s = 0\n")
        .refused(&["x.toml:4:21:", "workload.connections_per_s"]);
}

#[test]
fn errors_in_a_value_from_a_flag_name_the_flag() {
    let bench = Workbench::new();
    bench.write("x.toml", FIXED);
    let set = |setting| bench.run_short("x.toml", &["--set", setting]);
    set("nic.mips=fast")
        .refused(&["--set nic.mips=fast: nic.mips: found \"fast\"; expected a whole number"]);
    set("host.l2.size_kib=-1").refused(&["--set host.l2.size_kib=-1:", "found -1"]);
    set("host.l2.ways=3").refused(&["--set host.l2.ways=3", "host.l2"]);
    set("nic.misp=600").refused(&["--set nic.misp=600:", "did you mean `mips`?"]);
    set("nic.mips").refused(&["nic.mips", "KEY=VALUE"]);
    bench
        .run_short("x.toml", &["--seed", "-1"])
        .refused(&["--seed"]);
    bench
        .run_short("x.toml", &["--seed", "18446744073709551615"])
        .refused(&[
            "--seed 18446744073709551615: run.seed",
            "to 9223372036854775807",
        ]);
    bench
        .run_short("x.toml", &["--threads", "0"])
        .refused(&["--threads"]);
}

#[test]
fn invalid_toml_is_refused_with_its_line() {
    run_text("[nic]\nmips 600\n").refused(&["x.toml:2:"]);
    run_text("[nic\n").refused(&["x.toml:1:"]);
    run_text("[nic]\nmips = 1\nmips = 2\n").refused(&["x.toml:3:1:", "duplicate key"]);
}

#[test]
fn errors_about_unknown_names_list_the_known_ones() {
    let bench = Workbench::new();
    bench.write("x.toml", FIXED);
    bench
        .baton("run W-1024-X-N-FCFS-400")
        .refused(&["part 3, the priority, is \"X\"", "P (host packets first)"]);
    bench
        .baton("run W-1024")
        .refused(&["2 of the 6 parts", "W-1024-P-N-FCFS-400"]);
    bench
        .baton("run none.toml")
        .refused(&["none.toml: no such file"]);
    bench.baton("run .").refused(&[".", "expected"]);
    bench
        .baton("run x.toml --profile vax")
        .refused(&["--profile vax:", "\"vax\"", "handoff-2006"]);
    bench
        .baton("run x.toml --variant a")
        .refused(&["--variant a:", "no such variant"]);
    bench
        .baton("reproduce table9")
        .refused(&["table9", "handoff-table1"]);
    bench
        .baton("generate apollo --out x.log")
        .refused(&["generate apollo", "worldcup-lifetimes"]);
    bench.baton("man fly").refused(&["man fly", "demo"]);
    let preset = "[workload]\nkind = \"generated\"\npreset = \"apollo\"\n";
    run_text(preset).refused(&[
        "x.toml:3:10:",
        "workload.preset: found \"apollo\"",
        "worldcup-lifetimes",
    ]);
    assert_eq!(bench.files(), ["x.toml"]);
}

#[test]
fn variants_are_checked_as_thoroughly() {
    run_text("[[variants]]\nname = \"a\"\nset = { nic.misp = 1 }\n")
        .refused(&["x.toml:3:", "misp"]);
    run_text("[[variants]]\nset = { nic.mips = 1 }\n").refused(&["x.toml:1:", "needs a `name`"]);
    run_text("[[variants]]\nname = \"a\"\n[[variants]]\nname = \"a\"\n")
        .refused(&["x.toml:3:", "another variant \"a\""]);
    run_text("[[variants]]\nname = \"a\"\nsets = {}\n")
        .refused(&["x.toml:3:1:", "unknown key `sets` in a variant"]);
    run_text("variants = 5\n").refused(&["x.toml:1:12:", "[[variants]]"]);
}

#[test]
fn logs_that_cannot_be_replayed_are_refused_with_the_reason() {
    let bench = Workbench::new();
    bench.write(
        "no-sizes.log",
        "4+1: Tue Aug 22 00:00:04 1995 (/a): Sent text: GET /a HTTP/1.0\n",
    );
    bench.write("empty.log", "");
    bench.write(
        "prose.log",
        "The quick brown fox jumps over the lazy dog.\n",
    );
    bench.write(
        "x.toml",
        "[workload]\nkind = \"log\"\npath = \"none.log\"\n",
    );
    let run = |log| bench.run_short("W-0-N-N-FCFS-400", &["--log", log]);
    run("no-sizes.log").refused(&["no-sizes.log", "has no response sizes"]);
    run("none.log").refused(&["--log none.log:", "none.log", "expected an access log"]);
    run("empty.log").refused(&["empty.log", "empty"]);
    run("prose.log").refused(&["prose.log", "line 1", "expected one of vhost-combined"]);
    bench
        .run_short("x.toml", &["--profile", "defaults"])
        .refused(&["x.toml:3:8:", "none.log", "expected an access log"]);
    bench
        .run_short("D-0-N-N-FCFS-400", &["--log", "x.log"])
        .refused(&["--log", "SPECweb99"]);
    bench.baton("trace none.log").refused(&["none.log"]);
}

#[test]
fn input_files_are_never_overwritten() {
    let bench = Workbench::new();
    bench.write("x.toml", FIXED);
    let line = "host - - [30/Apr/1998:22:00:04 +0000] \"GET /a HTTP/1.0\" 200 512\n";
    bench.write("x.log", line);
    let reads = |arguments: &[&str], message: &str| {
        bench.run(arguments).refused(&[message, "would overwrite"]);
        assert_eq!(bench.read("x.toml"), FIXED);
        assert_eq!(bench.read("x.log"), line);
    };
    reads(&["run", "x.toml", "--json", "./x.toml"], "--json ./x.toml:");
    reads(&["run", "x.toml", "--pcap", "x.toml"], "--pcap x.toml:");
    let replay = ["run", "W-0-N-N-FCFS-400", "--log", "x.log"];
    reads(
        &[&replay[..], &["--json", "x.log"]].concat(),
        "--json x.log:",
    );
    reads(&["trace", "x.log", "--json", "x.log"], "--json x.log:");
    reads(
        &["generate", "--fit", "x.log", "--out", "x.log"],
        "--out x.log:",
    );
    let again = ["reproduce", "handoff-table1", "--log", "x.log"];
    reads(
        &[&again[..], &["--json", "x.log"]].concat(),
        "--json x.log:",
    );
}

#[test]
fn outputs_that_cannot_be_written_are_refused_before_the_run() {
    let bench = Workbench::new();
    bench.write("x.toml", FIXED);
    bench.write(
        "two.toml",
        "profile = \"defaults\"\n[[variants]]\nname = \"a\"\n[[variants]]\nname = \"b\"\n",
    );
    // A run of this length would take minutes, so the program must check its output files first.
    let run = |file, flag, path| bench.run(&["run", file, "--packets", "100000000000", flag, path]);
    run("x.toml", "--json", "none/out.json").refused(&["--json none/out.json:", "no folder none"]);
    run("x.toml", "--json", ".").refused(&["--json .:", "directory"]);
    run("x.toml", "--pcap", "none/out.pcapng").refused(&["--pcap none/out.pcapng:"]);
    run("x.toml", "--pcap", "-").refused(&["--pcap -:", "only --json can write to stdout"]);
    bench
        .baton("generate demo --out -")
        .refused(&["--out -:", "only --json can write to stdout"]);
    run("two.toml", "--pcap", "out.pcapng")
        .refused(&["--pcap: two.toml has 2 variants", "--variant"]);
    let same = [
        "run",
        "x.toml",
        "--packets",
        "100000000000",
        "--json",
        "out",
        "--pcap",
        "./out",
    ];
    bench
        .run(&same)
        .refused(&["--json and --pcap name the same file"]);
    let client = [
        "run",
        "x.toml",
        "--packets",
        "100000000000",
        "--pcap",
        "out",
        "--pcap-link",
        "client:16",
    ];
    bench
        .run(&client)
        .refused(&["--pcap-link client:16", "client:0 to client:15"]);
    assert_eq!(bench.files(), ["two.toml", "x.toml"]);
}

#[test]
fn invalid_timelines_are_refused_and_leave_no_file() {
    let bench = Workbench::new();
    bench.write("x.toml", FIXED);
    bench.write(
        "two.toml",
        "profile = \"defaults\"\n[[variants]]\nname = \"a\"\n[[variants]]\nname = \"b\"\n",
    );
    let run = |line: &str| bench.baton(&format!("run {line}"));
    let long = "x.toml --packets 100000000000 --timeline";
    run(&format!("{long} none/out")).refused(&["--timeline none/out:", "no folder none"]);
    run(&format!("{long} x.toml")).refused(&["--timeline x.toml:", "overwrite an input file"]);
    run(&format!("{long} out --seeds 2")).refused(&["--timeline: there are several seeds"]);
    run("two.toml --timeline out").refused(&["--timeline: two.toml has 2 variants", "--variant"]);
    run(&format!("{long} out --pcap ./out")).refused(&["--pcap and --timeline name the same file"]);
    for (flag, value, expected) in [
        ("window", "2..1", "ends before it begins"),
        ("window", "1", "FROM..TO in seconds"),
        ("connections", "some", "every:N"),
        ("size", "4K", "at least 1M"),
    ] {
        run(&format!("{long} out --timeline-{flag} {value}"))
            .refused(&[&format!("--timeline-{flag}"), expected]);
    }
    run("x.toml --timeline-size 2M").refused(&["--timeline <FILE>"]);
    run("x.toml --packets 2000 --timeline out --timeline-window 50..").refused(&[
        "x: the timeline",
        "expected a window that begins before the run ends, at ",
    ]);
    assert_eq!(bench.files(), ["two.toml", "x.toml"]);
}

/// A file with an invalid value for the server of the data-caching paper is refused with a message that names the file and the key.
#[test]
fn impossible_servers_are_refused() {
    let bench = Workbench::new();
    for (text, named) in [
        ("nics = 0", vec!["nics: found 0", "1 to 8"]),
        ("nics = 9", vec!["nics: found 9", "1 to 8"]),
        ("nics = \"two\"", vec!["nics: found \"two\"", "[[nics]]"]),
        (
            "[[nics]]\n[[nics]]\nfirmware.hard = 1",
            vec!["nics.1.firmware.hard: found an unknown key", "hard_limit"],
        ),
        (
            "[[nics]]\nmips = 0",
            vec![".toml:2:8: nics.0.mips: found 0"],
        ),
        (
            "[clients]\nreplayers = 0",
            vec!["clients.replayers: found 0", "from 1 to"],
        ),
        (
            "[interconnect]\nkind = \"isa\"",
            vec!["interconnect", "isa"],
        ),
        (
            "[interconnect]\nkind = \"pci\"\nclock_mhz = 40",
            vec!["interconnect.clock_mhz: found 40", "33 or 66"],
        ),
        (
            "[interconnect]\nkind = \"pci-express\"\nlanes = 3",
            vec!["interconnect.lanes: found 3"],
        ),
        (
            "[nic.dma]\nreads_in_flight = 0",
            vec!["nic.dma.reads_in_flight: found 0", "1 to 65536"],
        ),
        (
            "[nic.dma]\nread_setup_ns = 2000000",
            vec!["nic.dma.read_setup_ns: found 2000000", "0 to 1000000"],
        ),
        (
            "[nic.dma]\ndoorbells = 1",
            vec!["doorbells", "descriptor_bytes"],
        ),
        ("[disk]\ndisks = 0", vec!["disk.disks: found 0", "1 to 64"]),
        (
            "[disk]\nseek_full_us = 1",
            vec!["disk.seek_full_us: found 1", "at least seek_track_us = 600"],
        ),
        (
            "[host.kernel.file_cache]\nkib = 4",
            vec![
                "host.kernel.file_cache.kib: found 4",
                "0 or a whole number from 64",
            ],
        ),
        (
            "[host.kernel.nic_cache]\nblock_bytes = 5000",
            vec![
                "host.kernel.nic_cache.block_bytes: found 5000",
                "a power of two",
            ],
        ),
        (
            "[nic.firmware.cache]\nkib = 40000",
            vec!["nic.firmware.cache.kib: found 40000", "memory_kib"],
        ),
    ] {
        bench.write("x.toml", &format!("{text}\n"));
        let mut parts = vec!["x.toml"];
        parts.extend(named);
        bench.baton("run x.toml --profile defaults").refused(&parts);
    }
}

#[test]
fn a_server_that_is_calibrated_on_generated_logs_takes_no_log() {
    let bench = Workbench::new();
    bench.write("access.log", "");
    bench
        .baton("calibrate dcache-2002 --log access.log")
        .refused(&["--log access.log", "expected no --log"]);
}
