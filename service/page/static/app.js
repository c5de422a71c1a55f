// Which view the address names. Everything that can be seen has an address that can be sent to a colleague.
import { accuracyView } from "./accuracy.js";
import { Problem, askToken, token } from "./api.js";
import { benchmarksView } from "./benchmarks.js";
import { catalogView } from "./catalog.js";
import { compareView } from "./compare.js";
import { costView } from "./cost.js";
import { empty, h, say } from "./dom.js";
import { estimateView } from "./estimate.js";
import { problemCard } from "./form.js";
import { fleetsView } from "./fleets.js";
import { glossaryView } from "./glossary.js";
import { jobsView } from "./jobs.js";
import { planView } from "./plan.js";
import { trainingView } from "./training.js";

const VIEWS = {
  plan: ["Plan", planView], estimate: ["Estimate", estimateView], compare: ["Compare", compareView], cost: ["Costs", costView], fleets: ["Fleets", fleetsView], training: ["Training", trainingView], accuracy: ["Accuracy", accuracyView],
  benchmarks: ["Benchmarks", benchmarksView], catalog: ["Catalog", catalogView], jobs: ["Jobs", jobsView], glossary: ["Glossary", async () => glossaryView()],
};
const main = document.getElementById("main");
let leaving = null;

/** silent: the address changes, the view stays. */
function navigate(hash, { replace = false, silent = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", hash);
  if (!silent) show();
}

async function show() {
  leaving?.abort();
  const mine = leaving = new AbortController();
  const [path, search = ""] = (location.hash || "#/plan").replace(/^#\/?/, "").split("?");
  const [name, ...parts] = path.split("/").filter(Boolean).map(decodeURIComponent);
  const [title, view] = VIEWS[name ?? "plan"] ?? VIEWS.plan;
  empty(document.getElementById("views"), Object.entries(VIEWS).map(([key, [text]]) => h("a", { href: `#/${key}`, "aria-current": text === title ? "page" : null }, text)));
  document.title = `${title} · Clusterwright`;
  main.setAttribute("aria-busy", "true");
  let node;
  try {
    node = await view({ parts, parameters: new URLSearchParams(search), navigate, signal: mine.signal });
  } catch (problem) {
    if (problem.name === "AbortError") return;
    if (!(problem instanceof Problem)) { console.error(problem); }
    node = h("section.card", {}, h("h1", {}, title), problem instanceof Problem ? problemCard(problem) : h("p", {}, String(problem)));
  }
  if (mine.signal.aborted) return;
  main.removeAttribute("aria-busy");
  empty(main, node);
  if (main.dataset.shown) { main.focus({ preventScroll: true }); window.scrollTo(0, 0); say(title); }
  main.dataset.shown = title;
}

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
});
document.getElementById("token").addEventListener("click", async () => { if (await askToken(false)) show(); });
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName)) return;
  const search = main.querySelector('input[type="search"]');
  if (search) { event.preventDefault(); search.focus(); }
});
window.addEventListener("popstate", show);
document.getElementById("token").classList.toggle("set", Boolean(token()));
show();
