// Measured runs: drop a tool's file, see what it says against the prediction, and how the prediction moves.
import { Problem, curlOf, get, knownIds, post } from "./api.js";
import { intervalBar } from "./chart.js";
import { button, copyButton, day, empty, field, figure, h, interval, say, select, setName, suggest, table, words } from "./dom.js";
import { problemCard } from "./form.js";
import { term } from "./glossary.js";

const METRICS = [["ttft_ms.mean", "mean TTFT", "ms"], ["tpot_ms.mean", "mean TPOT", "ms"], ["output_tokens_per_s", "output tokens/s", ""]];
const PATIENCE_MS = 15000, FIRST_ROWS = 40, ROUNDING = 1e-3;

export async function benchmarksView({ parts, signal }) {
  if (parts[0]) return h("section.card", {}, h("h1", {}, "A measured run"), await stored(parts[0], signal));
  return h("div", {}, upload(signal), await list(signal));
}

function upload(signal) {
  const input = (id, attributes = {}) => h("input", { id: `run-${id}`, type: "text", autocomplete: "off", ...attributes });
  const device = input("device"), devices = input("devices", { type: "number", min: "1", step: "1", value: "1" }), llm = input("llm");
  const engine = input("engine", { value: "vllm" }), tensor = input("tensor", { type: "number", min: "1", step: "1", placeholder: "as many" });
  const weights = select([["", "as the file says"], "bf16", "fp8", "int8", "int4", "mxfp4", "nvfp4"], "", { id: "run-weights" });
  const cache = select([["", "as the file says"], "bf16", "fp8", "int8"], "", { id: "run-cache" });
  const panel = h("div", { "aria-live": "polite" });
  const chooser = h("input.visually-hidden", { id: "run-file", type: "file", "aria-label": "Benchmark file", onchange: () => { const [file] = chooser.files; chooser.value = ""; take(file); } });  // emptied, so that the same file may be chosen again
  const zone = h("div.drop", {
    ondragover: (event) => { event.preventDefault(); zone.classList.add("over"); }, ondragleave: () => zone.classList.remove("over"),
    ondrop: (event) => { event.preventDefault(); zone.classList.remove("over"); take(event.dataTransfer.files[0]); },
  }, h("p", {}, h("strong", {}, "Drop a benchmark file here"), " or ", button("choose one", () => chooser.click()), "."), chooser,
  h("p.muted", {}, "What vllm bench serve, SGLang, GuideLLM, AIPerf, GenAI-Perf, inference-perf, llm-d, MLPerf, LLMPerf, InferenceX and llama-bench write, as it is; or this API's own form."));

  async function take(file) {
    if (!file) return;
    const text = await file.text();
    let document = null;
    try { document = JSON.parse(text); } catch { document = null; }
    const isCanonical = document && typeof document === "object" && "context" in document && "results" in document;
    const count = Number(devices.value) || 1;
    const context = {
      ...(device.value.trim() ? { device: device.value.trim() } : {}), ...(device.value.trim() || count > 1 ? { devices: count } : {}), ...(llm.value.trim() ? { llm: llm.value.trim() } : {}),
      ...(engine.value.trim() ? { engine: { name: engine.value.trim() } } : {}),
      ...(count > 1 || tensor.value ? { layout: { tensor_parallel: Number(tensor.value) || count } } : {}),
      ...(weights.value || cache.value ? { precision: { ...(weights.value ? { weights: weights.value } : {}), ...(cache.value ? { kv_cache: cache.value } : {}) } } : {}),
    };
    const [path, body] = isCanonical ? ["/v1/benchmarks", document] : ["/v1/benchmarks/import", { context, payload: document ?? text }];
    empty(panel, h("p.loading", {}, `Sending ${file.name}…`));
    try {
      const before = isCanonical ? await estimate(document, signal) : null;
      const receipt = await post(path, body, { signal });
      const run = receipt.runs?.[0] ?? receipt;
      empty(panel, h("p.loading", {}, "Stored. Waiting for the predictions to take it up…"));
      const told = await takenUp(run.id, receipt.status, signal);
      const after = await estimate(told.benchmark, signal);
      empty(panel, verdict(file.name, receipt), moved(told, before, after), h("p.buttons", {}, h("a.button.quiet", { href: `#/benchmarks/${run.id}` }, "Open the stored run"), copyButton(() => curlOf("POST", path, body), "this upload as a curl command", "Copy as curl")));
      say(`${file.name} is ${receipt.status}`);
    } catch (problem) {
      if (problem.name === "AbortError") return;
      if (!(problem instanceof Problem)) throw problem;
      empty(panel, problemCard(problem), h("p.muted", {}, "What the file does not say is asked for by name: fill it in above and drop the file again."));
      say(problem.message);
    }
  }
  return h("section.card", {}, h("h1", {}, "Measured runs"), h("p", {}, "Predictions are as good as what was measured. Say what the file does not, then drop it."),
    h("div.row", {}, field("Device", device), suggest(device, () => knownIds("devices")), field("How many", devices), field("Model", llm), suggest(llm, () => knownIds("llms")), field("Engine", engine), field("Tensor parallel", tensor), field("Weights", weights), field("KV cache", cache)),
    zone, panel);
}

