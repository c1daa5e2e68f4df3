// The simulator on a worker, what it is asked, and what it says.
const byId = id => document.getElementById(id);
const state = { module: null, worker: null, log: null, running: false, began: 0, present: null, previous: null, pinned: null, base: null, asksBase: null };
const workerUrl = URL.createObjectURL(new Blob([data.worker], { type: "text/javascript" }));

function say(text) { byId("state").textContent = text; }

function setRunning(running) {
  state.running = running;
  byId("cancel").disabled = !running;
  byId("progress").hidden = !running;
  byId("progress").value = 0;
  byId("results").closest("section").setAttribute("aria-busy", running);
}

function hire() {
  state.worker = new Worker(workerUrl);
  state.worker.onmessage = ({ data: { progress, answer, broken } }) => {
    if (progress !== undefined) { byId("progress").value = progress; return; }
    if (answer === undefined) return fail(broken);
    if (state.asksBase === null) show(JSON.parse(answer)); else showBase(JSON.parse(answer));
  };
  state.worker.onerror = event => fail(event.message);
  state.worker.postMessage({ module: state.module, log: state.log?.bytes });
}

// Ends what is being run.
function dismiss() {
  state.worker?.terminate();
  state.worker = state.asksBase = null;
  setRunning(false);
}

function fail(why) {
  dismiss();
  say(`An internal check of the simulator failed: ${why}`);
}

function run() {
  if (!state.module) return;
  if (state.running) dismiss();
  const workload = valueOf(controlOf("workload"));
  const replaysLog = workload === OWN_LOG || data.log !== null && workload === "";
  if (replaysLog && !state.log) return say(`This experiment replays ${data.log}: choose that file, or another workload.`);
  const wrong = controls.find(({ input }) => !input.checkValidity());
  if (wrong) return say(`${wrong.key}: ${wrong.input.validationMessage}`);
  try { state.asked = settings(); } catch (wrong) { return say(wrong); }
  history.replaceState(null, "", toAddress());
  say("Running.");
  state.began = performance.now();
  state.question = { text: data.text, settings: state.asked, log: replaysLog ? state.log.name : null };
  ask(state.question);
}

function ask(question) {
  if (!state.worker) hire();
  setRunning(true);
  state.worker.postMessage({ question: JSON.stringify(question) });
}

// The same question without handoff. What the NIC does with connections then makes no difference.
function withoutHandoff({ text, settings, log }) {
  const others = settings.filter(([key]) => !key.startsWith("nic.firmware.") && !key.startsWith("host.kernel.selection") && key !== "host.kernel.nic_cache.enabled");
  return { text, settings: [...others, ["host.kernel.selection.policy", "never"]], log };
}

// Asks for the run without handoff, if this run hands connections over and the answer is not known.
function askBase() {
  const handoffs = state.present.run.values[data.measures.findIndex(measure => measure.name === "attempted_handoffs")];
  if (!handoffs) { state.base = null; return; }
  const question = withoutHandoff(state.question);
  const id = JSON.stringify(question);
  if (state.base?.id === id) return;
  state.base = null;
  state.asksBase = id;
  ask(question);
}

function showBase({ ran }) {
  const id = state.asksBase;
  state.asksBase = null;
  setRunning(false);
  // What cannot be run without handoff has no such comparison.
  if (!ran) return;
  state.base = { ...ran, id, asked: new Map(withoutHandoff(state.question).settings), workload: state.present.workload };
  showAll();
}

let later;
function changed() {
  clearTimeout(later);
  if (byId("auto").checked) later = setTimeout(run, 250); else say("Changed since the last run.");
}

function show({ ran, refused }) {
  setRunning(false);
  if (refused !== undefined) return say(refused);
  const seconds = (performance.now() - state.began) / 1000;
  [state.previous, state.present] = [state.present, { ...ran, asked: new Map(state.asked), workload: byId("workload").selectedOptions[0].text }];
  const packets = ran.run.values[data.measures.findIndex(measure => measure.name === "packets")];
  say(`Done in ${seconds.toFixed(1)} s${packets ? `: ${number(packets)} packets measured` : ""}.`);
  byId("verdict").textContent = ran.verdict;
  byId("pin").disabled = false;
  askBase();
  showAll();
}

