// Why this plan: what failed and how nearly, what a thing it does without would cost, what a requirement costs.
import { limitWords, planText, stepsText } from "./answer.js";
import { question } from "./asked.js";
import { knownIds } from "./api.js";
import { chart } from "./chart.js";
import { count, empty, field, figure, h, layoutText, select, suggest, table, usd, words } from "./dom.js";

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
  }, (said) => said.answers.map((one) => verdict(one, answer)), { signal });
  return h("section.card", {}, h("h2", {}, "Why not another device?"),
    h("form.inline", { onsubmit: (event) => { event.preventDefault(); asked.ask(); } }, field("Device", device), suggest(device, () => knownIds("devices")), asked.start), asked.panel);
}

/** One thing: what a plan with it costs and does beside the plan itself, and why the ways that fail do. */
function verdict(one, answer) {
  const failed = one.reasons.length ? h("details", { open: !one.forced_in.plan.length }, h("summary", {}, one.forced_in.plan.length ? `Ways of it that do not work (${one.reasons.length})` : "Why"), h("ul", {}, one.reasons.slice(0, 8).map((r) => h("li", {}, `${words(r.reason)}: ${r.detail}`)))) : null;
  if (one.in_plan) return h("div.verdict", {}, h("p", {}, h("strong", {}, one.name), ": it is in the plan"), failed);
  const asked = [["the plan", answer.totals, answer.plan], [`with ${one.name}`, one.forced_in, one.forced_in.plan], [`nothing but ${one.name}`, one.only, one.only?.plan ?? []]];
  const isSame = one.only && planText(one.only.plan) === planText(one.forced_in.plan);
  const rows = asked.filter(([, solved, plan], i) => solved && plan.length && !(i === 1 && isSame));
  return h("div.verdict", {},
    h("p", {}, h("strong", {}, one.name), ": ", one.forced_in.says),
    one.excluded_by.length ? h("p", {}, `Left out by ${one.excluded_by.map((l) => limitWords(l).name).join(", ")}; priced as if it were not.`) : null,
    rows.length > 1 ? table("Beside the plan; requests/s a $/h: what a dollar an hour can carry", ["", "USD/h", "rents", "each replica", "requests/s a $/h", "TTFT p95, ms", "TPOT p95, ms"], rows.map(([name, solved, plan]) => [
      name, usd(solved.usd_per_hour), planText(plan), each(plan, (line) => `${layoutText(line.layout)}, ${line.precision.weights}, ${[line.engine, stepsText(line.engine, line.engine_settings?.max_batched_tokens)].filter(Boolean).join(", ")}`),
      figure(plan.reduce((sum, line) => sum + (line.role === "prefill" ? 0 : line.utilisation_fraction ? line.serves_requests_per_s / line.utilisation_fraction : 0), 0) / Number(solved.usd_per_hour)),
      each(plan, (line) => figure(line.predicted?.ttft_ms.p95.expected)), each(plan, (line) => figure(line.predicted?.tpot_ms.p95.expected))]), { right: [1, 4] }) : null,
    failed);
}

const each = (plan, text) => [...new Set(plan.filter((line) => line.serves_requests_per_s > 0).map(text))].join(" + ");

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
