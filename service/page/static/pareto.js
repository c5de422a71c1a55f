// Cost against one other thing: plans none of which is both cheaper and better.
import { limitWords, planText, relaxed } from "./answer.js";
import { question } from "./asked.js";
import { chart } from "./chart.js";
import { button, count, field, figure, h, select, table, usd } from "./dom.js";

const OTHERS = [["power_kw", "power, kW"], ["carbon_kg_co2e_per_hour", "emissions, kg CO2e per hour"]];

export function paretoTab(answer, { signal, replan, parameters, navigate }) {
  if (!answer.plan.length) return h("section.card", {}, h("p", {}, "There is no plan, so nothing to trade."));
  const stated = answer.request.workloads.flatMap((w) => ["ttft_ms", "tpot_ms"].flatMap((name) => Object.keys(w.targets[name]).map((p) => `targets.${name}.${p}`)));
  const options = [...new Set([...stated, "targets.ttft_ms.p95", "targets.tpot_ms.p95"])].map((name) => [name, `${limitWords(name).name}, ms`]).concat(OTHERS);
  const against = select(options, parameters.get("against") ?? options[0][0], { id: "pareto-against" });
  const whose = select(answer.request.workloads.map((w) => w.name), answer.request.workloads[0].name, { id: "pareto-workload" });
  const isTarget = () => against.value.startsWith("targets.");
  const asked = question("Find the front", `/v1/recommendations/${answer.id}/pareto`, () => ({ against: against.value, ...(isTarget() ? { workload: whose.value } : {}), time_limit_s: 30 }), (front) => {
    const label = options.find(([name]) => name === front.against)[1];
    const points = front.points.filter((p) => p.value !== null).map((p) => ({ x: p.value, y: Number(p.solved.usd_per_hour), mark: p.is_recommended, label: `${figure(p.value)} at ${usd(p.solved.usd_per_hour)}/h: ${planText(p.solved.plan)}`, point: p }));
    return [
      h("p", {}, count(front.points.length, "plan"), " on the front. ", front.complete ? "Nothing else belongs on it." : "Sampled: more plans may lie in between.", front.none_below !== null ? ` No plan ${isTargetOf(front) ? `can promise ${label.split(", ")[0]}` : `keeps ${label.split(", ")[0]}`} below ${figure(front.none_below)} ${label.split(", ")[1]}.` : ""),
      chart([{ name: "cheapest plan", kind: "step", points }], { title: `Cost against ${label}`, x: label, y: "USD per hour", xLog: true, yLog: true, format: (v) => usd(v, v < 10 ? 2 : 0), hint: points.some((p) => p.mark) ? "The large point rents what the recommendation rents." : "" }),
      table("Plans on the front", [isTargetOf(front) ? `${label}: promised` : label, "expected", "USD/h", "against the plan", "rents", ""], front.points.map((p) => [
        p.value === null ? "not bounded" : figure(p.value), p.predicted === null ? "–" : figure(p.predicted), usd(p.solved.usd_per_hour), p.is_recommended ? "this is the plan" : p.solved.says, planText(p.solved.plan),
        isTargetOf(front) && !p.is_recommended && p.limit !== null ? button("plan it", () => replan(relaxed(answer.request, front.against, front.workload, Number(p.limit.toPrecision(12)))), { class: "link", "aria-label": `Plan with ${label} ${figure(p.value)}` }) : ""]), { right: [0, 1, 2] }),
      front.unreached.length ? h("p.muted", {}, `Not answered: ${front.unreached.map((u) => `${u.limit === null ? "no limit" : figure(u.limit)} (${u.outcome === "infeasible" ? "no plan" : "not in time"})`).join(", ")}.`) : null,
      front.left_out.length ? h("p.muted", {}, `Left out for a figure nobody publishes: ${front.left_out.reduce((sum, one) => sum + one.offers, 0)} offers.`) : null,
      front.grids.length ? table("Electricity of the regions on the front", ["provider, region", "grid", "kg CO2e per kWh", "kWh per kWh of the nodes"], front.grids.map((g) => [`${g.provider} ${g.region}`, g.grid ?? "as stated", figure(g.grid_kg_co2e_per_kwh), figure(g.power_usage_effectiveness)]), { right: [2, 3] }) : null,
    ];
  }, { signal, auto: parameters.has("against") });
  const isTargetOf = (front) => front.against.startsWith("targets.");
  return h("section.card", {}, h("h2", {}, "What buys what?"), h("p.muted", {}, "Cost against a latency, power or emissions: plans none of which is both cheaper and better. Some ten seconds."),
    h("form.inline", { onsubmit: (event) => { event.preventDefault(); navigate(`#/plan/${answer.id}/pareto?against=${against.value}`, { replace: true, silent: true }); asked.ask(); } },
      field("Against", against), answer.request.workloads.length > 1 ? field("Workload", whose) : null, h("button.primary", { type: "submit" }, "Find the front")),
    asked.panel);
}