function verdict(name, receipt) {
  return h("div", {}, h("h2", {}, `${name}: `, term(receipt.status)),
    receipt.reasons.length ? h("ul", {}, receipt.reasons.map((r) => h("li", {}, r))) : null,
    receipt.warnings.length ? h("ul.muted", {}, receipt.warnings.map((w) => h("li", {}, w))) : null);
}

/** The stored run, once a newer correction set has learnt from it (or patience ends, or it teaches nothing). */
async function takenUp(id, status, signal) {
  const until = Date.now() + PATIENCE_MS;
  for (;;) {
    const told = await get(`/v1/benchmarks/${id}`, {}, { signal });
    if (status !== "accepted" || told.after.correction_set !== told.before.correction_set || Date.now() > until) return told;
    await new Promise((resolve) => setTimeout(resolve, 400));
  }
}

const lengths = (given) => (given?.distribution === "mean" ? { distribution: "fixed", tokens: Math.max(1, Math.round(given.mean)) } : given);

/** The measured deployment as one to predict; null where the run does not say enough. */
export function caseOf(run) {
  const { context, load, traffic } = run;
  if (!traffic?.prompt_tokens || !traffic.output_tokens || !load) return null;
  const degrees = Object.fromEntries(Object.entries(context.layout ?? {}).filter(([, n]) => n));
  const precision = Object.fromEntries(Object.entries(context.precision ?? {}).filter(([, name]) => name));
  return {
    llm: context.llm, device: context.device, layout: degrees, precision, engine: { name: context.engine.name },
    traffic: { prompt_tokens: lengths(traffic.prompt_tokens), output_tokens: lengths(traffic.output_tokens), shared_prefix_fraction: traffic.shared_prefix_fraction ?? 0 },
    load: load.kind === "closed" ? { kind: "closed", concurrency: load.concurrency, requests: load.requests ?? null } : { kind: "open", requests_per_s: load.requests_per_s, requests: load.requests ?? null },
  };
}

/** What the planner predicts for what was measured; null where the run does not say enough. */
async function estimate(run, signal) {
  const body = caseOf(run);
  if (!body) return null;
  try {
    const [one] = (await post("/v1/estimates", { estimates: [body] }, { signal })).estimates;
    return one.outcome === "estimated" ? one : null;
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    return null;
  }
}

const at = (path, tree) => path.split(".").reduce((here, step) => here?.[step], tree);

