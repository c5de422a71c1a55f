// Cost of ownership: renting the plan against committing, buying the same machines, or somebody's API, over years.
import { Problem, curlOf, get, post } from "./api.js";
import { ranges, tornado } from "./bars.js";
import { chart } from "./chart.js";
import { copyButton, empty, field, figure, h, percent, say, select, table, usd, words } from "./dom.js";
import { problemCard } from "./form.js";
import { term } from "./glossary.js";

const COMMIT = [["reserved_1y", "Commit for 1 year"], ["reserved_3y", "Commit for 3 years"]];

export function costTab(answer, { signal }) {
  if (!answer.plan.length) return h("section.card", {}, h("p", {}, "There is no plan, so nothing to price."));
  const num = (id, value, attributes = {}) => h("input", { id: `cost-${id}`, type: "number", step: "any", min: "0", value, ...attributes });
  const months = num("months", "36", { max: "240", step: "1" }), used = num("used", "60", { max: "100" }), rate = num("rate", "", { placeholder: "catalog's" });
  const apiIn = num("in", "", { placeholder: "none" }), apiOut = num("out", "", { placeholder: "none" });
  const known = select([["", "none chosen"]], "", { id: "cost-api-known", onchange: () => {
    const [input, output] = known.value.split(" ");
    apiIn.value = input ?? "";
    apiOut.value = output ?? "";
  } });
  apiPrices(answer).then((prices) => known.append(...prices.map((one) => h("option", { value: `${one.usd_per_million_input_tokens} ${one.usd_per_million_output_tokens}` },
    `${one.provider}, ${one.model}: ${usd(one.usd_per_million_input_tokens)} in, ${usd(one.usd_per_million_output_tokens)} out, seen ${one.seen_on}`)))).catch(() => {});
  const nodePrice = num("node", "", { placeholder: "catalog's" });
  const box = (value, text) => { const input = h("input", { type: "checkbox", value, checked: true }); return { input, node: h("label.box", {}, input, text) }; };
  const committed = COMMIT.map(([value, text]) => box(value, text)), bought = box("purchase", "Buy the same machines");
  const panel = h("div", {});

  function body() {
    const alternatives = [{ name: "Rent on demand", recommendation: answer.id }];
    for (const one of committed) if (one.input.checked) alternatives.push({ name: one.node.textContent, recommendation: answer.id, acquisition: one.input.value });
    if (bought.input.checked) alternatives.push({ name: "Buy", recommendation: answer.id, acquisition: "purchase", ...(nodePrice.value ? { purchase: { usd_per_node: nodePrice.value } } : {}) });
    if (apiIn.value && apiOut.value) alternatives.push({ name: "API", api: { usd_per_million_input_tokens: apiIn.value, usd_per_million_output_tokens: apiOut.value } });
    return { horizon_months: Number(months.value), utilisation_fraction: Number(used.value) / 100, ...(rate.value ? { discount_rate_percent: Number(rate.value) } : {}), alternatives };
  }

  const compare = () => showCosts(panel, body(), signal);
  compare();
  return h("section.card", {}, h("h2", {}, "What it costs over time"),
    h("form", { onsubmit: (event) => { event.preventDefault(); compare(); } },
      h("div.row", {}, field("Months", months), field("Average demand, % of the peak", used), field("Discount rate, % a year", rate)),
      h("fieldset", {}, h("legend", {}, "Beside renting on demand"), h("div.boxes", {}, committed.map((one) => one.node), bought.node)),
      field("API: a known price of this model", known),
      h("div.row", {}, field("Bought: USD per node", nodePrice), field("API: USD per million input tokens", apiIn), field("API: USD per million output tokens", apiOut)),
      h("button.primary", { type: "submit" }, "Compare")),
    h("p.muted", {}, "Demand that changes by the hour and grows is better served by a mix: ", h("a", { href: `#/fleets/new?plan=${answer.id}` }, "plan a fleet over time"), "."), panel);
}

