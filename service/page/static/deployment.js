// One replica of an engine: what is asked of POST /v1/estimates for it, and what is inside it.
import { stack } from "./chart.js";
import { count, facts, figure, h, words } from "./dom.js";
import { broughtFacts, foundFacts, plain, shown, valuesOfTraffic } from "./traffic.js";

/** The body of POST /v1/estimates for one replica of a line at its planned rate. */
export function estimateOf(answer, line) {
  const workload = answer.request.workloads.find((w) => w.name === line.workload);
  if (!workload?.traffic || line.role !== "aggregated") return null;
  const { requests_per_s: _rate, ...shape } = workload.traffic;
  const { sessions } = shape;
  if (sessions && sessions.routing !== "sticky") shape.sessions = { ...sessions, replicas: line.predicted?.routed_over ?? line.replicas };
  return { estimates: [{
    llm: workload.llm, device: line.device, ...(line.partition ? { partition: line.partition.profile } : { node: line.node }),
    layout: line.layout,
    precision: line.precision, engine: line.engine_settings ?? { name: line.engine }, traffic: shape, over_context: workload.over_context,
    ...(workload.adapters ? { adapters: workload.adapters } : {}),
    load: { kind: "open", requests_per_s: line.serves_requests_per_s / line.replicas },
  }] };
}

/** The address at which the page estimates one replica of a line, to change it there; null where its form cannot state it. */
export function deploymentOf(answer, line) {
  const [asked] = estimateOf(answer, line)?.estimates ?? [];
  if (!asked || asked.partition || asked.engine.speculative) return null;
  const { prompt_tokens: _prompt, output_tokens: output, sessions: _sessions, images: _images, ...others } = asked.traffic;
  const beside = valuesOfTraffic(asked);
  if (!beside || !plain(output) || Object.values(others).some(Boolean)) return null;
  if (asked.adapters?.zipf_exponent) return null;
  const [output_mean, output_p95] = shown(output);
  const stated = {
    ...beside,
    llm: asked.llm, device: asked.device, node: asked.node, weights: asked.precision.weights, cache: asked.precision.kv_cache, engine: line.engine,
    tp: asked.layout.tensor_parallel, pp: asked.layout.pipeline_parallel, dp: asked.layout.data_parallel, ep: asked.layout.expert_parallel,
    output_mean, output_p95,
    rate: Number(asked.load.requests_per_s.toPrecision(6)),
  };
  const isLeftOut = ([name, value]) => value === undefined || value === null || value === "" || (SPLITS.includes(name) && value === 1) || (name === "routing" && value === "sticky");
  return `#/estimate?${new URLSearchParams(Object.entries(stated).filter((one) => !isLeftOut(one)))}`;
}

const SPLITS = ["tp", "pp", "dp", "ep"];

/** The four largest parts and the rest as one: five colours are told apart, nine are not. */
function largest(parts) {
  const sorted = [...parts].sort((a, b) => b.value - a.value);
  const rest = sorted.slice(4).reduce((sum, part) => sum + part.value, 0);
  return [...sorted.slice(0, 4), { name: "everything else", value: rest }];
}

/** Memory of the fullest device and the parts of a decode step of an estimate, under headings of this level. */
export function insideOf(estimate, heading = "h4") {
  const { memory, step, bottleneck, bound } = estimate, beside = [...foundFacts(estimate), ...broughtFacts(estimate)];
  if (!memory) return h("p.muted", {}, "Only speeds of this system are published: what is inside is its maker's own affair.");
  return [
    beside.length ? facts(beside) : null,
    h(heading, {}, "Memory of the fullest device"),
    stack([{ name: "weights", value: memory.weights_gib }, { name: "KV cache", value: memory.kv_cache_gib }, { name: "activations", value: memory.activations_gib }, { name: "reserved", value: memory.reserved_gib }], "GiB"),
    h("p.muted", {}, `The cache of a replica holds ${memory.kv_cache_tokens.toLocaleString("en")} tokens; its engine works on up to ${count(memory.max_concurrent_requests, "request")} at once.`),
    h(heading, {}, "A decode step at the predicted batch"),
    stack(largest(step.map((t) => ({ name: words(t.term), value: t.ms }))), "ms"),
    h("p.muted", {}, `Prefill waits most for ${words(bottleneck.prefill)}, decode for ${words(bottleneck.decode)}. No engine can be faster than ${figure(bound.tpot_ms)} ms a token here.`),
  ];
}
