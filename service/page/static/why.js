// Why this plan: what failed and how nearly, what a thing it does without would cost, what a requirement costs.
import { limitWords, planText } from "./answer.js";
import { question } from "./asked.js";
import { knownIds } from "./api.js";
import { chart } from "./chart.js";
import { count, empty, field, figure, h, select, suggest, table, usd, words } from "./dom.js";

export function whyTab(answer, actions) {
  return [notAnswered(answer, actions), answer.plan.length ? whyNot(answer, actions) : null, priceCurve(answer, actions), rejected(answer), leftOut(answer)];
}

function notAnswered(answer) {
  return answer.plan.length ? null : h("p", {}, "There is no plan: below is what came nearest.");
}

function whyNot(answer, { signal }) {
  const device = h("input", { type: "text", id: "why-device", autocomplete: "off", required: true });
  const asked = question("Why not this?", `/v1/recommendations/${answer.id}/why-not`, () => {
    if (!device.value.trim()) { device.focus(); return null; }
    return { devices: [device.value.trim()], time_limit_s: 20 };
  }, (said) => said.answers.map((one) => h("div.verdict", {},
    h("p", {}, h("strong", {}, one.name), ": ", one.in_plan ? "it is in the plan" : one.forced_in.says, one.forced_in.plan.length && !one.in_plan ? ` – ${planText(one.forced_in.plan)}` : ""),
    one.excluded_by.length ? h("p", {}, `Left out by ${one.excluded_by.map((l) => limitWords(l).name).join(", ")}; priced as if it were not.`) : null,
    one.reasons.length ? h("ul", {}, one.reasons.slice(0, 5).map((r) => h("li", {}, `${words(r.reason)}: ${r.detail}`))) : null)), { signal });
  return h("section.card", {}, h("h2", {}, "Why not another device?"),
    h("form.inline", { onsubmit: (event) => { event.preventDefault(); asked.ask(); } }, field("Device", device), suggest(device, () => knownIds("devices")), asked.start), asked.panel);
}

function priceCurve(answer, { signal }) {
  const [one] = answer.request.workloads;
  const options = Object.entries(one.targets).filter(([name]) => name.endsWith("_ms")).flatMap(([name, stated]) => Object.keys(stated).map((p) => `targets.${name}.${p}`));
  options.push("requests_per_s", "confidence_percent", "spare_nodes", "context_tokens");
  const of = select(options.map((name) => [name, limitWords(name).name]), options[0], { id: "curve-of" });
  const asked = question("Draw its price", `/v1/recommendations/${answer.id}/price-curve`, () => ({ of: of.value, workload: of.value === "spare_nodes" ? null : one.name, time_limit_s: 30 }), (said) => {
    const { name, unit } = limitWords(said.of);
    const axis = `${name}${unit ? `, ${unit}` : ""}`;
    const solved = said.points.filter((p) => p.solved.usd_per_hour !== null);
    return [
      h("p", {}, `${said.says.charAt(0).toUpperCase()}${said.says.slice(1)}.`),
      chart([{ name: "cheapest plan", kind: "step", points: solved.map((p) => ({ x: p.value, y: Number(p.solved.usd_per_hour), mark: p.is_requested, label: `${figure(p.value)}: ${planText(p.solved.plan)}` })) }],
        { title: `What ${name} costs`, x: axis, y: "USD per hour", yZero: true, format: (v) => usd(v, 0), hint: "The large point is what was asked for." }),
      table(`Price by ${name}`, [axis, "USD/h", "", "plan"], said.points.map((p) => [
        `${figure(p.value)}${p.is_requested ? " (asked)" : ""}`, usd(p.solved.usd_per_hour), p.is_requested ? "" : p.solved.plan.length && !p.solved.measurable ? "the same" : p.solved.says, p.solved.plan.length ? planText(p.solved.plan) : p.reasons[0]?.detail ?? ""]), { right: [1] }),
    ];
  }, { signal });
  return h("section.card", {}, h("h2", {}, "What does a requirement cost?"), h("p.muted", {}, "Each point is a plan of its own, solved and confirmed by simulation."),
    h("form.inline", { onsubmit: (event) => { event.preventDefault(); asked.ask(); } }, field("Requirement", of), asked.start), asked.panel);
}

function rejected(answer) {
  const rows = answer.rejected;
  if (!rows.length) return null;
  const search = h("input", { type: "search", id: "rejected-search", placeholder: "device or reason", oninput: draw });
  const place = h("div", {});
  let most = 15;
  function draw() {
    const wanted = search.value.toLowerCase();
    const found = rows.filter((r) => `${r.device} ${r.partition ?? ""} ${words(r.reason)} ${r.nearest ?? ""}`.toLowerCase().includes(wanted));
    empty(place, table(`${count(found.length, "reason")}: devices on which nothing works first, then the ways that fail on others; nearest misses before others`, ["device", "reason", "failed so", "the nearest of them"],
      found.slice(0, most).map((r) => [r.partition ? `${r.device} (${r.partition})` : r.device, `${words(r.reason)}${r.traffic_class ? ` for ${r.traffic_class}` : ""}`, count(r.count, "way"), r.nearest ?? "–"]), { right: [2] }),
    found.length > most ? h("button", { type: "button", onclick: () => { most = found.length; draw(); } }, `Show all ${found.length}`) : null);
  }
  draw();
  return h("section.card", {}, h("h2", {}, "What does not work"), field("Search", search), place);
}

function leftOut(answer) {
  if (!answer.left_out.length) return null;
  return h("section.card", {}, h("h2", {}, "What the catalog does not know"), h("p.muted", {}, "These are outside the proof: nothing is guessed for them."),
    h("ul", {}, answer.left_out.map((one) => h("li", {}, one.reason === "price_missing" ? `No price for ${words(one.what)}: ${count(one.count, "machine")}, such as ` : `No figure for ${words(one.what)}: ${count(one.count, "device")}, such as `, h("code", {}, one.names.slice(0, 6).join(", "))))));
}
