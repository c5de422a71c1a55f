// Fleets over time: what to own, reserve and rent by the hour against demand, month by month and inside a month.
import { Problem, curlOf, followJob, get, post } from "./api.js";
import { stepsText } from "./answer.js";
import { hours, stacked } from "./bars.js";
import { ago, button, copyButton, count, day, empty, facts, field, figure, h, layoutText, percent, say, select, table, usd, words } from "./dom.js";
import { problemCard } from "./form.js";
import { dayOf, fleetRequest } from "./fleet_request.js";
import { term } from "./glossary.js";

const LAYERS = ["owned", "reserved", "on demand", "spot"];
const layerOf = (commitment) => (commitment === "purchase" ? 0 : commitment === "spot" ? 3 : commitment === "on_demand" ? 2 : 1);
const STATUS = { optimal: ["Proven cheapest", "good"], feasible: ["Best plan found", "fair"], infeasible: ["No plan exists", "bad"] };

/** #/fleets: stored ones, and how to make one; #/fleets/new?plan=rec_…; #/fleets/job_…; #/fleets/fleet_…[?month=] */
export async function fleetsView({ parts, parameters, navigate, signal }) {
  const [id] = parts;
  if (id === "new") return h("div", {}, await form(parameters, navigate, signal));
  if (id?.startsWith("job_")) return jobCard(id, navigate, signal);
  if (id) return fleet(await get(`/v1/fleets/${encodeURIComponent(id)}`, {}, { signal }), parameters, navigate);
  return listed(signal);
}

async function listed(signal) {
  const { items, total } = await get("/v1/fleets", { limit: 100 }, { signal });
  return h("section.card", {}, h("h1", {}, "Fleets over time"),
    h("p", {}, "Demand changes with the hour and grows with the months: what to reserve or own for all of it, and what to rent for its peaks."),
    h("p", {}, h("a.button", { href: "#/fleets/new" }, "Plan a fleet")),
    items.length ? table(total > items.length ? `The newest ${items.length} of ${total} fleets` : `${count(total, "fleet")}, newest first`, ["fleet", "for", "months", "outcome", "cost", "made"], items.map((one) => [
      h("a", { href: `#/fleets/${one.id}` }, one.id), one.llms.join(", "), one.months, words(one.outcome), usd(one.usd, 0), ago(one.created_at)]), { right: [2, 4] }) : h("p", {}, "None is stored yet."));
}

