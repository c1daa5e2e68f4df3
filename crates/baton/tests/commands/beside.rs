//! Published and measured numbers next to the results of a sweep: `[[published]]`, `[table]`, `[[figure]]` and `--measured`.

use crate::common::{FIXED, Workbench};

/// Writes a study with two variants at two speeds of the NIC, in short runs. `more` follows from line 19 on.
fn study(bench: &Workbench, more: &str) {
    let text = format!(
        "{FIXED}[run]\nwarmup_packets = 100\nmeasured_packets = 400\n\
         [[variants]]\nname = \"few\"\nset = {{ host.clock_mhz = 1000 }}\n\
         [[variants]]\nname = \"many\"\nset = {{ host.clock_mhz = 4000 }}\n\
         [sweep]\nnic.mips = [200, 800]\n{more}"
    );
    bench.write("x.toml", &text);
}

/// Returns an entry `[[published]]` for the slower host with the faster NIC.
fn published(rest: &str) -> String {
    format!(
        "[[published]]\nsource = \"Table 9\"\nstatus = \"given\"\nat = {{ name = \"few\", nic.mips = 800 }}\n{rest}\n"
    )
}

/// Returns the cells of the named columns, row by row, of a table whose cells contain no comma.
fn cells(table: &str, columns: &[&str]) -> Vec<String> {
    let mut lines = table.lines();
    let head: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let of = |line: &str, name: &&str| {
        let place = head.iter().position(|column| column == name).expect(name);
        line.split(',').nth(place).expect("a cell").to_owned()
    };
    let row = |line: &str| {
        let cells: Vec<String> = columns.iter().map(|name| of(line, name)).collect();
        cells.join(" ")
    };
    lines.map(row).collect()
}

/// Returns the request rates of the slower host with the slower and with the faster NIC, and of the faster host with the faster NIC.
fn rates(bench: &Workbench) -> [f64; 3] {
    study(bench, "");
    bench.baton("sweep x.toml --out results").ok();
    let rates = cells(&bench.read("results/x.csv"), &["request_rate_per_s"]);
    let rate = |row: usize| rates[row].parse().expect("a number");
    [rate(0), rate(1), rate(3)]
}

#[test]
fn published_numbers_are_shown_next_to_simulated_ones_with_a_verdict() {
    let bench = Workbench::new();
    let [slow, fast, other] = rates(&bench);
    let ratio = fast / slow;
    let more = [
        published(&format!("values.request_rate_per_s = {{ value = {}, tolerance = \"6 %\" }}", 1.05 * fast)),
        published(&format!("values.request_rate_per_s = {}\ntolerance = \"x 1.2\"", 1.3 * fast)),
        published(&format!("values.request_rate_per_s = {fast}")),
        published(&format!(
            "against = {{ nic.mips = 200 }}\nvalues.request_rate_per_s = \"x {ratio}\"\ntolerance = \"1 %\""
        )),
        published(&format!(
            "against = {{ name = \"many\" }}\nvalues.request_rate_per_s = \"{:+} %\"\ntolerance = 90",
            -100.0 * (fast / other - 1.0)
        )),
        published(&format!(
            "against = {{ name = \"many\" }}\nvalues.request_rate_per_s = \"{:+}\"\ntolerance = 1",
            fast - other
        )),
        "[table]\nmetrics = [\"packets\"]\nnote = \"So it is.\"\n".to_owned(),
        "[[figure]]\nx = \"nic.mips\"\n y = \"request_rate_per_s\"\n".to_owned(),
        "[[figure]]\nname = \"bars\"\nx = \"name\"\ny = \"request_rate_per_s\"\n".to_owned(),
    ]
    .concat();
    study(&bench, &more);
    bench.baton("sweep x.toml --out results").ok().says(&[
        "few, mips = 800",
        "-4.8 %",
        "x 0.77 *",
        "request rate per s over",
        "mips = 200",
        "many ",
        "So it is.",
        "Within tolerance: given 3 of 5; 1 with the wrong sign (!); 1 outside (*); 1 without a tolerance (?).",
        "0 of them now",
        "results/x.1.svg",
        "results/x.bars.svg",
    ]);
    let table = bench.read("results/x.published.csv").replace(", ", " ");
    let verdicts = cells(&table, &["configuration", "form", "status", "verdict"]);
    let of = |form: &str, verdict: &str| format!("\"few mips = 800\" {form} given {verdict}");
    let expected = [
        of("absolute", "within"),
        of("absolute", "outside"),
        of("absolute", "no tolerance"),
        of("ratio", "within"),
        of("percent", "wrong sign"),
        of("difference", "within"),
    ];
    // The last three are relative: to the same variant with the slower NIC, and to the other variant with the same NIC.
    assert_eq!(verdicts, expected, "{table}");
    let figure = bench.read("results/x.1.svg");
    assert!(figure.contains("few, published"), "{figure}");
    assert!(
        !figure.contains("many, published"),
        "no number is published for this variant"
    );
    // If only the other variant runs, the published numbers belong to no run.
    let many = bench
        .baton("sweep x.toml --out results --variant many")
        .ok();
    assert!(
        many.stderr
            .contains("6 published numbers are left out, because they belong to no run"),
        "{}",
        many.stderr
    );
    // `baton run` ignores published numbers.
    bench.write(
        "single.toml",
        &format!("{FIXED}{}", published("values.packets = 5")),
    );
    bench
        .baton("run single.toml --packets 200 --warmup 100")
        .ok();
}

