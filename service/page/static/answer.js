// A recommendation, most important first: what to rent, what it costs, how fast it is, how sure that is, what moves the price.
import { curlOf, get, post } from "./api.js";
import { intervalBar } from "./chart.js";
import { deploymentOf, estimateOf, insideOf } from "./deployment.js";
import { ago, button, copyButton, count, day, download, empty, facts, figure, h, interval, layoutText, percent, setName, table, usd, words } from "./dom.js";
import { term } from "./glossary.js";
import { policyText } from "./policy.js";
import { publishedLines } from "./published.js";
import { askedFacts, foundFacts } from "./traffic.js";

const STATUS = {
  proven_optimal: ["Proven cheapest", "good"], within_gap: ["Within the gap asked for", "fair"], time_limit: ["Best plan in the time", "fair"],
  proven_infeasible: ["No plan exists", "bad"], kept_current: ["Keep what runs", "fair"],
  mixes_open: ["Best plan found", "fair"],
};
const PROOF_OVER = {
  each_class_alone: "whatever mixes replicas sustain, no",
  simulated_mixes: "as far as mixes like those simulated go, no",
  simulated_pools: "as far as pools like those simulated go, no",
};
const ALL_TARGETS = "targets (all, times a factor)";
const LIMITS = {
  "limits.max_usd_per_hour": ["price limit", "USD/h"], "limits.max_power_kw": ["power limit", "kW"],
  "traffic.requests_per_s": ["request rate", "requests/s"], "traffic_classes.requests_per_s": ["request rate", "requests/s"],
  "limits.spare_nodes": ["spare nodes", ""], "limits.max_nodes_per_offer": ["nodes of one offer", ""], "targets.confidence_percent": ["confidence", "%"],
  "utilisation_limit_fraction": ["busy at most", "of what replicas sustain"],
};

/** A limit as people say it, with its unit. */
export function limitWords(stated) {
  if (stated === ALL_TARGETS) return { name: "all targets", unit: "times as high" };
  const limit = stated.replace(/^workloads\..+?\.(?=(targets|traffic|traffic_classes|regions|providers|context_tokens|min_replicas)\b)/, "");
  const target = /^(?:traffic_classes\.(.+)\.)?targets\.(ttft|tpot|e2e)_ms\.(\w+)$/.exec(limit);
  if (target) return { name: `${target[2].toUpperCase()} ${target[3]}${target[1] ? ` of ${target[1]}` : ""}`, unit: "ms" };
  const [name, unit] = LIMITS[limit] ?? [words(limit.replace(/^limits\./, "").replaceAll(".", " ")), ""];
  return { name, unit };
}

/** The request with one limit moved; null where its name leads to nothing that can be set. */
export function relaxed(request, limit, workload, value) {
  const copy = structuredClone(request);
  if (limit === ALL_TARGETS) return withTargetsTimes(copy, workload, value);
  const path = limit.split(".");
  let here = path[0] === "limits" ? copy : copy.workloads.find((w) => w.name === workload) ?? (copy.workloads.length === 1 ? copy.workloads[0] : null);
  if (limit === "traffic_classes.requests_per_s" && here) {
    if (here.requests_per_s === null) return null;
    here.requests_per_s = value;
    return copy;
  }
  for (const step of path.slice(0, -1)) {
    if (here === null || here === undefined) return null;
    here = Array.isArray(here) ? here.find((one) => one.name === step) : here[step];
  }
  const last = path.at(-1);
  if (!here || typeof here !== "object" || Array.isArray(here) || !(last in here)) return null;
  if (value === "any" || value === null) here[last] = here[last] && typeof here[last] === "object" && "only" in here[last] ? { only: null, never: [] } : null;
  else here[last] = last.includes("usd") ? String(value) : value;
  return copy;
}

