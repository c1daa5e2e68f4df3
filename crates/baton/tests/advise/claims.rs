//! Compares the statements in the text of a verdict with its numbers.

use libtest_mimic::Failed;
use serde_json::Value;

/// Checks every sentence about an alternative (a *way* in JSON) and about a setting that was varied.
///
/// # Errors
/// A statement contradicts the numbers.
pub fn check(text: &str, verdict: &Value) -> Result<(), Failed> {
    let claims = Claims(text.split_whitespace().collect::<Vec<_>>().join(" "));
    let ways = array(&verdict["ways"]);
    for (number, way) in ways.iter().enumerate() {
        claims.way(way, number == 0)?;
    }
    claims.headline(verdict, ways)?;
    for found in array(&verdict["break_even"]) {
        claims.break_even(found)?;
    }
    claims.under_load(array(&verdict["under_load"]))?;
    claims.says(&format!(
        "has {} requests",
        grouped(&verdict["log"]["requests"])
    ))?;
    claims.says(&format!(
        "replayed by {} clients",
        grouped(&verdict["machine"]["clients"])
    ))
}

/// The text of a verdict, in one line.
struct Claims(String);

impl Claims {
    fn says(&self, what: &str) -> Result<(), Failed> {
        says(&self.0, what)
    }

    /// Returns the rest of the list item that starts with `begin`.
    fn item(&self, begin: &str) -> Result<&str, Failed> {
        let (_, after) = self
            .0
            .split_once(begin)
            .ok_or(format!("no item starts with {begin:?}"))?;
        // The next item starts with a dash, and the next paragraph with one of these phrases.
        let ends = [" - ", " Where it pays:", " What was assumed:"];
        let end = ends.iter().filter_map(|end| after.find(end)).min();
        Ok(&after[..end.unwrap_or(after.len())])
    }

    fn way(&self, way: &Value, is_baseline: bool) -> Result<(), Failed> {
        let sentence = self.item(&format!(" - {}: ", text(&way["name"])))?;
        says(sentence, &grouped(&way["request_rate"]["mean"]))?;
        for (busy, name) in [
            ("host_busy_percent", "the host's processor"),
            ("nic_busy_percent", "the NIC's processor"),
        ] {
            let is_full = number(&way[busy]) >= 95.0;
            if sentence.contains(name) != is_full {
                return Err(format!("{busy} is {}: {sentence}", way[busy]).into());
            }
        }
        if is_baseline {
            return Ok(());
        }
        says(sentence, &difference(&way["gain_percent"]))?;
        let (gain, saved) = (
            matters(&way["gain_percent"]),
            matters(&way["host_time_saved_percent"]),
        );
        let begin = match (gain, saved) {
            (1, _) => "faster, ",
            (-1, _) => "slower, ",
            (_, 1) => "no difference in speed that matters (",
            _ => "no difference that matters (",
        };
        if !sentence.starts_with(begin) {
            return Err(format!("{} is not {begin:?}: {sentence}", way["gain_percent"]).into());
        }
        match number(&way["frames_dropped"]) {
            0.0 if sentence.contains("dropped") => {
                Err(format!("no frame was dropped: {sentence}").into())
            }
            0.0 => Ok(()),
            _ => says(
                sentence,
                &format!("dropped {} frames", grouped(&way["frames_dropped"])),
            ),
        }
    }

    /// Checks that the text recommends the simplest of the alternatives that cannot be told from the best one, names the others, and recommends
    /// no handoff if none is better, or if the log's own load is light.
    fn headline(&self, verdict: &Value, ways: &[Value]) -> Result<(), Failed> {
        let headline = self.0.split(" The log ").next().unwrap_or_default();
        let is_faster = |way: &&Value| matters(&way["gain_percent"]) > 0;
        let frees = |way: &&Value| {
            matters(&way["gain_percent"]) == 0 && matters(&way["host_time_saved_percent"]) > 0
        };
        let faster: Vec<&Value> = ways[1..].iter().filter(is_faster).collect();
        let freeing: Vec<&Value> = ways[1..].iter().filter(frees).collect();
        let load = &verdict["own_load"];
        if !load.is_null() {
            says(
                headline,
                &format!("has {} requests", grouped(&load["peak_per_s"])),
            )?;
            if number(&load["peak_percent"]) < 50.0 {
                says(headline, "keep this traffic on the host")?;
            }
        }
        let Some(advised) = verdict["advised"].as_u64() else {
            if !faster.is_empty() || !freeing.is_empty() {
                return Err("a better alternative is not recommended".into());
            }
            return says(headline, "keep this traffic on the host");
        };
        let advised = &ways[advised as usize];
        says(headline, text(&advised["name"]))?;
        let (better, value, says_what) = match faster.is_empty() {
            false => (faster, "request_rate", "faster than no handoff"),
            true => (freeing, "host_us_per_request", "less time on each response"),
        };
        says(headline, says_what)?;
        let by_value = |a: &&&Value, b: &&&Value| {
            let [a, b] = [a, b].map(|way| number(&way[value]["mean"]));
            let order = a.total_cmp(&b);
            if value == "request_rate" {
                order
            } else {
                order.reverse()
            }
        };
        let best = better.iter().max_by(by_value).expect("one is better");
        let as_good = |way: &&&Value| !differs(&best[value], &way[value]);
        let as_good: Vec<&str> = better
            .iter()
            .filter(as_good)
            .map(|way| text(&way["name"]))
            .collect();
        assert_eq!(text(&advised["name"]), as_good[0], "{headline}");
        as_good.iter().try_for_each(|name| says(headline, name))
    }

