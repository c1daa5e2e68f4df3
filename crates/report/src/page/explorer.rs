//! The page in which the simulator itself runs.

use super::html::{STYLE, document, provenance, scripts};
use super::{Measure, Runs};
use maud::{Markup, html};
use serde::Serialize;

/// What the page does, in the order in which it depends on each other.
const SCRIPTS: [&str; 6] = [
    include_str!("assets/data.js"),
    include_str!("assets/charts.js"),
    include_str!("assets/bars.js"),
    include_str!("assets/keys.js"),
    include_str!("assets/controls.js"),
    include_str!("assets/explorer.js"),
];
const WORKER: &str = include_str!("assets/worker.js");
const OWN_STYLE: &str = include_str!("assets/explorer.css");
/// As of reports; beside that, the module is compiled, and runs on a worker.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'wasm-unsafe-eval' blob:; worker-src blob:; \
                      img-src data:";

/// Everything that is on the page.
#[derive(Clone, Debug, Default)]
pub struct Explorer {
    /// What it is called.
    pub title: String,
    /// The experiment file that it starts with.
    pub text: String,
    /// The log that this file replays, which the page does not have.
    pub log: Option<String>,
    /// What it is to show of runs.
    pub measures: Vec<Measure>,
    /// What can be changed.
    pub groups: Vec<Group>,
    /// The module, compressed by gzip, in base64.
    pub module: String,
    /// Where this comes from: what it is, and what it says.
    pub provenance: Vec<(String, String)>,
}

/// Controls that belong together.
#[derive(Clone, Debug)]
pub struct Group {
    /// What is said of them.
    pub title: String,
    /// The controls.
    pub controls: Vec<Control>,
}

/// A key that can be changed.
#[derive(Clone, Debug)]
pub struct Control {
    /// Its path.
    pub key: String,
    /// What the page calls it, with its unit.
    pub label: String,
    /// What it means.
    pub meaning: String,
    /// What the experiment says.
    pub value: String,
    /// What it may be.
    pub kind: Kind,
    /// It exists only where another control has this value.
    pub only_where: Option<(String, String)>,
    /// Another key that is set with it, unless this is 0.
    pub with: Option<(String, String)>,
}

/// What a control may say.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A whole number: a slider stops at these, from the least on. Any other from `least` on can be typed.
    Number {
        /// The least.
        least: u64,
        /// In ascending order.
        stops: Vec<u64>,
    },
    /// One of these values, with what the page calls it.
    Choice(Vec<(String, String)>),
    /// True or false.
    Switch,
}

#[derive(Serialize)]
struct Data<'a> {
    #[serde(flatten)]
    runs: Runs,
    text: &'a str,
    log: Option<&'a str>,
    worker: &'a str,
}

impl Explorer {
    /// The whole page. Names are text in it, whatever they hold.
    pub fn html(&self) -> String {
        let data = Data {
            runs: Runs {
                measures: self.measures.clone(),
                ..Runs::default()
            },
            text: &self.text,
            log: self.log.as_deref(),
            worker: WORKER,
        };
        let body = html! {
            a.skip href="#results" { "To the results" }
            header {
                h1 { (self.title) }
                p { "The simulator runs in this page: nothing is sent anywhere, your log neither." }
            }
            main {
                noscript { p { "The simulator needs scripts, which are switched off." } }
                (self.form())
                div {
                    (results())
                    (configuration())
                    (provenance(&self.provenance))
                }
            }
            script type="application/gzip" id="module" { (self.module) }
            (scripts(&data, &SCRIPTS))
        };
        document(&self.title, POLICY, &[STYLE, OWN_STYLE].concat(), &body)
    }

    fn form(&self) -> Markup {
        html! {
            form #form aria-label="What to run" autocomplete="off" {
                @for (number, group) in self.groups.iter().enumerate() {
                    fieldset {
                        legend { (group.title) }
                        @for control in &group.controls { (control.html()) }
                        @if number == 0 {
                            div.control {
                                label for="log" { "Your own access log" }
                                input #log type="file" aria-describedby="log-help";
                                p #log-help.help { "Plain or gzip; or drop it on the page. It stays in the browser." }
                            }
                        }
                    }
                }
                details {
                    summary { "Any other key" }
                    label for="more" { "A line each, as in " code { "wire.rate_mbps = 1000" } }
                    textarea #more rows="4" spellcheck="false" {}
                }
            }
        }
    }
}

impl Control {
    fn html(&self) -> Markup {
        let (id, help) = (
            self.key.replace('.', "-"),
            format!("{}-help", self.key.replace('.', "-")),
        );
        let (where_key, where_value) = self.only_where.clone().unzip();
        let (with_key, with_value) = self.with.clone().unzip();
        html! {
            div.control data-key=(self.key) data-start=(self.value) data-where-key=[where_key] data-where-value=[where_value]
                data-with-key=[with_key] data-with-value=[with_value] {
                @match &self.kind {
                    Kind::Number { least, stops } => {
                        label for=(id) { (self.label) }
                        div.slider {
                            input type="range" aria-label=(format!("{}, slider", self.label)) min="0" max=(stops.len() - 1)
                                data-stops=(stops.iter().map(u64::to_string).collect::<Vec<_>>().join(" "));
                            input id=(id) type="number" min=(least) step="1" required value=(self.value) aria-describedby=(help);
                        }
                    }
                    Kind::Choice(options) => {
                        label for=(id) { (self.label) }
                        select id=(id) aria-describedby=(help) {
                            @for (value, text) in options { option value=(value) selected[*value == self.value] { (text) } }
                        }
                    }
                    Kind::Switch => span {
                        input id=(id) type="checkbox" checked[self.value == "true"] aria-describedby=(help);
                        " " label for=(id) { (self.label) }
                    }
                }
                p.help id=(help) { (self.meaning) }
            }
        }
    }
}

/// Places for what scripts write.
fn results() -> Markup {
    html! {
        section aria-labelledby="results" {
            h2 #results tabindex="-1" { "Results" }
            div.choices {
                button #run.plain type="submit" form="form" { "Run" }
                button #cancel.plain type="button" disabled { "Cancel" }
                button #pin.plain type="button" disabled { "Pin for comparison" }
                button.plain type="reset" form="form" { "As at the start" }
                span { input #auto type="checkbox" checked form="form"; " " label for="auto" { "Run on every change" } }
            }
            progress #progress aria-label="Share of the run that is simulated" max="1" value="0" hidden {}
            div aria-live="polite" {
                p #state { "The simulator is being loaded." }
                p #verdict.headline {}
                ul #notes {}
            }
            div #numbers {}
        }
        section #cycles aria-labelledby="cycles-title" hidden {
            h2 #cycles-title { "Where the host's time goes" }
            div.charts {}
        }
        section #over-time aria-labelledby="over-time-title" hidden {
            h2 #over-time-title { "Over time" }
            div.charts {}
        }
    }
}

fn configuration() -> Markup {
    html! {
        section #configuration aria-labelledby="configuration-title" hidden {
            h2 #configuration-title { "The same outside of the browser" }
            p { "Saved as " code #file {} ", this gives the same numbers by " code #command {} ":" }
            pre #toml tabindex="0" role="region" aria-label="The experiment file" {}
            div.choices {
                button #copy.plain type="button" { "Copy" }
                a #save-toml { "Save the experiment" }
                a #save-results { "Save the results (JSON)" }
            }
        }
    }
}