function withTargetsTimes(request, workload, factor) {
  for (const one of request.workloads.filter((w) => workload === null || w.name === workload)) {
    for (const targets of [one.targets, ...(one.traffic_classes ?? []).map((c) => c.targets)].filter(Boolean)) {
      for (const name of ["ttft_ms", "tpot_ms", "e2e_ms"]) for (const p of Object.keys(targets[name])) targets[name][p] *= factor;
    }
  }
  return request;
}

export function badge(basis) {
  return h(`span.badge.${basis}`, {}, term(basis));
}

export function rentedText(line) {
  return line.partition ? `${line.replicas} × ${line.partition.profile} of ${line.node}` : `${line.nodes} × ${line.node}`;
}

/** What a plan rents; lines on the same kind of node are added up. */
export function planText(plan) {
  const split = plan.filter((line) => line.partition).map(rentedText);
  return [...sums(plan.filter((line) => !line.partition)), ...split].join(" + ") || "–";
}

/** What an answer rents: whole nodes, also where lines share them. */
export function fleetText(answer) {
  return answer.fleet.length ? sums(answer.fleet).join(" + ") : planText(answer.plan);
}

function sums(parts) {
  const nodes = new Map();
  for (const one of parts) nodes.set(one.node, (nodes.get(one.node) ?? 0) + one.nodes);
  return [...nodes].map(([node, number]) => `${number} × ${node}`);
}

/** The whole answer. actions.replan(request): plans a changed request. */
export function answerCards(answer, actions) {
  return [headline(answer, actions), answer.plan.length ? planLines(answer) : null, publishedLines(answer), beforeSigning(answer), doubt(answer, actions), movers(answer, actions), alternatives(answer), choices(answer, actions), unsettled(answer, actions), fineprint(answer, actions)];
}

function headline(answer, actions) {
  const { solve, totals } = answer;
  const [title, tone] = STATUS[solve.status] ?? [words(solve.status), "fair"];
  const proof = solve.bound_usd_per_hour === null ? null
    : h("p.proof", {}, "Proof: ", PROOF_OVER[solve.proof_over] ?? "no",
      ` plan within the limits${answer.request.limits.sourcing === "any" ? " (none of them about who may sell)" : ""}`, answer.request.limits.sourcing === "any" ? "" : [" and the ", h("abbr", { title: policyText(answer.request.limits.sourcing) }, "buying policy")], ` meets the targets for less than ${usd(solve.bound_usd_per_hour)}/h`, solve.gap_fraction ? [": this one may be ", h("strong", {}, percent(solve.gap_fraction, 2)), " above the cheapest"] : "", ".");
  return h("section.card.headline", { "aria-label": "Answer" },
    h("div.spread", {}, h("span.buttons", {}, h(`span.status.${tone}`, {}, title), answer.plan.some((line) => UNMEASURED.includes(line.basis)) ? h("span.status.fair", { title: "Its price is proven; its speed is predicted by physics, on a device that nobody has measured. See Accuracy." }, "Speed not measured") : null),
      h("span.buttons", {},
        copyButton(() => curlOf("POST", "/v1/recommendations", answer.request), "this request as a curl command", "Copy as curl"),
        copyButton(() => location.href, "the link to this plan", "Copy link"),
        button("JSON", () => download(`${answer.id}.json`, JSON.stringify(answer, null, 2)), { class: "quiet", "aria-label": "Download the answer as JSON" }),
        actions.compare && h("a.button.quiet", { href: `#/compare?a=${answer.id}` }, "Compare"))),
    totals === null ? infeasible(answer) : [
      h("p.price", {}, h("strong", { title: `${totals.usd_per_hour} USD per hour` }, usd(totals.usd_per_hour)), h("span", {}, "per hour")),
      h("p.rent", {}, fleetText(answer)),
      facts([
        ["a month of 730 h", usd(totals.usd_per_month, 0)],
        ["per million output tokens", usd(totals.usd_per_million_output_tokens, 3)],
        ["per million, with prompts", usd(totals.usd_per_million_tokens, 3)],
        ["to rent", `${count(totals.nodes, "node")}, ${count(totals.devices, "device")}`],
        ["serves", `${figure(totals.serves_requests_per_s)} requests/s${totals.served_fraction !== null && totals.served_fraction < 1 ? `, ${percent(totals.served_fraction, 1)} of what comes` : ""}`],
        ["power", totals.power_kw === null ? h("span", { title: "Nobody publishes what this machine draws." }, "not published") : `${figure(totals.power_kw)} kW`],
      ]), proof]);
}