#[test]
fn the_measurements_of_the_user_are_compared_in_the_same_way() {
    let bench = Workbench::new();
    let [slow, fast, other] = rates(&bench);
    bench.write(
        "mine.csv",
        &format!(
            "variant,config.nic.mips,metric,value,tolerance,against\n\
             few,800,request_rate_per_s,{},2 %,\n\
             few,200,request_rate_per_s,{},2 %,\n\
             few,800,request_rate_per_s,{:+} %,1,many\n",
            1.01 * fast,
            1.5 * slow,
            100.0 * (fast / other - 1.0),
        ),
    );
    bench
        .baton("sweep x.toml --out results --measured mine.csv")
        .ok()
        .says(&["Within tolerance: measured 2 of 3; 1 outside (*)."]);
}

#[test]
fn a_table_without_published_numbers_has_a_row_for_each_point() {
    let bench = Workbench::new();
    let table = "seeds = 3\n[table]\ntitle = \"Hosts:\"\nmetrics = [\"request_rate_per_s\", \"responses\"]\nagainst = { name = \"few\" }\n";
    study(&bench, table);
    let printed = bench.baton("sweep x.toml --out results").ok().stdout;
    let sections: Vec<&str> = printed.split("mips = ").collect();
    assert_eq!(sections.len(), 3, "one for each speed: {printed}");
    assert!(sections[0].starts_with("Hosts:"), "{printed}");
    for section in &sections[1..] {
        let row = |name: &str| section.lines().find(|line| line.trim().starts_with(name));
        let (few, many) = (row("few").expect("a row"), row("many").expect("a row"));
        assert!(many.contains(" ± "), "three seeds have an interval: {many}");
        assert!(
            !few.contains('±'),
            "the baseline is not compared with itself: {few}"
        );
    }
}

#[test]
fn constants_are_fitted_only_to_numbers_with_the_status_given() {
    let bench = Workbench::new();
    let experiment = |clock: u32, mips: u32, more: &str| {
        let text = format!(
            "{FIXED}[host]\nclock_mhz = {clock}\n[nic]\nmips = {mips}\n[run]\nwarmup_packets = 500\nmeasured_packets = 4000\n{more}"
        );
        bench.write("x.toml", &text);
    };
    let metrics = [
        "host_idle_percent",
        "nic_idle_percent",
        "request_rate_per_s",
    ];
    experiment(900, 350, "");
    bench.baton("sweep x.toml --out results").ok();
    let found = cells(&bench.read("results/x.csv"), &metrics);
    let found: Vec<&str> = found[0].split(' ').collect();
    let published = |status: &str, value: &str, tolerance: &str| {
        format!(
            "[[published]]\nsource = \"Table 9\"\nstatus = \"{status}\"\nvalues.{value}\ntolerance = {tolerance}\n"
        )
    };
    let given = [
        published("given", &format!("host_idle_percent = {}", found[0]), "1"),
        published("given", &format!("nic_idle_percent = {}", found[1]), "1"),
        published(
            "given",
            &format!("request_rate_per_s = {}", found[2]),
            "\"1 %\"",
        ),
        published("predicted", "request_rate_per_s = 1", "\"1 %\""),
    ];
    let fit = "[fit]\nhost.clock_mhz = { from = 300, to = 4000, start = 2000 }\nnic.mips = { from = 50, to = 2000, start = 600 }\n";
    experiment(2000, 600, &format!("{}{fit}", given.concat()));
    let ran = bench.baton("sweep x.toml --out results --fit").ok();
    ran.says(&[
        "Begins:",
        "Round 1:",
        "Fitted:",
        "given 3 of 3, predicted 0 of 1",
    ]);
    // Results that are already stored are not simulated again.
    bench
        .baton("sweep x.toml --out results --fit")
        .ok()
        .says(&["0 of them now"]);
}
