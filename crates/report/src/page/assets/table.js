// The table of runs: columns to choose, rows to sort and filter.
const PAGE = 200;
// More keys than these are shown to whoever asks for them.
const KEY_COLUMNS = 8;
const table = { shown: new Set(), sorted: null, descending: false, filter: "", limit: PAGE, filtered: data.runs, onfilter: () => {} };

function allColumns() {
  const hasSources = data.runs.some(run => run.source !== "");
  const text = (name, of, look) => ({ name, label: name, of, isNumber: false, fixed: true, look });
  const columns = hasSources ? [text("from", run => run.source)] : [];
  columns.push(text("run", run => run.name, "name"), { name: "seed", label: "seed", of: run => run.seed, isNumber: true, fixed: true });
  data.keys.forEach((key, i) => {
    const isNumber = data.runs.every(run => run.keys[i] === "" || asNumber(run.keys[i]) !== null);
    columns.push({ name: key, label: key, of: run => isNumber ? asNumber(run.keys[i]) : run.keys[i], isNumber, exact: true, fixed: i < KEY_COLUMNS });
  });
  data.measures.forEach((measure, i) => {
    columns.push({ name: measure.name, label: measure.label, meaning: measure.meaning, of: run => run.values[i] ?? null, isNumber: true, shown: measure.shown });
  });
  columns.push(text("limit", run => run.limit), text("doubt", run => run.doubt, "doubt"));
  return columns;
}
const columns = allColumns();

const COMPARISON = /^([\w.%-]+?)(<=|>=|!=|=|<|>)(.*)$/;

// The column of this name, or the only one whose name ends with it.
function columnNamed(name) {
  const exact = columns.find(column => column.name === name);
  const ends = columns.filter(column => column.name.endsWith("." + name));
  return exact ?? (ends.length === 1 ? ends[0] : undefined);
}

// Conditions that must all hold: comparisons of a column, or parts of any text of the row. Throws what is wrong, in words.
function conditions(filter) {
  const words = filter.replace(/\s*(<=|>=|!=|=|<|>)\s*/g, "$1").split(/\s+/).filter(word => word !== "");
  return words.map(word => {
    const parts = COMPARISON.exec(word);
    if (!parts) {
      if (/[<>=]/.test(word)) throw `${word}: expected COLUMN, one of = != < <= > >=, and a value`;
      const part = word.toLowerCase();
      return run => columns.some(column => !column.isNumber && String(column.of(run)).toLowerCase().includes(part));
    }
    const [, name, how, wanted] = parts;
    const column = columnNamed(name);
    if (!column) {
      const alike = columns.filter(column => column.name.includes(name)).map(column => column.name).slice(0, 4);
      throw `${name}: no column has this name${alike.length > 0 ? "; there are " + alike.join(", ") : ""}`;
    }
    const other = column.isNumber ? asNumber(wanted) : wanted;
    if (other === null || wanted === "") throw `${word}: expected a ${column.isNumber ? "number" : "value"} after ${how}`;
    return run => {
      const value = column.of(run);
      if (how === "=") return value === other;
      if (how === "!=") return value !== other;
      if (value === null) return false;
      return how === "<" ? value < other : how === ">" ? value > other : how === "<=" ? value <= other : value >= other;
    };
  });
}

// The runs that pass the filter; all of them if it cannot be understood, which is said.
function filteredRuns() {
  const place = document.getElementById("filter-error");
  place.textContent = "";
  try {
    const all = conditions(table.filter);
    return data.runs.filter(run => all.every(holds => holds(run)));
  } catch (wrong) {
    if (typeof wrong !== "string") throw wrong;
    place.textContent = wrong + ". All runs are shown.";
    return [...data.runs];
  }
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
  return column.exact || column.name === "seed" ? String(value ?? "") : number(value);
}

function showTable() {
  table.filtered = filteredRuns();
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
    { class: column.isNumber ? "number" : column.look, scope: column.name === "run" ? "row" : undefined },
    cellText(column, run) + (column.name === "run" && run.doubt !== "" ? " *" : ""));
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
  for (const id of ["tools", "choose"]) document.getElementById(id).hidden = false;
  showTable();
}
