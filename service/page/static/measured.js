// Predicted against measured, run by run: what the planner says now of every stored run, beside what was measured.
import { Problem, get, post } from "./api.js";
import { caseOf } from "./benchmarks.js";
import { chart } from "./chart.js";
import { button, count, empty, field, figure, h, interval, say, select, table } from "./dom.js";
import { problemCard } from "./form.js";

const METRICS = [["ttft_ms.mean", "mean TTFT, ms"], ["tpot_ms.mean", "mean TPOT, ms"], ["output_tokens_per_s", "output tokens/s"]];
const AT_ONCE = 6, MOST_RUNS = 500, MOST_SERIES = 5, ROUNDING = 1e-3;
const at = (path, tree) => path.split(".").reduce((here, step) => here?.[step], tree);

/** A card with a button: hundreds of predictions take some seconds, so they are not made unasked. */
export function measuredCard(signal) {
  const panel = h("div", { "aria-live": "polite" });
  const start = button("Draw every run", draw, { class: "primary" });
  async function draw() {
    start.disabled = true;
    try {
      const pairs = await predicted(panel, signal);
      const place = h("div", {});
      const metric = select(METRICS, METRICS[0][0], { id: "measured-metric", onchange: () => empty(place, picture(pairs, metric.value)) });
      empty(panel, field("Metric", metric), place);
      empty(place, picture(pairs, metric.value));
      say("Every run is drawn.");
    } catch (problem) {
      if (problem.name === "AbortError") return;
      if (!(problem instanceof Problem)) throw problem;
      empty(panel, problemCard(problem));
      start.disabled = false;
    }
  }
  return h("section.card", {}, h("h2", {}, "Run by run"),
    h("p.muted", {}, "What is predicted today for each stored run, with its 90 % interval, against what was measured. Runs that taught the corrections are among them: the tables say how good predictions are of runs left out. It takes some seconds."),
    h("p.buttons", {}, start), panel);
}

/** Runs in use, each with its estimate; those that say too little to be predicted are left out. */
async function predicted(panel, signal) {
  const { items } = await get("/v1/benchmarks", { limit: MOST_RUNS }, { signal });
  const wanted = items.filter((item) => item.status === "accepted"), runs = [];
  const progress = h("progress", { max: wanted.length, value: 0, "aria-label": "Reading runs" });
  empty(panel, h("p.loading", {}, `Reading ${count(wanted.length, "run")}…`), progress);
  const read = async () => {
    for (let item = wanted[runs.length]; item; item = wanted[runs.length]) {
      const place = runs.push(null) - 1;
      runs[place] = await get(`/v1/benchmarks/${encodeURIComponent(item.id)}`, {}, { signal });
      progress.value = runs.filter(Boolean).length;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, read));
  const asked = runs.map((run) => ({ run, body: caseOf(run.benchmark) })).filter((one) => one.body);
  if (!asked.length) return [];
  empty(panel, h("p.loading", {}, `Predicting ${count(asked.length, "run")}…`), h("progress", { "aria-label": "Predicting" }));
  const { estimates } = await post("/v1/estimates", { estimates: asked.map((one) => one.body) }, { signal });
  return asked.map(({ run }, i) => ({ run, estimate: estimates[i] })).filter((pair) => pair.estimate.outcome === "estimated");
}

function picture(pairs, metric) {
  const name = METRICS.find(([path]) => path === metric)[1];
  const points = pairs.map(({ run, estimate }) => ({ run, x: at(metric, run.benchmark.results), value: at(metric, estimate) }))
    .filter((one) => one.x > 0 && one.value?.low > 0)
    .map(({ run, x, value }) => ({ run, x, y: value.expected, low: value.low, high: value.high, value, isInside: x >= value.low * (1 - ROUNDING) && x <= value.high * (1 + ROUNDING), label: `${run.id}: measured ${figure(x)}, predicted ${interval(value)}` }));
  if (!points.length) return [h("p", {}, "No stored run measured this.")];
  const kinds = [...new Set(points.map((p) => p.run.benchmark.context.device))];
  const series = kinds.length > MOST_SERIES ? [{ name: "every device", points }] : kinds.map((device) => ({ name: device, points: points.filter((p) => p.run.benchmark.context.device === device) }));
  const inside = points.filter((p) => p.isInside).length;
  return [
    h("p", {}, `${inside} of ${count(points.length, "run")} (${figure((100 * inside) / points.length)} %) measured inside the 90 % interval.`),
    chart(series.map((one) => ({ ...one, kind: "points", small: true })), { title: `Predicted against measured: ${name}`, x: `measured ${name}`, y: `predicted ${name}`, xLog: true, yLog: true, diagonal: true, hint: "On the line the prediction is right. Hover over a point for its run." }),
    series.length > 1 ? h("ul.legend", {}, series.map((one, i) => h("li", {}, h(`span.swatch.s${i % 5}`, {}), one.name))) : null,
    h("details", {}, h("summary", {}, `${points.length} runs`), table(`Runs: ${name}`, ["run", "measured", "predicted (90 % interval)", "inside"], points.map((p) => [
      h("a", { href: `#/benchmarks/${encodeURIComponent(p.run.id)}` }, p.run.id), figure(p.x), interval(p.value), p.isInside ? "yes" : "no"]), { right: [1, 2] })),
  ].filter(Boolean);
}
