// Two or three stored plans side by side, and what must change to go from the first to the others.
import { curlOf, get } from "./api.js";
import { fleetText, limitWords, schedulerText } from "./answer.js";
import { copyButton, empty, field, figure, h, interval, layoutText, percent, select, table, usd, words } from "./dom.js";
import { policyText } from "./policy.js";

const PLACES = ["first", "second", "third"];
const UNLIMITED_NODES = 1000;  // what the API takes where nothing is said

export async function compareView({ parameters, navigate, signal }) {
  const { items } = await get("/v1/recommendations", { limit: 100 }, { signal });
  const panel = h("div", { "aria-live": "polite" });
  if (items.length < 2 && !(parameters.get("a") && parameters.get("b"))) {
    return h("section.card", {}, h("h1", {}, "Compare plans"), h("p", {}, "There are fewer than two plans yet. ", h("a", { href: "#/plan/new?preset=chat" }, "Make another one"), "."));
  }
  const name = (one) => `${one.created_at.slice(5, 16).replace("T", " ")} · ${one.workloads.join(", ")} · ${one.llms.join(", ")} · ${one.usd_per_hour === null ? "no plan" : `${usd(one.usd_per_hour)}/h`} · ${one.asked.join("; ")}`;
  const options = items.map((one) => [one.id, name(one)]);
  for (const side of ["a", "b", "c"]) if (parameters.get(side) && !options.some(([id]) => id === parameters.get(side))) options.push([parameters.get(side), parameters.get(side)]);
  const b = parameters.get("b") ?? options.find(([id]) => id !== parameters.get("a"))?.[0];
  const a = parameters.get("a") ?? options.find(([id]) => id !== b)?.[0];
  const changed = () => { navigate(`#/compare?a=${left.value}&b=${right.value}${third.value ? `&c=${third.value}` : ""}`, { replace: true, silent: true }); draw(); };
  const left = select(options, a, { id: "compare-a", onchange: changed }), right = select(options, b, { id: "compare-b", onchange: changed });
  const third = select([["", "none"], ...options], parameters.get("c") ?? "", { id: "compare-c", onchange: changed });

  async function draw() {
    const others = [right.value, third.value].filter(Boolean);
    empty(panel, h("p.loading", {}, "Reading the plans…"));
    try {
      const [plans, diffs] = await Promise.all([
        Promise.all([left.value, ...others].map((id) => get(`/v1/recommendations/${id}`, {}, { signal }))),
        Promise.all(others.map((id) => get(`/v1/recommendations/${id}/diff`, { against: left.value }, { signal })))]);
      empty(panel, table("Plans side by side", ["", ...PLACES.slice(0, plans.length)], rows(plans)),
        diffs.map((diff, i) => [h("h2", {}, `To go from the first to the ${PLACES[i + 1]}`), diff.words.length ? h("ul", {}, diff.words.map((line) => h("li", {}, line))) : h("p", {}, "Nothing changes.")]),
        h("p.buttons", {}, copyButton(() => location.href, "the link to this comparison", "Copy link"),
          others.map((id, i) => copyButton(() => curlOf("GET", `/v1/recommendations/${id}/diff?against=${left.value}`), `the change to the ${PLACES[i + 1]} as a curl command`, i ? `Copy as curl, ${PLACES[i + 1]}` : "Copy as curl")),
          plans.map((plan, i) => h("a.button.quiet", { href: `#/plan/${plan.id}` }, `Open the ${PLACES[i]}`))));
    } catch (problem) {
      if (problem.name !== "AbortError") empty(panel, h("p", {}, problem.message));
    }
  }
  draw();
  return h("section.card", {}, h("h1", {}, "Compare plans"), h("div.pair", {}, field("First", left), field("Second", right), field("Third", third)), panel);
}

const difference = (one, other) => (one === null || other === null ? "" : Number(other) === Number(one) ? " (the same)" : ` (${Number(other) > Number(one) ? "+" : ""}${usd(Number(other) - Number(one))})`);

function rows(plans) {
  const both = (name, of) => [name, ...plans.map(of)];
  const price = (answer) => answer.totals?.usd_per_hour ?? null;
  const lines = (of) => (answer) => (answer.plan.length ? answer.plan.map((line) => h("div", {}, of(line))) : "–");
  return [
    ["USD per hour", ...plans.map((x, i) => `${usd(price(x))}${i ? difference(price(plans[0]), price(x)) : ""}`)],
    both("per million output tokens", (x) => usd(x.totals?.usd_per_million_output_tokens ?? null, 3)),
    both("proof", (x) => `${words(x.solve.status)}${x.solve.gap_fraction ? `, gap ${percent(x.solve.gap_fraction, 2)}` : ""}`),
    both("rents", (x) => fleetText(x)),
    both("from", lines((l) => `${l.provider}, ${l.region}, ${words(l.commitment)}`)),
    both("replicas", lines((l) => `${l.replicas} × ${layoutText(l.layout)} on ${l.device}, ${l.precision.weights} weights, ${l.precision.kv_cache} KV${l.engine_settings?.speculative ? `, drafting ${l.engine_settings.speculative.draft_tokens} tokens` : ""}${l.engine_settings?.host_cache_gib ? `, ${l.engine_settings.host_cache_gib} GiB of the host${l.engine_settings.disk_cache_gib ? ` and ${l.engine_settings.disk_cache_gib} GiB of disk` : ""} beside each device` : ""}`)),
    both("scheduler", lines((l) => schedulerText(l) || "–")),
    both("TTFT p95", lines((l) => interval(l.predicted?.ttft_ms.p95, "ms"))),
    both("TPOT p95", lines((l) => interval(l.predicted?.tpot_ms.p95, "ms"))),
    both("prediction", lines((l) => l.basis)),
    both("devices", (x) => x.totals?.devices ?? "–"),
    both("power", (x) => (x.totals?.power_kw == null ? "not published" : `${figure(x.totals.power_kw)} kW`)),
    both("asked for", (x) => x.request.workloads.map((w) => h("div", {}, `${w.name}: ${w.llm}, ${w.traffic ? `${figure(w.traffic.requests_per_s)} requests/s` : `${w.traffic_classes?.length} classes`}${targets(w)}`))),
    both("limited to", (x) => { const stated = limits(x.request.limits); return stated.length ? stated.map((line) => h("div", {}, line)) : "–"; }),
    both("bought from", (x) => policyText(x.request.limits.sourcing)),
    both("a fifth looser saves", (x) => (x.binding.length ? x.binding.map((l) => h("div", {}, limitWords(l.limit).name)) : "–")),
  ];
}

/** Limits that say something, in words: what is not limited, and what is as it always is, is left out. */
function limits(stated) {
  const isSaid = ([name, value]) => name !== "sourcing" && value && !(Array.isArray(value) && !value.length) && !(name === "max_nodes_per_offer" && value >= UNLIMITED_NODES)
    && (typeof value !== "object" || (Array.isArray(value) && value.every((one) => typeof one === "string")));
  return Object.entries(stated).filter(isSaid).map(([name, value]) => {
    const { name: said, unit } = limitWords(`limits.${name}`);
    return value === true ? said : `${said}: ${Array.isArray(value) ? value.map(words).join(", ") : `${value} ${unit}`}`;
  });
}

function targets(workload) {
  const stated = Object.entries(workload.targets).filter(([name]) => name.endsWith("_ms")).flatMap(([name, by]) => Object.entries(by).map(([p, value]) => `${name.split("_")[0].toUpperCase()} ${p} ≤ ${figure(value)} ms`));
  return stated.length ? `, ${stated.join(", ")}` : "";
}
