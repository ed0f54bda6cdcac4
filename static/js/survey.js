// A fleet too large for an element a device: each cluster is a canvas of racks, drawn from figures
// that are fetched anew every few seconds. The page's lists of racks lead to the same places.

import { colour, resolve } from "tidepool/base";
import { walkSurvey } from "tidepool/walk";

const EVERY_MS = 5000;
const FEW = 6000;
const WIDEST = 16; // devices of a node in one row
const NAME = 0, STATUS = 1, JOB = 2, USE = 3, MEMORY = 4, SICK = 5;
const owners = ["#7cc5e8", "#f2b661", "#8ccf9b", "#d9a6dc", "#f19e8e", "#b3b3f0", "#cdc56f", "#9fb6c0"];

export class Survey {
  constructor(fleet, tell) {
    this.fleet = fleet;
    this.tell = tell;
    this.places = new Map(); // canvas -> where its racks lie
    this.figures = null;
    this.kin = 0;
    this.walked = null; // the node that the keyboard is at: canvas, rack and row
    walkSurvey(this);
    fleet.addEventListener("pointermove", (event) => this.point(event));
    fleet.addEventListener("pointerleave", () => this.tell(null));
    fleet.addEventListener("click", (event) => this.open(event));
    document.addEventListener("theme", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(fleet);
    this.load();
    setInterval(() => { if (!document.hidden) this.load(); }, EVERY_MS);
  }

  async load() {
    if (this.loading) return;
    this.loading = true;
    try {
      const answer = await fetch(this.fleet.dataset.survey);
      if (!answer.ok) throw new Error(answer.status);
      this.figures = await answer.json();
      this.draw();
      this.fleet.dispatchEvent(new CustomEvent("surveyed", { detail: this.figures }));
    } catch {
      this.fleet.dispatchEvent(new CustomEvent("surveyed", { detail: null }));
    } finally {
      this.loading = false;
    }
  }

  palette() {
    const low = getComputedStyle(this.fleet).getPropertyValue("--low");
    const high = getComputedStyle(this.fleet).getPropertyValue("--high");
    const ramp = [];
    for (let step = 0; step <= 10; step++) ramp.push(resolve(`color-mix(in oklab, ${high} ${step * 10}%, ${low})`));
    return { ramp, held: colour("quiet-wash"), line: colour("line-strong"), ink: colour("ink"), bad: colour("bad") };
  }

  draw() {
    if (!this.figures) return;
    const shades = this.palette();
    for (const cluster of this.figures.clusters) {
      const canvas = this.fleet.querySelector(`canvas[data-region="${CSS.escape(cluster.region)}"][data-cluster="${CSS.escape(cluster.cluster)}"]`);
      if (canvas?.clientWidth) this.drawCluster(canvas, cluster, shades);
    }
  }

  drawCluster(canvas, cluster, shades) {
    const side = this.figures.devices > FEW ? 6 : 9;
    const [racks, height] = layOut(cluster, canvas.clientWidth, side);
    const sharp = devicePixelRatio || 1;
    canvas.style.height = `${height}px`;
    const [wide, high] = [Math.round(canvas.clientWidth * sharp), Math.round(height * sharp)];
    if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
    const pen = canvas.getContext("2d");
    pen.setTransform(sharp, 0, 0, sharp, 0, 0);
    pen.clearRect(0, 0, canvas.clientWidth, height);
    for (const rack of racks) for (const row of rack.rows) this.drawNode(pen, row, side, shades);
    this.places.set(canvas, { racks, side, cluster });
    const at = this.walked?.canvas === canvas ? racks[this.walked.rack]?.rows[this.walked.row] : null;
    if (at) outline(pen, at, side, shades.ink);
  }

  drawNode(pen, { node, x, y }, side, shades) {
    const size = side - 1;
    pen.globalAlpha = node[STATUS] === "lost" ? 0.3 : 1;
    node[JOB].forEach((job, place) => {
      const [left, top] = [x + (place % WIDEST) * side, y + Math.floor(place / WIDEST) * side];
      const sick = node[SICK].includes(place);
      const fill = sick ? shades.bad : this.shade(node, place, job, shades);
      if (fill) {
        pen.fillStyle = fill;
        pen.fillRect(left, top, size, size);
      } else {
        pen.strokeStyle = shades.line;
        pen.lineWidth = 0.6;
        pen.strokeRect(left + 0.5, top + 0.5, size - 1, size - 1);
      }
      if (job > 0 && job === this.kin) {
        pen.strokeStyle = shades.ink;
        pen.lineWidth = 1.5;
        pen.strokeRect(left, top, size, size);
      }
    });
    if (node[STATUS] !== "well") {
      const width = Math.min(node[JOB].length, WIDEST) * side - 1;
      pen.globalAlpha = 1;
      pen.fillStyle = node[STATUS] === "lost" ? shades.bad : shades.ink;
      pen.fillRect(x, y + size / 2 - 0.5, width, 1);
    }
  }

  shade(node, place, job, shades) {
    const metric = this.fleet.dataset.metric;
    if (metric === "owner") {
      if (job === 0) return null;
      return job < 0 ? shades.held : owners[this.figures.colours[this.figures.jobs[job]?.[1]]] ?? shades.held;
    }
    const share = node[metric === "memory" ? MEMORY : USE][place];
    if (job === 0 && share <= 0) return null;
    return share < 0 ? shades.held : shades.ramp[Math.round(share / 10)];
  }

  /** The device under the pointer. */
  find(event) {
    const place = this.places.get(event.target);
    if (!place) return null;
    const { racks, side, cluster } = place;
    const { offsetX: x, offsetY: y } = event;
    for (const rack of racks) {
      if (x < rack.x || x > rack.x + rack.width || y < rack.y || y > rack.y + rack.height) continue;
      for (const row of rack.rows) {
        const [column, line] = [Math.floor((x - row.x) / side), Math.floor((y - row.y) / side)];
        const at = line * WIDEST + column;
        if (line >= 0 && line < row.lines && column >= 0 && column < WIDEST && at < row.node[JOB].length) return { cluster, rack, node: row.node, at };
      }
      return { cluster, rack };
    }
    return null;
  }

  point(event) {
    const found = this.find(event);
    const job = found?.node ? found.node[JOB][found.at] : 0;
    if (this.places.has(event.target)) event.target.style.cursor = found ? "pointer" : "";
    if (job !== this.kin) {
      this.kin = job;
      this.draw();
    }
    this.tell(found && this.words(found), event.clientX, event.clientY);
  }

  words({ rack, node, at }) {
    if (!node) return rack.name || "a rack without a name";
    const job = node[JOB][at];
    const known = this.figures.jobs[job];
    const lines = [`${node[NAME]} · device ${at}${node[STATUS] === "well" ? "" : ` · ${node[STATUS]}`}`];
    lines.push(node[SICK].includes(at) ? "sick" : known ? `${known[0]} of ${known[1]}` : job < 0 ? "used by another tenant" : "free");
    if (node[USE][at] >= 0) lines.push(`${node[USE][at]} % used · ${Math.max(0, node[MEMORY][at])} % of memory`);
    return lines.join("\n");
  }

  /** A node in words, for who does not see the drawing. */
  summary(rack, node) {
    const known = new Map();
    let [free, hidden] = [0, 0];
    for (const [place, job] of node[JOB].entries()) {
      if (node[SICK].includes(place)) continue;
      if (job > 0) known.set(job, (known.get(job) ?? 0) + 1);
      else if (job < 0) hidden += 1;
      else free += 1;
    }
    const lines = [...known].slice(0, 4).map(([job, count]) => `${this.figures.jobs[job]?.[0] ?? `job ${job}`} on ${count}`);
    if (known.size > 4) lines.push(`${known.size - 4} more jobs`);
    if (hidden) lines.push(`${hidden} used by other tenants`);
    if (free) lines.push(`${free} free`);
    if (node[SICK].length) lines.push(`${node[SICK].length} sick`);
    const used = node[USE].filter((share) => share >= 0);
    const mean = used.length ? `, ${Math.round(used.reduce((sum, share) => sum + share, 0) / used.length)} % used` : "";
    const status = node[STATUS] === "well" ? "" : `, ${node[STATUS] === "new" ? "not heard of yet" : node[STATUS]}`;
    const devices = node[JOB].length === 1 ? "1 device" : `${node[JOB].length} devices`;
    return `${node[NAME]} in ${rack.name || "a rack without a name"}${status}\n${devices}${mean}: ${lines.join(", ") || "none declared"}`;
  }

  open(event) {
    const found = this.find(event);
    if (!found) return;
    const job = found.node ? found.node[JOB][found.at] : 0;
    if (job > 0) return location.assign(`/jobs/${job}/`);
    this.openRack(found.cluster, found.rack);
  }

  openRack(cluster, rack) {
    const url = new URL(location);
    url.searchParams.set("region", cluster.region);
    url.searchParams.set("cluster", cluster.cluster);
    url.searchParams.set("rack", rack.name);
    location.assign(url);
  }
}

/** A frame around a node, as focus has one. */
function outline(pen, { node, x, y, lines }, side, ink) {
  pen.globalAlpha = 1;
  pen.strokeStyle = ink;
  pen.lineWidth = 2;
  pen.strokeRect(x, y, Math.min(node[JOB].length || 1, WIDEST) * side - 1, lines * side - 1);
}

/** Where each rack and node of a cluster lies, and how high all of it is. */
function layOut(cluster, width, side) {
  const racks = [];
  let [x, y, deepest] = [0, 0, 0];
  for (const [name, nodes] of cluster.racks) {
    const most = Math.max(1, ...nodes.map((node) => Math.min(node[JOB].length, WIDEST)));
    const lines = nodes.map((node) => Math.max(1, Math.ceil(node[JOB].length / WIDEST)));
    const size = { width: most * side, height: lines.reduce((sum, count) => sum + count, 0) * side };
    if (x && x + size.width > width) [x, y, deepest] = [0, y + deepest + side, 0];
    let top = y;
    const rows = nodes.map((node, index) => {
      const row = { node, x, y: top, lines: lines[index] };
      top += lines[index] * side;
      return row;
    });
    racks.push({ name, x, y, ...size, rows });
    x += size.width + side;
    deepest = Math.max(deepest, size.height);
  }
  return [racks, y + deepest];
}
