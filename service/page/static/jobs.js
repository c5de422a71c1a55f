// Long requests: what they wait for, how far they are, what became of them.
import { curlOf, get, post } from "./api.js";
import { ago, button, copyButton, count, empty, h, percent, say, table, usd, words } from "./dom.js";

const LOOK_EVERY_MS = 2000;
const OPENED = { recommendation: "plan", fleet: "fleets" };

export async function jobsView({ signal }) {
  const place = h("div", {});
  async function draw() {
    const { items, total } = await get("/v1/jobs", { limit: 100 }, { signal });
    empty(place, items.length ? table(total > items.length ? `The newest ${items.length} of ${total} jobs` : `${count(total, "job")}, newest first`, ["job", "kind", "state", "how far", "best so far", "asked", ""], items.map((job) => [
      OPENED[job.kind] ? h("a", { href: `#/${OPENED[job.kind]}/${job.id}` }, job.id) : h("code", {}, job.id), words(job.kind),
      h(`span.state.${job.state}`, {}, job.state), job.progress ? words(job.progress.stage) : "–",
      job.progress?.usd_per_hour ? `${usd(job.progress.usd_per_hour)}/h${job.progress.gap_fraction ? `, gap ${percent(job.progress.gap_fraction, 1)}` : ""}` : "–", ago(job.created_at),
      ["queued", "running"].includes(job.state) ? button("Cancel", async () => { try { await post(`/v1/jobs/${job.id}/cancel`); } catch (problem) { say(problem.message); } await draw(); }, { "aria-label": `Cancel ${job.id}` })
        : job.result && OPENED[job.kind] ? h("a", { href: `#/${OPENED[job.kind]}/${job.result.split("/").at(-1)}` }, `open the ${job.kind === "fleet" ? "fleet" : "plan"}`) : job.problem?.detail ?? "–"]))
      : h("p", {}, "No jobs. Plans asked for on this page become jobs."));
    return items.some((job) => ["queued", "running"].includes(job.state));
  }
  const look = async () => {
    while (!signal.aborted) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
      if (signal.aborted) return;
      if (!document.hidden) await draw().catch(() => {});
    }
  };
  await draw();
  look();
  return h("section.card", {}, h("h1", {}, "Jobs"), place, h("p.buttons", {}, copyButton(() => curlOf("GET", "/v1/jobs"), "this list as a curl command", "Copy as curl")));
}
