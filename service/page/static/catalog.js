// What the planner knows: devices, machines, models, offers. Every figure with its source and age.
import { curlOf, get, query } from "./api.js";
import { bytes, button, copyButton, count, day, empty, field, figure, h, select, suggest, table, usd, words } from "./dom.js";
import { knownIds } from "./api.js";

const big = (n) => (n >= 1e9 ? `${figure(n / 1e9)} B` : n >= 1e6 ? `${figure(n / 1e6)} M` : figure(n));
const link = (noun) => (item) => h("a", { href: `#/catalog/${noun}/${encodeURIComponent(item.id)}` }, item.id);

const LISTS = {
  devices: { title: "Devices", filters: ["vendor", "status", "device_class"], right: [3, 4, 5, 6, 7], columns: [
    ["id", link("devices")], ["vendor", (i) => i.vendor], ["status", (i) => words(i.status)], ["memory GiB", (i) => figure(i.memory_gib)],
    ["memory GB/s", (i) => figure(i.memory_bandwidth_gb_per_s)], ["bf16 TFLOP/s", (i) => figure(i.dense_bf16_tflop_per_s)], ["fp8 TFLOP/s", (i) => figure(i.dense_fp8_tflop_per_s)], ["W", (i) => figure(i.power_limit_w)]] },
  offers: { title: "Offers", filters: ["device", "provider", "region", "commitment", "provider_class"], right: [2, 3, 4, 6], columns: [
    ["id", link("offers")], ["device", (i) => i.device], ["devices", (i) => i.devices], ["USD/h", (i) => usd(i.price?.usd_per_hour ?? null)], ["USD/device-h", (i) => usd(i.usd_per_device_hour)],
    ["stated", (i) => day(i.price?.valid_from)], ["age, days", (i) => (i.price ? h(`span.age${i.price.age_days > 60 ? ".old" : ""}`, {}, i.price.age_days) : "–")], ["confidence", (i) => i.price?.confidence ?? "–"]] },
  llms: { title: "Models", filters: ["family", "origin"], right: [2, 3, 4], columns: [
    ["id", link("llms")], ["family", (i) => i.family], ["parameters", (i) => big(i.total_weights)], ["active", (i) => big(i.active_weights)], ["context, tokens", (i) => Number(i.max_context_tokens).toLocaleString("en")],
    ["native weights", (i) => i.native_weights], ["bf16 weights", (i) => (i.weight_bytes.bf16 ? bytes(i.weight_bytes.bf16) : "–")]] },
  nodes: { title: "Machines", filters: ["device", "kind"], right: [2, 4, 5], columns: [
    ["id", link("nodes")], ["device", (i) => i.device], ["devices", (i) => i.devices], ["kind", (i) => words(i.kind)], ["linked", (i) => i.link_domain_devices], ["network Gbit/s", (i) => figure(i.network_gbit_per_s)]] },
  providers: { title: "Providers", filters: ["provider_class"], right: [], columns: [["id", link("providers")], ["name", (i) => i.name], ["class", (i) => i.provider_class]] },
};
const CHOICES = { commitment: ["", "on_demand", "spot", "reserved_1y", "reserved_1y_no_upfront", "reserved_3y", "reserved_3y_no_upfront", "capacity_block"], provider_class: ["", "hyperscaler", "specialist", "marketplace"], device_class: ["", "datacentre", "workstation", "consumer", "edge"], origin: ["", "catalog", "user"] };
const FIRST_ROWS = 100;
const byPrice = (one, other) => Number(one.usd_per_device_hour ?? Infinity) - Number(other.usd_per_device_hour ?? Infinity) || one.id.localeCompare(other.id);  // once all are there
const SUGGESTED = { device: "devices", provider: "providers" };

