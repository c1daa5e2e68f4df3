use super::*;

fn parse(text: &str) -> Node {
    Node::parse(&mut Sources::new(), Kind::File, "x.toml", text).expect("TOML")
}

fn toml_of(node: &Node) -> toml::Table {
    node.to_toml().as_table().expect("a table").clone()
}

#[test]
fn the_upper_layer_overrides_and_the_rest_stays() {
    let mut lower = parse("[nic]\nmips = 400\nname = 'a'\n[host]\nclock_mhz = 2000");
    lower.merge(parse("[nic]\nmips = 600"));
    let expected: toml::Table = "[nic]\nmips = 600\nname = 'a'\n[host]\nclock_mhz = 2000"
        .parse()
        .expect("TOML");
    assert_eq!(toml_of(&lower), expected);
}

#[test]
fn a_length_in_the_upper_layer_replaces_another_kind_of_length_below() {
    let mut lower = parse("[run]\nseed = 3\nmeasured_responses = 200\nwarmup_responses = 20");
    lower.lay_over(parse("run.measured_packets = 5000"));
    let expected = "[run]\nseed = 3\nmeasured_packets = 5000\nwarmup_responses = 20";
    assert_eq!(toml_of(&lower), expected.parse().expect("TOML"));
    // Two alternatives in one layer are refused by other code.
    lower.lay_over(parse(
        "run.measured_passes = 2.0\nrun.measured_seconds = 1.0",
    ));
    let run =
        "[run]\nseed = 3\nmeasured_passes = 2.0\nmeasured_seconds = 1.0\nwarmup_responses = 20";
    assert_eq!(toml_of(&lower), run.parse().expect("TOML"));
}

#[test]
fn a_table_of_another_kind_replaces_the_whole_table() {
    let mut lower = parse("[workload]\nkind = 'generated'\npreset = 'demo'");
    lower.merge(parse("[workload]\nkind = 'log'\npath = 'x'"));
    assert_eq!(
        toml_of(&lower),
        "[workload]\nkind = 'log'\npath = 'x'"
            .parse()
            .expect("TOML")
    );
    lower.merge(parse("[workload]\nkind = 'log'\npersistent_s = 5"));
    let expected = "[workload]\nkind = 'log'\npath = 'x'\npersistent_s = 5"
        .parse()
        .expect("TOML");
    assert_eq!(toml_of(&lower), expected);
}

#[test]
fn dots_in_quoted_keys_make_tables() {
    let node = parse("'nic.mips' = 600\nnic.name = 'a'\nseed = 1").expand_dots();
    assert_eq!(
        toml_of(&node),
        "seed = 1\n[nic]\nmips = 600\nname = 'a'"
            .parse()
            .expect("TOML")
    );
}

#[test]
fn an_error_points_to_the_value_that_was_written_last() {
    let mut sources = Sources::new();
    let mut node =
        Node::parse(&mut sources, Kind::File, "lower.toml", "[nic]\nmips = 1").expect("TOML");
    node.merge(
        Node::parse(&mut sources, Kind::File, "upper.toml", "\n[nic]\nmips = 2").expect("TOML"),
    );
    let diagnostic = sources
        .diagnose(node.origin_of("nic.mips"), "no")
        .to_string();
    assert!(diagnostic.starts_with("upper.toml:3:8: no"), "{diagnostic}");
}

#[test]
fn the_value_of_a_flag_is_toml_or_else_a_string() {
    let mut sources = Sources::new();
    let mut value = |text| Node::parse_flag(&mut sources, "--set x", text).value;
    assert_eq!(value("600"), Value::Integer(600));
    assert_eq!(value("0x10"), Value::Integer(16));
    assert_eq!(value("0.5"), Value::Float(0.5));
    assert_eq!(value("true"), Value::Boolean(true));
    assert_eq!(value("host-first"), Value::String("host-first".into()));
    assert_eq!(value("\"600\""), Value::String("600".into()));
}

#[test]
fn invalid_toml_is_refused_with_its_place() {
    let error = Node::parse(
        &mut Sources::new(),
        Kind::File,
        "x.toml",
        "[nic]\nmips = \n",
    )
    .expect_err("no value");
    assert!(error.to_string().starts_with("x.toml:2:"), "{error}");
    let error = Node::parse(&mut Sources::new(), Kind::File, "x.toml", "a = 1\na = 2\n")
        .expect_err("twice the same key");
    assert!(error.to_string().starts_with("x.toml:2:1"), "{error}");
    let error = Node::parse(
        &mut Sources::new(),
        Kind::File,
        "x.toml",
        "a = 99999999999999999999",
    )
    .expect_err("too large");
    assert!(error.to_string().contains("64 bits"), "{error}");
}
