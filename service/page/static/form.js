// The workload form: a request of one workload, without JSON. What the form does not show of a request is kept.
import { known, knownIds } from "./api.js";
import { button, empty, field, h, number, select, suggest } from "./dom.js";
import { policyText } from "./policy.js";
import { TRAFFIC, TRAFFIC_PLACES, adaptersOf, hostCacheOf, broughtOf, lengths, plain, promptsOf, shown, trafficFields, valuesOfTraffic } from "./traffic.js";

export const presets = () => fetch("/page/presets.json").then((response) => response.json());

export const WEIGHTS = ["bf16", "fp8", "int8", "int4", "mxfp4", "nvfp4"];
export const CACHES = ["bf16", "fp8", "int8"];
const COMMITMENTS = [["on_demand", "on demand"], ["spot", "spot"], ["reserved_1y", "reserved 1 year"],
  ["reserved_1y_no_upfront", "1 year, nothing upfront"], ["reserved_3y", "reserved 3 years"],
  ["reserved_3y_no_upfront", "3 years, nothing upfront"], ["capacity_block", "capacity block"]];
export const EMPTY = {
  ...TRAFFIC,
  llm: "", rate: "", prompt_mean: "", prompt_p95: "", output_mean: "", output_p95: "", ttft: "", tpot: "", e2e: "", ttfat: "",
  context: "", confidence: "", utilisation: "", max_usd: "", max_kw: "", spare: "", time: "", sourcing: "usual",
  weights: [], cache: ["bf16"], commitments: ["on_demand"], providers: [], regions: [], devices: [],
};

/** Where in a request each input's value goes: also how a refused field finds its input. */
const PLACES = {
  ...TRAFFIC_PLACES,
  "/llm": "llm", "/traffic/requests_per_s": "rate", "/traffic/prompt_tokens": "prompt_mean", "/traffic/output_tokens": "output_mean",
  "/traffic/prompt_tokens/mean": "prompt_mean", "/traffic/prompt_tokens/p95": "prompt_p95", "/traffic/prompt_tokens/tokens": "prompt_mean",
  "/traffic/output_tokens/mean": "output_mean", "/traffic/output_tokens/p95": "output_p95", "/traffic/output_tokens/tokens": "output_mean",
  "/targets/ttft_ms": "ttft", "/targets/tpot_ms": "tpot", "/targets/e2e_ms": "e2e", "/targets/ttfat_ms": "ttfat", "/targets/confidence_percent": "confidence",
  "/context_tokens": "context", "/utilisation_limit_fraction": "utilisation", "/limits/max_usd_per_hour": "max_usd",
  "/limits/max_power_kw": "max_kw", "/limits/providers": "providers", "/limits/regions": "regions", "/limits/devices": "devices",
  "/device": "device", "/node": "node", "/layout": "tp", "/layout/tensor_parallel": "tp", "/layout/pipeline_parallel": "pp", "/layout/data_parallel": "dp",
  "/layout/expert_parallel": "ep", "/precision/weights": "weights", "/precision/kv_cache": "cache", "/engine": "engine", "/load/requests_per_s": "rate", "/load/concurrency": "concurrency",
  "/limits/commitments": "commitments", "/limits/sourcing": "sourcing", "/limits/spare_nodes": "spare", "/time_limit_s": "time",
};

export function inputOf(pointer) {
  let rest = String(pointer ?? "").replace(/^\/(workloads|estimates)\/0/, "");
  while (rest) {
    if (PLACES[rest]) return PLACES[rest];
    rest = rest.slice(0, rest.lastIndexOf("/"));
  }
  return null;
}

