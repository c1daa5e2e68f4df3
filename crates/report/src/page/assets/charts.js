// Charts by uPlot: zoomed by dragging or + and -, read by pointer or arrow keys; the same values as a table below.
const charts = [];

// A chart of lines over x: series are { label, values, low, high } with values at the places of x.
function chart(place, title, xLabel, x, series, options = {}) {
  const plot = element("div", { class: "plot", tabindex: 0, role: "img",
    "aria-label": `${title} over ${xLabel}: ${series.map(one => summary(one)).join("; ")}. Left and right move the cursor, plus and minus zoom, 0 shows everything.` });
  const reset = element("button", { type: "button", class: "plain", onclick: () => zoom(made, 0) }, "Show all");
  const details = element("details", {}, element("summary", {}, "As a table"));
  details.addEventListener("toggle", () => { if (details.open && details.childElementCount === 1) details.append(valueTable(title, xLabel, x, series)); });
  const figure = element("figure", {}, element("figcaption", {}, title), plot, element("div", { class: "choices" }, reset), details);
  place.append(figure);
  const made = { plot, xLabel, x, series, options, u: null };
  plot.addEventListener("keydown", event => onKey(made, event));
  charts.push(made);
}

// Draws what is new in a place. Only then it is known how wide each is.
function settle(place) {
  charts.filter(made => place.contains(made.plot)).forEach(drawChart);
}

function summary(one) {
  const values = one.values.filter(value => value !== null && value !== undefined);
  if (values.length === 0) return `${one.label}: no values`;
  const reduce = of => values.reduce((a, b) => of(a, b));
  return `${one.label} from ${number(reduce(Math.min))} to ${number(reduce(Math.max))}`;
}

function drawChart(made) {
  const { plot, xLabel, x, series, options } = made;
  const { ink, line } = inks();
  const columns = [x];
  const bands = [];
  const lines = [{ label: xLabel, value: (_, value) => number(value) }];
  series.forEach((one, i) => {
    const stroke = COLOURS[i % COLOURS.length];
    columns.push(one.values);
    lines.push({ label: one.label, stroke, width: 2, dash: DASHES[i % DASHES.length], spanGaps: true, points: { show: options.points ?? false, size: 7, stroke, fill: stroke },
      value: (_, value) => number(value), paths: options.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined });
  });
  // Ends of intervals come after all lines, where the legend leaves them out.
  series.forEach((one, i) => {
    if (!one.low) return;
    const at = columns.length;
    columns.push(one.high, one.low);
    for (const name of ["upper end", "lower end"]) lines.push({ label: `${one.label}, ${name}`, stroke: "transparent", points: { show: false }, spanGaps: true, value: (_, value) => number(value) });
    if (!options.bars) bands.push({ series: [at, at + 1], fill: COLOURS[i % COLOURS.length] + "33" });
  });
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, values: (_, ticks) => ticks.map(tick => tick === null ? "" : number(tick, 4)) };
  const width = Math.max(260, plot.clientWidth || 480);
  const settings = {
    width, height: 260, bands, series: lines,
    scales: { x: { time: false, distr: options.logX ? 3 : 1, log: options.logX === 2 ? 2 : 10 }, y: { range: (_, low, high) => spread(Math.min(0, low ?? 0), high ?? 1) } },
    axes: [{ ...axis, label: xLabel, labelSize: 22, size: 36 }, { ...axis, size: 64 }],
    cursor: { drag: { x: true, y: false }, sync: options.sync ? { key: options.sync } : undefined },
    legend: { live: true },
    hooks: options.bars ? { draw: [u => drawIntervals(u, series)] } : {},
  };
  if (made.u) made.u.destroy();
  made.u = new uPlot(settings, columns, plot);
  const rows = plot.querySelectorAll(".u-legend .u-series");
  rows.forEach((row, i) => { row.hidden = i > series.length; if (i > series.length) row.style.display = "none"; });
}

// Bars from the lower to the upper end of each interval.
function drawIntervals(u, series) {
  const { ctx } = u;
  const cap = 4 * devicePixelRatio;
  ctx.save();
  ctx.lineWidth = 1.5 * devicePixelRatio;
  series.forEach((one, i) => {
    if (!one.low) return;
    ctx.strokeStyle = COLOURS[i % COLOURS.length];
    ctx.beginPath();
    u.data[0].forEach((x, n) => {
      if (one.low[n] === null || one.low[n] === undefined || x < u.scales.x.min || x > u.scales.x.max) return;
      const [at, low, high] = [u.valToPos(x, "x", true), u.valToPos(one.low[n], "y", true), u.valToPos(one.high[n], "y", true)];
      ctx.moveTo(at, low); ctx.lineTo(at, high);
      for (const end of [low, high]) { ctx.moveTo(at - cap, end); ctx.lineTo(at + cap, end); }
    });
    ctx.stroke();
  });
  ctx.restore();
}

