use super::*;
use proptest::prelude::*;

fn shorthands() -> impl Strategy<Value = Shorthand> {
    let letters = prop_oneof![
        Just(WorkloadLetter::WorldCup),
        Just(WorkloadLetter::Ibm),
        Just(WorkloadLetter::Specweb),
        Just(WorkloadLetter::SpecwebStatic),
    ];
    let selections = prop_oneof![
        Just(Selection::Fcfs),
        (1..=u32::MAX).prop_map(Selection::Threshold)
    ];
    (
        letters,
        any::<u32>(),
        any::<bool>(),
        any::<bool>(),
        selections,
        1..=u32::MAX,
    )
        .prop_map(
            |(workload, connections, host_first, load_control, selection, mips)| Shorthand {
                workload,
                connections,
                host_first,
                load_control,
                selection,
                mips,
            },
        )
}

proptest! {
    #[test]
    fn a_printed_shorthand_is_parsed_back(shorthand in shorthands()) {
        prop_assert_eq!(shorthand.to_string().parse(), Ok(shorthand));
    }

    #[test]
    fn the_toml_of_a_shorthand_is_valid(shorthand in shorthands()) {
        let table: toml::Table = shorthand.to_toml().parse().expect("TOML");
        let name = shorthand.to_string();
        prop_assert_eq!(table["name"].as_str(), Some(name.as_str()));
        prop_assert_eq!(table["nic"]["mips"].as_integer(), Some(i64::from(shorthand.mips)));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[WIDSPNLTFC0-9-]{0,30}") {
        let _ = text.parse::<Shorthand>();
    }
}

#[test]
fn the_example_of_the_paper_is_parsed() {
    let expected = Shorthand {
        workload: WorkloadLetter::WorldCup,
        connections: 1024,
        host_first: true,
        load_control: false,
        selection: Selection::Fcfs,
        mips: 400,
    };
    assert_eq!("W-1024-P-N-FCFS-400".parse(), Ok(expected));
}

#[test]
fn each_wrong_part_is_named() {
    let cases = [
        ("X-1024-P-N-FCFS-400", 1, "workload", "X"),
        ("W-many-P-N-FCFS-400", 2, "connections", "many"),
        ("W-+5-P-N-FCFS-400", 2, "connections", "+5"),
        ("W-1024-H-N-FCFS-400", 3, "priority", "H"),
        ("W-1024-P-P-FCFS-400", 4, "load control", "P"),
        ("W-1024-P-N-LIFO-400", 5, "selection", "LIFO"),
        ("W-1024-P-N-T0-400", 5, "selection", "T0"),
        ("W-1024-P-N-FCFS-0", 6, "MIPS", "0"),
        ("W-1024-P-N-FCFS-", 6, "MIPS", ""),
    ];
    for (text, part, part_name, part_found) in cases {
        match text.parse::<Shorthand>() {
            Err(NotShorthand::Part {
                number,
                name,
                found,
                ..
            }) => {
                assert_eq!(
                    (number, name, found.as_str()),
                    (part, part_name, part_found),
                    "{text}"
                );
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn a_shorthand_needs_six_parts() {
    let error = "W-1024-P".parse::<Shorthand>().expect_err("three parts");
    assert!(error.to_string().contains("3 of the 6 parts"), "{error}");
}

#[test]
fn without_space_on_the_nic_no_handoff_is_attempted() {
    let shorthand: Shorthand = "W-0-N-N-FCFS-400".parse().expect("a shorthand");
    assert!(shorthand.to_toml().contains("policy = \"never\""));
}