export function valuesOfPreset(preset) {
  return {
    ...EMPTY, llm: preset.llm, rate: preset.requests_per_s,
    prompt_mean: preset.prompt_tokens.mean, prompt_p95: preset.prompt_tokens.p95,
    output_mean: preset.output_tokens.mean, output_p95: preset.output_tokens.p95,
    ...(preset.thinking_tokens ? { thinking_mean: preset.thinking_tokens.mean, thinking_p95: preset.thinking_tokens.p95 } : {}), ttft: preset.targets.ttft_ms?.p95 ?? "", ttfat: preset.targets.ttfat_ms?.p95 ?? "", tpot: preset.targets.tpot_ms?.p95 ?? "", e2e: preset.targets.e2e_ms?.p95 ?? "",
  };
}

const onlyP95 = (targets) => Object.keys(targets).every((name) => name === "p95");

/** The form's values for a stored request; null where it asks for more than the form shows. */
export function valuesOf(request) {
  const [one] = request.workloads;
  if (request.workloads.length !== 1 || !one.traffic || request.objective !== "cost" || request.current) return null;
  const beside = valuesOfTraffic(one);
  if (!beside || !plain(one.traffic.output_tokens)) return null;
  if (![one.targets.ttft_ms, one.targets.tpot_ms, one.targets.e2e_ms, one.targets.ttfat_ms ?? {}].every(onlyP95)) return null;
  const [output_mean, output_p95] = shown(one.traffic.output_tokens);
  const { limits } = request;
  return {
    ...beside, llm: one.llm, rate: one.traffic.requests_per_s ?? "",
    output_mean, output_p95,
    ttft: one.targets.ttft_ms.p95 ?? "", tpot: one.targets.tpot_ms.p95 ?? "", e2e: one.targets.e2e_ms.p95 ?? "", ttfat: one.targets.ttfat_ms?.p95 ?? "",
    context: one.context_tokens ?? "", confidence: one.targets.confidence_percent === 80 ? "" : one.targets.confidence_percent,
    utilisation: one.utilisation_limit_fraction === 0.85 ? "" : one.utilisation_limit_fraction * 100,
    max_usd: limits.max_usd_per_hour ? Number(limits.max_usd_per_hour) : "", max_kw: limits.max_power_kw ?? "",
    spare: limits.spare_nodes || "", time: request.time_limit_s === 10 ? "" : request.time_limit_s,
    sourcing: limits.sourcing === "any" ? "any" : "kept", policy: limits.sourcing,
    weights: one.precision.weights ?? [], cache: one.precision.kv_cache, commitments: limits.commitments ?? [],
    providers: limits.providers ?? [], regions: limits.regions ?? [], devices: limits.devices ?? [],
  };
}

const p95 = (text) => (number(text) === undefined ? {} : { p95: number(text) });
const orNull = (list) => (list.length ? list : null);

/** The request that the form states, on top of what it was filled from. */
export function requestOf(values, base) {
  const kept = base?.workloads?.[0] ?? { name: "workload" };
  const keptLimits = base?.limits ?? {};
  return {
    ...base,
    workloads: [{
      ...kept,
      llm: values.llm.trim(),
      context_tokens: number(values.context) ?? null,
      traffic: {
        ...kept.traffic,
        requests_per_s: number(values.rate),
        ...promptsOf(values, kept.traffic),
        ...broughtOf(values, kept.traffic),
        output_tokens: lengths(values.output_mean, values.output_p95),
      },
      ...adaptersOf(values, kept),
      ...(kept?.host_cache_gib ? { host_cache_gib: 0 } : {}), ...(kept?.disk_cache_gib ? { disk_cache_gib: 0, disk_read_gbytes_per_s: null } : {}), ...hostCacheOf(values),
      targets: { ttft_ms: p95(values.ttft), tpot_ms: p95(values.tpot), e2e_ms: p95(values.e2e), ttfat_ms: p95(values.ttfat), confidence_percent: number(values.confidence) ?? 80 },
      precision: { weights: values.weights.length ? values.weights : null, kv_cache: values.cache },
      utilisation_limit_fraction: (number(values.utilisation) ?? 85) / 100,
    }],
    limits: {
      ...keptLimits,
      sourcing: { any: "any", kept: keptLimits.sourcing }[values.sourcing],  // left out: the service's usual policy
      providers: orNull(values.providers), regions: orNull(values.regions), devices: orNull(values.devices),
      commitments: orNull(values.commitments),
      max_usd_per_hour: number(values.max_usd) === undefined ? null : String(values.max_usd),
      max_power_kw: number(values.max_kw) ?? null, spare_nodes: number(values.spare) ?? 0,
    },
    time_limit_s: number(values.time) ?? 10,
  };
}