function infeasible(answer) {
  const share = answer.largest_servable_fraction;
  return h("div", {},
    h("p.price", {}, h("strong", {}, "No plan"), h("span", {}, "serves this within its limits")),
    answer.conflicts.length ? h("div", {}, h("h3", {}, "In conflict"), h("ul", {}, answer.conflicts.map((c) => h("li", {}, h("strong", {}, c.limits.map((l) => limitWords(l).name).join(", ")), ` – ${c.detail}`)))) : null,
    share !== null ? h("p", {}, share > 0 ? `At most ${percent(share, 1)} of the stated traffic can be served within the limits.` : "None of the traffic can be served within the limits.") : null);
}

function planLines(answer) {
  const targets = Object.fromEntries(answer.request.workloads.map((w) => [w.name, w.targets]));
  return h("section.card", {}, h("h2", {}, "What to rent, and what runs on it"), answer.plan.map((line, number) => {
    const price = h("span.muted", {}, "…");
    get(`/v1/offers/${encodeURIComponent(line.offer)}`, { price_as_of: answer.inputs.price_as_of }).then((offer) => {
      if (!offer.price) return empty(price, "no price stored");
      const { price: p } = offer;
      return empty(price, `${usd(p.usd_per_hour)} a node-hour, stated ${day(p.valid_from)} (`, h(`span.age${p.age_days > 60 ? ".old" : ""}`, {}, p.age_days === 0 ? "today" : `${count(p.age_days, "day")} old`), `), ${p.confidence} confidence. ${p.source}`);
    }).catch(() => empty(price, "the offer is no longer stored"));
    const inside = h("div", {});
    return h("article.line", {},
      h("div.spread", {}, h("h3", {}, rentedText(line)), h("strong.line-price", { title: `${line.usd_per_hour} USD per hour` }, `${usd(line.usd_per_hour)}/h`)),
      h("p.muted", {}, `${line.provider} · ${line.region} · ${words(line.commitment)} · `, h("code", {}, line.offer)),
      h("div.line-columns", {},
        facts([
          ["serves", `${line.workload}${line.role === "aggregated" ? "" : ` (${line.role})`}, ${figure(line.serves_requests_per_s)} requests/s`],
          [term("replica", "replicas"), [`${line.replicas} × `, term("TP", layoutText(line.layout)), ` on ${line.device}${line.partition ? ` (${line.partition.profile})` : ""}`]],
          ["weights, cache", [line.precision.weights, ", ", term("KV cache", `KV ${line.precision.kv_cache}`)]],
          ["engine", line.engine],
          schedulerText(line) ? [term("scheduler"), schedulerText(line)] : null,
          line.engine_settings?.speculative ? ["drafts", draftText(line.engine_settings.speculative)] : null,
          line.engine_settings?.host_cache_gib ? ["caches", `${figure(line.engine_settings.host_cache_gib)} GiB of the host${line.engine_settings.disk_cache_gib ? ` and ${figure(line.engine_settings.disk_cache_gib)} GiB of disk` : ""} beside each device`] : null,
          ...askedFacts(answer.request.workloads.find((w) => w.name === line.workload)),
          ...foundFacts(line.predicted),
          [term("utilisation", "used"), percent(line.utilisation_fraction)],
          ["prediction", badge(line.basis)],
        ]),
        predicted(line, targets[line.workload], number)),
      h("p.source", {}, h("span", {}, "Price: "), price),
      line.partition ? null : h("details", { ontoggle: (event) => { if (event.target.open && !inside.childNodes.length) underTheHood(inside, answer, line); } },
        h("summary", {}, "Memory of a device, time of a step"), inside),
      deploymentOf(answer, line) ? h("p.muted", {}, h("a", { href: deploymentOf(answer, line) }, "Estimate this replica"), ", and change its split, format or traffic.") : null);
  }));
}

