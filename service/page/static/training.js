// The Training view: one job, the machines that do it in time and budget, the proof, the doubts, and the files that start it.
import { badge, intervalWords } from "./answer.js";
import { Problem, curlOf, get, knownIds, post } from "./api.js";
import { question } from "./asked.js";
import { stack } from "./chart.js";
import { showCosts } from "./cost.js";
import { button, copyButton, count, day, download, empty, facts, field, figure, h, interval, number, percent, say, select, suggest, table, usd, words } from "./dom.js";
import { problemCard, showAtFields } from "./form.js";

const PATH = "/v1/training/recommendations";
const EXAMPLE = { llm: "llama-3.1-8b", method: "lora", tokens: "50", sequence_tokens: "4096", batch: "", precision: "bf16", days: "5", max_usd: "200", device: "", max_devices: "", beside_fleet: "", serving: "", serving_hourly_profile: "", buy: "", own_months: "" };
const METHODS = [["lora", "adapters (LoRA)"], ["qlora", "adapters on 4-bit weights (QLoRA)"], ["full", "all weights, fine-tuning"], ["pretrain", "all weights, from the start"], ["dpo lora", "preferences, adapters (DPO)"], ["dpo qlora", "preferences, adapters on 4-bit weights"], ["dpo", "preferences, all weights (DPO)"]];
const PRECISIONS = ["bf16", "fp16", "fp8", "mxfp8", "nvfp4"];
const TARGETS = [["torchrun", "torchrun with TRL"], ["megatron", "Megatron-LM"], ["torchtitan", "TorchTitan"], ["slurm", "SLURM"], ["skypilot", "SkyPilot"]];

/** #/training, #/training?llm=…: what is in the address is asked at once; #/training/ID: a stored plan. */
export async function trainingView({ parts, parameters, navigate, signal }) {
  const isAsked = parameters.size > 0;
  const v = { ...EXAMPLE, ...(isAsked ? { days: "", max_usd: "" } : {}), ...Object.fromEntries([...parameters].filter(([name]) => name in EXAMPLE)) };
  const input = (name, attributes) => h("input", { id: `in-${name}`, name, value: v[name], autocomplete: "off", spellcheck: "false", oninput: (e) => { v[name] = e.target.value; }, ...attributes });
  const num = (name, attributes) => input(name, { type: "number", inputmode: "decimal", step: "any", min: "0", ...attributes });
  const choice = (name, options) => select(options, v[name], { id: `in-${name}`, name, onchange: (e) => { v[name] = e.target.value; } });
  const llm = input("llm", { type: "text", required: true }), device = input("device", { type: "text", placeholder: "any" }), buy = input("buy", { type: "text", placeholder: "nothing" });
  const answer = h("section.answer-side", { "aria-label": "The training plan", "aria-live": "polite" });
  const form = h("form.workload", { novalidate: true, "aria-label": "Training job", onsubmit: (event) => {
    event.preventDefault();
    navigate(`#/training?${new URLSearchParams(Object.entries(v).filter(([, value]) => value !== ""))}`, { silent: true });
    ask();
  } },
  h("h2", {}, "What is trained"),
  field("Language model", llm, "an id of the catalog"), suggest(llm, () => knownIds("llms")),
  field("Method", choice("method", METHODS)),
  h("div.pair", {}, field("Million tokens", num("tokens", { required: true }), "all that is trained on"), field("Tokens of a sequence", num("sequence_tokens"))),
  h("div.pair", {}, field("Sequences of a step", num("batch", { placeholder: "one a device" })), field("Precision", choice("precision", PRECISIONS.map((p) => [p, p])))),
  h("h2", {}, "By when, for how much"),
  h("div.pair", {}, field("Days", num("days", { placeholder: "any" })), field("At most, US dollars", num("max_usd", { placeholder: "any" }))),
  h("div.pair", {}, field("Device", device, "only this"), field("Devices at most", num("max_devices", { placeholder: "4096" }))), suggest(device, () => knownIds("devices")),
  field("Beside fleet", input("beside_fleet", { type: "text", placeholder: "none" }), "id of a stored fleet whose idle nodes it may use"),
  field("Together with what is served", served(v), "a saved recommendation that serves until the deadline: both are planned as one"),
  field("Served by the hour", input("serving_hourly_profile", { type: "text", placeholder: "as much all day" }), "24 shares of its rate, 0 to 1, from midnight UTC on"),
  h("div.pair", {}, field("May be bought", buy, "a machine of the catalog, or all"), field("Kept, months", num("own_months", { placeholder: "to the deadline" }), "then sold")), suggest(buy, () => knownIds("nodes")),
  h("button.primary", { type: "submit" }, "Plan the training"));

  async function ask() {
    showAtFields(form, null);
    const body = bodyOf(v);
    empty(answer, h("p.loading", {}, "Comparing machines, counts and layouts…"));
    try {
      const plan = await post(PATH, body, { signal });
      empty(answer, cards(plan, { signal }), h("p.buttons", {}, copyButton(() => curlOf("POST", PATH, body), "this plan as a curl command", "Copy as curl"), copyButton(() => `${location.origin}${location.pathname}#/training/${plan.id}`, "the link to this plan", "Copy link")));
      say("The training plan is there.");
    } catch (problem) {
      if (problem.name === "AbortError") return;
      if (!(problem instanceof Problem)) throw problem;
      empty(answer, h("section.card", {}, h("h2", {}, "The request was refused"), problem.status === 422 ? showAtFields(form, problem) : problemCard(problem)));
    }
  }
  if (parts[0]) empty(answer, cards(await get(`${PATH}/${encodeURIComponent(parts[0])}`, {}, { signal }), { signal }));
  else if (isAsked) ask();
  else empty(answer, h("section.card.invitation", {}, h("h2", {}, "Which machines train it, and what does that cost?"), h("p", {}, "State one job. The answer: the cheapest machines that do it in time, how the model is split over them, when it ends, how sure that is, and what ending sooner costs.")));
  return h("div.plan", {}, h("h1.visually-hidden", {}, "Plan a training job"), h("section.form-side", { "aria-label": "What is trained" }, form), answer);
}