/** Regions that offers name, with their providers' own words for them. */
const knownRegions = () => known("providers").then((all) => [...new Set(all.flatMap((one) => [...Object.keys(one.places), ...one.no_place]))].sort());

/** Names chosen from a list, as removable chips. */
function chips(label, chosen, names, id) {
  const list = h("ul.chips", { "aria-label": `${label} chosen` });
  const input = h("input", { id, type: "text", autocomplete: "off", placeholder: "any", onchange: add, onkeydown: (e) => { if (e.key === "Enter") { e.preventDefault(); add(); } } });
  function add() {
    for (const name of input.value.split(",").map((part) => part.trim()).filter(Boolean)) if (!chosen.includes(name)) chosen.push(name);
    input.value = "";
    draw();
  }
  function draw() {
    empty(list, chosen.map((name) => h("li", {}, name, button("×", () => { chosen.splice(chosen.indexOf(name), 1); draw(); input.focus(); }, { class: "quiet", "aria-label": `Remove ${name}` }))));
  }
  draw();
  return { node: h("div", {}, field(label, input), suggest(input, names), list), commit: add };
}

function boxes(label, options, chosen) {
  return h("fieldset", {}, h("legend", {}, label), h("div.boxes", {}, options.map((option) => {
    const [value, text] = Array.isArray(option) ? option : [option, option];
    return h("label.box", {}, h("input", { type: "checkbox", checked: chosen.includes(value), onchange: (e) => {
      if (e.target.checked) chosen.push(value); else chosen.splice(chosen.indexOf(value), 1);
    } }), text);
  })));
}

