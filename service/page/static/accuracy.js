// How good predictions are: errors on configurations that the fit had not seen, by device, engine and model.
import { curlOf, get, known } from "./api.js";
import { chart } from "./chart.js";
import { measuredCard } from "./measured.js";
import { copyButton, count, figure, h, percent, setName, table, words } from "./dom.js";
import { term } from "./glossary.js";

const METRIC = { time_to_first_token: "TTFT, mean", "time_to_first_token.p99": "TTFT, p99", time_per_output_token: "TPOT, mean", "time_per_output_token.p99": "TPOT, p99", end_to_end: "E2E, mean", output_rate: "output tokens/s" };
const nameOf = (metric) => METRIC[metric] ?? words(metric).replace(".p99", ", p99");
const SLICES = { all: "all runs", "class:dense": "dense models", "class:moe": "mixtures of experts", "load:open": "loads at a rate", "load:closed": "loads of so many clients" };
const INTERVAL = 0.9, LEAST_RUNS = 10;
const signed = (value) => figure(value).replace("-", "−");

/** What the tables say nothing about, by name. */
function unmeasured(devices, measured) {
  const others = devices.filter((one) => one.status === "shipping" && !measured.includes(one.id)).map((one) => one.id);
  return h("details", {}, h("summary", {}, `Nothing has been measured on ${count(others.length, "other shipping device")}`),
    h("p", {}, "What is predicted of them is physics, marked ", term("analytical"), ", or physics corrected by a sibling's runs, marked ", term("borrowed"), "; how often their intervals hold is not known."), h("p.muted", {}, others.join(", ")));
}

/** Where the intervals hold least, of what has been measured often enough to say. */
function weakest(slices) {
  const each = slices.flatMap((s) => s.errors.filter((e) => e.coverage_fraction !== null && e.runs >= LEAST_RUNS).map((e) => ({ slice: s.slice, ...e })));
  const [least] = each.sort((a, b) => a.coverage_fraction - b.coverage_fraction);
  return least && least.coverage_fraction < INTERVAL ? h("p", {}, `The intervals hold least for ${nameOf(least.metric)} of ${SLICES[least.slice] ?? words(least.slice)}: ${percent(least.coverage_fraction)} of ${count(least.runs, "run")} are inside, where nine of ten should be.`) : null;
}

export async function accuracyView({ signal }) {
  const [told, devices, apart] = await Promise.all([get("/v1/accuracy", {}, { signal }), known("devices"), get("/v1/benchmarks", { status: "quarantined", limit: 1 }, { signal })]);
  if (!told.engines.length) return h("section.card", {}, h("h1", {}, "Accuracy"), h("p", {}, "Nothing has been measured yet: predictions are physics only."));
  return h("div", {}, h("section.card", {}, h("h1", {}, "Predicted against measured"),
    h("p", {}, `Correction set ${setName(told.correction_set)}, made on ${told.made_on}. Each row leaves its configuration out of the fit and predicts it from the others: the error is what a newcomer's configuration would see. Coverage is the share of measured values inside the 90 % interval.`),
    unmeasured(devices, told.engines.map((engine) => engine.device)),
    h("p", {}, "A run that you upload counts for its own configuration at once, and less far for other layouts and precisions of its model; these tables are of the runs that come with this version.",
      apart.total ? ` ${count(apart.total, "run")} kept out of the fit because they contradict the others or lack a fact: see Benchmarks.` : ""),
    h("p.buttons", {}, copyButton(() => curlOf("GET", "/v1/accuracy"), "this as a curl command", "Copy as curl"))),
  told.engines.map((engine) => {
    const all = engine.slices.filter((s) => !s.llm), each = engine.slices.filter((s) => s.llm);
    const rows = (slices) => slices.flatMap((s) => s.errors.map((e) => [
      s.llm ? `${s.llm}, ${s.weights}${s.kv_cache && s.kv_cache !== s.weights ? ` / KV ${s.kv_cache}` : ""}, TP${s.tensor_parallel ?? 1}${s.pipeline_parallel > 1 ? ` PP${s.pipeline_parallel}` : ""}` : SLICES[s.slice] ?? words(s.slice),
      nameOf(e.metric), e.runs, `${signed(e.left_out_median_percent)} %`, `${figure(e.left_out_mape_percent)} %`, `${figure(e.physics_mape_percent)} %`, percent(e.coverage_fraction)]));
    const headings = ["runs of", "metric", "runs", "median error", "mean error", "physics alone", "coverage"];
    const metrics = [...new Set(each.flatMap((s) => s.errors.map((e) => e.metric)))].slice(0, 5);
    return h("section.card", {}, h("h2", {}, `${engine.device}, ${engine.engine} ${engine.versions.join(", ")}: ${engine.runs} runs`),
      each.length > 2 ? chart(metrics.map((metric) => ({ name: nameOf(metric), kind: "points", points: each.flatMap((s) => s.errors.filter((e) => e.metric === metric && e.physics_mape_percent > 0 && e.left_out_mape_percent > 0).map((e) => ({ x: e.physics_mape_percent, y: e.left_out_mape_percent, label: `${s.llm} ${s.weights} TP${s.tensor_parallel ?? 1}, ${nameOf(metric)}: physics ${figure(e.physics_mape_percent)} %, corrected ${figure(e.left_out_mape_percent)} %` }))) })),
        { title: `Mean error of each configuration on ${engine.device}, ${engine.engine}: physics alone against corrected by the others`, x: "physics alone, %", y: "corrected, %", xLog: true, yLog: true, diagonal: true, hint: "Below the line, measurements of other configurations helped. Hover over a point for its name." }) : null,
      h("ul.legend", {}, metrics.map((metric, i) => h("li", {}, h(`span.swatch.s${i % 5}`, {}), nameOf(metric)))),
      weakest(all),
      table(`All runs together on ${engine.device}, ${engine.engine}`, headings, rows(all.filter((s) => s.slice === "all")), { right: [2, 3, 4, 5, 6] }),
      all.length > 1 ? h("details", {}, h("summary", {}, "By kind of model and load"), table(`By kind of model and load on ${engine.device}, ${engine.engine}`, headings, rows(all.filter((s) => s.slice !== "all")), { right: [2, 3, 4, 5, 6] })) : null,
      each.length ? h("details", {}, h("summary", {}, `${each.length} configurations`), table(`By configuration on ${engine.device}, ${engine.engine}`, headings, rows(each), { right: [2, 3, 4, 5, 6] })) : null);
  }), measuredCard(signal));
}