function spread(low, high) {
  const room = (high - low || Math.abs(high) || 1) * 0.05;
  return [low < 0 ? low - room : 0, high + room];
}

// Zooms in around the middle by a factor, or shows all with 0.
function zoom(made, factor) {
  const { u } = made;
  const [first, last] = [made.x[0], made.x[made.x.length - 1]];
  if (factor === 0) return u.setScale("x", { min: first, max: last });
  const { min, max } = u.scales.x;
  const middle = u.cursor.idx === null || u.cursor.idx === undefined ? (min + max) / 2 : made.x[u.cursor.idx];
  const half = (max - min) / 2 * factor;
  u.setScale("x", { min: Math.max(first, middle - half), max: Math.min(last, middle + half) });
}

function onKey(made, event) {
  const { u, x } = made;
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (step) {
    const at = Math.min(x.length - 1, Math.max(0, (u.cursor.idx ?? (step > 0 ? -1 : x.length)) + step));
    u.setCursor({ left: u.valToPos(x[at], "x"), top: u.over.clientHeight / 2 });
  } else if (event.key === "+" || event.key === "=") zoom(made, 0.5);
  else if (event.key === "-") zoom(made, 2);
  else if (event.key === "0") zoom(made, 0);
  else return;
  event.preventDefault();
}

