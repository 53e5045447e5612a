// Draws the figures of <figure data-chart>. The table below each has the same figures.
import { placeOf } from "./times.js";

const drawn = new WeakMap();

function colours() {
  const style = getComputedStyle(document.documentElement);
  return [1, 2, 3, 4, 5, 6, 7, 8].map((n) => style.getPropertyValue(`--line-${n}`).trim());
}

const markColours = { setting: "--muted", deploy: "--line-1", alert: "--danger" };

function marks(figure) {
  return (plot) => {
    const draw = plot.ctx;
    const style = getComputedStyle(document.documentElement);
    draw.save();
    draw.setLineDash([]); // that of a limit may be left
    for (const mark of JSON.parse(figure.dataset.chart).marks || []) {
      draw.strokeStyle = style.getPropertyValue(markColours[mark.kind]);
      const x = Math.round(plot.valToPos(mark.at, "x", true));
      if (x < plot.bbox.left || x > plot.bbox.left + plot.bbox.width) continue;
      draw.beginPath();
      draw.moveTo(x, plot.bbox.top);
      draw.lineTo(x, plot.bbox.top + plot.bbox.height);
      draw.stroke();
    }
    draw.restore();
  };
}

// zoom puts the range that somebody dragged over into the URL.
function zoom(plot) {
  const { left, width } = plot.select;
  if (width < 5) return;
  const url = new URL(location.href);
  for (const [name, x] of [["from", left], ["to", left + width]]) {
    url.searchParams.set(name, new Date(plot.posToVal(x, "x") * 1000).toISOString());
  }
  location.href = url;
}

// wide takes the range out of the URL again, after a double click.
function wide() {
  const url = new URL(location.href);
  if (!url.searchParams.has("from") && !url.searchParams.has("to")) return;
  for (const name of ["from", "to"]) url.searchParams.delete(name);
  location.href = url;
}

// lone finds the values between gaps, which a line does not show.
export function lone(values) {
  const gap = (i) => values[i] == null;
  return [...values.keys()].filter((i) => !gap(i) && gap(i - 1) && gap(i + 1));
}

// The clock of the time axis has 24 hours, in the zone that the person chose.
const zone = document.getElementById("zone");
const at = (seconds) => {
  const place = placeOf(zone.value);
  return place ? uPlot.tzDate(new Date(seconds * 1000), place) : new Date(seconds * 1000);
};
const written = (form, seconds) => uPlot.fmtDate(form)(at(seconds));

// ticks writes the times of the axis, and the date below the first of each day.
export function ticks(plot, splits, axis, space, step) {
  let day = "";
  return splits.map((seconds) => {
    if (step >= 86400) return written("{MM}-{DD}", seconds);
    const before = day;
    day = written("{YYYY}-{MM}-{DD}", seconds);
    return written(step < 60 ? "{HH}:{mm}:{ss}" : "{HH}:{mm}", seconds) + (day === before ? "" : "\n" + day);
  });
}

function options(figure, chart, width) {
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue("--ink").trim();
  const grid = { stroke: style.getPropertyValue("--rule").trim(), width: 1 };
  const palette = colours();
  const series = chart.lines.map((line, i) => ({
    label: line.name,
    stroke: palette[i % palette.length],
    fill: chart.kind === "area" && !line.dashed ? palette[i % palette.length] + "33" : undefined,
    dash: line.dashed ? [6, 4] : undefined,
    paths: chart.kind === "bar" && !line.dashed ? uPlot.paths.bars({ size: [0.9, 100] }) : undefined,
    width: 2,
    points: { show: false, size: 5, fill: palette[i % palette.length], filter: (plot, line) => lone(plot.data[line]) },
    spanGaps: false,
  }));
  return {
    width, height: 200, tzDate: at, series: [{ value: (plot, seconds) => (seconds == null ? "--" : written("{YYYY}-{MM}-{DD} {HH}:{mm}:{ss}", seconds)) }, ...series],
    axes: [{ stroke: ink, grid, ticks: grid, values: ticks }, { stroke: ink, grid, ticks: grid, size: 60 }],
    scales: { y: { range: (_, low, high) => [0, high > 0 ? high * 1.1 : 1] } },
    cursor: { sync: { key: "console" }, drag: { setScale: false }, bind: { dblclick: () => wide } },
    hooks: { draw: [marks(figure)], setSelect: [zoom] },
  };
}

function draw(figure) {
  const text = figure.dataset.chart;
  const theme = document.documentElement.dataset.theme;
  const before = drawn.get(figure);
  const box = figure.querySelector(".plot");
  const width = Math.max(box.clientWidth, 200);
  const chart = JSON.parse(text);
  const data = [chart.times, ...chart.lines.map((line) => line.values)];
  const same = before && before.theme === theme && before.width === width && before.zone === zone.value && before.lines === chart.lines.length;
  if (same && before.text === text) return;
  if (same) before.plot.setData(data);
  else {
    if (before) before.plot.destroy();
    box.replaceChildren();
    drawn.set(figure, { plot: new uPlot(options(figure, chart, width), data, box), theme, width, zone: zone.value, lines: chart.lines.length });
  }
  drawn.get(figure).text = text;
}

export function refreshCharts(root) {
  for (const figure of root.querySelectorAll("figure[data-chart]")) draw(figure);
}

addEventListener("resize", () => refreshCharts(document));
zone.addEventListener("change", () => refreshCharts(document));
