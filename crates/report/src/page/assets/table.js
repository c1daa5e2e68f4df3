// The table of runs: columns to choose, rows to sort and filter.
const PAGE = 200;
// More keys than these are shown to whoever asks for them.
const KEY_COLUMNS = 8;
const table = { shown: new Set(), sorted: null, descending: false, filter: "", limit: PAGE, filtered: data.runs, onfilter: () => {} };

function allColumns() {
  const hasSources = data.runs.some(run => run.source !== "");
  const text = (name, of, look) => ({ name, label: name, of, isNumber: false, fixed: true, look });
  const columns = hasSources ? [text("from", run => run.source)] : [];
  columns.push(text("run", run => run.name), { name: "seed", label: "seed", of: run => run.seed, isNumber: true, fixed: true });
  data.keys.forEach((key, i) => {
    const isNumber = data.runs.every(run => run.keys[i] === "" || asNumber(run.keys[i]) !== null);
    columns.push({ name: key, label: key, of: run => isNumber ? asNumber(run.keys[i]) : run.keys[i], isNumber, exact: true, fixed: i < KEY_COLUMNS });
  });
  data.measures.forEach((measure, i) => {
    columns.push({ name: measure.name, label: measure.label, meaning: measure.meaning, of: run => run.values[i] ?? null, isNumber: true, shown: measure.shown });
  });
  columns.push(text("limit", run => run.limit, "nowrap"), text("doubt", run => run.doubt, "doubt"));
  return columns;
}
const columns = allColumns();

// Every word must hold: a comparison of a column, or a part of any text of the row.
function matches(run, filter) {
  return filter.split(/\s+/).filter(word => word !== "").every(word => {
    const compared = /^([\w.%-]+?)(<=|>=|!=|=|<|>)(.*)$/.exec(word);
    const column = compared && columns.find(column => column.name === compared[1]);
    if (!column) return columns.some(column => !column.isNumber && String(column.of(run)).toLowerCase().includes(word.toLowerCase()));
    const [, , how, wanted] = compared;
    let [value, other] = [column.of(run), column.isNumber ? asNumber(wanted) : wanted];
    if (how === "=") return value === other;
    if (how === "!=") return value !== other;
    if (value === null || other === null) return false;
    return how === "<" ? value < other : how === ">" ? value > other : how === "<=" ? value <= other : value >= other;
  });
}

function compared(column) {
  return (one, other) => {
    const [a, b] = [column.of(one), column.of(other)];
    // What was not measured comes last, whatever the direction.
    if (a === null || b === null) return (a === null) - (b === null);
    const order = column.isNumber ? a - b : String(a).localeCompare(String(b), "en");
    return table.descending ? -order : order;
  };
}

function cellText(column, run) {
  const value = column.of(run);
  if (!column.isNumber) return value ?? "";
  return column.exact || Number.isInteger(value) && Math.abs(value) < 1000 ? String(value ?? "") : column.name === "seed" ? String(value) : number(value);
}

function showTable() {
  table.filtered = data.runs.filter(run => matches(run, table.filter));
  if (table.sorted) table.filtered.sort(compared(table.sorted));
  const shown = columns.filter(column => column.fixed || table.shown.has(column.name));
  const heading = column => {
    const isSorted = table.sorted === column;
    const sort = () => {
      table.descending = isSorted && !table.descending;
      table.sorted = column;
      showTable();
      document.querySelector(`#table button[data-column="${CSS.escape(column.name)}"]`).focus();
    };
    const button = element("button", { type: "button", title: column.meaning, "data-column": column.name, onclick: sort }, column.label);
    const order = isSorted ? (table.descending ? "descending" : "ascending") : undefined;
    return element("th", { scope: "col", class: column.isNumber ? "number" : undefined, "aria-sort": order }, button);
  };
  const cell = (column, run) => element(column.name === "run" ? "th" : "td",
    { class: column.isNumber ? "number" : column.look, scope: column.name === "run" ? "row" : undefined }, cellText(column, run));
  const rows = table.filtered.slice(0, table.limit).map(run => element("tr", {}, ...shown.map(column => cell(column, run))));
  document.querySelector("#table caption").textContent = "One row for each run";
  document.querySelector("#table thead").replaceChildren(element("tr", {}, ...shown.map(heading)));
  document.querySelector("#table tbody").replaceChildren(...rows);
  document.getElementById("count").textContent = `${table.filtered.length} of ${data.runs.length} runs`;
  const more = document.getElementById("more");
  more.hidden = table.filtered.length <= table.limit;
  const next = () => { table.limit *= 5; showTable(); };
  more.replaceChildren(`The first ${table.limit} are shown. `, element("button", { type: "button", class: "plain", onclick: next }, "Show more"));
}

function beginTable() {
  for (const measure of data.measures) if (measure.shown) table.shown.add(measure.name);
  for (const column of columns.filter(column => !column.fixed)) {
    const change = () => { if (box.checked) table.shown.add(column.name); else table.shown.delete(column.name); showTable(); };
    const box = element("input", { type: "checkbox", checked: table.shown.has(column.name), onchange: change });
    document.getElementById("columns").append(element("label", { title: column.meaning }, box, " ", column.label));
  }
  const filter = document.getElementById("filter");
  let later;
  filter.addEventListener("input", () => {
    clearTimeout(later);
    later = setTimeout(() => { table.filter = filter.value; table.limit = PAGE; showTable(); table.onfilter(); }, 150);
  });
  document.getElementById("tools").hidden = false;
  showTable();
}