/** Posts it; an alternative that the catalog has no price for is left out by name, and the others are compared. */
async function settled(asked, signal, refused = []) {
  try {
    return { said: await post("/v1/tco/comparisons", asked, { signal }), asked, refused };
  } catch (problem) {
    const wrong = problem.status === 422 ? problem.errors.map((e) => [/^\/alternatives\/(\d+)/.exec(e.pointer ?? "")?.[1], e.detail]).filter(([index]) => index > 0) : [];
    if (!wrong.length) throw problem;
    const out = new Map(wrong.map(([index, detail]) => [Number(index), detail]));
    return settled({ ...asked, alternatives: asked.alternatives.filter((_, i) => !out.has(i)) }, signal, [...refused, ...[...out].map(([i, detail]) => [asked.alternatives[i].name, detail])]);
  }
}

/** Asks for a comparison and shows it, with what had to be left out of it. */
export async function showCosts(panel, body, signal) {
  empty(panel, h("p.loading", {}, "Counting…"));
  try {
    const { said, asked, refused } = await settled(body, signal);
    empty(panel, comparison(said),
      refused.length ? h("div", {}, h("h3", {}, "Left out"), h("ul", {}, refused.map(([name, detail]) => h("li", {}, h("strong", {}, name), `: ${detail.replace(/^'[^']*': /, "")}`))), h("p.muted", {}, "What has no price in the catalog is not guessed.")) : null,
      h("p.buttons", {},
        copyButton(() => curlOf("POST", "/v1/tco/comparisons", asked), "this comparison as a curl command", "Copy as curl"),
        h("a.button.quiet", { href: `#/cost/${said.id}` }, "Link to this comparison")));
    say(`Cheapest: ${said.cheapest.name}`);
  } catch (problem) {
    if (problem.name === "AbortError") return;
    if (!(problem instanceof Problem)) throw problem;
    empty(panel, problemCard(problem));
    say(problem.message);
  }
}

/** What sellers of tokens ask for the plan's model, by the catalog, cheapest answers first. */
async function apiPrices(answer) {
  const [{ llm }] = answer.request.workloads;
  const { items } = await get("/v1/api-prices", { model: llm, limit: 100 });
  return items.filter((one) => one.usd_per_million_output_tokens !== null).sort((a, b) => a.usd_per_million_output_tokens - b.usd_per_million_output_tokens);
}

function cumulative(months) {
  let sum = 0;
  return months.map((amount, i) => ({ x: i, y: (sum += Number(amount)) }));
}

/** Where two alternatives cost the same: what is drawn, what ending early would fetch, and at which use. */
function breakEven(b, horizon) {
  const month = (at) => `month ${figure(at)}${at > horizon ? `, after the ${horizon} compared` : ""}`;
  return [
    b.cash.month !== null ? `as drawn, both have paid the same in ${month(b.cash.month)}` : `as drawn, never the same until month ${b.until_month}: ${b.cash.cheaper_at_start ?? "neither"} has paid less all the while`,
    b.discounted.month !== null ? `if all were given up early, machines sold and commitments paid off, giving up in ${month(b.discounted.month)} would have cost the same either way, discounted` : null,
    b.utilisation_fraction !== null ? `over the ${horizon} months equal at ${percent(b.utilisation_fraction)} of the peak (${b.cheaper_below} below, ${b.cheaper_above} above)` : null,
  ].filter(Boolean);
}

/** Where what is paid in all and what that is worth today name different alternatives. */
function paysLess({ alternatives, cheapest }) {
  const chosen = alternatives.find((one) => one.name === cheapest.name);
  const [least] = [...alternatives].sort((a, b) => Number(a.total_usd) - Number(b.total_usd));
  return chosen && Number(least.total_usd) < Number(chosen.total_usd) ? h("p", {}, h("strong", {}, least.name), ` pays ${usd(chosen.total_usd - least.total_usd, 0)} less in all, but sooner: discounted to today it costs ${usd(least.npv_usd - chosen.npv_usd, 0)} more.`) : null;
}

/** Of the choice and the next best, at a price that no seller states. */
function unstated({ alternatives, cheapest }) {
  const names = alternatives.filter((one) => [cheapest.name, cheapest.runner_up].includes(one.name) && one.parts.some((part) => part.rent_basis === "ratio")).map((one) => one.name);
  return names.length ? h("p.notes", {}, "No seller states the price of ", h("strong", {}, names.join(" and ")), ": a ratio to the price on demand stands in. Ask for a quote first.") : null;
}