async function form(parameters, navigate, signal) {
  const { items } = await get("/v1/recommendations", { limit: 50 }, { signal });
  const plans = items.filter((one) => one.usd_per_hour !== null);
  if (!plans.length) return h("section.card", {}, h("h1", {}, "Plan a fleet"), h("p", {}, "A fleet serves the workload of a plan as its demand changes. ", h("a", { href: "#/plan/new?preset=chat" }, "Make a plan first"), "."));
  const asked = parameters.get("plan");
  if (asked && !plans.some((one) => one.id === asked)) plans.unshift({ id: asked, workloads: [asked], llms: [], usd_per_hour: null });
  const num = (id, value, attributes = {}) => h("input", { id: `fleet-${id}`, type: "number", step: "any", min: "0", value, ...attributes });
  const plan = select(plans.map((one) => [one.id, `${one.workloads.join(", ")}${one.llms.length ? `: ${one.llms.join(", ")}` : ""}${one.usd_per_hour === null ? "" : `, ${usd(one.usd_per_hour)}/h`}`]), asked ?? plans[0].id, { id: "fleet-plan" });
  const given = { from: num("from", "8", { max: "23", step: "1" }), to: num("to", "20", { max: "24", step: "1" }), quiet: num("quiet", "30", { max: "100" }), weekend: num("weekend", "50", { max: "100" }), growth: num("growth", "0", { min: "-50", max: "100" }), months: num("months", "36", { min: "1", max: "60", step: "1" }), spot: num("spot", "", { max: "100", placeholder: "none" }) };
  const panel = h("div", { "aria-live": "polite" }), shape = h("div.row", {});
  const values = () => Object.fromEntries(Object.entries(given).map(([name, input]) => [name, input.value === "" ? null : Number(input.value)]));
  const tell = () => {
    const { weekend, ...rest } = values();
    const weekday = dayOf(100, rest);
    empty(shape, hours(weekday, "A weekday, by hour"), hours(weekday.map((v) => (v * weekend) / 100), "A day of the weekend"));
  };
  for (const input of Object.values(given)) input.addEventListener("input", tell);
  tell();
  async function send(event) {
    event.preventDefault();
    empty(panel, h("p.loading", {}, "Sending the request…"));
    let body = null;
    try {
      body = fleetRequest((await get(`/v1/recommendations/${plan.value}`, {}, { signal })).request, values());
      const job = await post("/v1/fleets", body, { headers: { Prefer: "respond-async" }, signal });
      navigate(`#/fleets/${job.id}`);
    } catch (problem) {
      if (problem.name === "AbortError") return;
      empty(panel, problem instanceof Problem ? problemCard(problem) : h("p", { role: "alert" }, problem.message),
        body ? h("p.buttons", {}, copyButton(() => curlOf("POST", "/v1/fleets", body), "this request as a curl command", "Copy as curl")) : null);
      say(problem.message);
    }
  }
  return h("section.card", {}, h("h1", {}, "Plan a fleet"), h("p", {}, "The workload of a plan, its rate as the busiest hour. Other demand (a measured series, several workloads, machines of your own) goes through ", h("code", {}, "POST /v1/fleets"), "."),
    h("form", { onsubmit: send },
      field("Workload of", plan),
      h("div.row", {}, field("Busy from, hour", given.from), field("Busy until, hour", given.to), field("Other hours, % of the peak", given.quiet), field("Weekend, % of weekdays", given.weekend)),
      shape,
      h("div.row", {}, field("Growth, % a month", given.growth), field("Months", given.months), field("Spot, at most % of the devices", given.spot)),
      h("button.primary", { type: "submit" }, "Find the cheapest fleet")), panel);
}

async function jobCard(id, navigate, signal) {
  let job = await get(`/v1/jobs/${id}`, {}, { signal });
  const state = h("strong", {}, words(job.progress?.stage ?? job.state)), numbers = h("div", {}), elapsed = h("strong", {}, "0 s");
  const began = Date.parse(job.created_at);
  const clock = setInterval(() => { elapsed.textContent = `${Math.max(0, (Date.now() - began) / 1000).toFixed(0)} s`; }, 500);
  signal.addEventListener("abort", () => clearInterval(clock));
  const cancel = button("Cancel", async () => { cancel.disabled = true; try { await post(`/v1/jobs/${id}/cancel`); } catch (problem) { say(problem.message); } });
  const card = h("section.card.progress", { "aria-label": "Progress" }, h("div.spread", {}, h("h1", {}, "Planning the fleet"), h("span.buttons", {}, cancel)),
    h("progress", { "aria-label": "Working" }), h("p", {}, state, " after ", elapsed), numbers, h("p.muted", {}, "This page may be closed: the job goes on, and Jobs lists it."));
  const show = (event, data) => {
    state.textContent = words(event === "progress" ? data.stage : data.state);
    if (data.usd_per_hour) empty(numbers, facts([["best plan so far, mean", `${usd(data.usd_per_hour)}/h`], ["no plan costs less than", data.bound_usd_per_hour ? `${usd(data.bound_usd_per_hour)}/h` : "not known yet"]]));
  };
  async function follow() {
    try {
      if (["queued", "running"].includes(job.state)) await followJob(id, show, signal);
      job = await get(`/v1/jobs/${id}`, {}, { signal });
      clearInterval(clock);
      if (job.result) { navigate(`#/fleets/${job.result.split("/").at(-1)}`, { replace: true }); return; }
      empty(card, h("h1", {}, job.state === "cancelled" ? "Cancelled: nothing was stored" : `The job ${words(job.state)}`), job.problem ? problemCard(new Problem(job.problem, job.problem.status)) : null, h("p", {}, h("a", { href: "#/fleets/new" }, "Plan another one")));
    } catch (problem) {
      if (problem.name !== "AbortError") empty(card, problem instanceof Problem ? problemCard(problem) : h("p", {}, problem.message));
    }
  }
  follow();
  return card;
}