/** Engines whose options the files under Run it state: of others nothing is told that would be worth showing. */
const COMMANDS_WRITTEN = ["vllm", "sglang", "tensorrt-llm", "llama.cpp"];

/** The largest step of an engine's scheduler, where it is stated. */
export const stepsText = (engine, tokens) => (tokens && COMMANDS_WRITTEN.includes(engine) ? `steps ≤ ${tokens.toLocaleString("en")}` : "");

/** The largest step of a line's scheduler, its seats, what it captures where that is told, and how many processes answer where more than one does. */
export function schedulerText(line) {
  const told = line.engine_settings, steps = stepsText(line.engine, told?.max_batched_tokens);
  const graphs = told?.max_captured_tokens ? `, graphs ≤ ${told.max_captured_tokens.toLocaleString("en")}` : "";
  return steps && `${steps}, ${told.max_sequences.toLocaleString("en")} seats${graphs}${told.api_servers > 1 ? `, ${told.api_servers} API servers` : ""}`;
}

const draftText = (by) => `${by.draft_tokens} tokens a step (${by.method === "ngram" ? "n-gram look-up" : "heads"}), ${percent(by.acceptance_fraction)} of them accepted, as stated`;

const UNMEASURED = ["analytical", "borrowed"];

/** What an interval is worth: only of what has been measured is it known how often it holds. */
export const intervalWords = (basis) => (UNMEASURED.includes(basis) ? "an interval from what is uncertain in its physics: this device has not been measured" : "the interval that holds nine of ten measured values");

function predicted(line, targets, number) {
  if (!line.predicted) return h("p.muted", {}, line.serves_requests_per_s ? "Not predicted in the time given." : "Stands by: no traffic is planned here.");
  const rows = [["TTFT", "ttft_ms"], ["TPOT", "tpot_ms"], ["E2E", "e2e_ms"]].map(([name, key]) => {
    const stated = Object.entries(targets?.[key] ?? {});
    const [statistic, target] = stated[0] ?? ["p95", null];
    return h("tr", {}, h("th", { scope: "row" }, term(name), ` ${statistic}`), h("td.num", {}, UNMEASURED.includes(line.basis) ? interval(line.predicted[key][statistic]) : term("interval", interval(line.predicted[key][statistic]))),
      h("td.bar", {}, intervalBar(line.predicted[key][statistic], target, "ms")), h("td.num", {}, target === null ? h("span.muted", {}, "no target") : `≤ ${figure(target)}`));
  });
  return h("div.table-scroll", { tabindex: "0", role: "region", "aria-label": `Predicted latencies of line ${number + 1}` }, h("table.predicted", {},
    h("caption", {}, `Predicted, in ms, with ${intervalWords(line.basis)}`),
    h("thead.visually-hidden", {}, h("tr", {}, ["latency", "expected (interval)", "against the target", "target"].map((t) => h("th", { scope: "col" }, t)))),
    h("tbody", {}, rows)),
  line.classes.length ? table("Traffic classes on this line", ["class", "requests/s", "share of the class", "TTFT p95", "TPOT p95"], line.classes.map((c) => [
    c.traffic_class, figure(c.serves_requests_per_s), percent(c.share_fraction), interval(c.predicted?.ttft_ms.p95, "ms"), interval(c.predicted?.tpot_ms.p95, "ms")])) : null);
}

