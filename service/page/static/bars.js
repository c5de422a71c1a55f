// Bars: what moves a figure (tornado), how far draws spread, and stacks over time. A table beside each says the same.
import { ruled, scale } from "./chart.js";
import { figure, h } from "./dom.js";

const WIDTH = 760, LABELS = 232, RIGHT = 24, ROW = 26, TOP = 8, AXIS = 44, MOST_LETTERS = 36;

const short = (text) => (text.length > MOST_LETTERS ? `${text.slice(0, MOST_LETTERS - 1)}…` : text);
const legend = (entries) => h("ul.legend", {}, entries.map(([tone, text]) => h("li", {}, h(`span.swatch.${tone}`, {}), text)));

/**
 * Ranges on one axis, a row each. rows: [{name, title, parts: [{from, to, tone, isThin}], marks: [{at, tone}]}].
 * options: title, x (axis name with unit), format, centre: {at, name}, legend: [[tone, text]].
 */
export function ranges(rows, options) {
  const values = rows.flatMap((row) => [...row.parts.flatMap((p) => [p.from, p.to]), ...row.marks.map((m) => m.at)]).concat(options.centre ? [options.centre.at] : []);
  if (!values.length) return null;
  const height = TOP + rows.length * ROW + AXIS, x = scale(values, LABELS, WIDTH - RIGHT, false, false);
  const bottom = TOP + rows.length * ROW;
  const drawn = x.ticks.map((tick) => [
    h("line.grid", { x1: x.at(tick), x2: x.at(tick), y1: TOP, y2: bottom }),
    h("text.tick", { x: x.at(tick), y: bottom + 16, "text-anchor": "middle" }, options.format(tick))]);
  rows.forEach((row, i) => {
    const middle = TOP + i * ROW + ROW / 2;
    drawn.push(h("text.row", { x: LABELS - 10, y: middle + 4, "text-anchor": "end" }, h("title", {}, row.name), short(row.name)));
    const shapes = row.parts.map((part) => {
      const half = part.isThin ? 2 : 8, from = Math.min(x.at(part.from), x.at(part.to));
      return h(`rect.fill.${part.tone}`, { x: from, y: middle - half, width: Math.max(1, Math.abs(x.at(part.to) - x.at(part.from))), height: 2 * half });
    });
    shapes.push(...row.marks.map((mark) => h(`line.mark.${mark.tone}`, { x1: x.at(mark.at), x2: x.at(mark.at), y1: middle - 10, y2: middle + 10 })));
    drawn.push(h("g", {}, h("title", {}, row.title), shapes));
  });
  if (options.centre) drawn.push(h("line.target", { x1: x.at(options.centre.at), x2: x.at(options.centre.at), y1: TOP, y2: bottom }));
  drawn.push(h("text.axis", { x: (LABELS + WIDTH - RIGHT) / 2, y: bottom + 36, "text-anchor": "middle" }, options.x));
  return h("figure.figure", {}, h("figcaption", {}, options.title),
    h("svg.chart", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": `${options.title}. The table below has every value.` }, h("title", {}, options.title), drawn),
    options.legend ? legend(options.legend) : null);
}

/** What moves a figure: rows [{name, atLow, atHigh}], largest effect first; centre: the figure itself. */
export function tornado(rows, centre, options) {
  const { format } = options;
  return ranges(rows.map((row) => ({
    name: row.name, title: `${row.name}: ${format(row.atLow)} with it down, ${format(row.atHigh)} with it up`,
    parts: [{ from: centre, to: row.atLow, tone: "s0" }, { from: centre, to: row.atHigh, tone: "s1" }], marks: [],
  })), { ...options, centre: { at: centre }, legend: [["s0", options.down ?? "input down"], ["s1", options.up ?? "input up"]] });
}

const STACK_HEIGHT = 300, STACK_LEFT = 70, STACK_RIGHT = 84, STACK_BOTTOM = 46, STACK_TOP = 14, LEAST_OUTLINED = 8;

/**
 * Stacks side by side, each as wide as it lasts. columns: [{from, to, values: [by layer], line, label}].
 * options: title, x, y, layers (names), line (name of what is drawn over them, on the axis at the right), hint, xTicks: [[value, text]].
 */
export function stacked(columns, options) {
  if (!columns.length) return h("p.muted", {}, "Nothing to draw.");
  const right = WIDTH - STACK_RIGHT, bottom = STACK_HEIGHT - STACK_BOTTOM;
  const first = columns[0].from, last = columns.at(-1).to;
  const x = { ...scale([first, last], STACK_LEFT, right, false, false), at: (value) => STACK_LEFT + ((value - first) / (last - first || 1)) * (right - STACK_LEFT) };
  const y = scale([0, ...columns.map((c) => c.values.reduce((sum, v) => sum + v, 0))], bottom, STACK_TOP, false, true);
  const line = scale([0, ...columns.map((c) => c.line)], bottom, STACK_TOP, false, true);
  const drawn = [
    y.ticks.map((tick) => [h("line.grid", { x1: STACK_LEFT, x2: right, y1: y.at(tick), y2: y.at(tick) }), h("text.tick", { x: STACK_LEFT - 8, y: y.at(tick) + 4, "text-anchor": "end" }, figure(tick))]),
    line.ticks.map((tick) => h("text.tick", { x: right + 8, y: line.at(tick) + 4 }, figure(tick))),
    (options.xTicks ?? x.ticks.filter((tick) => tick >= first && tick <= last).map((tick) => [tick, figure(tick)])).map(([tick, text]) => h("text.tick", { x: x.at(tick), y: bottom + 18, "text-anchor": "middle" }, text))];
  for (const column of columns) {
    let under = 0;
    const parts = column.values.map((value, i) => {
      if (value <= 0) return null;
      const width = Math.max(0.5, x.at(column.to) - x.at(column.from));
      const rect = h(`rect.fill.s${i % 5}${width > LEAST_OUTLINED ? ".layer" : ""}`, { x: x.at(column.from), width, y: y.at(under + value), height: y.at(under) - y.at(under + value) });
      under += value;
      return rect;
    });
    drawn.push(h("g", {}, h("title", {}, column.label), parts));
  }
  drawn.push(h("path.demand", { d: columns.map((c, i) => `${i ? `V${line.at(c.line)}` : `M${x.at(c.from)} ${line.at(c.line)}`}H${x.at(c.to)}`).join("") }));
  drawn.push(
    h("text.axis", { x: (STACK_LEFT + right) / 2, y: STACK_HEIGHT - 8, "text-anchor": "middle" }, options.x),
    h("text.axis", { x: -(STACK_TOP + bottom) / 2, y: 14, transform: "rotate(-90)", "text-anchor": "middle" }, options.y),
    h("text.axis", { x: -(STACK_TOP + bottom) / 2, y: WIDTH - 8, transform: "rotate(-90)", "text-anchor": "middle" }, options.line));
  const rule = h("line.rule", { y1: STACK_TOP, y2: bottom, visibility: "hidden" });
  const readout = h("p.readout", { "aria-live": "polite" }, options.hint ?? "");
  const middles = columns.map((c) => (c.from + c.to) / 2);
  const used = options.layers.map((name, i) => [`s${i % 5}`, name, columns.some((c) => c.values[i] > 0)]).filter(([, , isUsed]) => isUsed);
  return h("figure.figure", {}, h("figcaption", {}, options.title),
    h("svg.chart", { viewBox: `0 0 ${WIDTH} ${STACK_HEIGHT}`, role: "img", tabindex: "0", "aria-label": `${options.title}. The table below has every value.`,
      ...ruled(x, middles, rule, (stop) => { readout.textContent = columns[middles.indexOf(stop)].label; }) }, h("title", {}, options.title), drawn, rule),
    h("ul.legend", {}, used.map(([tone, name]) => h("li", {}, h(`span.swatch.${tone}`, {}), name)), h("li", {}, h("span.swatch.line", {}), options.line)), readout);
}

/** The 24 hours of a day as bars, in per cent of the peak. */
export function hours(values, title) {
  const wide = 100 / values.length;
  return h("figure.day", {}, h("figcaption", {}, title), h("svg", { width: "100%", height: "44", viewBox: "0 0 100 44", preserveAspectRatio: "none", role: "img", "aria-label": `${title}, % of the peak from midnight on: ${values.map((v) => figure(v)).join(" ")}` },
    h("line.grid", { x1: "0", x2: "100", y1: "43.5", y2: "43.5" }), values.map((value, i) => h("rect.fill.s0", { x: i * wide + wide * 0.08, width: wide * 0.84, y: 43 - (42 * Math.min(100, value)) / 100, height: (42 * Math.min(100, value)) / 100 }))));
}
