// From the request of a plan, and how its demand changes, to the request of a fleet.

/** Requests a second in each hour of a weekday: `peak` in the busy hours, a share of it in the others. */
export function dayOf(peak, { from, to, quiet }) {
  const isBusy = (hour) => (from <= to ? hour >= from && hour < to : hour >= from || hour < to);
  return Array.from({ length: 24 }, (_, hour) => (isBusy(hour) ? peak : (peak * quiet) / 100));
}

/** Raises an Error in words where the plan's workloads have no single rate over time. */
export function fleetRequest(request, { from, to, quiet, weekend, growth, months, spot }) {
  const workloads = request.workloads.map((one) => {
    if (!one.traffic) throw new Error(`${one.name} has several traffic classes: state each as a workload with its own demand in POST /v1/fleets.`);
    if (!one.traffic.requests_per_s) throw new Error(`${one.name} has no rate: a fleet needs the rate of its busiest hour.`);
    const { requests_per_s: peak, ...traffic } = one.traffic;
    const weekday = dayOf(peak, { from, to, quiet });
    return {
      name: one.name, llm: one.llm, context_tokens: one.context_tokens, traffic, targets: one.targets, precision: one.precision, utilisation_limit_fraction: one.utilisation_limit_fraction,
      demand: { kind: "profile", weekday_requests_per_s: weekday, weekend_requests_per_s: weekday.map((rate) => (rate * weekend) / 100), growth_percent_per_month: growth ?? 0 },
    };
  });
  const { devices, providers, regions, sourcing } = request.limits;
  const policy = sourcing === "any" ? "any" : { ...sourcing, max_providers: null, max_regions: null, max_device_types: null };
  return { workloads, horizon: { months }, limits: { devices, providers, regions, sourcing: policy }, ...(spot ? { spot: { max_fraction: spot / 100 } } : {}) };
}