/** Saved recommendations that have a plan, newest first; the one in the address stays even where the list does not reach it. */
function served(v) {
  const chosen = select([["", "nothing"], ...(v.serving ? [[v.serving, v.serving]] : [])], v.serving, { id: "in-serving", name: "serving", onchange: (e) => { v.serving = e.target.value; } });
  get("/v1/recommendations", { limit: 50 }).then(({ items }) => {
    const own = items.filter((one) => one.usd_per_hour !== null).map((one) => [one.id, `${one.workloads.join(", ")}: ${one.llms.join(", ")}, ${usd(one.usd_per_hour)} an hour, ${day(one.created_at)}`]);
    const beyond = v.serving && !own.some(([id]) => id === v.serving) ? [[v.serving, v.serving]] : [];
    empty(chosen, ...[["", "nothing"], ...beyond, ...own].map(([value, label]) => h("option", { value, selected: value === v.serving }, label)));
  }).catch(() => {});
  return chosen;
}

/** One's own site, with the machine that may be bought for it, or every one that has a price. */
function siteOf(machine) {
  return { region: "own", ...(machine === "all" ? {} : { machines: [{ node: machine }] }) };
}

function bodyOf(v) {
  const stated = { sequence_tokens: number(v.sequence_tokens), global_batch_sequences: number(v.batch), max_devices: number(v.max_devices) };
  const [method, adapters] = v.method.split(" ");
  const job = {
    name: "job", llm: v.llm.trim(), method, ...(adapters ? { adapters } : {}), precision: v.precision, tokens: Number(v.tokens) * 1e6, ...stated,
    ...(v.days ? { deadline: new Date(Date.now() + Number(v.days) * 86_400_000).toISOString() } : {}), ...(v.max_usd ? { max_usd: v.max_usd } : {}),
  };
  return { jobs: [job], limits: v.device.trim() ? { devices: [v.device.trim()] } : {}, ...(v.beside_fleet.trim() ? { beside_fleet: v.beside_fleet.trim() } : {}),
    ...(v.buy.trim() ? { own: [siteOf(v.buy.trim())], ...(v.own_months ? { own_months: Number(v.own_months) } : {}) } : {}),
    ...(v.serving ? { serving: v.serving } : {}), ...(v.serving_hourly_profile.trim() ? { serving_hourly_profile: v.serving_hourly_profile.split(",").map(Number) } : {}) };
}

const spanOf = (days) => (days >= 1 ? count(figure(days), "day") : count(figure(24 * days), "hour"));