const sum = (numbers) => numbers.reduce((total, one) => total + one, 0);
const nodesOf = (period) => LAYERS.map((_, layer) => sum(period.nodes.filter((n) => layerOf(n.commitment) === layer).map((n) => n.nodes)));
const demandOf = (period) => sum(Object.values(period.requests_per_s));
const stackText = (values) => LAYERS.map((name, i) => (values[i] > 0 ? `${figure(values[i])} ${name}` : null)).filter(Boolean).join(", ") || "no nodes";

/** Mean nodes in use of each month, and its mean demand. */
function byMonth(periods) {
  return [...new Set(periods.map((p) => p.month))].sort((a, b) => a - b).map((month) => {
    const own = periods.filter((p) => p.month === month), hours = sum(own.map((p) => p.hours));
    const values = LAYERS.map((_, layer) => sum(own.map((p) => p.hours * nodesOf(p)[layer])) / hours);
    const line = sum(own.map((p) => p.hours * demandOf(p))) / hours;
    return { from: month, to: month + 1, values, line, peak: Math.max(...own.map(demandOf)), rent: sum(own.map((p) => p.hours * Number(p.usd_per_hour))), label: `Month ${month + 1}: on average ${stackText(values)} for ${figure(line)} requests/s` };
  });
}

/** The hours of a month, busiest first. */
function insideMonth(periods, month) {
  let from = 0;
  return periods.filter((p) => p.month === month).sort((a, b) => demandOf(b) - demandOf(a)).map((p) => {
    const column = { from, to: from + p.hours, values: nodesOf(p), line: demandOf(p), label: `${figure(p.hours)} hours at ${figure(demandOf(p))} requests/s: ${stackText(nodesOf(p))}`, period: p };
    from += p.hours;
    return column;
  });
}

const DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"], HOURS_A_DAY = 24, HOURS_A_WEEK = 168;
const hourOf = (hour) => `${DAYS[Math.floor(hour / HOURS_A_DAY) % DAYS.length]} ${String(hour % HOURS_A_DAY).padStart(2, "0")}:00`;

/** The hours of a month in their order, those alike in a row as one column; null for plans that do not know the order. */
function inOrder(answer, month) {
  const order = answer.calendar?.[month];
  if (!order?.length) return null;
  const columns = [];
  order.forEach((position, hour) => {
    const last = columns.at(-1);
    if (last?.position === position) { last.to = hour + 1; return; }
    const period = answer.periods[position];
    columns.push({ position, from: hour, to: hour + 1, values: nodesOf(period), line: demandOf(period) });
  });
  const isWeek = order.length === HOURS_A_WEEK;
  for (const one of columns) one.label = `${isWeek ? `${hourOf(one.from)} to ${hourOf(one.to)}` : `Hours ${one.from} to ${one.to}`}, ${figure(one.line)} requests/s: ${stackText(one.values)}`;
  return { columns, isWeek };
}

