// Charts of the fleet's use. Plotly is big, so it is fetched when the charts come near the window.

import { colour, toast } from "tidepool/base";
import { dress, library, options } from "tidepool/plotly";

const section = document.getElementById("charts");
const palette = ["#7cc5e8", "#f2b661", "#8ccf9b", "#d9a6dc", "#f19e8e", "#b3b3f0", "#cdc56f", "#9fb6c0"];
let series = null;
let now = null;

export function drawCharts() {
  new IntersectionObserver((entries, watcher) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    watcher.disconnect();
    start();
  }, { rootMargin: "300px" }).observe(section);
}

async function start() {
  try {
    await Promise.all([library(section.dataset.plotly), load()]);
  } catch {
    return toast("The charts could not be loaded. Reload the page to try again.");
  }
  for (const figure of section.querySelectorAll(".chart")) figure.replaceChildren();
  draw();
  setInterval(async () => { if (!document.hidden) { await load().catch(() => {}); draw(); } }, 60000);
  document.addEventListener("theme", draw);
}

async function load() {
  const answer = await fetch(section.dataset.history);
  if (!answer.ok) throw new Error(answer.status);
  series = await answer.json();
}

/** The newest figure of use, in devices; drawn as the end of its line, at most every five seconds. */
let drawn = 0;
export function follow(used) {
  now = used;
  if (series && window.Plotly && Date.now() - drawn > 5000) draw();
}

function layout() {
  const narrow = section.clientWidth < 600;
  // Before the first minute is over nothing is known, and Plotly would show the year 2000.
  const hours = Number(new URL(section.dataset.history, location).searchParams.get("hours"));
  const empty = series.at.length ? {} : { range: [new Date(Date.now() - hours * 3600000), new Date()] };
  const { axis, layout: common } = dress();
  return {
    ...common, margin: { l: 38, r: 14, t: 34, b: 42 }, hovermode: "x unified",
    legend: { ...common.legend, font: { size: 12 }, traceorder: "normal", itemclick: false, itemdoubleclick: false },
    xaxis: { ...axis, ...empty, type: "date", showgrid: false, nticks: narrow ? 4 : 6, tickangle: 0, hoverformat: "%a %H:%M" }, yaxis: { ...axis, rangemode: "tozero", nticks: 5 },
  };
}

function draw() {
  drawn = Date.now();
  const at = series.at.map((moment) => new Date(moment));
  const capacity = { x: at, y: series.devices, name: "devices", mode: "lines", line: { color: colour("line-strong"), width: 1.5, dash: "dot" } };
  const tenants = Object.entries(series.tenants).map(([name, y]) => {
    const shade = palette[series.colours[name]] ?? colour("line-strong");
    return { x: at, y, name, stackgroup: "held", mode: "lines", line: { width: 0.5, color: shade, shape: "hv" }, fillcolor: `${shade}${shade.startsWith("#") ? "d9" : ""}` };
  });
  window.Plotly.react("by-tenant", [...tenants, capacity], layout(), options);
  const use = [...series.utilisation];
  const moments = [...at];
  if (now !== null && at.length) { use.push(now); moments.push(new Date()); }
  const accent = colour("accent");
  window.Plotly.react("use", [
    capacity,
    { x: at, y: series.allocated, name: "allocated", mode: "lines", line: { color: colour("waiting"), width: 1.5, shape: "hv" } },
    { x: moments, y: use, name: "used", mode: "lines", line: { color: accent, width: 2 }, fill: "tozeroy", fillcolor: accent.replace("rgb(", "rgba(").replace(")", ", .14)") },
  ], layout(), options);
}