/** The form. onPlan(values): when it is sent; onPreset(name). */
export function workloadForm(values, { onPlan, onPreset, presetNames }) {
  const v = { ...EMPTY, ...values };
  for (const name of ["weights", "cache", "commitments", "providers", "regions", "devices"]) v[name] = [...v[name]];
  const num = (name, attributes = {}) => h("input", {
    id: `in-${name}`, name, type: "number", inputmode: "decimal", step: "any", min: "0", value: v[name], oninput: (e) => { v[name] = e.target.value; }, ...attributes,
  });
  const llm = h("input", { id: "in-llm", name: "llm", type: "text", required: true, autocomplete: "off", spellcheck: "false", value: v.llm, oninput: (e) => { v.llm = e.target.value; } });
  const providers = chips("Providers", v.providers, () => knownIds("providers"), "in-providers");
  const regions = chips("Regions", v.regions, knownRegions, "in-regions");
  const devices = chips("Devices", v.devices, () => knownIds("devices"), "in-devices");
  const isLimited = v.providers.length + v.regions.length + v.devices.length || v.max_usd !== "" || v.max_kw !== "" || v.confidence !== "" || v.spare !== "" || v.sourcing === "any";
  const form = h("form.workload", { novalidate: true, "aria-label": "Workload", onsubmit: (event) => {
    event.preventDefault();
    for (const one of [providers, regions, devices]) one.commit();
    onPlan(v);
  } },
  h("div.presets", { role: "group", "aria-label": "Presets" }, h("span", {}, "Start from"),
    presetNames.map(([name, title]) => button(title, () => onPreset(name), { class: "chip" }))),
  h("h2", {}, "Workload"),
  field("Language model", llm, "an id of the catalog"), suggest(llm, () => knownIds("llms")),
  field("Requests per second", num("rate", { required: true })),
  h("div.pair", {}, field("Prompt mean", num("prompt_mean", { required: true }), "tokens"), field("Prompt p95", num("prompt_p95"), "tokens; or all alike")),
  h("div.pair", {}, field("Output mean", num("output_mean", { required: true }), "tokens"), field("Output p95", num("output_p95"), "tokens; or all alike")),
  trafficFields(v, num, () => form),
  h("h2", {}, "Targets"),
  h("div.pair", {}, field("TTFT p95, ms", num("ttft"), "to the first token"), field("TPOT p95, ms", num("tpot"), "each further token")),
  h("div.pair", {}, field("E2E p95, ms", num("e2e"), "whole request; empty: not limited"), field("First answer p95, ms", num("ttfat"), "after hidden tokens")),
  h("details", { open: Boolean(isLimited) }, h("summary", {}, "Limits and choices"),
    providers.node, regions.node, devices.node,
    field("Buying policy", select([v.sourcing === "kept" ? ["kept", "as in this plan"] : null, ["usual", "the usual caution"], ["any", "anything that anybody sells"]].filter(Boolean), v.sourcing, { id: "in-sourcing", onchange: (e) => { v.sourcing = e.target.value; } }), v.policy ? policyText(v.policy) : "no marketplaces, known prices and places; one seller, region and kind of device a workload"),
    boxes("Commitments (none ticked: any)", COMMITMENTS, v.commitments),
    boxes("Weights in (none: as published)", WEIGHTS, v.weights), boxes("KV cache in", CACHES, v.cache),
    h("div.pair", {}, field("At most, USD per hour", num("max_usd")), field("At most, kW", num("max_kw"))),
    h("div.pair", {}, field("Confidence, %", num("confidence", { placeholder: "80" }), "50: the prediction decides"), field("Busy at most, %", num("utilisation", { placeholder: "85" }))),
    h("div.pair", {}, field("Spare nodes", num("spare", { placeholder: "0" })), field("Context, tokens", num("context", { placeholder: "longest" }))),
    field("Time limit, s", num("time", { placeholder: "10" }), "then the best plan so far, with its gap")),
  h("button.primary", { type: "submit" }, "Find the cheapest plan"));

  form.showProblem = (problem) => showAtFields(form, problem);
  return form;
}

/** Shows a refusal at the fields it names, and takes the last one's marks away; the card that says it, null without one. */
export function showAtFields(form, problem) {
  for (const input of form.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
  for (const said of form.querySelectorAll(".field .wrong")) said.remove();
  if (!problem) return null;
  const named = problem.errors.map((e) => ({ ...e, input: form.querySelector(`#in-${inputOf(e.pointer)}`) }));
  for (const { input, detail } of named.filter((e) => e.input)) {
    input.setAttribute("aria-invalid", "true");
    input.closest("details")?.setAttribute("open", "");
    input.after(h("small.wrong", {}, detail));
  }
  named.find((e) => e.input)?.input.focus();
  return problemCard(problem, named);
}

export function problemCard(problem, named = problem.errors ?? []) {
  const { document = {}, status } = problem;
  const close = document.close_matches ?? [];
  return h("div.problem", { role: "alert" },
    h("strong", {}, document.title ?? "It failed"),
    named.length ? null : h("p", {}, problem.message),
    named.length ? h("ul", {}, named.map((e) => h("li", {}, e.input ? button(labelOf(e.input), () => e.input.focus(), { class: "link" }) : h("code", {}, e.pointer ?? e.parameter ?? ""), " ", e.detail))) : null,
    document.cannot_express ? h("ul", {}, document.cannot_express.map((e) => h("li", {}, typeof e === "string" ? e : Object.values(e).join(": ")))) : null,
    close.length ? h("p", {}, `Did you mean ${close.join(" or ")}?`) : null,
    status === 403 ? h("p", {}, "The token's role may not do this, or there is no token and the page was not opened as localhost.") : null);
}

const labelOf = (input) => input.closest(".field")?.querySelector("label")?.textContent ?? input.name;
