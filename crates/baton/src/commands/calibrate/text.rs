//! What a calibration prints.

use super::constants::{self, Constants};
use super::round::{Choice, Round};
use super::tolerance;
use crate::cli::CalibrateArgs;
use crate::commands::reproduce::Row;
use baton_report::{Column, Table, grouped, significant};
use baton_sim::config::Experiment;

/// What is about to be done.
pub fn introduction(arguments: &CalibrateArgs, experiment: &Experiment) -> String {
    let run = &experiment.run;
    let log = match &arguments.log {
        Some(path) => format!("the log {}", path.display()),
        None => "a generated log (preset `worldcup-lifetimes`), as no --log FILE was given and the World Cup log is not part \
                 of Baton:\nconstants derived from it are those of the generated log"
            .to_owned(),
    };
    format!(
        "Deriving the fitted constants of {} from Table 1 of the handoff-policies paper (OSDI 2006),\n\
         from neutral values on, with {log}.\n\
         Each run: {} packets measured after {} of warm-up, seed {}.\n\
         A number is met within {}.\n",
        arguments.profile,
        grouped(run.measured_packets),
        grouped(run.warmup_packets),
        run.seed,
        tolerance::in_words(),
    )
}

/// How near the profile itself comes.
pub fn with_profile_s_constants(rows: &[Row]) -> String {
    format!(
        "\nWith the constants of the profile\n{}{}.\n",
        numbers_table(rows),
        met_of_all(rows)
    )
}

/// The last of these rounds: constants, and how near they bring all numbers.
pub fn round(rounds: &[Round], most: u32) -> String {
    let Some((last, earlier)) = rounds.split_last() else {
        return String::new();
    };
    let before = earlier
        .last()
        .map_or(Constants::NEUTRAL, |round| round.constants);
    let title = format!("Round {} of at most {most}", rounds.len());
    format!(
        "\n{}\n{}",
        constants_table(&title, "before", &before, "after", &last.constants),
        numbers_table(&last.rows),
    )
}

/// What came out, beside what the profile has.
pub fn outcome(rounds: &[Round], in_profile: &Constants, settled: bool) -> String {
    let Some(last) = rounds.last() else {
        return String::new();
    };
    let derived = &last.constants;
    let how = if settled {
        "settled: the last round moved none by more than a quarter of its tolerance"
    } else {
        "not settled: the last round still moved some; allow more with --rounds N"
    };
    let choices: String = last.choices.iter().map(choice_table).collect();
    format!(
        "\n{choices}{}\n{} after {} ({how}).\n\n\
         For the profile, which is not changed:\n\n{}",
        constants_table("Derived", "profile", in_profile, "derived", derived),
        met_of_all(&last.rows),
        count_of_rounds(rounds.len()),
        derived.to_toml(),
    )
}

fn met_of_all(rows: &[Row]) -> String {
    let met = rows.iter().filter(|row| tolerance::met(row)).count();
    format!("{met} of {} numbers are within tolerance", rows.len())
}

fn count_of_rounds(count: usize) -> String {
    match count {
        1 => "1 round".to_owned(),
        more => format!("{more} rounds"),
    }
}

/// Two sets of constants side by side.
fn constants_table(
    title: &str,
    before_head: &str,
    before: &Constants,
    after_head: &str,
    after: &Constants,
) -> String {
    let mut table = Table::new(vec![
        Column::words("constant"),
        Column::numbers(before_head),
        Column::numbers(after_head),
        Column::numbers("change"),
        Column::words(""),
    ])
    .titled(title);
    for ((key, before), (_, after)) in before.by_key().into_iter().zip(after.by_key()) {
        table.row(vec![
            key.to_owned(),
            before.to_string(),
            after.to_string(),
            change(before, after),
            limit_note(key, after).to_owned(),
        ]);
    }
    table.render()
}

fn change(before: u32, after: u32) -> String {
    if before == after {
        "-".to_owned()
    } else {
        let ratio = f64::from(after) / f64::from(before.max(1));
        format!("{:+.1} %", 100.0 * (ratio - 1.0))
    }
}

/// Says so if a constant might have gone on but for its limit.
fn limit_note(key: &str, value: u32) -> &'static str {
    let limits = constants::limits(key);
    if value == *limits.start() {
        "at its least"
    } else if value == *limits.end() {
        "at its most"
    } else {
        ""
    }
}

/// Published beside simulated, with error and whether it is within tolerance.
fn numbers_table(rows: &[Row]) -> String {
    let mut table = Table::new(vec![
        Column::words("configuration"),
        Column::words("metric"),
        Column::numbers("published"),
        Column::numbers("simulated"),
        Column::numbers("error"),
        Column::words("met"),
    ]);
    let mut last = "";
    for row in rows {
        let Some(published) = row.published else {
            continue;
        };
        let config = if row.config == last { "" } else { &row.config };
        last = &row.config;
        table.row(vec![
            config.to_owned(),
            row.shown.name.to_owned(),
            significant(published),
            significant(row.simulated),
            row.shown.scale.error(published, row.simulated),
            if tolerance::met(row) { "yes" } else { "no" }.to_owned(),
        ]);
    }
    table.render()
}

/// What a constant was chosen from, the nearest marked.
fn choice_table(choice: &Choice) -> String {
    let published = choice.published;
    let title = format!(
        "{}: chosen by the median delays of host packets in {}, published {} us sent, {} us received",
        choice.key,
        published.config,
        significant(published.send_delay_us),
        significant(published.receive_delay_us),
    );
    let mut table = Table::new(vec![
        Column::numbers("value"),
        Column::numbers("sent, us"),
        Column::numbers("received, us"),
        Column::words(""),
    ])
    .titled(title);
    let chosen = choice.chosen();
    for candidate in &choice.candidates {
        let mark = if candidate.value == chosen {
            "nearest"
        } else {
            ""
        };
        table.row(vec![
            candidate.value.to_string(),
            significant(candidate.send_delay_us),
            significant(candidate.receive_delay_us),
            mark.to_owned(),
        ]);
    }
    table.render() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_at_a_limit_says_so() {
        assert_eq!(limit_note("host.scale.bypass", 400), "at its most");
        assert_eq!(limit_note("host.scale.bypass", 399), "");
        assert_eq!(limit_note("host.scale.application", 400), "");
        assert_eq!(limit_note("nic.scale.offload", 10), "at its least");
        assert_eq!(
            limit_note("nic.firmware.arrival_queue_packets", 32),
            "at its least"
        );
    }

    #[test]
    fn changes_are_told_in_per_cent() {
        assert_eq!(change(100, 100), "-");
        assert_eq!(change(100, 262), "+162.0 %");
        assert_eq!(change(80, 76), "-5.0 %");
    }
}