async function underTheHood(inside, answer, line) {
  const body = estimateOf(answer, line);
  if (!body) return empty(inside, h("p.muted", {}, "Shown for replicas of one kind of traffic."));
  empty(inside, h("p.loading", {}, "Estimating one replica…"));
  try {
    const [one] = (await post("/v1/estimates", body)).estimates;
    if (one.outcome !== "estimated") return empty(inside, h("p", {}, one.detail));
    return empty(inside, insideOf(one), h("p.buttons", {}, copyButton(() => curlOf("POST", "/v1/estimates", body), "this estimate as a curl command", "Copy as curl")));
  } catch (problem) {
    return empty(inside, h("p", {}, problem.message));
  }
}

/** Where an interval reaches above its target: the prediction holds it, nine of ten measurements need not. */
function doubt(answer, actions) {
  const untold = answer.request.workloads.filter((w) => !w.traffic_classes && !["ttft_ms", "tpot_ms", "e2e_ms"].some((name) => Object.keys(w.targets[name]).length));
  if (untold.length) return h("section.card", {}, h("h2", {}, "How fast?"), h("p", {}, `No target was stated for ${untold.map((w) => w.name).join(", ")}: any latency will do, so the plan is the cheapest that keeps up. State a TTFT or TPOT if users wait.`));
  const above = answer.plan.filter((line) => line.predicted).flatMap((line) => {
    const targets = answer.request.workloads.find((w) => w.name === line.workload)?.targets ?? {};
    return ["ttft_ms", "tpot_ms", "e2e_ms"].flatMap((name) => Object.entries(targets[name] ?? {}).filter(([p, target]) => line.predicted[name][p].high > target).map(([p]) => `${name.split("_")[0].toUpperCase()} ${p} on ${line.device}`));
  });
  const isSure = answer.request.workloads.some((w) => w.targets.confidence_percent > 50 || w.traffic_classes);
  if (!above.length || isSure) return null;
  const surer = structuredClone(answer.request);
  for (const workload of surer.workloads) workload.targets.confidence_percent = 90;
  return h("section.card", {}, h("h2", {}, "How sure"),
    h("p", {}, `The prediction keeps every target, but its interval reaches above it for ${[...new Set(above)].join(", ")}. To be surer, measure it and upload the run under Benchmarks, or `,
      button("plan with 90 % confidence", () => actions.replan(surer), { class: "link" }), ", which costs more."));
}

/** What a lost node does, which targets may be missed, which prices are old. */
function beforeSigning(answer) {
  if (!answer.cautions.length) return null;
  const several = answer.request.workloads.length > 1;
  return h("section.card", {}, h("h2", {}, "Before you sign"), h("ul.movers", {}, answer.cautions.map((c) =>
    h("li", {}, several ? h("strong", {}, `${c.workload}: `) : null, `${c.detail.charAt(0).toUpperCase()}${c.detail.slice(1)}.`))));
}

const UNSETTLED = { predictions: "what some lines are predicted to do", alternatives: "what doing without a device costs", binding: "what each requirement costs", sourcing: "what the buying policy costs", lower_precision: "what 8-bit weights and cache would save", confidence: "what the confidence asked for costs", relaxations: "which change of the request would admit a plan" };

/** What there was no time to find out. */
function unsettled(answer, actions) {
  if (!answer.unsettled?.length) return null;
  const longer = Math.min(3600, Math.max(60, 4 * answer.request.time_limit_s));
  return h("section.card", {}, h("p", {}, h("strong", {}, `Not all was settled within ${figure(answer.request.time_limit_s)} s: `), answer.unsettled.map((name) => UNSETTLED[name] ?? words(name)).join("; "), ". ",
    button(`Ask again with ${figure(longer)} s`, () => actions.replan({ ...structuredClone(answer.request), time_limit_s: longer }), { class: "link" })));
}

