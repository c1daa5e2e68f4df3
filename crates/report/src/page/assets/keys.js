// Two runs side by side: how they went, and how they are configured.
const pair = { one: 0, other: 0 };
const MOST_OPTIONS = 2000;

// The same choice wherever it is offered.
function pairChoices(onchange) {
  const options = data.runs.slice(0, MOST_OPTIONS).map((run, i) => [i, runTitle(run)]);
  const of = (name, which) => {
    const made = choice(name, options, pair[which], value => {
      pair[which] = Number(value);
      document.querySelectorAll(`select[data-pair=${which}]`).forEach(select => { select.value = value; });
      onchange();
    });
    made.querySelector("select").dataset.pair = which;
    return made;
  };
  return [of("Run", "one"), of("beside", "other")];
}

const QUANTITIES = [
  ["Connections", run => [["open", run.samples.open], ["on the NIC", run.samples.on_nic], ["soft limit", run.samples.soft_limit]]],
  ["Packets that wait on the NIC", run => [["queue", run.samples.queue]]],
  ["Responses, 1/s", run => [["responses", rates(run.samples)]]],
  ["Requests not answered yet", run => run.samples.unanswered.length ? [["unanswered", run.samples.unanswered]] : []],
];

function rates({ time_us: time, responses }) {
  return responses.map((count, i) => i === 0 ? null : (count - responses[i - 1]) / Math.max(1, time[i] - time[i - 1]) * 1e6);
}

function showOverTime(place) {
  forgetCharts(place);
  const runs = pair.one === pair.other ? [data.runs[pair.one]] : [data.runs[pair.one], data.runs[pair.other]];
  const x = [...new Set(runs.flatMap(run => run.samples.time_us))].sort((a, b) => a - b);
  if (x.length === 0) { place.append(element("p", {}, "No samples of these runs were kept.")); return; }
  const at = new Map(x.map((time, i) => [time, i]));
  for (const [title, of] of QUANTITIES) {
    const series = runs.flatMap(run => of(run).map(([label, values]) => {
      const placed = new Array(x.length).fill(null);
      run.samples.time_us.forEach((time, i) => { placed[at.get(time)] = values[i]; });
      return { label: runs.length > 1 ? `${label}: ${runTitle(run)}` : label, values: placed };
    }));
    if (series.length > 0) chart(place, title, "simulated time, ms", x.map(time => time / 1000), series, { sync: "time" });
  }
  settle(place);
}

function showKeys(place) {
  const [one, other] = [data.runs[pair.one], data.runs[pair.other]];
  const row = (key, i) => {
    const differs = one.keys[i] !== other.keys[i];
    const shown = text => text === "" ? "not set" : text;
    return element("tr", { class: differs ? "differs" : undefined }, element("th", { scope: "row" }, key, differs ? element("span", { class: "unseen" }, " (differs)") : ""),
      element("td", { class: "wide" }, shown(one.keys[i])), element("td", { class: "wide" }, shown(other.keys[i])));
  };
  const head = element("tr", {}, ...["key", runTitle(one), runTitle(other)].map(text => element("th", { scope: "col" }, text)));
  const caption = element("caption", {}, "Keys that differ between any runs; those that differ between these two are marked.");
  place.replaceChildren(data.keys.length === 0 ? element("p", {}, "All runs have the same configuration.")
    : element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Keys that differ" },
      element("table", {}, caption, element("thead", {}, head), element("tbody", {}, ...data.keys.map(row)))));
}

function beginPair() {
  if (data.runs.length === 0) return;
  const first = data.runs.findIndex(run => configurationOf(run) !== configurationOf(data.runs[0]));
  pair.other = Math.max(0, first);
  const time = document.getElementById("over-time");
  const configuration = document.getElementById("configuration");
  const differing = element("div", {});
  configuration.querySelector(".choices").after(differing);
  const show = () => {
    showOverTime(time.querySelector(".charts"));
    showKeys(differing);
  };
  for (const section of [time, configuration]) section.querySelector(".choices").append(...pairChoices(show));
  time.hidden = !data.runs.some(run => run.samples.time_us.length > 0);
  show();
}
