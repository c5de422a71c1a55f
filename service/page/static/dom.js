// Elements, numbers and words. Text from answers only ever becomes text nodes: nothing is parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "g", "path", "line", "rect", "circle", "text", "title", "polyline", "desc"]);

/** h("div.card", {attributes}, ...children): null and false children are left out, arrays are flattened. */
export function h(spec, attributes, ...children) {
  const [tag, ...classes] = spec.split(".");
  const node = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  if (classes.length) node.setAttribute("class", classes.join(" "));
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value" && "value" in node) node.value = value;
    else if (name === "checked" || name === "selected" || name === "hidden" || name === "disabled") node[name] = Boolean(value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}

export const empty = (node, ...children) => (node.replaceChildren(...children.flat(Infinity).filter(Boolean)), node);

export function say(text) {
  document.getElementById("said").textContent = text;
}

// --- numbers -------------------------------------------------------------------------------------------------------

/** Three digits are all a prediction carries; whole numbers keep their thousands. */
export function figure(value) {
  if (value === null || value === undefined) return "–";
  const number = Number(value);
  if (!Number.isFinite(number)) return String(value);
  if (number === 0) return "0";
  const size = Math.abs(number);
  if (size >= 100) return number.toLocaleString("en", { maximumFractionDigits: 0 });
  return Number(number.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3 });
}

export function count(number, noun) {
  return `${Number(number).toLocaleString("en")} ${noun}${Number(number) === 1 ? "" : "s"}`;
}

export function usd(amount, digits = 2) {
  if (amount === null || amount === undefined) return "–";
  const number = Number(amount);
  const shown = Math.abs(number).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return `${number < 0 ? "−" : ""}$${shown}`;
}

export const percent = (fraction, digits = 0) => (fraction === null || fraction === undefined ? "–" : `${(100 * fraction).toFixed(digits)} %`);
export const interval = (v, unit) => (v ? `${figure(v.expected)} (${figure(v.low)}–${figure(v.high)})${unit ? ` ${unit}` : ""}` : "–");
export const day = (instant) => (instant ? String(instant).slice(0, 10) : "–");

export function ago(instant) {
  const seconds = Math.max(0, (Date.now() - Date.parse(instant)) / 1000);
  if (seconds < 90) return "just now";
  if (seconds < 5400) return `${Math.round(seconds / 60)} minutes ago`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} hours ago`;
  return `${Math.round(seconds / 86400)} days ago`;
}

const SPELT = { ttft: "TTFT", tpot: "TPOT", itl: "ITL", e2e: "E2E", gib: "GiB", gb: "GB", mb: "MB", usd: "USD", kv: "KV", llm: "LLM", id: "id", tflop: "TFLOP", w: "W", kw: "kW", kwh: "kWh", pcie: "PCIe", co2e: "CO2e", npv: "NPV", api: "API" };

/** A name of the API as words: ttft_above_target is "TTFT above target". */
export const words = (slug) => String(slug).split("_").map((part) => SPELT[part] ?? part).join(" ");

const UPLOADS_FROM = 1_000_000;

/** A correction set as people tell it apart: those that come with a version, and those made here of what was uploaded. */
export function setName(number) {
  if (number === null || number === undefined) return "none";
  return number > UPLOADS_FROM ? `${number - UPLOADS_FROM} of this service's uploads` : `${number} of the catalog`;
}

export function bytes(amount) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let number = Number(amount), unit = 0;
  while (number >= 1024 && unit < units.length - 1) [number, unit] = [number / 1024, unit + 1];
  return `${figure(number)} ${units[unit]}`;
}

/** How one replica is split. */
export function layoutText(layout) {
  if (!layout) return "–";
  const parts = [["TP", layout.tensor_parallel], ["PP", layout.pipeline_parallel], ["DP", layout.data_parallel], ["EP", layout.expert_parallel]];
  return parts.filter(([name, n]) => name === "TP" || n > 1).map(([name, n]) => name + n).join(" ");
}

/** What an input says as a number; undefined where it is empty. */
export const number = (text) => (text === "" || text === null || text === undefined ? undefined : Number(text));

// --- pieces --------------------------------------------------------------------------------------------------------

export function table(caption, headings, rows, options = {}) {
  const right = new Set(options.right ?? []);
  const cell = (tag, content, column, extra) => h(tag, { class: right.has(column) ? "num" : null, ...extra }, content);
  const heading = (text, i) => (text === "" ? h("td", {}) : cell("th", text, i, { scope: "col" }));
  return h("div.table-scroll", { tabindex: "0", role: "region", "aria-label": caption },
    h("table", {},
      h("caption", { class: options.hideCaption ? "visually-hidden" : null }, caption),
      h("thead", {}, h("tr", {}, headings.map(heading))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((content, i) =>
        i === 0 && options.rowHead !== false ? cell("th", content, i, { scope: "row" }) : cell("td", content, i)))))));
}

export function facts(entries) {
  return h("dl.facts", {}, entries.filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value ?? "–"))));
}

export function button(text, onclick, attributes = {}) {
  return h("button", { type: "button", onclick, ...attributes }, text);
}

export function copyButton(text, what, label = "Copy") {
  return button(label, async (event) => {
    const given = typeof text === "function" ? text() : text;
    try {
      await navigator.clipboard.writeText(given);
      event.target.textContent = "Copied";
      say(`${what} copied`);
    } catch {
      window.prompt(`Copy ${what}:`, given);
    }
    setTimeout(() => { event.target.textContent = label; }, 1500);
  }, { class: "quiet", "aria-label": `${label}: ${what}` });
}

export function download(name, content, type = "application/json") {
  const link = h("a", { href: URL.createObjectURL(new Blob([content], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export function field(label, input, hint) {
  const id = input.id || `f-${label.replace(/\W+/g, "-").toLowerCase()}`;
  input.id = id;
  const hintId = `${id}-hint`;
  if (hint) input.setAttribute("aria-describedby", hintId);
  return h("div.field", {}, h("label", { for: id }, label), input, hint && h("small", { id: hintId }, hint));
}

export function select(options, chosen, attributes = {}) {
  return h("select", attributes, options.map((o) => {
    const [value, text] = Array.isArray(o) ? o : [o, words(o)];
    return h("option", { value, selected: value === chosen }, text);
  }));
}

let lists = 0;
/** A datalist beside an input; names() is asked when the input is first used, so that opening a view stays small. */
export function suggest(input, names) {
  const id = `names-${lists += 1}`;
  const list = h("datalist", { id });
  input.setAttribute("list", id);
  const fill = () => names().then((known) => list.append(...known.map((value) => h("option", { value })))).catch(() => {});
  input.addEventListener("focus", fill, { once: true });
  return list;
}