function fleet(answer, parameters, navigate) {
  const { totals, solve } = answer;
  const [title, tone] = STATUS[answer.outcome] ?? [words(answer.outcome), "fair"];
  const head = h("section.card.headline", {}, h("h1.visually-hidden", {}, "A fleet over time"),
    h("div.spread", {}, h(`span.status.${tone}`, {}, title), h("span.buttons", {},
      copyButton(() => location.href, "the link to this fleet", "Copy link"), copyButton(() => curlOf("GET", `/v1/fleets/${answer.id}`), "this fleet as a curl command", "Copy as curl"))),
    totals === null ? [h("p.price", {}, h("strong", {}, "No plan"), h("span", {}, "serves this demand within its limits")), answer.reasons.length ? h("ul", {}, answer.reasons.map((r) => h("li", {}, r))) : null] : [
      h("p.price", {}, h("strong", {}, usd(totals.usd, 0)), h("span", {}, `over ${count(answer.request.horizon.months, "month")}`)),
      facts([["a month", usd(totals.usd_per_month, 0)], ["owned", usd(totals.purchase_usd, 0)], ["reserved", usd(totals.reserved_usd, 0)], ["on demand", usd(totals.on_demand_part_usd, 0)], ["spot", usd(totals.spot_usd, 0)],
        ["saved against on demand alone", totals.saved_usd === null ? "–" : `${usd(totals.saved_usd, 0)} (${percent(totals.saved_fraction)})`]]),
      h("p.proof", {}, `Proof: no fleet that serves this demand costs less than ${usd(solve.bound_usd, 0)} in present value`, solve.gap_fraction ? [": this one may be ", h("strong", {}, percent(solve.gap_fraction, 1)), " above the cheapest"] : "", ".")]);
  if (totals === null) return h("div", {}, head, rejected(answer));
  const months = byMonth(answer.periods);
  return h("div", {}, head, overTime(answer, months, parameters, navigate), commitments(answer), operation(answer), deployments(answer), others(answer), rejected(answer), fineprint(answer));
}

function overTime(answer, months, parameters, navigate) {
  const names = months.map((m) => [String(m.from), `month ${m.from + 1}`]);
  const chosen = names.some(([value]) => value === parameters.get("month")) ? parameters.get("month") : names.at(-1)[0];
  const place = h("div", { "aria-live": "polite" });
  const month = select(names, chosen, { id: "fleet-month", onchange: () => { navigate(`#/fleets/${answer.id}?month=${month.value}`, { replace: true, silent: true }); draw(); } });
  function draw() {
    const columns = insideMonth(answer.periods, Number(month.value)), ordered = inOrder(answer, Number(month.value)), number = Number(month.value) + 1;
    const title = ordered === null ? `Hours of month ${number}, busiest first` : ordered.isWeek ? `A week of month ${number}, hour by hour` : `Month ${number}, hour by hour`;
    const xTicks = ordered?.isWeek ? DAYS.map((name, i) => [i * HOURS_A_DAY + HOURS_A_DAY / 2, name.slice(0, 3)]) : null;
    empty(place, stacked(ordered?.columns ?? columns, { title, x: ordered?.isWeek ? "every week of the month is like this one" : "hours of the month", xTicks, y: "nodes in use", layers: LAYERS, line: "demand, requests/s", hint: "Move over the hours, or use the arrow keys." }),
      h("details", {}, h("summary", {}, "As a table"), table(`Hours of month ${Number(month.value) + 1}`, ["hours", "requests/s", "nodes in use", "rented, USD/h", "by offer"], columns.map((c) => [
        figure(c.to - c.from), figure(c.line), stackText(c.values), usd(c.period.usd_per_hour), c.period.nodes.map((n) => `${n.nodes} × ${n.offer}${n.spare ? ` (${n.spare} spare)` : ""}`).join(", ")]), { right: [0, 1, 3] })));
  }
  draw();
  return h("section.card", {}, h("h2", {}, "Against demand"), h("div.beside", {},
    months.length > 1 ? h("div", {}, stacked(months, { title: "Nodes in use, mean of each month", x: "months from the start", y: "nodes in use", layers: LAYERS, line: "demand, requests/s", hint: "Move over the months, or use the arrow keys." }),
      h("details", {}, h("summary", {}, "As a table"), table("By month", ["month", ...LAYERS, "mean requests/s", "busiest, requests/s", "rented by the hour, USD"], months.map((m) => [m.from + 1, ...m.values.map(figure), figure(m.line), figure(m.peak), usd(m.rent, 0)]), { right: [0, 1, 2, 3, 4, 5, 6, 7] }))) : null,
    h("div", {}, place, h("div.row", {}, field("Month", month)))));
}

