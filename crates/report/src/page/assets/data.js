"use strict";
// What the page is about, and small things that all of it needs. Text is set as text, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7d7010", "#888888"];
const DASHES = [[], [8, 4], [2, 3], [14, 4], [4, 6]];

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick" || name === "onchange" || name === "oninput" || name === "onkeydown") made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

// Three significant digits, as in the tables of the program, with digits in groups.
function number(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "-";
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(digits)));
}

// As a number if it is one, for keys whose values are text; loads have a unit, as in `5000/s` and `2x`.
function asNumber(text) {
  const value = Number(text.replace(/^([\d.]+)(\/s|x)$/, "$1"));
  return text !== "" && Number.isFinite(value) ? value : null;
}

// Keys that do not follow from what `by` says of a run.
function freeKeys(by) {
  return data.keys.map((_, i) => i).filter(i => {
    const known = new Map();
    return data.runs.some(run => {
      const said = by(run);
      if (!known.has(said)) known.set(said, run.keys[i]);
      return known.get(said) !== run.keys[i];
    });
  });
}
const hasNames = new Set(data.runs.map(run => run.name)).size > 1;
const namedBy = run => run.source + "\n" + run.name;
const telling = freeKeys(namedBy);

// What tells a run from others, but for its seed.
function configurationTitle(run, keys = telling) {
  const values = keys.filter(i => run.keys[i] !== "").map(i => `${data.keys[i]} = ${run.keys[i]}`);
  const parts = [run.source, hasNames || values.length === 0 ? run.name : "", ...values.slice(0, 5)];
  return parts.filter(text => text !== "").join(", ");
}

function runTitle(run) {
  return `${configurationTitle(run)}, seed ${run.seed}`;
}

// All that is the same but for the seed, as a text.
function configurationOf(run) {
  return JSON.stringify([run.source, run.name, run.keys]);
}

function choice(name, options, chosen, onchange) {
  const id = "choice-" + Math.random().toString(36).slice(2);
  const select = element("select", { id, onchange: () => onchange(select.value) });
  for (const [value, text] of options) select.append(element("option", { value, selected: String(value) === String(chosen) }, text));
  return element("span", {}, element("label", { for: id }, name), select);
}

// Colours of the page as they are now: for what is drawn on a canvas.
function inks() {
  const style = getComputedStyle(document.documentElement);
  const of = name => style.getPropertyValue(name).trim();
  return { ink: of("--ink"), faint: of("--faint"), line: of("--line"), ground: of("--ground") };
}
