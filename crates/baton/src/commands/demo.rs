//! `baton demo`: shows the main results in one table, and in sentences derived from its numbers.

use crate::cli::DemoArgs;
use crate::config::{Request, Setting};
use crate::failure::Failure;
use crate::output::print_text;
use crate::runner::{Interrupt, Job, run_all};
use crate::tables;
use baton_report as report;
use baton_sim::results::{Results, Sample};

const INTRODUCTION: &str = "A web server of 2006 with 2048 clients that replay a generated log, and a NIC of 400 MIPS that can take over connections.";
const NEXT: &str =
    "Next: baton run W-1024-P-N-FCFS-400, or the same with a log of yours: add --log FILE";

/// Runs the command.
///
/// # Errors
/// Fails if a run fails, or if the user interrupts.
pub fn execute(arguments: &DemoArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let jobs = jobs(arguments.seed.get())?;
    let results = run_all(&jobs, arguments.threads.get(), interrupt)?;
    let groups: Vec<&[Results]> = results.chunks(1).collect();
    let [none, in_order, host_first, too_many, load_control] = results.as_slice() else {
        return Err(Failure::Failed(
            "the number of results is not the number of runs in the demo".to_owned(),
        ));
    };
    let story = [
        without(none),
        with_nic_in_order(none, in_order),
        with_host_first(none, in_order, host_first),
        with_too_many(none, too_many),
        with_load_control(none, load_control),
    ];
    let story: String = story
        .iter()
        .map(|sentence| report::wrapped(sentence, report::width(), 2))
        .collect();
    let table = tables::runs_table(&groups, "COLUMNS=130 baton demo shows all");
    let notes = tables::notes(&results);
    let [introduction, next] =
        [INTRODUCTION, NEXT].map(|text| report::wrapped(text, report::width(), 0));
    print_text(&format!("{introduction}\n{table}{notes}\n{story}\n{next}"))
}

/// Returns the runs, one for each sentence, in order.
fn jobs(seed: u64) -> Result<Vec<Job>, Failure> {
    let request = Request {
        experiment: "demo".to_owned(),
        settings: vec![Setting::of_flag("--seed", "run.seed", seed)],
        ..Request::default()
    };
    Job::all_of(&request)
}

fn without(none: &Results) -> String {
    format!(
        "- Without handoff the server serves {}. Its processor is {}; {} of its cycles are spent in the network stack.",
        rate(none),
        busy(none.host.idle_percent),
        report::percent(none.host.network_stack_percent),
    )
}

fn with_nic_in_order(none: &Results, in_order: &Results) -> String {
    let mut text = format!("- Handing off 1024 connections {}.", change(none, in_order));
    if in_order.nic.idle_percent < 10.0 {
        text.push_str(&format!(
            " The NIC is the bottleneck: its processor is {}, and received packets of connections that stayed on the host wait {} us on it (median), compared with {} us without handoff; meanwhile the host is {}.",
            busy(in_order.nic.idle_percent),
            tables::number(in_order.nic.receive_delay_us.p50),
            tables::number(none.nic.receive_delay_us.p50),
            busy(in_order.host.idle_percent),
        ));
    }
    text.push_str(&losses(in_order));
    text
}

fn with_host_first(none: &Results, in_order: &Results, host_first: &Results) -> String {
    format!(
        "- Serving host packets first on the NIC changes their wait from {} to {} us and {}.",
        tables::number(in_order.nic.receive_delay_us.p50),
        tables::number(host_first.nic.receive_delay_us.p50),
        change(none, host_first),
    )
}

fn with_too_many(none: &Results, too_many: &Results) -> String {
    format!(
        "- More connections on the NIC need not be better: if it may hold 4096, the NIC processes {} of all packets and is {}, the host \
         is {}, and that {}.{}",
        report::percent(too_many.handoff.offloaded_packets_percent),
        busy(too_many.nic.idle_percent),
        busy(too_many.host.idle_percent),
        change(none, too_many),
        losses(too_many),
    )
}

fn with_load_control(none: &Results, load_control: &Results) -> String {
    format!(
        "- With load control the NIC limits itself to {} connections on average; that {}.{}",
        report::significant(load_control.nic.connections_mean),
        change(none, load_control),
        losses(load_control),
    )
}

/// Describes the frames that the NIC dropped, and the clients that were left without a connection; empty if it dropped no frames.
fn losses(result: &Results) -> String {
    let drops: u64 = result.nic.drops.values().sum();
    if drops == 0 {
        return String::new();
    }
    let clients = f64::from(result.experiment.clients.connections);
    let mut text = format!(" The NIC dropped {} frames", report::grouped(drops));
    let open = open_connections(result);
    if open < 0.9 * clients {
        text.push_str(&format!(
            "; on average {} of {} clients had a connection, while the others waited to try again",
            report::significant(open),
            report::grouped(clients as u64),
        ));
    }
    text.push('.');
    text
}

/// Returns the mean number of open connections of the server in the measured part.
fn open_connections(result: &Results) -> f64 {
    let measured = |sample: &&Sample| sample.time_us as f64 >= 1e6 * result.warmup_s;
    let open: Vec<f64> = result
        .series
        .iter()
        .filter(measured)
        .map(|sample| f64::from(sample.open))
        .collect();
    open.iter().sum::<f64>() / open.len().max(1) as f64
}

fn rate(result: &Results) -> String {
    format!(
        "{} requests/s",
        report::grouped(result.request_rate().mean.round() as u64)
    )
}

/// Describes the change of the request rate by handoff.
fn change(from: &Results, to: &Results) -> String {
    let percent = 100.0 * (to.request_rate().mean / from.request_rate().mean.max(1.0) - 1.0);
    format!("{} {}", change_in_words(percent), rate(to))
}

fn change_in_words(percent: f64) -> String {
    match percent {
        p if p >= 1.0 => format!("raises the request rate by {p:.0} % over no handoff, to"),
        p if p <= -1.0 => format!("lowers the request rate by {:.0} % from no handoff, to", -p),
        _ => "leaves the request rate about the same as without handoff, at".to_owned(),
    }
}

/// Describes the load of a processor.
fn busy(idle_percent: f64) -> String {
    if idle_percent < 0.5 {
        "always busy".to_owned()
    } else {
        format!("idle {} of the time", report::percent(idle_percent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_follow_the_numbers() {
        assert_eq!(
            change_in_words(15.8),
            "raises the request rate by 16 % over no handoff, to"
        );
        assert_eq!(
            change_in_words(-30.0),
            "lowers the request rate by 30 % from no handoff, to"
        );
        assert_eq!(
            change_in_words(0.3),
            "leaves the request rate about the same as without handoff, at"
        );
        assert_eq!(busy(0.0), "always busy");
        assert_eq!(busy(62.0), "idle 62 % of the time");
    }

    #[test]
    fn each_sentence_of_the_demo_has_its_run() {
        let jobs = jobs(7).expect("an experiment");
        assert_eq!(jobs.len(), 5);
        for job in jobs {
            assert_eq!(job.experiment.run.seed, 7);
            let again = format!("--variant '{}' --seed 7", job.experiment.name);
            assert!(job.replay.ends_with(&again), "{}", job.replay);
        }
    }
}
