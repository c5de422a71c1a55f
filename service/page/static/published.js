// Lines of a plan that rest on speeds which others published: tokens by their makers, machines that serve one stream at a time.
import { h, figure, percent, usd } from "./dom.js";

const MS = { ttft_ms: "TTFT", tpot_ms: "TPOT" };

/** The lines, or null where the plan has none. */
export function publishedLines({ published_lines: lines }) {
  if (!lines?.length) return null;
  return h("section.card", {}, h("h2", {}, "By published speeds"), h("ul.movers", {}, lines.map((line) => h("li", {},
    h("strong", {}, line.by_the_token ? `Tokens of ${line.by_the_token.id}` : `${line.nodes} × ${line.node}`),
    `: ${percent(line.share_fraction)} of ${line.workload}, ${usd(line.usd_per_hour)}/h, on ${line.device}. `,
    Object.entries(MS).map(([name, text]) => `${text} ${figure(line[name].expected)} (${figure(line[name].low)}–${figure(line[name].high)}) ms`).join(", "), "."))));
}
