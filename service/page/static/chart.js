// Lines, steps and points as SVG. One rule reads every series on hover or with the arrow keys; labels stand at the ends of lines.
import { figure, h } from "./dom.js";

const ROUNDING = 1e-3;  // what is measured may stand at the very end of an interval that was widened to hold it
const WIDTH = 760, HEIGHT = 320, LEFT = 96, RIGHT = 150, TOP = 16, BOTTOM = 46;

function ticks(low, high, isLog) {
  if (isLog) {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1)
      for (const step of [1, 2, 5]) {
        const value = step * 10 ** power;
        if (value >= low * 0.999 && value <= high * 1.001) found.push(value);
      }
    return found.length > 7 ? found.filter((value) => Math.abs(Math.log10(value) % 1) < 1e-9) : found;
  }
  const rough = (high - low) / 5 || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((s) => s * power >= rough) * power;
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step / 1e6; value += step) found.push(value);
  return found;
}

export function scale(values, from, to, isLog, withZero) {
  let low = Math.min(...values), high = Math.max(...values);
  if (!isLog && withZero) low = Math.min(0, low);
  if (low === high) [low, high] = isLog ? [low / 2, high * 2] : [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
  if (isLog) [low, high] = [low / 1.08, high * 1.08]; else if (!withZero || low < 0) low -= (high - low) * 0.03;
  if (!isLog) high += (high - low) * 0.04;
  const t = isLog ? Math.log10 : (x) => x;
  const at = (value) => from + ((t(value) - t(low)) / (t(high) - t(low))) * (to - from);
  return { at, ticks: ticks(low, high, isLog), low, high };
}

/** Mouse and arrow keys move a rule along the stops; show(stop) says what is there. */
export function ruled(x, stops, rule, show) {
  let at = -1;
  const go = (next) => {
    at = next;
    for (const end of ["x1", "x2"]) rule.setAttribute(end, x.at(stops[at]));
    rule.setAttribute("visibility", "visible");
    show(stops[at]);
  };
  return {
    onmousemove: (event) => {
      if (!stops.length) return;
      const box = event.currentTarget.getBoundingClientRect();
      const mouse = ((event.clientX - box.left) / box.width) * WIDTH;
      go(stops.reduce((best, stop, i) => (Math.abs(x.at(stop) - mouse) < Math.abs(x.at(stops[best]) - mouse) ? i : best), 0));
    },
    onkeydown: (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step || !stops.length) return;
      event.preventDefault();
      go(Math.min(stops.length - 1, Math.max(0, at + step)));
    },
  };
}

/**
 * series: [{name, points: [{x, y, low?, high?, label?, mark?, size?, tag?}], kind: "line" | "step" | "points"}]
 * options: title, x, y (axis names with units), xLog, yLog, yZero, format, formatX, target ({x, name}), diagonal, onPick(point).
 */
