// Plotly for the pages that draw charts: fetched once, when the first is needed, and dressed alike.

import { colour } from "tidepool/base";

/** Fetch Plotly from an address, unless it is here. */
export function library(address) {
  if (window.Plotly) return Promise.resolve();
  return new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = address;
    script.addEventListener("load", done);
    script.addEventListener("error", failed);
    document.head.append(script);
  });
}

export const options = { displayModeBar: false, responsive: true };

/** What every chart's layout begins with, and every axis: the page's own colours and type. */
export function dress() {
  const ink = colour("ink-soft");
  const font = { family: getComputedStyle(document.body).fontFamily, color: ink, size: 12 };
  const axis = { gridcolor: colour("line"), linecolor: colour("line"), zeroline: false, fixedrange: true, tickfont: { color: ink, size: 12 } };
  const layout = {
    paper_bgcolor: "transparent", plot_bgcolor: "transparent", uirevision: "kept", font, showlegend: true,
    hoverlabel: { bgcolor: colour("surface"), bordercolor: colour("line"), font: { color: colour("ink") } },
    legend: { orientation: "h", yanchor: "bottom", y: 1.02, x: 0 },
  };
  return { axis, font, layout };
}
