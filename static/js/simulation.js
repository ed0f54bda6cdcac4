// One simulation: its bar follows what is told of it, its figures are drawn when it is done.

import { refresh } from "tidepool/base";
import { load } from "tidepool/figures";
import { listen } from "tidepool/socket";

const section = document.getElementById("simulation");

function state() {
  return document.getElementById("panel").dataset.state;
}

function show() {
  if (state() === "done") load();
}

section.addEventListener("htmx:afterSettle", show);
listen(`/ws/what-if/${section.dataset.simulation}/`, (event) => {
  const bar = document.getElementById("progress");
  if (event.state !== state() || !bar) return refresh("simulation");
  bar.value = event.share;
  document.getElementById("share").textContent = `${Math.round(100 * event.share)} %`;
}, () => { if (state() !== "done") refresh("simulation"); });
show();
