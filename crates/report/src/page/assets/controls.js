// What can be changed. A slider stops at some numbers; in the field beside it stands any.
const controls = [...document.querySelectorAll("#form [data-key]")].map(place => ({
  place, key: place.dataset.key, start: place.dataset.start, slider: place.querySelector("[type=range]"),
  input: place.querySelector("select, [type=number], [type=checkbox]"),
}));
const controlOf = key => controls.find(control => control.key === key);
const valueOf = ({ input }) => input.type === "checkbox" ? String(input.checked) : input.value;
// The workload of this value is the log that the user gave.
const OWN_LOG = "log";

const stopsOf = slider => slider.dataset.stops.split(" ").map(Number);

function nearest(stops, value) {
  const away = stop => Math.abs(Math.log((stop + 1) / (value + 1)));
  return stops.reduce((best, stop, i) => away(stop) < away(stops[best]) ? i : best, 0);
}

function isThere({ place: { dataset: { whereKey, whereValue } } }) {
  return !whereKey || whereValue.split(" ").includes(valueOf(controlOf(whereKey)));
}

// Shows what follows from the values.
function showControls() {
  for (const control of controls) {
    const { place, slider, input } = control;
    place.hidden = !isThere(control);
    input.disabled = place.hidden;
    if (!slider) continue;
    slider.value = nearest(stopsOf(slider), Number(input.value));
    slider.setAttribute("aria-valuetext", input.value);
  }
}

// Keys and values that are not as at the start. What there is only under another policy comes after that policy.
function settings() {
  const isNew = control => valueOf(control) !== control.start;
  const all = [];
  for (const control of controls) {
    const { whereKey, withKey, withValue } = control.place.dataset;
    const value = valueOf(control);
    if (!isThere(control) || !(isNew(control) || whereKey && isNew(controlOf(whereKey)))) continue;
    if (control.key === "workload" && value === OWN_LOG) continue;
    all.push([control.key, value]);
    if (withKey && value !== "0") all.push([withKey, withValue]);
  }
  return [...all, ...moreSettings()];
}

// Keys and values of the field for any other key; throws a line that is none.
function moreSettings() {
  const lines = document.getElementById("more").value.split("\n").map(line => line.trim()).filter(line => line !== "" && !line.startsWith("#"));
  return lines.map(line => {
    const [, key, value] = /^([^=\s][^=]*?)\s*=\s*(.+)$/.exec(line) ?? [];
    if (!key) throw `${line}: expected KEY = VALUE`;
    return [key, value];
  });
}

// What is set, for the address of the page: controls that are not as at the start, and other keys.
function toAddress() {
  const changed = controls.filter(control => isThere(control) && valueOf(control) !== control.start && valueOf(control) !== OWN_LOG);
  const all = [...changed.map(control => [control.key, valueOf(control)]), ...moreSettings()];
  return "#" + new URLSearchParams(all);
}

function fromAddress(hash) {
  document.getElementById("form").reset();
  const others = [];
  for (const [key, value] of new URLSearchParams(hash.slice(1))) {
    const control = controlOf(key);
    if (!control) others.push(`${key} = ${value}`);
    else if (control.input.type === "checkbox") control.input.checked = value === "true";
    else control.input.value = value;
  }
  document.getElementById("more").value = others.join("\n");
  showControls();
}

function beginControls(onchange) {
  for (const { slider, input } of controls) {
    if (slider) slider.addEventListener("input", () => { input.value = stopsOf(slider)[slider.value]; });
  }
  document.getElementById("form").addEventListener("input", event => {
    if (event.target.type === "file" || event.target.id === "auto" || event.target.id === "against") return;
    showControls();
    onchange();
  });
  showControls();
}
