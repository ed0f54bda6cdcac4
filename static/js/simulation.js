// One simulation: its bar follows what is told of it, its figures are drawn when it is done.

import { colour, refresh, toast } from "tidepool/base";
import { dress, library, options } from "tidepool/plotly";
import { listen } from "tidepool/socket";

const section = document.getElementById("simulation");
const place = document.getElementById("figures");
const shades = ["waiting", "active", "good", "bad"];
const dashes = ["dot", "solid"];
let figures = null;

function state() {
  return document.getElementById("panel").dataset.state;
}

async function load() {
  if (figures || state() !== "done") return;
  figures = [];
  try {
    const [answer] = await Promise.all([fetch(section.dataset.charts), library(section.dataset.plotly)]);
    if (!answer.ok) throw new Error(answer.status);
    figures = (await answer.json()).figures;
  } catch {
    figures = null;
    return toast("The figures could not be loaded. Reload the page to try again.");
  }
  place.replaceChildren(...figures.map((figure, number) => {
    const card = document.createElement("figure");
    card.className = "card";
    card.innerHTML = `<header><h2></h2></header><div class="chart" id="figure-${number}"></div>`;
    card.querySelector("h2").textContent = figure.layout.title.text;
    return card;
  }));
  place.hidden = !figures.length;
  draw();
}

function draw() {
  if (!figures?.length) return;
  const { axis, font, layout: common } = dress();
  for (const [number, { data, layout }] of figures.entries()) {
    // Nothing has no place on a logarithmic axis: half a minute stands for all that is less.
    const least = (x) => (layout.xaxis.type === "log" ? x.map((hours) => Math.max(hours, 0.01)) : x);
    const lines = data.map((trace, run) => ({ ...trace, x: least(trace.x), line: { ...trace.line, width: 2, color: colour(shades[run % shades.length]), dash: dashes[run] ?? "solid" } }));
    window.Plotly.react(`figure-${number}`, lines, {
      ...common, margin: { l: 52, r: 14, t: 34, b: 62 },
      xaxis: { ...axis, ...layout.xaxis, title: { text: layout.xaxis.title.text, font } },
      yaxis: { ...axis, ...layout.yaxis, title: { text: layout.yaxis.title.text, font } },
    }, options);
  }
}

section.addEventListener("htmx:afterSettle", load);
document.addEventListener("theme", draw);
listen(`/ws/what-if/${section.dataset.simulation}/`, (event) => {
  const bar = document.getElementById("progress");
  if (event.state !== state() || !bar) return refresh("simulation");
  bar.value = event.share;
  document.getElementById("share").textContent = `${Math.round(100 * event.share)} %`;
}, () => { if (state() !== "done") refresh("simulation"); });
load();
