// The fleet: tiles that follow each second's telemetry, and charts beside them.

import { refresh } from "tidepool/base";
import { listen } from "tidepool/socket";
import { drawCharts, follow } from "tidepool/charts";
import { Survey } from "tidepool/survey";
import { walkTiles } from "tidepool/walk";

const fleet = document.getElementById("fleet");

// the metric lives in the address, so that a view can be shared
function choose(metric) {
  fleet.dataset.metric = metric;
  mark();
  const url = new URL(location);
  url.searchParams.set("metric", metric);
  history.replaceState(null, "", url);
  survey?.draw();
}
function mark() {
  for (const button of fleet.querySelectorAll("[data-metric-choice]")) {
    button.setAttribute("aria-pressed", String(button.dataset.metricChoice === fleet.dataset.metric));
  }
}
fleet.addEventListener("click", (event) => {
  const button = event.target.closest("[data-metric-choice]");
  if (button) choose(button.dataset.metricChoice);
});
document.addEventListener("htmx:afterSettle", () => { mark(); paint(); });
mark();

// telemetry: gathered as it comes, painted once a second
const newest = new Map();
let fresh = false;
const limited = (value) => Math.min(1, Math.max(0, value));
function paint() {
  let used = 0;
  for (const room of fleet.querySelectorAll("[data-node]")) {
    const devices = newest.get(room.dataset.node);
    for (const tile of room.querySelectorAll("[data-device]")) {
      const use = devices?.[tile.dataset.device];
      if (!use) {
        used += Number(tile.querySelector(".of-use")?.textContent || 0) / 100;
        continue;
      }
      const filled = Number(tile.dataset.bytes) ? limited(use.memory / Number(tile.dataset.bytes)) : 0;
      const share = limited(use.utilisation);
      used += share;
      tile.dataset.use = Math.round(share * 10);
      tile.dataset.memory = Math.round(filled * 10);
      write(tile.querySelector(".of-use"), Math.round(share * 100));
      write(tile.querySelector(".of-memory"), Math.round(filled * 100));
      tile.dataset.power = use.power ? `${Math.round(use.power)} W` : "";
    }
  }
  const total = document.getElementById("used");
  const devices = Number(total.dataset.devices);
  if (devices && newest.size) write(total, `${Math.round((100 * used) / devices)} %`);
  return used;
}
function write(element, words) {
  if (element && element.textContent !== String(words)) element.textContent = words;
}
setInterval(() => {
  if (!fresh || document.hidden) return;
  fresh = false;
  const used = paint();
  if (!("part" in fleet.dataset)) follow(used);
}, 1000);

// A large fleet tells of too much for one page: it asks every few seconds instead.
if ("polled" in fleet.dataset) {
  listen("/ws/fleet/?use=no", () => {});
} else {
  listen("/ws/fleet/", (event) => {
    if (event.kind === "use") {
      newest.set(event.node, event.devices);
      fresh = true;
    } else {
      refresh("floor");
    }
  }, () => refresh("floor"));
}

// what is under the pointer, and where else its job runs
const tip = document.createElement("div");
tip.id = "tip";
tip.hidden = true;
document.body.append(tip);
/** Show words above a place of the window, or below it where there is no room. */
function tell(words, left, top, bottom = top + 16) {
  tip.hidden = !words;
  if (!words) return;
  tip.textContent = words;
  tip.style.left = `${Math.max(8, Math.min(left, innerWidth - tip.offsetWidth - 8))}px`;
  const above = top - tip.offsetHeight - 8;
  tip.style.top = `${above > 60 ? above : bottom + 8}px`;
}
function point(tile) {
  for (const kin of fleet.querySelectorAll(".kin")) kin.classList.remove("kin");
  if (!tile) return tell(null);
  const lines = [tile.dataset.tip];
  const figure = (name) => tile.querySelector(`.of-${name}`)?.textContent;
  if (figure("use")) lines.push(`${figure("use")} % used · ${figure("memory")} % of memory${tile.dataset.power ? ` · ${tile.dataset.power}` : ""}`);
  const box = tile.getBoundingClientRect();
  tell(lines.join("\n"), box.left, box.top, box.bottom);
  if (tile.dataset.job) {
    for (const kin of fleet.querySelectorAll(`[data-job="${tile.dataset.job}"]`)) kin.classList.add("kin");
  }
}
const survey = fleet.dataset.survey ? new Survey(fleet, tell) : null;
if (survey) {
  fleet.addEventListener("surveyed", ({ detail: now }) => {
    if (!now) return;
    write(document.getElementById("used"), now.devices ? `${Math.round((100 * now.used) / now.devices)} %` : "—");
    write(document.getElementById("held"), now.devices ? `${Math.round((100 * now.held) / now.devices)} %` : "—");
    if (!("part" in fleet.dataset)) follow(now.used);
  });
} else {
  walkTiles(fleet);
  fleet.addEventListener("pointerover", (event) => point(event.target.closest(".tile")));
  fleet.addEventListener("pointerleave", () => point(null));
  fleet.addEventListener("focusin", (event) => point(event.target.closest(".tile")));
  fleet.addEventListener("focusout", () => point(null));
}

drawCharts();
