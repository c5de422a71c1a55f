// The operators of each planned replica under the roof of its device: what they wait for, and how near the roof they come.
import { Problem, curlOf, post } from "./api.js";
import { badge, rentedText } from "./answer.js";
import { chart } from "./chart.js";
import { estimateOf } from "./deployment.js";
import { copyButton, count, empty, facts, figure, h, percent, table, words } from "./dom.js";
import { problemCard } from "./form.js";
import { term } from "./glossary.js";

const LEAST_SIZE = 4, MOST_SIZE = 13, LEAST_TAGGED = 0.03;  // of the step: what takes less is named on hover and in the table
const PHASES = [["prefill", "prefill: reading the mean prompt"], ["decode", "decode: writing a token for all in flight"]];

export function rooflineTab(answer, { signal }) {
  if (!answer.plan.length) return h("section.card", {}, h("p", {}, "There is no plan, so nothing runs under a roof."));
  return [h("section.card", {}, h("h2", {}, "What the hardware is kept busy with"),
    h("p", {}, "Nothing on a device is faster than its memory and its matrix units allow: the ", term("roofline", "roof"), ". Left of the ", term("ridge"), " memory decides, right of it arithmetic. ",
      "The size of a point is its share of the step; how far it is below the roof is what the engine, small products and waiting cost.")),
  answer.plan.map((line) => section(answer, line, signal))];
}

function section(answer, line, signal) {
  const panel = h("div", {}), body = estimateOf(answer, line);
  if (!body) empty(panel, h("p.muted", {}, "Shown for replicas of one kind of traffic that do both prefill and decode."));
  else if (!line.serves_requests_per_s) empty(panel, h("p.muted", {}, "Stands by: no traffic is planned here."));
  else draw(panel, body, line, signal);
  return h("section.card", {}, h("div.spread", {}, h("h2", {}, `${rentedText(line)}: ${line.workload}`), badge(line.basis)), panel);
}

async function draw(panel, body, line, signal) {
  empty(panel, h("p.loading", {}, "Estimating one replica…"));
  try {
    const [one] = (await post("/v1/estimates", body, { signal })).estimates;
    if (one.outcome !== "estimated" || !one.roofline) { empty(panel, h("p", {}, one.detail ?? "No roofline for this deployment.")); return; }
    empty(panel, roofOf(one.roofline, { device: line.device, partition: line.partition, weights: line.precision.weights }),
      h("p.buttons", {}, copyButton(() => curlOf("POST", "/v1/estimates", body), "this estimate as a curl command", "Copy as curl")));
  } catch (problem) {
    if (problem.name === "AbortError") return;
    if (!(problem instanceof Problem)) throw problem;
    empty(panel, problemCard(problem));
  }
}

const of = (roof, phase) => roof.operators.filter((o) => o.phase === phase);

/** The longest operator of a phase, and what would make it shorter. */
function verdict(roof, phase, name) {
  const [longest] = of(roof, phase);
  if (!longest) return null;
  const isMemory = longest.flop_per_byte < roof.ridge_flop_per_byte;
  return h("li", {}, h("strong", {}, name.split(":")[0]), ` spends most on ${words(longest.operator)}: ${isMemory ? "bound by memory" : "bound by arithmetic"}, at ${figure(longest.flop_per_byte)} FLOP a byte and ${percent(longest.roof_fraction)} of the roof. `,
    isMemory ? (phase === "decode" ? "More requests at once, or fewer bytes a weight, would move it up." : "Longer prompts at once would move it up.") : "Only faster arithmetic, or a narrower format, would help.");
}

/** The operators of an estimate under its roof; of: the device's name and the weights' format. */
export function roofOf(roof, { device, partition, weights }) {
  const bandwidth = roof.memory_bandwidth_gb_per_s / 1000;  // TFLOP/s at 1 FLOP a byte
  const intensities = roof.operators.map((o) => o.flop_per_byte);
  const left = Math.min(...intensities, roof.ridge_flop_per_byte) / 3, right = Math.max(...intensities, roof.ridge_flop_per_byte) * 3;
  const total = Object.fromEntries(PHASES.map(([phase]) => [phase, of(roof, phase).reduce((sum, o) => sum + o.ms, 0)]));
  const points = (phase) => of(roof, phase).map((o) => ({
    x: o.flop_per_byte, y: o.tflop_per_s, tag: o.ms / total[phase] >= LEAST_TAGGED ? words(o.operator) : null, size: LEAST_SIZE + (MOST_SIZE - LEAST_SIZE) * Math.sqrt(o.ms / total[phase]),
    label: `${words(o.operator)} in ${phase}: ${figure(o.flop_per_byte)} FLOP a byte, ${figure(o.tflop_per_s)} TFLOP/s, ${percent(o.roof_fraction)} of the roof`,
  }));
  return [
    facts([["device", partition ? `${partition.profile} of ${device}` : device], ["matrix rate", `${figure(roof.peak_tflop_per_s)} TFLOP/s in ${weights}`], ["memory", `${figure(roof.memory_bandwidth_gb_per_s)} GB/s`],
      [term("ridge"), `${figure(roof.ridge_flop_per_byte)} FLOP a byte`]]),
    h("ul.movers", {}, PHASES.map(([phase, name]) => verdict(roof, phase, name))),
    chart([{ name: "roof", kind: "line", points: [{ x: left, y: left * bandwidth }, { x: roof.ridge_flop_per_byte, y: roof.peak_tflop_per_s }, { x: right, y: roof.peak_tflop_per_s }] },
      ...PHASES.map(([phase]) => ({ name: phase, kind: "points", points: points(phase) }))],
    { title: `Roofline of ${partition ? `${partition.profile} of ${device}` : `${device}, one device`}`, x: "FLOP per byte moved", y: "TFLOP/s", xLog: true, yLog: true, hint: "Hover over a point for its figures." }),
    h("ul.legend", {}, PHASES.map(([, name], i) => h("li", {}, h(`span.swatch.s${i + 1}`, {}), name))),
    table(`${count(roof.operators.length, "operator")}, on one device over all layers`, ["operator", "phase", "ms a step", "TFLOP", "GB moved", "FLOP a byte", "TFLOP/s", "of the roof"], roof.operators.map((o) => [
      words(o.operator), o.phase, figure(o.ms), figure(o.flop / 1e12), figure(o.bytes / 1e9), figure(o.flop_per_byte), figure(o.tflop_per_s), percent(o.roof_fraction)]), { right: [2, 3, 4, 5, 6, 7] }),
    h("p.muted", {}, "Passes without matrix work, links and launching are not under this roof; the answer's \"Memory of a device, time of a step\" has their time."),
  ];
}