function moved(told, before, after) {
  const { results } = told.benchmark;
  const rows = METRICS.map(([path, name, unit]) => {
    const measured = at(path, results);
    if (measured === null || measured === undefined) return null;
    const was = before ? at(path, before) : null, is = after ? at(path, after) : null;
    const ratio = (comparison) => comparison.predicted_over_measured?.[path.replace(".mean", "")];
    const point = (comparison) => (ratio(comparison) ? `${figure(ratio(comparison) * measured)} ${unit}` : "–");
    return [name, `${figure(measured)} ${unit}`, was ? interval(was, unit) : point(told.before), is ? [interval(is, unit), intervalBar(is, measured, unit, "measured")] : point(told.after)];
  }).filter(Boolean);
  if (!rows.length) return null;
  const outside = METRICS.filter(([path]) => {
    const measured = at(path, results), was = before ? at(path, before) : null, is = after ? at(path, after) : null;
    // What has been learnt already holds its own runs: an interval that ends on one was stretched to it.
    return measured && ((was && (measured < was.low || measured > was.high)) || (is && (measured <= is.low * (1 + ROUNDING) || measured >= is.high * (1 - ROUNDING))));
  }).map(([, name]) => name);
  return [outside.length ? h("p", { role: "note" }, h("strong", {}, `${outside.join(", ")}: outside what was predicted. `), "If the run is right, the physics of this device is off: predictions lean towards one run by a third of the way, and further with each that agrees. Check the device, the engine's settings and the load, and measure again.") : null, table("Measured against predicted", ["", "measured", `predicted before (${before?.basis ?? "correction set "}${before ? "" : setName(told.before.correction_set)})`, `predicted now (${after?.basis ?? "correction set "}${after ? "" : setName(told.after.correction_set)}); the line is what was measured`], rows, { right: [1] }),
    told.after.correction_set === told.before.correction_set ? h("p.muted", {}, "The predictions have not moved: nothing new was learnt, or not yet.") : h("p", {}, `Predictions now use correction set ${setName(told.after.correction_set)} (${setName(told.before.correction_set)} before).`)];
}

async function list(signal) {
  const { items, total } = await get("/v1/benchmarks", { limit: 200 }, { signal });
  const place = h("div", {});
  const draw = (most) => empty(place, rows(items, most, total), items.length > most ? button(`Show all ${items.length}`, () => draw(Infinity)) : null);
  draw(FIRST_ROWS);
  return h("section.card", {}, h("h2", {}, "Stored runs"), place);
}

function rows(items, most, total) {
  return table(`${total > items.length ? `The first ${items.length} of ${total}` : total} runs: uploads oldest first, then the catalog's own`, ["run", "status", "device", "model", "engine", "output tokens/s", "mean TTFT, ms", "mean TPOT, ms"], items.slice(0, most).map((r) => [
    h("a", { href: `#/benchmarks/${encodeURIComponent(r.id)}` }, r.id), term(r.status), `${r.devices} × ${r.device}`, r.llm, `${r.engine} ${r.engine_version ?? ""}`, figure(r.output_tokens_per_s), figure(r.ttft_ms_mean), figure(r.tpot_ms_mean)]), { right: [5, 6, 7] });
}

async function stored(id, signal) {
  const told = await get(`/v1/benchmarks/${encodeURIComponent(id)}`, {}, { signal });
  const { context } = told.benchmark;
  const after = await estimate(told.benchmark, signal);
  return [verdict(told.id, told), h("p", {}, `${context.devices} × ${context.device}, ${context.llm}, ${context.engine.name} ${context.engine.version ?? ""}, ${context.precision.weights} weights, ${context.precision.kv_cache} KV cache. By ${told.tool}, recorded ${day(told.recorded_at)}.`),
    moved(told, null, after),
    told.checks.length ? table("Checks", ["check", "verdict", "what it compared"], told.checks.map((c) => [words(c.name), c.verdict, c.message])) : null,
    told.events.length ? h("ul", {}, told.events.map((e) => h("li", {}, `${words(e.action)} by ${e.actor}, ${day(e.recorded_at)}: ${e.reason}`))) : null,
    h("p.buttons", {}, copyButton(() => curlOf("GET", `/v1/benchmarks/${id}`), "this as a curl command", "Copy as curl"))];
}