/** What the buying policy and the checkpoint's own precision cost. */
function choices(answer, actions) {
  const items = answer.sourcing.filter((change) => change.plan.length).map((change) => {
    const request = structuredClone(answer.request);
    if (change.rule === null) request.limits.sourcing = "any";
    else if (change.rule === "limits.commitments") request.limits.commitments.push("on_demand");
    else request.limits.sourcing[change.rule.split(".").at(-1)] = change.rule.endsWith("named_place") ? false : null;
    const name = change.rule === null ? "Without the buying policy" : change.rule === "limits.commitments" ? "With machines on demand too" : `Without the rule ${words(change.rule.split(".").at(-1))}`;
    return h("li", {}, button(name, () => actions.replan(request), { class: "link" }), `: ${saved(change)} – ${planText(change.plan)}`);
  });
  if (answer.plan.length) items.push(eightBit(answer, actions));
  return items.filter(Boolean).length ? h("section.card", {}, h("h2", {}, "What caution costs"), h("ul.movers", {}, items)) : null;
}

/** The plan with 8-bit formats allowed, and a way to ask for it; null where it gains nothing. */
function eightBit(answer, actions) {
  const lower = answer.lower_precision;
  if (!lower?.plan.length) return null;
  const request = structuredClone(answer.request);
  for (const workload of request.workloads) {
    const lines = lower.plan.filter((line) => line.workload === workload.name);
    const formats = (name) => [...new Set(lines.map((line) => line.precision[name]))];
    if (lines.length) workload.precision = { weights: formats("weights"), kv_cache: formats("kv_cache") };
  }
  return h("li", {}, button("With 8-bit weights and cache", () => actions.replan(request), { class: "link" }),
    answer.plan.length ? `: ${saved(lower)}` : ` there is a plan for ${usd(lower.usd_per_hour)}/h`, ` – ${planText(lower.plan)}. Whether answers stay good enough is for an evaluation to say.`);
}

function saved(change) {
  return change.serves_more_requests_per_s !== null ? `${figure(change.serves_more_requests_per_s)} more requests/s` : change.saves_power_kw !== null ? `${figure(change.saves_power_kw)} kW less` : `${usd(change.saves_usd_per_hour)}/h less`;
}

function movers(answer, actions) {
  const items = [];
  for (const b of answer.binding) {
    const { name, unit } = limitWords(b.limit);
    const to = typeof b.relaxing_to === "number" ? `${figure(b.relaxing_to)} ${unit}` : b.relaxing_to;
    const gain = b.serves_more_requests_per_s !== null ? `${figure(b.serves_more_requests_per_s)} more requests/s` : b.saves_power_kw !== null ? `${figure(b.saves_power_kw)} kW less` : `saves ${usd(b.saves_usd_per_hour)}/h`;
    const request = relaxed(answer.request, b.limit, b.workload, b.relaxing_to);
    items.push(h("li", {}, h("span", {}, h("strong", {}, name), b.workload && answer.request.workloads.length > 1 ? ` of ${b.workload}` : "", " ", term("binding", "costs money"), ": "),
      request ? button(`relax to ${to}`, () => actions.replan(request), { class: "link" }) : `relaxing to ${to}`, ` ${gain}`));
  }
  if (!answer.plan.length) items.push(eightBit(answer, actions));
  items.push(savesNothing(answer));
  for (const r of answer.relaxations) {
    const { name, unit } = limitWords(r.limit);
    const to = typeof r.relaxing_to === "number" ? `${figure(r.relaxing_to)} ${unit}` : r.relaxing_to ?? "any";
    const request = relaxed(answer.request, r.limit, r.workload, r.relaxing_to);
    items.push(h("li", {}, h("strong", {}, name), ": ", request ? button(`relax to ${to}`, () => actions.replan(request), { class: "link" }) : `relaxed to ${to}`,
      r.usd_per_hour === null ? " and there is a plan" : ` and there is a plan for ${usd(r.usd_per_hour)}/h`));
  }
  if (answer.confidence_premium_usd_per_hour !== null) items.push(h("li", {}, Number(answer.confidence_premium_usd_per_hour) ? `Confidence above 50 % adds ${usd(answer.confidence_premium_usd_per_hour)}/h.` : "Confidence above 50 % costs nothing: a plan without it is no cheaper."));
  return items.some(Boolean) ? h("section.card", {}, h("h2", {}, answer.plan.length ? "What the requirements cost" : "What would make a plan possible"), h("ul.movers", {}, items)) : null;
}