function cards(plan, actions) {
  const solve = plan.solve;
  return [
    ...plan.plan.map((line) => lineCard(line, plan)),
    plan.serving ? servingCard(plan.serving, solve) : null,
    plan.commitments.length ? h("section.card", {}, table("Committed to for a term, or bought", ["nodes", "months", "due at once, USD", "USD", "used by the jobs"], plan.commitments.map((c) => [`${c.nodes} × ${c.offer}`, c.term_months, c.due_at_start_usd === null ? "" : usd(c.due_at_start_usd), usd(c.usd), percent(c.used_fraction, 1)]), { right: [1, 2, 3, 4] })) : null,
    plan.beside ? h("section.card", {}, h("h2", {}, "With the fleet beside"), h("p", {}, `${usd(plan.beside.usd)} in all.${plan.beside.joint_saving_at_most_usd === null ? "" : ` Both planned at once would cost at most ${usd(plan.beside.joint_saving_at_most_usd)} less.`}`)) : null,
    plan.plan.length ? null : h("section.card", {}, h("h2", {}, "There is no such plan"), h("ul", {}, plan.conflicts.map((c) => h("li", {}, c))),
      plan.relaxations.length ? table("What would make one possible", ["job", "limit", "to", "then costs"], plan.relaxations.map((r) => [r.job, words(r.limit), r.limit === "max_usd" ? usd(r.relaxing_to) : r.relaxing_to, usd(r.usd)]), { right: [3] }) : null),
    plan.cautions.length ? h("section.card", {}, h("h2", {}, "Before you sign"), h("ul", {}, plan.cautions.map((c) => h("li", {}, c)))) : null,
    ...plan.fronts.filter((f) => f.points.length).map((front) => h("section.card", {}, h("h2", {}, `What ending sooner costs: ${front.job}`),
      table("No other way is both cheaper and sooner", ["takes", "USD", "rents"], front.points.map((p) => [spanOf(p.duration_days), usd(p.usd), `${p.nodes} × ${p.offer}`]), { right: [1] }))),
    whyNot(plan, actions), plan.plan.length ? costsCard(plan, actions) : null, plan.plan.length ? filesCard(plan, actions) : null,
  ];
}

/** What a job costs where it runs, also where nothing is paid by the hour. */
function costWords(line, plan) {
  const own = plan.commitments.find((c) => c.offer === line.offer);
  if (own) return `${usd(own.usd)} ${own.commitment === "purchase" ? "bought and sold after" : "committed for"} ${count(own.term_months, "month")}, nothing more by the hour`;
  return line.offer.startsWith("idle:") ? "nothing more, its nodes are paid for already" : usd(line.usd);
}

function lineCard(line, plan) {
  const solve = plan.solve;
  const degrees = [["TP", "tensor_parallel"], ["PP", "pipeline_parallel"], ["CP", "context_parallel"], ["EP", "expert_parallel"], ["DP", "data_parallel"]].filter(([, n]) => line.layout[n] > 1).map(([name, n]) => name + line.layout[n]).join(" ") || "one device";
  const again = line.layout.recompute === "full" && line.layout.recomputed_layers_fraction < 1 ? `${percent(line.layout.recomputed_layers_fraction)} of layers` : line.layout.recompute;
  return h("section.card.headline", {}, h("div.spread", {}, h("h2", {}, `${line.nodes} × ${line.offer}: ${costWords(line, plan)}`), badge(line.basis)),
    h("p", {}, `${count(line.devices, line.device)}, ${degrees}, micro-batch ${line.layout.micro_batch_sequences}, ${line.layout.sharding}, recomputed: ${again}; ${line.stack}`),
    facts([
      ["takes", `${spanOf(line.duration_days.expected)} (${spanOf(line.duration_days.low)}–${spanOf(line.duration_days.high)})`], ["done by", `${line.finishes_at.slice(0, 16).replace("T", " ")} UTC`],
      ["costs", Number(line.usd) ? `${usd(line.usd)} (${usd(line.usd_low)}–${usd(line.usd_high)})` : costWords(line, plan)], ["tokens/s a device", interval(line.tokens_per_s_per_device)],
      ["MFU", percent(line.mfu_fraction.expected)], ["time that counts", percent(line.goodput_fraction, 1)],
    ]),
    h("h3", {}, `Memory of the fullest device: ${words(line.memory.verdict)}`),
    stack(["weights", "gradients", "optimizer", "activations", "logits", "reserved"].map((name) => ({ name, value: line.memory[`${name}_gib`] })).filter((part) => part.value > 0.005), "GiB"),
    h("p.muted", {}, `${figure(line.memory.peak_gib)} of ${figure(line.memory.available_gib)} GiB. Ranges are ${intervalWords(line.basis)}. None of ${solve.candidates.toLocaleString("en")} ways costs less than ${usd(solve.bound_usd)} ${plan.discount.percent_per_year ? ` in present value at ${figure(plan.discount.percent_per_year)} % a year` : ""} (${words(solve.status)}); ${line.stated_on ? `${usd(line.usd_per_node_hour)} a node-hour, stated ${line.stated_on}${line.ask_for_quote ? ` (${count(line.price_age_days, "day")} old: ask for a quote)` : ""}` : `prices of ${day(line.starts_at)}`}.`));
}