function commitments(answer) {
  if (!answer.commitments.length) return h("section.card", {}, h("h2", {}, "What to commit to"), h("p", {}, "Nothing: renting by the hour is cheapest."));
  return h("section.card", {}, h("h2", {}, "What to commit to"), table("Bought and reserved", ["nodes", "of", "from", "how", "start", "months", "cost", term("utilisation", "used")], answer.commitments.map((c) => [
    c.nodes, c.node, `${c.provider}, ${c.region}`, words(c.commitment), `month ${c.start_month + 1}`, c.term_months, usd(c.usd, 0), percent(c.used_fraction)]), { right: [0, 5, 6, 7], rowHead: false }));
}

const RULES = { max_configurations: "the limit on ways of running a workload", min_up_hours: "the least hours that a node stays", max_change_percent_per_hour: "the limit on changes from hour to hour" };
/** What is taken by the hour, and what it costs that people can run it. */
function operation({ operation: told }) {
  if (!told) return null;
  const freed = told.freedoms.filter((one) => one.usd !== null);
  const most = (one) => (Number(one.saves_at_most_usd ?? 0) > Number(one.saves_usd) ? `, at most ${usd(one.saves_at_most_usd, 0)}` : "");
  return h("section.card", {}, h("h2", {}, "What to take by the hour"),
    facts([["ways of running the workloads", told.configurations], ["a node by the hour stays at least", told.least_hours_up === null ? "none comes or goes" : count(told.least_hours_up, "hour")]]),
    told.stock.length ? table("Nodes by the hour that the plan counts on; whether they are to be had then is assumed", ["node", "from", "how", "most at once", "most started in an hour", "offered", "cost"], told.stock.map((s) => [
      s.node, `${s.provider}, ${s.region}`, words(s.commitment), s.most_nodes, s.most_started, s.offered ?? "no limit stated", usd(s.usd, 0)]), { right: [3, 4, 5, 6] }) : null,
    freed.length ? h("ul.movers", {}, freed.map((one) => h("li", {}, h("strong", {}, one.rule === null ? "Without rules of operation" : `Without ${RULES[one.rule] ?? words(one.rule)}`), `: ${Number(one.saves_usd) ? `${usd(one.saves_usd, 0)} less` : "no cheaper plan was found"}${most(one)}`))) : null);
}

function deployments(answer) {
  return h("section.card", {}, h("h2", {}, "What runs on them"), table("Ways of running the workloads", ["workload", "device", "replica", "weights, cache", "engine", "requests/s of one"], answer.deployments.map((d) => [
    d.workload, d.device, `${layoutText(d.layout)}${d.nodes_per_replica > 1 ? `, ${d.nodes_per_replica} nodes` : ""}`, `${d.precision.weights}, KV ${d.precision.kv_cache}`, [d.engine, stepsText(d.engine, d.max_batched_tokens)].filter(Boolean).join(", "), figure(d.requests_per_s)]), { right: [5] }));
}

function others(answer) {
  if (!answer.alternatives.length) return null;
  return h("section.card", {}, h("h2", {}, "What other ways would cost"), h("ul.movers", {}, answer.alternatives.map((a) => h("li", {}, h("strong", {}, words(a.why)), ": ", a.usd === null ? "there is no plan" : `${usd(a.extra_usd, 0)} more (${usd(a.usd, 0)} in present value)`))));
}

function rejected(answer) {
  if (!answer.left_out.length) return null;
  return h("section.card", {}, h("h2", {}, "Left out"), h("ul", {}, answer.left_out.map((one) => h("li", {}, h("strong", {}, words(one.commitment)), `: ${one.why}`))));
}

function fineprint(answer) {
  const { solve, demand, inputs } = answer;
  return h("section.card", {}, h("h2", {}, "How it was found"), facts([
    ["periods of demand", `${demand.periods} for ${demand.hours.toLocaleString("en")} hours`], ["overstated by", percent(demand.overstated_fraction, 1)], [term("simulations"), solve.simulations.toLocaleString("en")], ["time", `${figure(solve.seconds)} s`],
    ["prices as of", day(inputs.price_as_of)], ["stored as", h("code", {}, answer.id)]]));
}
