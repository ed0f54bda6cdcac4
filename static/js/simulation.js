// One simulation: its bar follows what is told of it, its figures are drawn when it is done.

import { colour, refresh, toast } from "tidepool/base";
import { listen } from "tidepool/socket";

const section = document.getElementById("simulation");
const place = document.getElementById("figures");
const shades = ["waiting", "active", "good", "bad"];
const dashes = ["dot", "solid"];
let figures = null;

function state() {
  return document.getElementById("panel").dataset.state;
}

function library() {
  if (window.Plotly) return Promise.resolve();
  return new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = section.dataset.plotly;
    script.addEventListener("load", done);
    script.addEventListener("error", failed);
    document.head.append(script);
  });
}

async function load() {
  if (figures || state() !== "done") return;
  figures = [];
  try {
    const [answer] = await Promise.all([fetch(section.dataset.charts), library()]);
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
  const ink = colour("ink-soft");
  const axis = { gridcolor: colour("line"), linecolor: colour("line"), zeroline: false, fixedrange: true, tickfont: { color: ink, size: 12 } };
  for (const [number, { data, layout }] of (figures ?? []).entries()) {
    // Nothing has no place on a logarithmic axis: half a minute stands for all that is less.
    const least = (x) => (layout.xaxis.type === "log" ? x.map((hours) => Math.max(hours, 0.01)) : x);
    const lines = data.map((trace, run) => ({ ...trace, x: least(trace.x), line: { ...trace.line, width: 2, color: colour(shades[run % shades.length]), dash: dashes[run] ?? "solid" } }));
    const font = { size: 12, color: ink };
    window.Plotly.react(`figure-${number}`, lines, {
      margin: { l: 52, r: 14, t: 34, b: 62 }, paper_bgcolor: "transparent", plot_bgcolor: "transparent", uirevision: "kept",
      font: { family: getComputedStyle(document.body).fontFamily, ...font },
      legend: { orientation: "h", yanchor: "bottom", y: 1.02, x: 0 }, showlegend: true,
      xaxis: { ...axis, ...layout.xaxis, title: { text: layout.xaxis.title.text, font } },
      yaxis: { ...axis, ...layout.yaxis, title: { text: layout.yaxis.title.text, font } },
    }, { displayModeBar: false, responsive: true });
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
