// The Plan view: the form at the left; at the right the newest plan, a job on its way, or what was asked of a plan.
import { Problem, curlOf, followJob, get, post } from "./api.js";
import { answerCards } from "./answer.js";
import { costTab } from "./cost.js";
import { ago, button, copyButton, empty, facts, h, percent, say, usd, words } from "./dom.js";
import { EMPTY, presets, problemCard, requestOf, valuesOf, valuesOfPreset, workloadForm } from "./form.js";
import { paretoTab } from "./pareto.js";
import { rooflineTab } from "./roofline.js";
import { runTab } from "./run.js";
import { whyTab } from "./why.js";

const TABS = [["", "Answer"], ["why", "Why"], ["pareto", "Trade-offs"], ["roofline", "Roofline"], ["cost", "Cost over time"], ["run", "Run it"]];

/** #/plan, #/plan/new?preset=…, #/plan/rec_…[/tab], #/plan/job_… */
export async function planView({ parts, parameters, navigate, signal }) {
  const known = await presets();
  const aside = h("section.form-side", { "aria-label": "What must be served" });
  const answerSide = h("section.answer-side", { "aria-label": "The plan", "aria-busy": "true" });
  const view = h("div.plan", {}, h("h1.visually-hidden", {}, "Plan a workload"), aside, answerSide);
  let base = null, form = null;

  function showForm(values, from) {
    base = from;
    form = workloadForm(values, {
      presetNames: Object.entries(known).map(([name, preset]) => [name, preset.title]),
      onPreset: (name) => navigate(`#/plan/new?${new URLSearchParams({ preset: name })}`),
      onPlan: (now) => plan(requestOf(now, base)),
    });
    empty(aside, form);
  }

  function showRequest(request) {
    const values = valuesOf(request);
    if (values) return showForm(values, request);
    base = null;
    return empty(aside, h("div.workload", {},
      h("p", {}, "This request asks for more than the form shows:"),
      h("ul", {}, request.workloads.map((w) => h("li", {}, `${w.name}: ${w.llm}${w.traffic_classes ? `, ${w.traffic_classes.length} traffic classes` : ""}`))),
      h("p", {}, "Its limits can still be moved with the links in the answer. Or start from "),
      h("div.presets", {}, Object.entries(known).map(([name, preset]) => button(preset.title, () => navigate(`#/plan/new?preset=${name}`), { class: "chip" })))));
  }

  /** Posts a request as a job, so that progress is seen and it can be cancelled. */
  async function plan(request) {
    form?.showProblem(null);
    empty(answerSide, h("p.loading", {}, "Sending the request…"));
    try {
      const answer = await post("/v1/recommendations", request, { headers: { Prefer: "respond-async" }, signal });
      navigate(`#/plan/${answer.id}`);
    } catch (problem) {
      if (problem.name === "AbortError") return;  // the reader has gone to another view
      if (!(problem instanceof Problem)) throw problem;
      const atFields = form && problem.status === 422 ? form.showProblem(problem) : null;
      empty(answerSide, h("section.card", {}, h("h2", {}, "The request was refused"), atFields ?? problemCard(problem),
        copyButton(() => curlOf("POST", "/v1/recommendations", request), "this request as a curl command", "Copy as curl")));
    }
  }

  async function showJob(id) {
    let job = await get(`/v1/jobs/${id}`, {}, { signal });
    showRequest(job.request);
    const began = Date.parse(job.created_at);
    const elapsed = h("strong", {}), state = h("strong", {}), numbers = h("div", {});
    const cancel = button("Cancel", async () => {
      cancel.disabled = true;
      try { await post(`/v1/jobs/${id}/cancel`); } catch (problem) { say(problem.message); }
    });
    const live = h("section.card.progress", { "aria-label": "Progress" },
      h("div.spread", {}, h("h2", {}, "Searching for the cheapest plan"), h("span.buttons", {}, cancel)),
      h("progress", { "aria-label": "Working" }), h("p", {}, state, " after ", elapsed), numbers,
      h("p.muted", {}, "This page may be closed: the job goes on, and Jobs lists it."));
    const tick = () => { elapsed.textContent = `${Math.max(0, (Date.now() - began) / 1000).toFixed(0)} s`; };
    const clock = setInterval(tick, 500);
    signal.addEventListener("abort", () => clearInterval(clock));
    const show = (stage, progress) => {
      state.textContent = words(stage);
      if (progress?.usd_per_hour) empty(numbers, facts([
        ["best plan so far", `${usd(progress.usd_per_hour)}/h`], ["no plan costs less than", progress.bound_usd_per_hour ? `${usd(progress.bound_usd_per_hour)}/h` : "not known yet"],
        ["may be above the cheapest by", progress.gap_fraction === null ? "not known yet" : percent(progress.gap_fraction, 1)]]));
    };
    tick();
    show(job.progress?.stage ?? job.state, job.progress);
    if (["queued", "running"].includes(job.state)) {
      empty(answerSide, live);
      await followJob(id, (event, data) => (event === "progress" ? show(data.stage, data) : show(data.state)), signal);
      job = await get(`/v1/jobs/${id}`, {}, { signal });
    }
    clearInterval(clock);
    if (job.result) return navigate(`#/plan/${job.result.split("/").at(-1)}`, { replace: true });
    if (job.problem && form && job.problem.status === 422) form.showProblem(new Problem(job.problem, job.problem.status));
    return empty(answerSide, h("section.card", {}, h("h2", {}, job.state === "cancelled" ? "Cancelled: nothing was stored" : `The job ${words(job.state)}`),
      job.problem ? problemCard(new Problem(job.problem, job.problem.status)) : null,
      h("p", {}, button("Ask again", () => plan(job.request), { class: "primary" }))));
  }

  async function showPlan(id, tab) {
    const answer = await get(`/v1/recommendations/${encodeURIComponent(id)}`, {}, { signal });
    showRequest(answer.request);
    const here = (name) => `#/plan/${answer.id}${name ? `/${name}` : ""}`;
    const tabs = h("nav.tabs", { "aria-label": "About this plan" }, TABS.map(([name, title]) => h("a", { href: here(name), "aria-current": name === tab ? "page" : null }, title)));
    const actions = { replan: plan, compare: true, why: here("why"), navigate, signal, parameters };
    const panel = h("div", {});
    empty(answerSide, h("div.spread", {}, tabs, h("p.muted.made", {}, `made ${ago(answer.created_at)}`)), panel);
    if (tab === "") empty(panel, answerCards(answer, actions));
    else if (tab === "why") empty(panel, whyTab(answer, actions));
    else if (tab === "pareto") empty(panel, paretoTab(answer, actions));
    else if (tab === "cost") empty(panel, costTab(answer, actions));
    else if (tab === "roofline") empty(panel, rooflineTab(answer, actions));
    else if (tab === "run") empty(panel, runTab(answer, actions));
    else empty(panel, h("p", {}, "There is no such tab."));
  }

  async function fill() {
    const [id, tab = ""] = parts;
    try {
      if (id === "new" || (!id && parameters.size)) {
        const preset = known[parameters.get("preset") ?? ""] ?? known.chat;
        const values = { ...valuesOfPreset(preset), ...Object.fromEntries([...parameters].filter(([name]) => name in EMPTY && !Array.isArray(EMPTY[name]))) };
        for (const name of ["providers", "devices", "regions", "weights", "cache", "commitments"]) if (parameters.has(name)) values[name] = parameters.get(name).split(",").filter(Boolean);
        showForm(values, { workloads: [{ name: parameters.get("preset") ?? "workload" }] });
        empty(answerSide, h("section.card.invitation", {}, h("h2", {}, preset.title), h("p", {}, "The numbers at the left are a starting point: put in yours."),
          h("p", {}, "The answer is the cheapest cluster of the catalog that meets the targets, with its price, how fast it will be, how sure that is, and the proof."),
          button("Find the cheapest plan", () => form.requestSubmit(), { class: "primary" })));
      } else if (!id) {
        const { items } = await get("/v1/recommendations", { limit: 1 }, { signal });
        if (items.length) {
          await showPlan(items[0].id, "");
          answerSide.prepend(h("p.muted", {}, "The newest plan stored here. ", h("a", { href: "#/plan/new?preset=chat" }, "Start another"), " or ", h("a", { href: "#/compare" }, "compare plans"), "."));
        }
        else { parameters.set("preset", "chat"); return fill(); }
      } else if (id.startsWith("job_")) await showJob(id);
      else await showPlan(id, tab);
    } catch (problem) {
      if (problem.name === "AbortError") return null;
      if (!(problem instanceof Problem)) throw problem;
      if (!aside.childNodes.length) showForm(valuesOfPreset(known.chat), { workloads: [{ name: "chat" }] });
      empty(answerSide, h("section.card", {}, problemCard(problem)));
    } finally {
      answerSide.removeAttribute("aria-busy");
    }
    return null;
  }
  fill();
  return view;
}