    /// Checks that the text gives a response time for each load, or reports the load as an overload.
    fn under_load(&self, loads: &[Value]) -> Result<(), Failed> {
        assert!(!loads.is_empty(), "the time limit leaves time for loads");
        let sentence = self.item(" - load (")?;
        let is_slower = loads.iter().any(|load| {
            let [before, with] = ["baseline_ms", "way_ms"].map(|way| &load[way]);
            number(&load["share_percent"]) < 100.0
                && !before.is_null()
                && !with.is_null()
                && is_longer(before, with)
        });
        assert_eq!(
            self.0.contains("But a server that is not saturated"),
            is_slower
        );
        let mut rest = sentence;
        for load in loads {
            let (before, after) = rest.split_once(" requests/s (").ok_or(sentence)?;
            says(before, &grouped(&load["offered_per_s"]))?;
            let unserved = before.matches("overload").count();
            let is_none = |way: &str| usize::from(load[way].is_null());
            let expected = is_none("baseline_ms") + is_none("way_ms");
            if unserved != expected {
                return Err(format!("{load} is not {before:?}").into());
            }
            rest = after;
        }
        Ok(())
    }

    fn break_even(&self, found: &Value) -> Result<(), Failed> {
        let what = match text(&found["key"]) {
            "nic.mips" => "NIC speed",
            "nic.firmware.hard_limit" => "connections that a NIC may hold",
            _ => "cache on a NIC",
        };
        let sentence = self.item(&format!(" - {what} (`{}`): ", text(&found["way"])))?;
        let points = array(&found["points"]);
        for point in points {
            says(
                sentence,
                &format!("{} at ", difference(&point["gain_percent"])),
            )?;
        }
        let pays: Vec<bool> = points
            .iter()
            .map(|point| matters(&point["gain_percent"]) > 0)
            .collect();
        let begin = match (pays.iter().any(|&pays| pays), pays.iter().all(|&pays| pays)) {
            (false, _) => "it is not faster than no handoff at any value tried",
            (true, true) => "it is faster than no handoff at all",
            (true, false) => "it is faster than no handoff",
        };
        says(sentence, begin)?;
        let first = pays.iter().position(|&pays| pays);
        if let (Some(first), true) = (first, sentence.contains(" upwards (")) {
            let is_suffix = pays[first..].iter().all(|&pays| pays);
            assert!(is_suffix && first > 0, "{sentence}");
            // The text lists a gain for each value, in the order of the values.
            let from = sentence
                .split(" from ")
                .nth(1)
                .and_then(|rest| rest.split(" upwards (").next());
            says(
                sentence,
                &format!(
                    "{} at {}",
                    difference(&points[first]["gain_percent"]),
                    from.unwrap_or("?")
                ),
            )?;
        }
        Ok(())
    }
}

fn says(text: &str, what: &str) -> Result<(), Failed> {
    match text.contains(what) {
        true => Ok(()),
        false => Err(format!("{what:?} is missing: {text}").into()),
    }
}

fn array(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a string")
}

/// Returns 1 or -1 if the whole interval is above or below 0, and 0 if it includes 0 or is unknown.
fn sign(estimate: &Value) -> i8 {
    let mean = number(&estimate["mean"]);
    let half = estimate["half_width"].as_f64().unwrap_or(f64::INFINITY);
    i8::from(mean - half > 0.0) - i8::from(mean + half < 0.0)
}

/// As [`sign`], and 0 if the difference is below 1 %.
fn matters(estimate: &Value) -> i8 {
    match number(&estimate["mean"]).abs() >= 1.0 {
        true => sign(estimate),
        false => 0,
    }
}

/// Returns whether two values differ by 1 % and by more than the intervals of both allow.
fn differs(one: &Value, other: &Value) -> bool {
    let far = (number(&other["mean"]) / number(&one["mean"]) - 1.0).abs() >= 0.01;
    far && (is_longer(one, other) || is_longer(other, one))
}

/// Returns whether `with` is longer than `before` by more than the intervals of both allow.
fn is_longer(before: &Value, with: &Value) -> bool {
    let half = |time: &Value| time["half_width"].as_f64().unwrap_or(f64::INFINITY);
    let (base, mean) = (number(&before["mean"]), number(&with["mean"]));
    let error = (mean / base * half(before)).powi(2) + half(with).powi(2);
    mean - base > error.sqrt()
}

/// Formats a difference as tables show it.
fn difference(estimate: &Value) -> String {
    let half = estimate["half_width"].as_f64();
    let half = half.map(|half| format!(" ±{half:.1}")).unwrap_or_default();
    format!("{:+.1}{half} %", number(&estimate["mean"]))
}

/// Formats a number with its digits in groups of three.
fn grouped(value: &Value) -> String {
    let digits = format!("{:.0}", number(value));
    let groups: Vec<&[u8]> = digits.as_bytes().rchunks(3).rev().collect();
    let groups = groups.iter().map(|group| String::from_utf8_lossy(group));
    groups.collect::<Vec<_>>().join(",")
}