function valueTable(title, xLabel, x, series) {
  const head = element("tr", {}, ...[xLabel, ...series.map(one => one.label)].map(text => element("th", { scope: "col", class: "number" }, text)));
  const rows = x.map((value, i) => element("tr", {}, element("th", { scope: "row", class: "number" }, number(value)),
    ...series.map(one => element("td", { class: "number" }, number(one.values[i]) + (one.low && one.low[i] !== null ? ` (${number(one.low[i])} to ${number(one.high[i])})` : "")))));
  const table = element("table", {}, element("caption", {}, title), element("thead", {}, head), element("tbody", {}, ...rows));
  return element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${title}, as a table` }, table);
}

function forgetCharts(place) {
  for (let i = charts.length - 1; i >= 0; i--) if (place.contains(charts[i].plot)) charts.splice(i, 1)[0].u?.destroy();
  place.replaceChildren();
}

function redrawCharts() { charts.forEach(drawChart); }

// A canvas has the colours that it was drawn with: paper is white, and people switch.
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawCharts);
matchMedia("print").addEventListener("change", redrawCharts);
let resized;
addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(redrawCharts, 150); });

// Two-sided 95 % quantiles of Student's t for 1, 2, ... degrees of freedom.
const STUDENT = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11, 2.101, 2.093, 2.086];

// Their mean with the ends of its 95 % interval; of one value there is none.
function estimate(values) {
  const n = values.length;
  if (n === 0) return [null, null, null];
  const mean = values.reduce((a, b) => a + b, 0) / n;
  if (n === 1) return [mean, null, null];
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (n - 1);
  const half = (STUDENT[n - 2] ?? 1.96 + 2.5 / (n - 1)) * Math.sqrt(variance / n);
  return [mean, mean - half, mean + half];
}

// A measure over a key: a line for each value of all else, means over seeds.
function beginOverKeys() {
  const section = document.getElementById("over-keys");
  const numeric = data.keys.map((_, i) => [i, data.keys_in_words[i]]).filter(([i]) => data.runs.every(run => run.keys[i] === "" || asNumber(run.keys[i]) !== null)
    && new Set(data.runs.map(run => run.keys[i])).size > 1);
  if (!section || numeric.length === 0) return;
  section.hidden = false;
  const measureNamed = name => data.measures.findIndex(measure => measure.name === name);
  const count = i => new Set(data.runs.map(run => run.keys[i])).size;
  const load = numeric.find(([i]) => data.keys[i] === "load.rate");
  const most = load ?? numeric.reduce((best, one) => count(one[0]) > count(best[0]) ? one : best);
  const state = { x: most[0], y: Math.max(0, measureNamed(load ? "response_mean_ms" : "request_rate_per_s")) };
  const [choices, place] = [section.querySelector(".choices"), section.querySelector(".charts")];
  const show = () => {
    forgetCharts(place);
    overKeys(place, state.x, state.y);
    const [measure, key] = [data.measures[state.y].label, data.keys_in_words[state.x]].map(label => label.split(",")[0]);
    section.querySelector("h2").textContent = `${inWords(measure)} over ${/^[A-Z][a-z]/.test(key) ? key.charAt(0).toLowerCase() + key.slice(1) : key}`;
  };
  choices.append(
    choice("Measure", data.measures.map((measure, i) => [i, measure.label]), state.y, value => { state.y = Number(value); show(); }),
    choice("over", numeric, state.x, value => { state.x = Number(value); show(); }));
  table.onfilter = show;
  show();
}

const inWords = label => label.charAt(0).toUpperCase() + label.slice(1);
const MOST_LINES = 8;

// The measure with half of the 95 % interval of another.
function intervalOf(measure) {
  const { name } = data.measures[measure];
  return data.measures.findIndex(other => other.name.replace("_ci95", "") === name && other.name !== name);
}

// Lines: runs that have all keys but `key` in common, except for those that follow from it. Each line has the runs' common name or, if
// they have several, the values that tell it from others.
function linesOver(key) {
  const free = freeKeys(run => run.source + "\n" + run.keys[key]).filter(i => i !== key);
  const lines = new Map();
  for (const run of table.filtered) {
    const id = JSON.stringify([run.source, ...free.map(i => run.keys[i])]);
    if (!lines.has(id)) lines.set(id, []);
    lines.get(id).push(run);
  }
  const all = [...lines.values()];
  const telling = [];
  let groups = 1;
  for (const i of free) {
    const split = new Set(all.map(([run]) => JSON.stringify([...telling, i].map(i => run.keys[i])))).size;
    if (split > groups) { telling.push(i); groups = split; }
  }
  const title = runs => {
    const names = new Set(runs.map(run => run.name));
    const own = names.size === 1 && hasNames ? [...names] : telling.map(i => `${data.keys_in_words[i]} = ${runs[0].keys[i] || "not set"}`);
    return [runs[0].source, ...own].filter(text => text !== "").join(", ") || runs[0].name;
  };
  return all.map(runs => [title(runs), runs]);
}

// The first lines of each source in turn, so that none hides the others.
function inTurn(lines) {
  const places = new Map();
  const turn = lines.map(line => {
    const { source } = line[1][0];
    places.set(source, (places.get(source) ?? 0) + 1);
    return [places.get(source), line];
  });
  return turn.sort((one, other) => one[0] - other[0]).map(([, line]) => line);
}

function overKeys(place, key, measure) {
  const interval = intervalOf(measure);
  const lines = inTurn(linesOver(key).map(([title, runs]) => {
    const points = new Map();
    for (const run of runs) {
      const [x, y] = [asNumber(run.keys[key]), run.values[measure] ?? null];
      if (x === null || y === null) continue;
      if (!points.has(x)) points.set(x, []);
      points.get(x).push(run);
    }
    return [title, runs, points];
  }).filter(([, , points]) => points.size > 0));
  const x = [...new Set(lines.flatMap(([, , points]) => [...points.keys()]))].sort((a, b) => a - b);
  if (x.length === 0) { place.append(element("p", {}, "No run has both values.")); return; }
  const all = lines.slice(0, MOST_LINES).map(([label, , points]) => {
    const estimates = x.map(value => {
      const runs = points.get(value) ?? [];
      const half = runs.length === 1 && interval >= 0 ? runs[0].values[interval] ?? null : null;
      const [mean, low, high] = estimate(runs.map(run => run.values[measure]));
      return half === null ? [mean, low, high] : [mean, mean - half, mean + half];
    });
    const has = estimates.some(one => one[1] !== null);
    return { label, values: estimates.map(one => one[0]), low: has ? estimates.map(one => one[1]) : null, high: has ? estimates.map(one => one[2]) : null };
  });
  if (lines.length > MOST_LINES) place.append(element("p", { class: "note" }, `${lines.length} lines are too many for one figure; ${MOST_LINES} are drawn. Choose runs with the filter below.`));
  const doubles = x.length > 2 && x[0] > 0 && x.every(value => Number.isInteger(Math.log2(value)));
  const wide = x.length > 2 && x[0] > 0 && x[x.length - 1] / x[0] > 50;
  chart(place, inWords(data.measures[measure].label), data.keys_in_words[key] + (doubles || wide ? " (logarithmic)" : ""), x, all, { points: true, bars: true, logX: doubles ? 2 : wide ? 10 : 0 });
  settle(place);
}