/** Which plan serves beside the jobs, and what planning both as one saves. */
function servingCard(serving, solve) {
  const apart = serving.usd_apart === null ? "Planned one after the other, the jobs have no plan." : `Planned one after the other: ${usd(serving.usd_apart)} in all, ${usd(serving.usd_apart - solve.usd)} more.`;
  const fewest = (one) => (one.nodes_by_hour.length ? `, ${Math.min(...one.nodes_by_hour)} at the quietest hour` : "");
  return h("section.card", {}, h("h2", {}, "Served beside"),
    h("p", {}, `${serving.why ?? "Its own plan"}: ${serving.nodes.map((one) => `${one.nodes} × ${one.offer}${fewest(one)}`).join("; ")}. ${usd(serving.usd)} until the last deadline, ${usd(solve.undiscounted_usd ?? solve.usd)} with the training; the cheapest of ${count(serving.considered, "way")} to serve together with all ways to train.`),
    h("p", {}, apart), h("p", {}, h("a", { href: `#/plan/${serving.recommendation}` }, serving.recommendation)));
}

function whyNot(plan, { signal }) {
  const device = h("input", { type: "text", id: "why-device", autocomplete: "off", required: true });
  const asked = question("Why not this?", `${PATH}/${plan.id}/why-not`, () => {
    if (!device.value.trim()) { device.focus(); return null; }
    return { device: device.value.trim() };
  }, (said) => h("div.verdict", {}, h("p", {}, h("strong", {}, said.name), said.in_plan ? ": it is in the plan" : said.usd === null ? ": no plan on it" : `: ${usd(said.usd)}, ${usd(said.extra_usd)} more (${said.plan.map((l) => `${l.nodes} × ${l.offer}, ${spanOf(l.duration_days.expected)}`).join("; ")})`),
    said.excluded_by.length ? h("p", {}, `Left out by ${said.excluded_by.join(", ")}; priced as if it were not.`) : null, said.reasons.length ? h("ul", {}, said.reasons.map((r) => h("li", {}, r))) : null), { signal });
  return h("section.card", {}, h("h2", {}, "Why not another device?"),
    h("form.inline", { onsubmit: (event) => { event.preventDefault(); asked.ask(); } }, field("Device", device), suggest(device, () => knownIds("devices")), asked.start), asked.panel);
}

/** The plan done again and again: rented while it trains, committed to, bought. */
function costsCard(plan, { signal }) {
  const num = (id, value) => h("input", { id: `train-${id}`, type: "number", step: "any", min: "0", value });
  const months = num("months", "36"), runs = num("runs", "1");
  const panel = h("div", { "aria-live": "polite" });
  const ways = [["Rent while it trains", {}], ["Commit for 1 year", { acquisition: "reserved_1y" }], ["Commit for 3 years", { acquisition: "reserved_3y" }], ["Buy", { acquisition: "purchase" }]];
  const compare = (event) => {
    event.preventDefault();
    showCosts(panel, { horizon_months: Number(months.value), training_runs_per_month: Number(runs.value), alternatives: ways.map(([name, how]) => ({ name, training_plan: plan.id, ...how })) }, signal);
  };
  return h("section.card", {}, h("h2", {}, "What it costs over time"), h("form.inline", { onsubmit: compare }, field("Months", months), field("Times a month", runs), h("button", { type: "submit" }, "Compare")), panel);
}

function filesCard(plan, { signal }) {
  const target = select(TARGETS, "torchrun", { id: "train-target" });
  const shown = h("div", { "aria-live": "polite" });
  const make = async () => {
    try {
      const made = await get(`${PATH}/${plan.id}/deployments`, { target: target.value }, { signal });
      empty(shown, made.files.map((file) => [h("h3", {}, file.path), h("pre", { tabindex: "0" }, file.content), button("Download", () => download(file.path, file.content, "text/plain"))]), h("ul", {}, made.notes.map((n) => h("li", {}, `${n.about}: ${n.text}`))));
    } catch (problem) {
      if (problem.name === "AbortError") return;
      if (!(problem instanceof Problem)) throw problem;
      empty(shown, problemCard(problem));
    }
  };
  return h("section.card", {}, h("h2", {}, "Start it"), h("form.inline", { onsubmit: (event) => { event.preventDefault(); make(); } }, field("With", target), h("button", { type: "submit" }, "Make the files")), shown);
}
