//! The protocol under the model checker, and without each of its rules.

use baton_ownership::{Bounds, Ending, MOVES_ON, ONE_OWNER, Protocol, RIGHT_BYTES, Rules, Victim};
use stateright::{Checker, HasDiscoveries, Model};

/// One kill of any process at any step; one successor of broker and adapter each; timeouts only when nothing else can happen.
const ONE_KILL: Bounds = Bounds {
    requests: 2,
    moves: 1,
    kills: [1, 1, 1],
    most_kills: 1,
    successors: [1, 1],
    failures: 1,
    forged: 0,
    patient: true,
};

/// Any process may be stopped at any step: timeouts expire at any moment.
const STOPS: Bounds = Bounds {
    patient: false,
    ..ONE_KILL
};

/// No process is started again.
const NO_SUCCESSORS: Bounds = Bounds {
    successors: [0, 0],
    ..ONE_KILL
};

/// Two processes are killed.
const TWO_KILLS: Bounds = Bounds {
    most_kills: 2,
    failures: 0,
    ..ONE_KILL
};

/// An application uses states twice.
const FORGERIES: Bounds = Bounds {
    forged: 1,
    failures: 0,
    ..STOPS
};

/// Returns the violated properties, each with the steps that lead to its violation and the state after them. Stops `until` enough are found.
fn violations(rules: Rules, bounds: Bounds, until: HasDiscoveries) -> Vec<(&'static str, String)> {
    let checker = Protocol::new(rules, bounds)
        .checker()
        .finish_when(until)
        .spawn_bfs()
        .join();
    let found = checker.discoveries().into_iter();
    let text = |(name, path): (&'static str, stateright::Path<_, _>)| {
        let last = format!("{:?}", path.last_state());
        (name, format!("{:?}\n{last}", path.into_actions()))
    };
    found.map(text).collect()
}

#[test]
fn the_protocol_keeps_its_properties() {
    for bounds in [ONE_KILL, STOPS, NO_SUCCESSORS, TWO_KILLS, FORGERIES] {
        let found = violations(Rules::default(), bounds.clone(), HasDiscoveries::Any);
        assert!(found.is_empty(), "{bounds:?}: {found:#?}");
    }
}

/// The given number of kills, as many successors, and a second move.
#[test]
#[ignore = "takes a minute: `-- --ignored`; BATON_MODEL_KILLS says how many kills"]
fn the_protocol_keeps_its_properties_with_more_kills() {
    let kills = std::env::var("BATON_MODEL_KILLS").unwrap_or_else(|_| "2".to_owned());
    let most_kills = kills.parse().expect("BATON_MODEL_KILLS is a number");
    let bounds = Bounds {
        moves: 2,
        kills: [1, most_kills, most_kills],
        most_kills,
        successors: [most_kills; 2],
        ..TWO_KILLS
    };
    let found = violations(Rules::default(), bounds, HasDiscoveries::Any);
    assert!(found.is_empty(), "{found:#?}");
}

/// A rule, how to leave it out, the limits of the runs, and the property that is then violated.
type Case = (&'static str, fn(&mut Rules), Bounds, &'static str);

/// Without any one of the rules, the checker finds a violation.
#[test]
fn each_rule_of_the_protocol_is_needed() {
    let cases: [Case; 15] = [
        ("claims", |rules| rules.claims = false, FORGERIES, ONE_OWNER),
        ("kinds", |rules| rules.kinds = false, FORGERIES, RIGHT_BYTES),
        (
            "passes_first",
            |rules| rules.passes_first = false,
            ONE_KILL,
            MOVES_ON,
        ),
        (
            "records_first",
            |rules| rules.records_first = false,
            ONE_KILL,
            RIGHT_BYTES,
        ),
        (
            "asks_first",
            |rules| rules.asks_first = false,
            TWO_KILLS,
            MOVES_ON,
        ),
        (
            "asks_late",
            |rules| rules.asks_late = false,
            ONE_KILL,
            MOVES_ON,
        ),
        (
            "resets_claimed",
            |rules| rules.resets_claimed = false,
            ONE_KILL,
            MOVES_ON,
        ),
        (
            "asks_for_unknown",
            |rules| rules.asks_for_unknown = false,
            TWO_KILLS,
            MOVES_ON,
        ),
        (
            "answers_last",
            |rules| rules.answers_last = false,
            TWO_KILLS,
            MOVES_ON,
        ),
        (
            "lingers",
            |rules| rules.lingers = false,
            ONE_KILL,
            RIGHT_BYTES,
        ),
        (
            "gives_back_after_end",
            |rules| rules.gives_back_after_end = false,
            ONE_KILL,
            MOVES_ON,
        ),
        (
            "asks_again",
            |rules| rules.asks_again = false,
            TWO_KILLS,
            MOVES_ON,
        ),
        (
            "doubts",
            |rules| rules.doubts = false,
            NO_SUCCESSORS,
            MOVES_ON,
        ),
        (
            "tells_claimed",
            |rules| rules.tells_claimed = false,
            TWO_KILLS,
            MOVES_ON,
        ),
        (
            "resets_alone",
            |rules| rules.resets_alone = false,
            NO_SUCCESSORS,
            MOVES_ON,
        ),
    ];
    let mut wrong = Vec::new();
    for (name, leave_out, bounds, expected) in cases {
        let mut rules = Rules::default();
        leave_out(&mut rules);
        let found = violations(rules, bounds, HasDiscoveries::AllOf([expected].into()));
        if std::env::var_os("BATON_MODEL_SHOW").is_some() {
            println!("without {name}: {found:#?}");
        }
        if !found.iter().any(|(property, _)| *property == expected) {
            let found: Vec<_> = found.iter().map(|(property, _)| *property).collect();
            wrong.push(format!(
                "{name}: {expected:?} is expected, found is {found:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The table in `docs/src/live/failures.md`.
#[test]
fn the_ends_of_connections_are_as_expected() {
    let bounds = Bounds {
        failures: 0,
        ..ONE_KILL
    };
    let checker = Protocol::new(Rules::default(), bounds)
        .checker()
        .spawn_bfs()
        .join();
    let endings = checker
        .model()
        .endings
        .lock()
        .expect("no thread panics")
        .clone();
    for ((victim, stage), endings) in &endings {
        println!("{victim:?} | {stage} | {endings:?}");
    }
    let always = |victim, stage, ending| {
        let found = endings
            .get(&(victim, stage))
            .unwrap_or_else(|| panic!("{victim:?} {stage}"));
        assert_eq!(
            found.iter().collect::<Vec<_>>(),
            [&ending],
            "{victim:?} {stage}"
        );
    };
    for stage in [
        "in the kernel",
        "TAKE: map entry inserted",
        "TAKE: state read",
        "IMPORT: recorded",
        "on the adapter, at rest",
    ] {
        always(Victim::Broker, stage, Ending::GoesOn);
    }
    for stage in [
        "TAKE: socket closed",
        "GIVE_BACK: claimed",
        "GIVE_BACK: repaired",
        "GIVE_BACK: map entry removed",
    ] {
        always(Victim::Broker, stage, Ending::BothHear);
    }
    for stage in [
        "TAKE: answered",
        "IMPORT: asked",
        "EXPORT: state given",
        "GIVE_BACK: asked",
        "GIVE_BACK: claimed",
    ] {
        always(Victim::Adapter, stage, Ending::GoesOn);
    }
}
