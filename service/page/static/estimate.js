// The Estimate view: one replica of a deployment that the reader fixes, and what it will do under a load.
import { badge, intervalWords } from "./answer.js";
import { Problem, curlOf, knownIds, post } from "./api.js";
import { insideOf } from "./deployment.js";
import { copyButton, count, empty, facts, field, figure, h, interval, layoutText, number, percent, say, select, suggest, table } from "./dom.js";
import { CACHES, WEIGHTS, problemCard, showAtFields } from "./form.js";
import { term } from "./glossary.js";
import { roofOf } from "./roofline.js";
import { TRAFFIC, adaptersOf, hostCacheOf, broughtOf, lengths, promptsOf, trafficFields } from "./traffic.js";

const STATED = {
  ...TRAFFIC,
  llm: "llama-3.1-70b", device: "h200-sxm", node: "", tp: "", pp: "", dp: "", ep: "", weights: "", cache: "", engine: "",
  prompt_mean: "1200", prompt_p95: "4000", output_mean: "300", output_p95: "900", rate: "2", concurrency: "",
};
const EXAMPLE = { ...STATED, tp: "2", weights: "fp8" };
const STATISTICS = ["mean", "p50", "p95", "p99"];

/** #/estimate, #/estimate?llm=…&device=…: what is in the address is asked at once. */
export async function estimateView({ parameters, navigate, signal }) {
  const isAsked = parameters.size > 0;
  const v = isAsked ? { ...STATED, prompt_p95: "", output_p95: "", rate: "", ...(parameters.get("turns") ? { prompt_mean: "" } : {}), ...Object.fromEntries([...parameters].filter(([name]) => name in STATED)) } : { ...EXAMPLE };
  const input = (name, attributes) => h("input", { id: `in-${name}`, name, value: v[name], autocomplete: "off", spellcheck: "false", oninput: (e) => { v[name] = e.target.value; }, ...attributes });
  const num = (name, attributes) => input(name, { type: "number", inputmode: "decimal", step: "any", min: "0", ...attributes });
  const choice = (name, options) => select([["", "unless stated: bf16"], ...options.map((o) => [o, o])], v[name], { id: `in-${name}`, name, onchange: (e) => { v[name] = e.target.value; } });
  const llm = input("llm", { type: "text", required: true }), device = input("device", { type: "text", required: true }), node = input("node", { type: "text", placeholder: "any that holds it" });
  const answer = h("section.answer-side", { "aria-label": "The estimate", "aria-live": "polite" });
  const form = h("form.workload", { novalidate: true, "aria-label": "Deployment", onsubmit: (event) => {
    event.preventDefault();
    navigate(`#/estimate?${new URLSearchParams(Object.entries(v).filter(([, value]) => value !== ""))}`, { silent: true });
    ask();
  } },
  h("h2", {}, "Deployment"),
  field("Language model", llm, "an id of the catalog"), suggest(llm, () => knownIds("llms")),
  field("Device", device), suggest(device, () => knownIds("devices")),
  h("div.pair", {}, field("Tensor parallel", num("tp", { placeholder: "1" })), field("Pipeline parallel", num("pp", { placeholder: "1" }))),
  h("div.pair", {}, field("Weights in", choice("weights", WEIGHTS)), field("KV cache in", choice("cache", CACHES))),
  h("h2", {}, "Traffic of one replica"),
  h("div.pair", {}, field("Requests per second", num("rate"), "arriving at random"), field("Or clients at once", num("concurrency"), "each waits for its answer")),
  h("div.pair", {}, field("Prompt mean", num("prompt_mean", { required: true }), "tokens"), field("Prompt p95", num("prompt_p95"), "tokens; or all alike")),
  h("div.pair", {}, field("Output mean", num("output_mean", { required: true }), "tokens"), field("Output p95", num("output_p95"), "tokens; or all alike")),
  trafficFields(v, num, () => form),
  h("details", { open: Boolean(v.node || v.engine || v.dp || v.ep) }, h("summary", {}, "Engine, machine, experts"),
    field("Engine", input("engine", { type: "text", placeholder: "vllm, or the device's own" })),
    field("Machine", node, "how its devices are joined"), suggest(node, () => knownIds("nodes")),
    h("div.pair", {}, field("Data parallel", num("dp", { placeholder: "1" }), "attention copies in one replica"), field("Expert parallel", num("ep", { placeholder: "1" })))),
  h("button.primary", { type: "submit" }, "Estimate"));

  async function ask() {
    showAtFields(form, null);
    const body = { estimates: [bodyOf(v)] };
    empty(answer, h("p.loading", {}, "Estimating…"));
    try {
      const [one] = (await post("/v1/estimates", body, { signal })).estimates;
      empty(answer, cards(one, v), h("p.buttons", {}, copyButton(() => curlOf("POST", "/v1/estimates", body), "this estimate as a curl command", "Copy as curl"), copyButton(() => location.href, "the link to this estimate", "Copy link")));
      say("The estimate is there.");
    } catch (problem) {
      if (problem.name === "AbortError") return;
      if (!(problem instanceof Problem)) throw problem;
      empty(answer, h("section.card", {}, h("h2", {}, "The request was refused"), problem.status === 422 ? showAtFields(form, problem) : problemCard(problem)));
    }
  }
  if (isAsked) ask();
  else empty(answer, h("section.card.invitation", {}, h("h2", {}, "What would this deployment do?"), h("p", {}, "State one replica and its traffic. The answer: its latencies with intervals, its memory, what it waits for, and the roof it works under. What the cheapest deployment is, Plan finds.")));
  return h("div.plan", {}, h("h1.visually-hidden", {}, "Estimate a deployment"), h("section.form-side", { "aria-label": "What is deployed" }, form), answer);
}