const LOOSER = 1.2;  // as far as the solver has tried

/** Targets of one workload that cost nothing; each was moved and the plan proven again. */
function savesNothing(answer) {
  const [workload, ...others] = answer.request.workloads;
  if (answer.solve.status !== "proven_optimal" || others.length || workload.traffic_classes || answer.unsettled?.includes("binding")) return null;
  const free = ["ttft_ms", "tpot_ms", "e2e_ms"].flatMap((name) => Object.keys(workload.targets[name]).map((p) => `targets.${name}.${p}`))
    .filter((target) => !answer.binding.some((b) => b.limit.endsWith(target)));
  const [{ targets }] = answer.request.workloads;
  const looser = free.map((target) => `${limitWords(target).name} to ${figure(targets[target.split(".")[1]][target.split(".")[2]] * LOOSER)} ms`);
  return looser.length ? h("li", {}, `Loosening ${looser.join(" or ")} saves nothing; `, h("a", { href: `#/plan/${answer.id}/pareto` }, "Trade-offs"), " draws what more would.") : null;
}

function alternatives(answer) {
  if (!answer.alternatives.length) return null;
  return h("section.card", {}, h("h2", {}, "Next best"), h("ul.movers", {}, answer.alternatives.map((a) => {
    if (!a.plan.length) return h("li", {}, h("strong", {}, a.why), ": there is no plan");
    const more = a.less_served_requests_per_s !== null ? `${figure(a.less_served_requests_per_s)} requests/s less` : a.extra_power_kw !== null ? `${figure(a.extra_power_kw)} kW more` : `${usd(a.extra_usd_per_hour)}/h more`;
    return h("li", {}, h("strong", {}, a.why), `: ${more} – ${planText(a.plan)}`);
  })));
}

function fineprint(answer, actions) {
  const { solve, inputs } = answer;
  const missing = answer.left_out.filter((one) => one.reason === "price_missing").reduce((sum, one) => sum + one.count, 0);
  const figures = answer.left_out.filter((one) => one.reason === "figure_missing").reduce((sum, one) => sum + one.count, 0);
  return h("section.card", {}, h("h2", {}, "How it was found"), facts([
    [term("candidates"), solve.candidates.toLocaleString("en")],
    [term("simulations"), solve.simulations.toLocaleString("en")],
    [term("confirmation rounds"), solve.confirmation_rounds],
    ["time, optimiser", `${figure(solve.seconds)} s, ${{ highs: "HiGHS", bound: "by bounds alone" }[solve.solver] ?? solve.solver}`],
    ["prices as of", h("time", { datetime: inputs.price_as_of, title: inputs.price_as_of }, `${day(inputs.price_as_of)} (${ago(inputs.price_as_of)})`)],
    ["catalog, corrections", h("span", { title: inputs.catalog_digest }, `${inputs.catalog_digest.slice(0, 12)}, ${setName(inputs.correction_set)}`)],
    ["stored as", h("code", {}, answer.id)],
  ]),
  answer.contexts.filter((c) => c.clipped_fraction > 0).map((c) => h("p", {}, `${c.workload}: ${percent(c.clipped_fraction, 2)} of requests end at ${c.context_tokens.toLocaleString("en")} tokens.`)),
  missing + figures > 0 ? h("p", {}, "Outside the proof, because the catalog does not know them: ",
    [missing ? `${count(missing, "machine")} without a price` : null, figures ? `${count(figures, "device")} without a figure` : null].filter(Boolean).join(", "), ". ", actions.why && h("a", { href: actions.why }, "Which?")) : null);
}