/** A stored comparison. */
export function comparison(said) {
  const { alternatives } = said;
  const later = (one, b) => alternatives.findIndex((x) => x.name === b.against) > alternatives.indexOf(one);  // each pair once
  const others = alternatives.flatMap((one) => one.break_even.filter((b) => later(one, b)).map((b) => ({ one, b, says: breakEven(b, said.request.horizon_months) }))).filter((x) => x.says.length);
  return [
    h("p.rent", {}, h("strong", {}, said.cheapest.name), alternatives.length > 1 ? ` is cheapest over ${said.request.horizon_months} months (net present value)` : ` over ${said.request.horizon_months} months`),
    unstated(said),
    paysLess(said),
    said.cheapest.chance === null ? null : h("p", {}, `In ${percent(said.cheapest.chance)} of the draws it is the cheapest.`, said.cheapest.why_not ? ` ${said.cheapest.why_not}` : ""),
    h("p.muted", {}, said.demand.trained ? trainedWords(said.demand.trained) : `With demand ${said.request.utilisation_fraction === null ? "by the hour as stated" : `at ${percent(said.request.utilisation_fraction)} of the peak on average`}, and with rents and prices that change over the years as the figures taken from the catalog say. The answer's month and price of a million tokens are at the peak and at today's prices.`),
    said.warnings.length ? h("ul.notes", {}, said.warnings.map((warning) => h("li", {}, warning))) : null,
    chart(alternatives.slice(0, 5).map((one) => ({ name: one.name, kind: "line", points: cumulative(one.usd_by_month) })), { title: "Paid so far", x: "months", y: "USD, cumulative", yZero: true, format: (v) => (Math.abs(v) >= 1e6 ? `${usd(v / 1e6, 2)} M` : usd(v, 0)) }),
    table(`Alternatives; M: million; cheapest in: share of the draws below; energy: of what runs at this demand`, ["", "total", "net present value", "per M output tokens", "per M tokens", "cheapest in", "energy"], alternatives.map((one) => [
      one.name, usd(one.total_usd, 0), term("NPV", usd(one.npv_usd, 0)), usd(one.usd_per_million_output_tokens, 3), usd(one.usd_per_million_tokens, 3), one.uncertainty ? percent(one.uncertainty.cheapest_fraction) : "–", one.energy_kwh === null ? "–" : `${figure(one.energy_kwh / 1000)} MWh`]), { right: [1, 2, 3, 4, 5, 6] }),
    alternatives.some((one) => one.notes.length) ? h("ul.notes", {}, alternatives.flatMap((one) => one.notes.map((note) => h("li", {}, h("strong", {}, one.name), `: ${note}`)))) : null,
    others.length ? [h("h3", {}, "Break-even"), h("ul", {}, others.map(({ one, b, says }) => h("li", {}, h("strong", {}, `${one.name} against ${b.against}`), ": ", says.join("; "))))] : null,
    alternatives.some((one) => one.lines.length > 1) ? table("Cost lines, whole horizon", ["", ...alternatives.map((one) => one.name)], [...new Set(alternatives.flatMap((one) => one.lines.map((l) => l.line)))].map((name) => [words(name), ...alternatives.map((one) => usd(one.lines.find((l) => l.line === name)?.total_usd, 0))]), { right: alternatives.map((_, i) => i + 1) }) : null,
    spreads(said),
    movers(said),
    said.defaults.length ? h("details", {}, h("summary", {}, `${said.defaults.length} figures taken from the catalog, with their sources`), table("Figures from the catalog", ["input", "typical", "from", "to", "unit", "source"], said.defaults.map((d) => [words(d.input), figure(d.typical), figure(d.low), figure(d.high), words(d.unit), d.origins.map((o) => `${o.source} (${o.as_of})`).join("; ")]), { right: [1, 2, 3] })) : null,
  ];
}

/** How often jobs are done, and what is paid for between runs. */
const trainedWords = ({ jobs, runs, tokens_per_run, hours_per_run }) =>
  `${jobs.join(", ")} done ${figure(runs)} times: ${figure(runs * tokens_per_run / 1e6)} million tokens, ${figure(hours_per_run)} hours each time. By the hour machines are rented while they train, others are paid for all the time; rents and prices change over the years as the figures taken from the catalog say.`;

const MOST_MOVERS = 8;
const amount = (v) => (Math.abs(v) >= 1e6 ? `${usd(v / 1e6, 2)} M` : Math.abs(v) >= 1e4 ? `${usd(v / 1e3, 0)} k` : usd(v, 0));