function bodyOf(v) {
  const degrees = { tensor_parallel: number(v.tp), pipeline_parallel: number(v.pp), data_parallel: number(v.dp), expert_parallel: number(v.ep) };
  return {
    llm: v.llm.trim(), device: v.device.trim(), ...(v.node.trim() ? { node: v.node.trim() } : {}), layout: degrees,
    precision: { ...(v.weights ? { weights: v.weights } : {}), ...(v.cache ? { kv_cache: v.cache } : {}) },
    ...(v.engine.trim() || v.host ? { engine: { ...(v.engine.trim() ? { name: v.engine.trim() } : {}), ...hostCacheOf(v) } } : {}),
    traffic: { ...promptsOf(v), output_tokens: lengths(v.output_mean, v.output_p95), ...broughtOf(v) },
    ...adaptersOf(v),
    load: v.concurrency !== "" ? { kind: "closed", concurrency: Number(v.concurrency) } : { kind: "open", requests_per_s: Number(v.rate) },
  };
}

function cards(one, v) {
  const what = `${v.llm} on ${v.device}, ${one.layout ? layoutText(one.layout) : ""}, ${one.precision.weights} weights, ${one.precision.kv_cache} KV cache, ${one.engine.name}`;
  const under = v.concurrency !== "" ? count(v.concurrency, "client") : `${figure(v.rate)} requests/s`;
  if (one.outcome === "does_not_fit") return h("section.card", {}, h("h2", {}, "It does not fit"), h("p", {}, what), h("p", {}, one.detail), h("p.muted", {}, "More tensor parallelism, fewer bytes a weight, or a device with more memory would make room."));
  if (one.outcome === "saturated") return h("section.card", {}, h("h2", {}, "It cannot keep up"), h("p", {}, what), h("p", {}, one.detail), h("p", {}, `One replica serves at most ${figure(one.capacity_requests_per_s)} requests/s of this traffic.`));
  if (one.outcome === "unsupported") return h("section.card", {}, h("h2", {}, "It cannot run"), h("p", {}, one.detail), one.close_matches.length ? h("p", {}, `Did you mean ${one.close_matches.join(" or ")}?`) : null);
  const row = (name, key) => [term(name), ...STATISTICS.map((statistic) => interval(one[key][statistic]))];
  return [
    h("section.card.headline", {}, h("div.spread", {}, h("h2", {}, what), badge(one.basis)),
      h("p.muted", {}, `Under ${under}; each figure with ${intervalWords(one.basis)}.`),
      table("Latencies, ms", ["", ...STATISTICS], [row("TTFT", "ttft_ms"), row("TPOT", "tpot_ms"), row("ITL", "itl_ms"), row("E2E", "e2e_ms"), one.ttfat_ms ? ["first answer", ...STATISTICS.map((statistic) => interval(one.ttfat_ms[statistic]))] : null].filter(Boolean), { right: [1, 2, 3, 4] }),
      facts([
        ["output tokens/s", interval(one.output_tokens_per_s)], ["requests/s", interval(one.requests_per_s)],
        ["power of its devices", one.power_w === null ? h("span", { title: "Nobody publishes what this device draws." }, "not published") : interval(one.power_w, "W")],
        one.joules_per_output_token ? ["energy", interval(one.joules_per_output_token, "J a token")] : null,
        one.clipped_fraction > 0 ? ["end at the context", percent(one.clipped_fraction, 2)] : null,
      ]),
      one.evidence.length ? h("details", {}, h("summary", {}, "What this rests on"), h("ul", {}, one.evidence.map((said) => h("li", {}, said)))) : null),
    h("section.card", {}, h("h2", {}, "Inside a replica"), insideOf(one, "h3")),
    one.roofline ? h("section.card", {}, h("h2", {}, "Under the roof"), roofOf(one.roofline, { device: v.device, partition: null, weights: one.precision.weights })) : null,
  ];
}