export function chart(series, options) {
  const shown = series.filter((one) => one.points.length);
  const all = shown.flatMap((one) => one.points);
  if (!all.length) return h("p.muted", {}, "Nothing to draw.");
  const format = options.format ?? figure, formatX = options.formatX ?? figure;
  const xs = all.map((p) => p.x).concat(options.target ? [options.target.x] : []);
  const ys = all.flatMap((p) => [p.y, p.low ?? p.y, p.high ?? p.y]);
  const both = options.diagonal ? xs.concat(ys) : null;
  const x = scale(both ?? xs, LEFT, WIDTH - RIGHT, options.xLog, false);
  const y = scale(both ?? ys, HEIGHT - BOTTOM, TOP, options.yLog, options.yZero);
  const parts = [];
  for (const tick of y.ticks) parts.push(
    h("line.grid", { x1: LEFT, x2: WIDTH - RIGHT, y1: y.at(tick), y2: y.at(tick) }),
    h("text.tick", { x: LEFT - 8, y: y.at(tick) + 4, "text-anchor": "end" }, format(tick)));
  for (const tick of x.ticks) parts.push(
    h("line.grid", { x1: x.at(tick), x2: x.at(tick), y1: TOP, y2: HEIGHT - BOTTOM }),
    h("text.tick", { x: x.at(tick), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, formatX(tick)));
  parts.push(
    h("text.axis", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 8, "text-anchor": "middle" }, options.x),
    h("text.axis", { x: -(TOP + HEIGHT - BOTTOM) / 2, y: 14, transform: "rotate(-90)", "text-anchor": "middle" }, options.y));
  if (options.diagonal) {
    const low = Math.max(x.low, y.low), high = Math.min(x.high, y.high);
    parts.push(h("line.target", { x1: x.at(low), y1: y.at(low), x2: x.at(high), y2: y.at(high) }));
  }
  if (options.target) parts.push(
    h("line.target", { x1: x.at(options.target.x), x2: x.at(options.target.x), y1: TOP, y2: HEIGHT - BOTTOM }),
    h("text.tick", { x: x.at(options.target.x) + 4, y: TOP + 10 }, options.target.name));
  const ends = [], tags = [];
  shown.forEach((one, i) => {
    const points = [...one.points].sort((a, b) => a.x - b.x);
    const colour = `s${i % 5}`;
    if (one.kind !== "points") {
      const path = points.map((p, n) => (n === 0 ? `M${x.at(p.x)} ${y.at(p.y)}` : one.kind === "step" ? `H${x.at(p.x)}V${y.at(p.y)}` : `L${x.at(p.x)} ${y.at(p.y)}`)).join("");
      parts.push(h(`path.series.${colour}`, { d: path }));
      const last = points.at(-1);
      ends.push({ name: one.name, x: x.at(last.x) + 8, y: y.at(last.y) + 4, colour });
    }
    if (one.kind !== "line") for (const p of points) {
      if (p.low !== undefined) parts.push(h(`line.whisker.${colour}`, { x1: x.at(p.x), x2: x.at(p.x), y1: y.at(p.low), y2: y.at(p.high) }));
      const label = p.label ?? `${formatX(p.x)}: ${format(p.y)}`;
      parts.push(h(`circle.point.${colour}${p.mark ? ".mark" : ""}${options.onPick ? ".pick" : ""}`, {
        cx: x.at(p.x), cy: y.at(p.y), r: p.size ?? (p.mark ? 7 : one.small ? 2.5 : 4.5), onclick: options.onPick && (() => options.onPick(p)),
      }, h("title", {}, label)));
      if (p.tag) tags.push({ text: p.tag, x: x.at(p.x), y: y.at(p.y), gap: (p.size ?? 5) + 4 });
    }
  });
  parts.push(...placed(tags));
  ends.sort((a, b) => a.y - b.y).forEach((end, i) => { if (i && end.y - ends[i - 1].y < 14) end.y = ends[i - 1].y + 14; });
  for (const end of ends) parts.push(h(`text.end.${end.colour}`, { x: end.x, y: end.y }, end.name.length > 20 ? `${end.name.slice(0, 19)}…` : end.name));

  const rule = h("line.rule", { y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
  const readout = h("p.readout", { "aria-live": "polite" }, options.hint ?? "");
  const lines = shown.filter((one) => one.kind !== "points" || shown.length === 1);
  const stops = [...new Set(lines.flatMap((one) => one.points.map((p) => p.x)))].sort((a, b) => a - b);
  const read = (stop) => {
    const values = lines.map((one) => {
      const point = [...one.points].sort((a, b) => a.x - b.x).filter((p) => p.x <= stop).at(-1);
      return point ? `${one.name} ${format(point.y)}` : null;
    }).filter(Boolean);
    readout.textContent = `${options.x} ${formatX(stop)}: ${values.join(" · ")}`;
  };
  const svg = h("svg.chart", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", tabindex: "0", "aria-label": `${options.title}. The table below has every value.`,
    ...ruled(x, stops, rule, read),
  }, h("title", {}, options.title), parts, rule);
  return h("figure.figure", {}, h("figcaption", {}, options.title), svg, readout);
}

/** Names beside points: one for points that lie on each other, at the side that has room, below the one before where they would meet. */
function placed(tags) {
  const width = (text) => text.length * 6.4, groups = [], taken = [];
  for (const tag of [...tags].sort((a, b) => b.gap - a.gap)) {
    const under = groups.find((one) => Math.hypot(one.x - tag.x, one.y - tag.y) < one.gap + 10);
    if (!under) groups.push({ ...tag, texts: [tag.text] });
    else if (!under.texts.includes(tag.text)) under.texts.push(tag.text);
  }
  return groups.sort((a, b) => a.y - b.y).map(({ x, y: at, gap, texts }) => {
    const text = texts.join(", "), isLeft = x + gap + width(text) > WIDTH - 4;
    const from = isLeft ? x - gap - width(text) : x + gap;
    let y = at + 4;
    for (const one of taken) if (from < one.to && one.from < from + width(text) && y < one.y + 13) y = one.y + 13;
    taken.push({ from, to: from + width(text), y });
    return h("text.tag", { x: isLeft ? x - gap : from, y, "text-anchor": isLeft ? "end" : "start" }, text);
  });
}

/** An interval against its target, on one axis from zero. */
/** kind: "target" is an upper limit, "measured" a value that should lie inside. */
export function intervalBar(value, target, unit, kind = "target") {
  const most = Math.max(value.high, target ?? 0) * 1.08;
  const at = (v) => `${Math.min(100, (100 * v) / most).toFixed(2)}%`;
  const isStated = target !== null && target !== undefined;
  const over = isStated && (kind === "target" ? value.expected > target : target < value.low * (1 - ROUNDING) || target > value.high * (1 + ROUNDING));
  const text = `expected ${figure(value.expected)}, nine of ten between ${figure(value.low)} and ${figure(value.high)} ${unit}${isStated ? `, ${kind} ${figure(target)} ${unit}` : ""}`;
  return h(`svg.interval${over ? ".over" : ""}`, { width: "100%", height: "22", role: "img", "aria-label": text },
    h("title", {}, text),
    h("rect.track", { x: "0", y: "9", width: "100%", height: "4", rx: "2" }),
    h("rect.range", { x: at(value.low), y: "6", width: `${(100 * (value.high - value.low)) / most}%`, height: "10", rx: "3" }),
    h("line.expected", { x1: at(value.expected), x2: at(value.expected), y1: "3", y2: "19" }),
    isStated ? h("line.target", { x1: at(target), x2: at(target), y1: "0", y2: "22" }) : null);
}

/** Parts of a whole side by side; the text beside it says the same. */
export function stack(parts, unit) {
  const total = parts.reduce((sum, part) => sum + part.value, 0) || 1;
  let from = 0;
  const shown = parts.filter((part) => part.value > 0).map((part, i) => {
    const rect = h(`rect.fill.s${i % 5}`, { x: `${(100 * from) / total}%`, y: "0", width: `${(100 * part.value) / total}%`, height: "16" }, h("title", {}, `${part.name}: ${figure(part.value)} ${unit}`));
    from += part.value;
    return { rect, part, i };
  });
  return h("div.stack", {},
    h("svg", { width: "100%", height: "16", role: "img", "aria-label": parts.map((p) => `${p.name} ${figure(p.value)} ${unit}`).join(", ") }, shown.map((one) => one.rect)),
    h("ul.legend", {}, shown.map(({ part, i }) => h("li", {}, h(`span.swatch.s${i % 5}`, {}), `${part.name} ${figure(part.value)} ${unit}`))));
}