/** Net present values over the draws: where the middle half and eight of ten lie. */
function spreads({ alternatives }) {
  const drawn = alternatives.filter((one) => one.uncertainty);
  if (!drawn.length) return null;
  const { draws } = drawn[0].uncertainty;
  return [
    ranges(drawn.map((one) => {
      const { p10, p25, p50, p75, p90 } = one.uncertainty.npv_usd;
      return {
        name: one.name, title: `${one.name}: ${usd(p50, 0)} in the middle, half of the draws from ${usd(p25, 0)} to ${usd(p75, 0)}, eight of ten from ${usd(p10, 0)} to ${usd(p90, 0)}`,
        parts: [{ from: Number(p10), to: Number(p90), tone: "s0", isThin: true }, { from: Number(p25), to: Number(p75), tone: "s0" }], marks: [{ at: Number(one.npv_usd), tone: "s1" }],
      };
    }), { title: `How sure that is: ${draws} draws of every figure that was not stated`, x: "net present value, USD", format: amount, legend: [["s0", "half of the draws; eight of ten the thin line"], ["line", "at typical figures"]] }),
    table("Net present value over the draws, USD", ["", "10 % below", "25 % below", "middle", "75 % below", "90 % below", "at typical figures"], drawn.map((one) => [
      one.name, ...["p10", "p25", "p50", "p75", "p90"].map((p) => usd(one.uncertainty.npv_usd[p], 0)), usd(one.npv_usd, 0)]), { right: [1, 2, 3, 4, 5, 6] }),
  ];
}

/** What moves the net present value most: of the cheapest alternative first, the others folded. */
function movers({ alternatives, cheapest, request }) {
  const { mode, step_percent: step } = request.sensitivity;
  const ends = mode === "step" ? [`${step} % down`, `${step} % up`] : ["at its low end", "at its high end"];
  const one = (alternative) => {
    const rows = alternative.sensitivity.slice(0, MOST_MOVERS);
    return [
      tornado(rows.map((s) => ({ name: words(s.input), atLow: Number(s.npv_usd_at_low), atHigh: Number(s.npv_usd_at_high) })), Number(alternative.npv_usd),
        { title: `What moves ${alternative.name}`, x: `net present value, USD, with one input ${ends.join(" or ")}`, format: amount, down: `input ${ends[0]}`, up: `input ${ends[1]}` }),
      table(`Net present value of ${alternative.name}, USD, with one input ${ends.join(" or ")}`, ["input", ...ends, "effect"], rows.map((s) => [words(s.input), usd(s.npv_usd_at_low, 0), usd(s.npv_usd_at_high, 0), usd(s.effect_usd, 0)]), { right: [1, 2, 3] }),
    ];
  };
  const known = alternatives.filter((alternative) => alternative.sensitivity.length);
  const first = known.find((alternative) => alternative.name === cheapest.name), others = known.filter((alternative) => alternative !== first);
  return [h("h3", {}, "What moves it most"), first ? one(first) : null,
    others.length ? h("details", {}, h("summary", {}, `And the other ${others.length === 1 ? "one" : others.length}`), others.map(one)) : null];
}

/** #/cost/{id}: a stored comparison; #/cost: where to make one. */
export async function costView({ parts, signal }) {
  if (parts[0]) {
    const said = await get(`/v1/tco/comparisons/${encodeURIComponent(parts[0])}`, {}, { signal });
    return h("section.card", {}, h("h1", {}, "Cost of ownership"), comparison(said),
      h("p.buttons", {}, copyButton(() => curlOf("GET", `/v1/tco/comparisons/${said.id}`), "this as a curl command", "Copy as curl")));
  }
  const { items } = await get("/v1/recommendations", { limit: 30 }, { signal });
  const priced = items.filter((one) => one.usd_per_hour !== null);
  return h("section.card", {}, h("h1", {}, "Cost of ownership"), h("p", {}, "Of which plan? Renting it is compared with committing, buying the same machines, or somebody's API."),
    priced.length ? h("ul.movers", {}, priced.map((one) => h("li", {}, h("a", { href: `#/plan/${one.id}/cost` }, `${one.workloads.join(", ")}: ${one.llms.join(", ")}`), ` ${usd(one.usd_per_hour)}/h, ${one.created_at.slice(0, 16).replace("T", " ")} UTC`))) : h("p", {}, h("a", { href: "#/plan" }, "Make a plan first.")));
}