/** #/catalog/{noun}[/{id}] */
export async function catalogView({ parts, parameters, navigate, signal }) {
  const [noun = "devices", id] = parts;
  const list = LISTS[noun] ?? LISTS.devices;
  const tabs = h("nav.tabs", { "aria-label": "Parts of the catalog" }, Object.entries(LISTS).map(([name, one]) => h("a", { href: `#/catalog/${name}`, "aria-current": name === noun ? "page" : null }, one.title)));
  if (id) return h("section.card", {}, h("h1", {}, "Catalog"), tabs, await one(noun, id, signal));
  const place = h("div", {});
  const search = h("input", { type: "search", id: "catalog-search", value: parameters.get("q") ?? "", placeholder: "part of any column", oninput: () => { remember(); draw(); everything(); } });
  const filters = list.filters.map((name) => {
    const changed = () => { remember(); load(); };
    const input = CHOICES[name] ? select(CHOICES[name].map((v) => [v, v ? words(v) : "any"]), parameters.get(name) ?? "", { id: `filter-${name}`, onchange: changed })
      : h("input", { id: `filter-${name}`, type: "text", value: parameters.get(name) ?? "", placeholder: "any", autocomplete: "off", onchange: changed });
    return { name, input, node: field(words(name), input), list: SUGGESTED[name] ? suggest(input, () => knownIds(SUGGESTED[name])) : null };
  });
  let items = [], next = null, total = 0, most = FIRST_ROWS;
  const chosen = () => Object.fromEntries(filters.map((f) => [f.name, f.input.value.trim()]).filter(([, value]) => value));
  const remember = () => navigate(`#/catalog/${noun}${query({ ...chosen(), q: search.value })}`, { replace: true, silent: true });
  function draw() {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = items.filter((item) => { const text = JSON.stringify(item).toLowerCase(); return wanted.every((word) => text.includes(word)); });
    empty(place, table(`${count(shown.length, "row")}${next ? ` of the first ${items.length.toLocaleString("en")}; there are ${total.toLocaleString("en")}` : ""}`, list.columns.map(([name]) => name), shown.slice(0, most).map((item) => list.columns.map(([, of]) => of(item))), { right: list.right }),
      shown.length > most ? button(`Show all ${shown.length}`, () => { most = Infinity; draw(); }) : null,
      next ? button("Load more", more) : null,
      h("p.buttons", {}, copyButton(() => curlOf("GET", `/v1/${noun}${query(chosen())}`), "this list as a curl command", "Copy as curl")));
  }
  let reading = false;
  /** What is searched for may stand beyond what has been read. */
  async function everything() {
    if (reading) return;
    reading = true;
    for (let failed = false; search.value.trim() && next && !failed;) { const before = next; await more(); failed = next === before; }
    reading = false;
  }
  let loads = 0;
  async function more() {
    const mine = loads;
    try {
      const page = await get(`/v1/${noun}`, { ...chosen(), limit: 500, next }, { signal });
      if (mine !== loads) return;  // the filters have changed meanwhile: this is no answer to what is asked now
      items = items.concat(page.items);
      [next, total] = [page.next, page.total];
      if (noun === "offers" && !next) items.sort(byPrice);
      draw();
    } catch (problem) {
      if (problem.name !== "AbortError" && mine === loads) empty(place, h("p", { role: "alert" }, problem.errors?.map((e) => e.detail).join("; ") || problem.message));
    }
  }
  async function load() { loads += 1; [items, next] = [[], null]; empty(place, h("p.loading", {}, "Reading…")); await more(); everything(); }
  load();
  return h("section.card", {}, h("h1", {}, "Catalog"), tabs, h("form.row", { onsubmit: (event) => { event.preventDefault(); remember(); load(); } }, filters.map((f) => [f.node, f.list]), field("Search", search)), place);
}

async function one(noun, id, signal) {
  const path = `/v1/${noun}/${encodeURIComponent(id)}`;
  const item = await get(path, {}, { signal });
  const steps = noun === "offers" ? await get(`${path}/prices`, {}, { signal }) : null;
  return [h("h2", {}, item.name ?? item.id),
    record(item),
    steps ? table("Every price step", ["from", "USD/h", "source", "retrieved", "confidence"], steps.items.map((s) => [day(s.valid_from), usd(s.usd_per_hour), s.source, s.retrieved_on, s.confidence]), { right: [1] }) : null,
    h("p.buttons", {}, copyButton(() => location.href, "the link", "Copy link"), copyButton(() => curlOf("GET", path), "this as a curl command", "Copy as curl"),
      noun === "llms" ? h("a.button.quiet", { href: `#/plan/new?preset=chat&llm=${encodeURIComponent(id)}` }, "Plan with it") : null)];
}

const UNITS = { tflop_per_s: "TFLOP/s", top_per_s: "TOP/s", gb_per_s: "GB/s", gbit_per_s: "Gbit/s", gib: "GiB", mb: "MB", w: "W", tokens: "tokens" };
const SLUGS = new Set(["category", "device_class", "status", "kind", "commitment", "provider_class"]);
const UNIT = new RegExp(`_(${Object.keys(UNITS).join("|")})$`);

/** A record: what is known, with units; then by name what is not; its sources folded. */
function record(item) {
  const unknown = Object.entries(item).filter(([, value]) => value === null).map(([name]) => words(name.replace(UNIT, "")));
  const { provenance, missing: _named, ...rest } = item;  // what is missing is named below
  return [h("dl.figures", {}, Object.entries(rest).filter(([, value]) => value !== null).map(([name, value]) => shown(name, value))),
    unknown.length ? h("p.muted", {}, `Not known, and never guessed: ${unknown.join(", ")}.`) : null,
    provenance && Object.keys(provenance).length ? h("details", {}, h("summary", {}, "Where each figure is from"), h("dl.figures", {}, Object.entries(provenance).map(([name, value]) => shown(name, value)))) : null];
}

function shown(name, value) {
  const [, suffix] = UNIT.exec(name) ?? [];
  const unit = suffix && typeof value === "number" ? UNITS[suffix] : null;
  const label = words(unit ? name.replace(UNIT, "") : name);
  if (value === null) return h("div.unknown", {}, h("dt", {}, label), h("dd", {}, "not known"));
  if (Array.isArray(value) && value.every((v) => typeof v !== "object")) return h("div", {}, h("dt", {}, label), h("dd", {}, value.join(", ") || "none"));
  if (typeof value === "object") return h("div.nested", {}, h("dt", {}, label), h("dd", {}, h("dl.figures", {}, Object.entries(value).map(([n, v]) => shown(n, v)))));
  const text = typeof value === "number" && Math.abs(value) >= 1000 && !/year|generation/.test(name) ? value.toLocaleString("en") : typeof value === "boolean" ? (value ? "yes" : "no") : SLUGS.has(name) ? words(value) : String(value);
  return h("div", {}, h("dt", {}, label), h("dd", {}, unit ? `${text} ${unit}` : text));
}
