//! The page that runs the simulator itself.

use super::html::{STYLE, document, provenance, scripts};
use super::{Measure, Runs};
use maud::{Markup, html};
use serde::Serialize;

/// The page's scripts, each after those that it depends on.
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
/// Content security policy: that of reports, plus what is needed to compile the module and to run it on a worker.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'wasm-unsafe-eval' blob:; worker-src blob:; \
                      img-src data:";

/// Contents of the page.
#[derive(Clone, Debug, Default)]
pub struct Explorer {
    /// Title of the page.
    pub title: String,
    /// Text of the experiment file that the page starts with.
    pub text: String,
    /// Name of the log that this experiment replays, and its content, compressed by gzip, in base64.
    pub log: Option<(String, String)>,
    /// Measures of runs to show.
    pub measures: Vec<Measure>,
    /// Controls for keys that can be changed.
    pub groups: Vec<Group>,
    /// The WebAssembly module, compressed by gzip, in base64.
    pub module: String,
    /// Origin of the page: names and values.
    pub provenance: Vec<(String, String)>,
}

/// Controls that belong together.
#[derive(Clone, Debug)]
pub struct Group {
    /// Heading of the group.
    pub title: String,
    /// The controls.
    pub controls: Vec<Control>,
}

/// Control for a key that can be changed.
#[derive(Clone, Debug)]
pub struct Control {
    /// Path of the key.
    pub key: String,
    /// Label on the page, with the unit.
    pub label: String,
    /// Meaning of the key.
    pub meaning: String,
    /// Value in the experiment.
    pub value: String,
    /// Allowed values.
    pub kind: Kind,
    /// Another control and its value, if this control exists only with that value.
    pub only_where: Option<(String, String)>,
    /// Another key and its value, set together with this key unless this value is 0.
    pub with: Option<(String, String)>,
}

/// Allowed values of a control.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A whole number. A slider offers the stops; other numbers from `least` on can be typed.
    Number {
        /// Least allowed value.
        least: u64,
        /// Stops of the slider, in ascending order.
        stops: Vec<u64>,
    },
    /// One of these values, each with its label on the page.
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
    /// Returns the whole page. Names are escaped as text, whatever they contain.
    pub fn html(&self) -> String {
        let data = Data {
            runs: Runs {
                measures: self.measures.clone(),
                ..Runs::default()
            },
            text: &self.text,
            log: self.log.as_ref().map(|(name, _)| name.as_str()),
            worker: WORKER,
        };
        let body = html! {
            a.skip href="#results" { "To the results" }
            header {
                h1 { (self.title) }
                p {
                    "The simulator runs in this page. Nothing is sent anywhere, not even your log. The address of the page keeps what you set."
                }
            }
            main {
                noscript { p { "The simulator needs JavaScript, which is switched off." } }
                (self.form())
                div {
                    (results())
                    (configuration())
                    (provenance(&self.provenance))
                }
            }
            script type="application/gzip" id="module" { (self.module) }
            @if let Some((_, content)) = &self.log {
                script type="application/gzip" id="log-content" { (content) }
            }
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
                                p #log-help.help { "Plain or gzip; you can also drop it on the page. It stays in the browser." }
                            }
                        }
                    }
                }
                details {
                    summary { "Any other key" }
                    label for="more" { "One per line, as in " code { "wire.rate_mbps = 1000" } }
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

/// Returns the elements into which scripts write.
fn results() -> Markup {
    html! {
        section aria-labelledby="results" {
            h2 #results tabindex="-1" { "Results" }
            div.choices {
                button #run.plain type="submit" form="form" { "Run" }
                button #cancel.plain type="button" disabled { "Cancel" }
                button #pin.plain type="button" disabled { "Pin for comparison" }
                span {
                    label for="against" { "Compare with" }
                    select #against form="form" {
                        option value="base" selected { "no handoff" }
                        option value="previous" { "the run before" }
                    }
                }
                button.plain type="reset" form="form" { "Reset" }
                span { input #auto type="checkbox" checked form="form"; " " label for="auto" { "Run on every change" } }
            }
            progress #progress aria-label="Progress of the run" max="1" value="0" hidden {}
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
            h2 #configuration-title { "The same run outside the browser" }
            p { "If you save this as " code #file {} ", the command " code #command {} " gives the same numbers:" }
            pre #toml tabindex="0" role="region" aria-label="The experiment file" {}
            div.choices {
                button #copy.plain type="button" { "Copy" }
                a #save-toml { "Save the experiment" }
                a #save-results { "Save the results (JSON)" }
            }
        }
    }
}