// The run that this one is compared with.
function besides() {
  if (state.pinned) return [state.pinned, "pinned run"];
  if (byId("against").value === "base") return state.base ? [state.base, "no handoff"] : [null, ""];
  return state.previous ? [state.previous, "run before"] : [null, ""];
}

function showAll() {
  const { present } = state;
  const [other, name] = besides();
  const notes = [...present.notes, ...(present.run.doubt ? [`Its numbers may not hold: ${present.run.doubt}.`] : []), ...(other && other !== state.base ? [whatDiffers(present, other, name)] : [])];
  byId("notes").replaceChildren(...notes.map(note => element("li", {}, note)));
  showNumbers(present, other, name);
  const runs = other ? [[present, "this run"], [other, name]] : [[present, "this run"]];
  data.layers = [...new Set(runs.flatMap(([{ cycles_percent: cycles }]) => Object.keys(cycles)))].filter(layer => layer !== "idle").concat("idle");
  data.runs = runs.map(([{ run, cycles_percent: cycles }, name]) => ({ ...run, name, cycles_percent: data.layers.map(layer => cycles[layer] ?? 0) }));
  pair.other = data.runs.length - 1;
  for (const id of ["cycles", "over-time", "configuration"]) byId(id).hidden = false;
  showCycles(byId("cycles").querySelector(".charts"), data.runs);
  showOverTime(byId("over-time").querySelector(".charts"));
  byId("toml").textContent = present.toml;
  offer("save-toml", present.toml, "explored.toml", "application/toml");
  offer("save-results", present.results, "explored.json", "application/json");
}

function offer(id, text, download, type) {
  const link = byId(id);
  URL.revokeObjectURL(link.href);
  Object.assign(link, { href: URL.createObjectURL(new Blob([text], { type })), download });
}

function whatDiffers(present, other, name) {
  const said = (asked, key) => asked.get(key) ?? controlOf(key)?.start ?? "not set";
  const keys = [...new Set([...present.asked.keys(), ...other.asked.keys()])].filter(key => key !== "workload");
  const parts = keys.filter(key => said(present.asked, key) !== said(other.asked, key)).map(key => `${key} = ${said(present.asked, key)}, not ${said(other.asked, key)}`);
  if (present.workload !== other.workload) parts.push(`workload ${present.workload}, not ${other.workload}`);
  return parts.length ? `Different from the ${name}: ${parts.join("; ")}.` : `The same as the ${name}.`;
}

// Half of the 95 % interval of a measure, where there is one.
function halfOf(run, i) {
  const interval = intervalOf(i);
  return interval < 0 ? null : run.run.values[interval] ?? null;
}

const isShare = measure => measure.name.endsWith("_percent");

function withInterval(run, i) {
  const [value, half] = [run.run.values[i] ?? null, halfOf(run, i)];
  if (value === null || half === null) return number(value);
  const measure = data.measures[i];
  return isShare(measure) ? `${number(value)} \u00b1${number(half, 2)}` : `${number(value)} \u00b1${number(half / Math.abs(value) * 100, 2)} %`;
}

function difference(present, other, i) {
  const measure = data.measures[i];
  const [now, before] = [present, other].map(run => run.run.values[i] ?? null);
  if (now === null || before === null) return "";
  if (now === before) return "0";
  const share = isShare(measure);
  const by = share ? now - before : (now - before) / Math.abs(before) * 100;
  const [half, halfBefore] = [halfOf(present, i), halfOf(other, i)];
  const scale = share ? 1 : 100 / Math.abs(before);
  const interval = half === null || halfBefore === null ? "" : ` \u00b1${(Math.hypot(half, share ? halfBefore : halfBefore * now / before) * scale).toFixed(1)}`;
  return Number.isFinite(by) ? `${by > 0 ? "+" : ""}${by.toFixed(1)}${interval} ${share ? "points" : "%"}` : "";
}

