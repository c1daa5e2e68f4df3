// Where the host's cycles go: a bar for each configuration, with its parts side by side.
const MOST_BARS = 24;

// Patterns tell parts apart where colours do not: in grey, and for eyes that see few of them.
function fill(i, name) {
  if (name === "idle") return "transparent";
  const colour = COLOURS[i % COLOURS.length];
  const angle = [null, 45, -45, 0, 90][i % 5];
  return angle === null ? colour : `repeating-linear-gradient(${angle}deg, ${colour} 0 5px, color-mix(in srgb, ${colour} 55%, white) 5px 8px)`;
}

function beginCycles() {
  const section = document.getElementById("cycles");
  const runs = data.runs.filter(run => run.cycles_percent.length > 0);
  if (runs.length === 0) return;
  section.hidden = false;
  const show = () => showCycles(section.querySelector(".charts"), table.filtered);
  const before = table.onfilter;
  table.onfilter = () => { before(); show(); };
  show();
}

function showCycles(place, all) {
  const groups = new Map();
  for (const run of all) {
    if (run.cycles_percent.length === 0) continue;
    const key = configurationOf(run);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(run);
  }
  const used = data.layers.map((_, i) => i).filter(i => [...groups.values()].some(runs => runs[0].cycles_percent[i] > 0));
  const legend = element("p", { "aria-hidden": "true" }, ...used.map(i => {
    const swatch = element("i");
    swatch.style.background = fill(i, data.layers[i]);
    return element("span", { class: "key" }, swatch, data.layers[i]);
  }));
  const rows = [...groups.values()].slice(0, MOST_BARS).map(runs => {
    const shares = used.map(i => runs.reduce((sum, run) => sum + run.cycles_percent[i], 0) / runs.length);
    const bar = element("div", { class: "bar", role: "img", "aria-label": used.map((i, n) => `${data.layers[i]} ${shares[n].toFixed(1)} %`).join(", ") });
    used.forEach((i, n) => {
      const part = element("span", { title: `${data.layers[i]}: ${shares[n].toFixed(1)} %` });
      part.style.width = shares[n] + "%";
      part.style.background = fill(i, data.layers[i]);
      bar.append(part);
    });
    const title = configurationTitle(runs[0]);
    return element("tr", {}, element("th", { scope: "row" }, title), element("td", {}, bar));
  });
  const caption = element("caption", {}, "Shares of the host's cycles, per cent; means over seeds. The empty part is idle.");
  const head = element("thead", { class: "unseen" }, element("tr", {}, element("th", { scope: "col" }, "configuration"), element("th", { scope: "col" }, "shares")));
  const bars = element("table", { class: "cycles" }, caption, element("colgroup", {}, element("col", { class: "names" }), element("col")), head, element("tbody", {}, ...rows));
  const note = groups.size > MOST_BARS ? element("p", { class: "note" }, `${groups.size} configurations; the first ${MOST_BARS} of the table are drawn.`) : "";
  place.replaceChildren(legend, bars, note);
}
