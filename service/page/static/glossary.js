// The words of the page: shown on hover, and all together in the glossary.
import { h } from "./dom.js";

export const TERMS = {
  TTFT: "Time to first token: from sending a request to its first token, in milliseconds.",
  TPOT: "Time per output token after the first one, in milliseconds: (whole time − TTFT) / (output tokens − 1).",
  ITL: "Inter-token latency: between one token and the next as the client sees them, in milliseconds.",
  E2E: "From sending a request to its last token, in milliseconds.",
  p95: "95 of 100 requests are at least as fast.",
  interval: "Nine of ten measured values are expected between the two ends.",
  measured: "This very configuration was benchmarked.",
  corrected: "Physics, corrected by measurements of this device and engine.",
  borrowed: "Physics, corrected by measurements of a sibling device: this one has not been measured itself.",
  analytical: "Physics only: nothing has been measured on this device, so how wide the interval should be is not known from it either.",
  "proven cheapest": "No plan within the limits and the buying policy that meets the targets costs less: the optimiser's lower bound is the price itself.",
  bound: "What every plan costs at least, by the optimiser's proof.",
  gap: "How far the plan may be above the cheapest, at most.",
  utilisation: "Planned rate over the highest rate at which the targets still hold. The limit is 85 % unless you state another.",
  TP: "Tensor parallel: every layer is cut over so many devices.",
  PP: "Pipeline parallel: layers are dealt out over so many stages.",
  DP: "Data parallel: so many copies.",
  EP: "Expert parallel: the experts of a mixture are dealt out over so many devices.",
  "KV cache": "Keys and values of tokens already processed, kept in device memory so that they need not be computed again.",
  replica: "One running copy of the engine with the model.",
  scheduler: "What the engine's server is told: most tokens of one of its steps (prompts are cut to it), most requests that run at once, up to how many tokens a step runs as a captured graph, where it is told, and how many processes answer, where more than one does. The files under Run it have the options.",
  candidates: "Ways to run a workload on a device (layout, precision) that were looked at.",
  simulations: "Runs of the engine's scheduler, request by request, that confirmed what the optimiser chose.",
  "confirmation rounds": "How often the optimiser ran until everything it chose held in simulation.",
  binding: "A limit the plan would be cheaper without, found by solving again.",
  "on demand": "Rented by the hour, without a commitment.",
  catalog: "The catalog that comes with this version: every figure with its source.",
  promised: "The tightest target that the plan keeps with the confidence asked for. What is expected of it is faster.",
  "buying policy": "What a plan may be bought from unless you ask for anything: sellers that are no marketplaces, prices of known confidence, data-centre devices in regions that say where they are, each workload with one seller, in one region, on one kind of device.",
  quarantined: "Kept and listed, but moves no prediction until an editor releases it.",
  roofline: "The most a device can compute at each ratio of arithmetic to memory traffic: the smaller of its matrix rate and of its memory bandwidth times that ratio.",
  ridge: "The ratio of arithmetic to memory traffic from which arithmetic is the limit, and no longer memory.",
  NPV: "Net present value: what all payments are worth today, at the discount rate.",
};

/** A word with its meaning on hover and for screen readers. */
export function term(name, shown = name) {
  return TERMS[name] ? h("abbr", { title: TERMS[name] }, shown) : shown;
}

export function glossaryView() {
  return h("section.card", {}, h("h1", {}, "Glossary"),
    h("dl.glossary", {}, Object.entries(TERMS).flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, text)])));
}
