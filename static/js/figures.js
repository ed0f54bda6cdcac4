// Figures of simulated runs laid over each other; each run has the stroke that its column shows.

import { colour, toast } from "tidepool/base";
import { dress, library, options } from "tidepool/plotly";

const SHADES = 8;
const dashes = ["solid", "dash", "dot", "dashdot"];
const place = document.getElementById("figures");
let figures = null;

/** Fetch the figures, once, and draw them. */
export async function load() {
  if (figures) return;
  figures = [];
  try {
    const [answer] = await Promise.all([fetch(place.dataset.charts), library(place.dataset.plotly)]);
    if (!answer.ok) throw new Error(answer.status);
    figures = (await answer.json()).figures;
  } catch {
    figures = null;
    return toast("The figures could not be loaded. Reload the page to try again.");
  }
  place.replaceChildren(...figures.map((figure, number) => {
    const card = document.createElement("figure");
    card.className = "card";
    card.innerHTML = `<header><h2></h2></header><div class="chart" id="figure-${number}" role="img"></div>`;
    card.querySelector("h2").textContent = figure.layout.title.text;
    card.querySelector("div").ariaLabel = `${figure.layout.title.text}: a line a run, ${figure.layout.xaxis.title.text} to the right, ${figure.layout.yaxis.title.text} upwards. The table above has the numbers.`;
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
    const few = data.length <= 4;
    const lines = data.map((trace, run) => ({
      ...trace, x: least(trace.x),
      line: { ...trace.line, width: 2, color: colour(`run-${run % SHADES}`), dash: dashes[Math.floor(run / SHADES) % dashes.length] },
    }));
    window.Plotly.react(`figure-${number}`, lines, {
      ...common, showlegend: few, margin: { l: 52, r: 14, t: few ? 34 : 14, b: 62 },
      xaxis: { ...axis, ...layout.xaxis, title: { text: layout.xaxis.title.text, font } },
      yaxis: { ...axis, ...layout.yaxis, title: { text: layout.yaxis.title.text, font } },
    }, options);
  }
}

document.addEventListener("theme", draw);
if (place && "ready" in place.dataset) load();
