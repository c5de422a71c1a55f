// A question that takes seconds: a button, what it is doing, its answer or why there is none, and its curl command.
import { Problem, curlOf, post } from "./api.js";
import { button, copyButton, empty, h, say } from "./dom.js";
import { problemCard } from "./form.js";

/** Posts body() to path and hands the answer to show(answer), whose nodes go into the panel. */
export function question(label, path, body, show, { signal, auto = false } = {}) {
  const panel = h("div", {});
  let running = null;
  async function ask() {
    running?.abort();
    const mine = running = new AbortController();
    signal?.addEventListener("abort", () => mine.abort());
    const asked = body();
    if (asked === null) return;
    const began = Date.now();
    const elapsed = h("span", {}, "0 s");
    const clock = setInterval(() => { elapsed.textContent = `${((Date.now() - began) / 1000).toFixed(0)} s`; }, 500);
    empty(panel, h("p.loading", {}, "Working, ", elapsed, " ", button("Stop waiting", () => mine.abort(), { class: "quiet" })), h("progress", { "aria-label": "Working" }));
    try {
      const answer = await post(path, asked, { signal: mine.signal });
      empty(panel, show(answer, asked), h("p.buttons", {}, copyButton(() => curlOf("POST", path, asked), "this question as a curl command", "Copy as curl")));
      say("The answer is there.");
    } catch (problem) {
      if (problem.name === "AbortError") { if (running === mine) empty(panel, h("p.muted", {}, "Stopped.")); return; }
      if (!(problem instanceof Problem)) throw problem;
      empty(panel, problemCard(problem));
      say(problem.message);
    } finally {
      clearInterval(clock);
    }
  }
  if (auto) ask();
  return { start: button(label, ask, { class: "primary" }), panel, ask };
}
