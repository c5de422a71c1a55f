// From the plan to servers that run: files for a target, what they leave open, and a command that checks.
import { Problem, curlOf, get } from "./api.js";
import { copyButton, download, empty, field, h, select } from "./dom.js";
import { problemCard } from "./form.js";

const TARGETS = [["vllm", "vLLM scripts"], ["sglang", "SGLang scripts"], ["trtllm", "TensorRT-LLM scripts"], ["llama-cpp", "llama.cpp scripts"], ["compose", "Docker Compose"], ["kubernetes", "Kubernetes"], ["kserve", "KServe"], ["dynamo", "Dynamo"],
  ["skypilot", "SkyPilot"], ["dstack", "dstack"], ["router", "Router weights, Envoy"], ["benchmark", "Benchmark of the plan"]];

export function runTab(answer, { signal, parameters, navigate }) {
  if (!answer.plan.length) return h("section.card", {}, h("p", {}, "There is no plan, so nothing to start."));
  const target = select(TARGETS, parameters.get("target") ?? "vllm", { id: "run-target", onchange: () => { navigate(`#/plan/${answer.id}/run?target=${target.value}`, { replace: true, silent: true }); draw(); } });
  const panel = h("div", { "aria-live": "polite" });
  async function draw() {
    const path = `/v1/recommendations/${answer.id}/deployments`;
    empty(panel, h("p.loading", {}, "Writing the files…"));
    try {
      const said = await get(path, { target: target.value }, { signal });
      empty(panel,
        h("p.muted", {}, `Options of ${Object.entries(said.engine_versions).map(([name, version]) => `${name} ${version}`).join(", ") || "no engine"}.`),
        said.files.map((file) => h("article.file", {}, h("div.spread", {}, h("h3", {}, h("code", {}, file.path)), h("span.buttons", {},
          copyButton(file.content, file.path), h("button.quiet", { type: "button", onclick: () => download(file.path.split("/").at(-1), file.content, "text/plain"), "aria-label": `Download ${file.path}` }, "Download"))),
        h("pre", { tabindex: "0" }, file.content))),
        said.notes.length ? [h("h3", {}, "Left to you"), h("ul", {}, said.notes.map((note) => h("li", {}, h("strong", {}, note.about), `: ${note.text}`)))] : null,
        h("h3", {}, "Does it run as planned?"), h("pre", { tabindex: "0" }, said.check),
        h("p.buttons", {}, copyButton(said.check, "the check"), copyButton(curlOf("GET", `${path}?target=${target.value}`), "this as a curl command", "Copy as curl")));
    } catch (problem) {
      if (problem.name === "AbortError") return;
      if (!(problem instanceof Problem)) throw problem;
      empty(panel, problemCard(problem));
    }
  }
  draw();
  return h("section.card", {}, h("h2", {}, "Files that start these servers"), field("For", target), panel);
}