function showNumbers(present, other, name) {
  const of = (run, i) => run.run.values[i] ?? null;
  const row = (measure, i) => element("tr", {}, element("th", { scope: "row", title: measure.meaning }, measure.label), element("td", { class: "number" }, withInterval(present, i)),
    ...(other ? [element("td", { class: "number" }, withInterval(other, i)), element("td", { class: "number" }, difference(present, other, i))] : []));
  const heads = ["measure", "this run", ...(other ? [name, "difference"] : [])];
  const made = (caption, wanted) => element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, element("table", {}, element("caption", {}, caption),
    element("thead", {}, element("tr", {}, ...heads.map((head, i) => element("th", { scope: "col", class: i ? "number" : undefined }, head)))),
    element("tbody", {}, ...data.measures.flatMap((measure, i) => wanted(measure) && (of(present, i) !== null || other && of(other, i) !== null) ? [row(measure, i)] : []))));
  const wasOpen = byId("numbers").querySelector("details")?.open;
  byId("numbers").replaceChildren(made("Key numbers; \u00b1: 95 % interval", measure => measure.shown),
    element("details", { open: wasOpen }, element("summary", {}, "All other numbers"), made("All other numbers", measure => !measure.shown && !measure.name.includes("_ci95"))));
}

async function takeLog(file) {
  say(`Reading ${file.name}.`);
  try {
    const start = new Uint8Array(await file.slice(0, 2).arrayBuffer());
    const isGzip = start[0] === 0x1f && start[1] === 0x8b;
    const stream = isGzip ? file.stream().pipeThrough(new DecompressionStream("gzip")) : file.stream();
    state.log = { name: file.name, bytes: new Uint8Array(await new Response(stream).arrayBuffer()) };
  } catch (error) {
    return say(`${file.name}: ${error.message}; expected an access log, plain or compressed completely with gzip`);
  }
  const { input } = controlOf("workload");
  input.querySelector(`[value=${OWN_LOG}]`)?.remove();
  input.append(element("option", { value: OWN_LOG }, file.name));
  input.value = OWN_LOG;
  // A worker has one log.
  dismiss();
  run();
}

// Goes back to the workload of the experiment.
function forgetLog() {
  const { input } = controlOf("workload");
  input.querySelector(`[value=${OWN_LOG}]`)?.remove();
  input.value = "";
  state.log = null;
  dismiss();
  run();
}

function begin() {
  byId("form").addEventListener("submit", event => { event.preventDefault(); run(); });
  // It is reset after its listeners have heard of it.
  byId("form").addEventListener("reset", () => setTimeout(() => { showControls(); changed(); }));
  byId("cancel").addEventListener("click", () => { dismiss(); say("Cancelled."); });
  byId("pin").addEventListener("click", () => {
    state.pinned = state.pinned ? null : state.present;
    byId("pin").textContent = state.pinned ? "Unpin" : "Pin for comparison";
    showAll();
  });
  byId("against").addEventListener("change", () => { if (state.present) showAll(); });
  byId("log").addEventListener("change", event => { if (event.target.files.length) takeLog(event.target.files[0]); else forgetLog(); });
  addEventListener("hashchange", () => { fromAddress(location.hash); run(); });
  addEventListener("dragover", event => event.preventDefault());
  addEventListener("drop", event => { event.preventDefault(); if (event.dataTransfer.files.length) takeLog(event.dataTransfer.files[0]); });
  // What cannot be copied is selected, to be copied by hand.
  byId("copy").addEventListener("click", () => {
    getSelection().selectAllChildren(byId("toml"));
    navigator.clipboard?.writeText(byId("toml").textContent).catch(() => {});
  });
  byId("file").textContent = "explored.toml";
  byId("command").textContent = "baton run explored.toml";
  beginControls(changed);
}

const unpacked = async id => {
  const packed = Uint8Array.from(atob(byId(id).textContent), letter => letter.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
};

async function load() {
  state.module = await WebAssembly.compile(await unpacked("module"));
  if (data.log !== null) state.log = { name: data.log, bytes: new Uint8Array(await unpacked("log-content")) };
  if (location.hash.length > 1) fromAddress(location.hash);
}

begin();
load().then(run, error => say(`The simulator cannot be loaded: ${error.message}; expected a browser with WebAssembly and DecompressionStream`));
