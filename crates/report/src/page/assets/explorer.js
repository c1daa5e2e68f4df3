// The simulator on a worker, what it is asked, and what it says.
const byId = id => document.getElementById(id);
const state = { module: null, worker: null, log: null, running: false, began: 0, present: null, previous: null, pinned: null };
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
    setRunning(false);
    if (answer !== undefined) show(JSON.parse(answer)); else fail(broken);
  };
  state.worker.onerror = event => fail(event.message);
  state.worker.postMessage({ module: state.module, log: state.log?.bytes });
}

// Ends what is being run.
function dismiss() {
  state.worker?.terminate();
  state.worker = null;
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
  if (data.log !== null && workload === "") return say(`This experiment replays ${data.log}: choose that file, or another workload.`);
  const wrong = controls.find(({ input }) => !input.checkValidity());
  if (wrong) return say(`${wrong.key}: ${wrong.input.validationMessage}`);
  if (!state.worker) hire();
  setRunning(true);
  say("Running.");
  state.asked = settings();
  state.began = performance.now();
  const log = workload === OWN_LOG ? state.log.name : null;
  state.worker.postMessage({ question: JSON.stringify({ text: data.text, settings: state.asked, log }) });
}

let later;
function changed() {
  clearTimeout(later);
  if (byId("auto").checked) later = setTimeout(run, 250); else say("Changed since the last run.");
}

function show({ ran, refused }) {
  if (refused !== undefined) return say(refused);
  const seconds = (performance.now() - state.began) / 1000;
  [state.previous, state.present] = [state.present, { ...ran, asked: new Map(state.asked), workload: byId("workload").selectedOptions[0].text }];
  const packets = ran.run.values[data.measures.findIndex(measure => measure.name === "packets")];
  say(`Done in ${seconds.toFixed(1)} s${packets ? `: ${number(packets)} packets measured` : ""}.`);
  byId("verdict").textContent = ran.verdict;
  byId("pin").disabled = false;
  showAll();
}

// The run that this one is compared with.
function besides() {
  return state.pinned ? [state.pinned, "pinned run"] : state.previous ? [state.previous, "run before"] : [null, ""];
}

function showAll() {
  const { present } = state;
  const [other, name] = besides();
  const notes = [...present.notes, ...(present.run.doubt ? [`Its numbers may not hold: ${present.run.doubt}.`] : []), ...(other ? [whatDiffers(present, other, name)] : [])];
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

function difference(measure, now, before) {
  if (now === null || before === null) return "";
  const isShare = measure.name.endsWith("_percent");
  const by = isShare ? now - before : (now - before) / Math.abs(before) * 100;
  if (now === before) return "0";
  return Number.isFinite(by) ? `${by > 0 ? "+" : ""}${by.toFixed(1)} ${isShare ? "points" : "%"}` : "";
}

function showNumbers(present, other, name) {
  const of = (run, i) => run.run.values[i] ?? null;
  const row = (measure, i) => element("tr", {}, element("th", { scope: "row", title: measure.meaning }, measure.label), element("td", { class: "number" }, number(of(present, i))),
    ...(other ? [element("td", { class: "number" }, number(of(other, i))), element("td", { class: "number" }, difference(measure, of(present, i), of(other, i)))] : []));
  const heads = ["measure", "this run", ...(other ? [name, "difference"] : [])];
  const made = (caption, wanted) => element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, element("table", {}, element("caption", {}, caption),
    element("thead", {}, element("tr", {}, ...heads.map((head, i) => element("th", { scope: "col", class: i ? "number" : undefined }, head)))),
    element("tbody", {}, ...data.measures.flatMap((measure, i) => wanted(measure) && (of(present, i) !== null || other && of(other, i) !== null) ? [row(measure, i)] : []))));
  const wasOpen = byId("numbers").querySelector("details")?.open;
  byId("numbers").replaceChildren(made("Key numbers", measure => measure.shown),
    element("details", { open: wasOpen }, element("summary", {}, "All other numbers"), made("All other numbers", measure => !measure.shown)));
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
  byId("log").addEventListener("change", event => { if (event.target.files.length) takeLog(event.target.files[0]); });
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

async function load() {
  const packed = Uint8Array.from(atob(byId("module").textContent), letter => letter.charCodeAt(0));
  const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  state.module = await WebAssembly.compile(await new Response(plain).arrayBuffer());
}

begin();
load().then(run, error => say(`The simulator cannot be loaded: ${error.message}; expected a browser with WebAssembly and DecompressionStream`));
