// The devices and nodes of the fleet by the keyboard: one stop for Tab, arrows walk, Enter opens.

const OPEN = "a[href], .tile";
const STEPS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

/** Tiles and names of nodes in a plan of elements; it is drawn anew now and then. */
export function walkTiles(fleet) {
  let last = "";
  const name = (item) => `${item.closest("[data-node]").dataset.node}/${item.dataset.device ?? ""}`;
  const items = () => [...fleet.querySelectorAll(".room")].flatMap((room) => [...room.querySelectorAll(OPEN)]);

  function arrange() {
    const all = items();
    const here = all.find((item) => name(item) === last) ?? all[0];
    for (const item of all) item.tabIndex = item === here ? 0 : -1;
    return here;
  }

  fleet.addEventListener("focusin", (event) => {
    const item = event.target.closest(".room :is(a[href], .tile)");
    if (!item) return;
    last = name(item);
    arrange();
  });
  fleet.addEventListener("keydown", (event) => {
    const from = event.target.closest(".room :is(a[href], .tile)");
    if (!from || event.ctrlKey || event.metaKey || event.altKey) return;
    const to = next(items(), from, event.key);
    if (!to) return;
    event.preventDefault();
    to.focus();
  });
  // What was drawn anew has lost its focus: give it back to the one of the same name.
  let held = false;
  // Another panel may be drawn anew in between: what was held stays so, unless focus has gone elsewhere.
  document.addEventListener("htmx:beforeSwap", () => { held ||= Boolean(document.activeElement?.closest?.("#fleet .room")); });
  document.addEventListener("htmx:afterSettle", () => {
    const here = arrange();
    if (held && document.activeElement === document.body) here?.focus({ preventScroll: true });
    held = false;
  });
  arrange();
}

function next(items, from, key) {
  const at = items.indexOf(from);
  if (key === "Home") return items[0];
  if (key === "End") return items[items.length - 1];
  const [across, down] = STEPS[key] ?? [0, 0];
  if (across) return items[at + across];
  return down ? nearest(items, from, down) : null;
}

/** The closest of the next line above or below. */
function nearest(items, from, down) {
  const own = from.getBoundingClientRect();
  let [best, least] = [null, Infinity];
  for (const item of items) {
    const box = item.getBoundingClientRect();
    const away = down > 0 ? box.top - own.bottom : own.top - box.bottom;
    if (away < -2) continue;
    const distance = away * 4 + Math.abs(box.left + box.width / 2 - own.left - own.width / 2);
    if (distance < least) [best, least] = [item, distance];
  }
  return best;
}

/** Nodes of clusters that are drawn on canvases; what is reached is outlined, and told. */
export function walkSurvey(survey) {
  const told = document.createElement("p");
  told.className = "unseen";
  told.setAttribute("aria-live", "polite");
  document.body.append(told);
  for (const canvas of survey.fleet.querySelectorAll("canvas")) {
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "application");
    canvas.setAttribute("aria-roledescription", "map of nodes");
    canvas.setAttribute("aria-describedby", "plan-keys");
  }

  function show(canvas, rack, row) {
    survey.walked = { canvas, rack, row };
    survey.draw();
    const { racks } = survey.places.get(canvas);
    const { node, x, y } = racks[rack].rows[row];
    told.textContent = survey.summary(racks[rack], node);
    const box = canvas.getBoundingClientRect();
    if (box.top + y < 80 || box.top + y > innerHeight - 40) scrollBy({ top: box.top + y - innerHeight / 2 });
    survey.tell(told.textContent, box.left + x, canvas.getBoundingClientRect().top + y);
  }

  function enter(target) {
    if (!survey.places.get(target)?.racks.length || !target.matches(":focus-visible")) return;
    const before = survey.last?.canvas === target ? survey.last : { rack: 0, row: 0 };
    show(target, before.rack, before.row);
  }

  survey.fleet.addEventListener("focusin", ({ target }) => enter(target));
  // The figures of a map that was reached before they came.
  survey.fleet.addEventListener("surveyed", () => { if (!survey.walked) enter(document.activeElement); });
  survey.fleet.addEventListener("focusout", () => {
    if (!survey.walked) return;
    survey.last = survey.walked;
    survey.walked = null;
    survey.tell(null);
    survey.draw();
  });
  survey.fleet.addEventListener("keydown", (event) => {
    const place = survey.places.get(event.target);
    if (!place?.racks.length || event.ctrlKey || event.metaKey || event.altKey) return;
    const { rack, row } = survey.walked ?? { rack: 0, row: 0 };
    const { node } = place.racks[rack].rows[row];
    if (event.key === "Enter") return location.assign(`/nodes/?q=${encodeURIComponent(node[0])}#${node[0]}`);
    if (event.key === " ") {
      event.preventDefault();
      return survey.openRack(place.cluster, place.racks[rack]);
    }
    const to = step(place.racks, rack, row, event.key);
    if (!to) return;
    event.preventDefault();
    show(event.target, ...to);
  });
}

/** Where a key leads from a node: up and down through its rack and on, sideways to the next rack. */
function step(racks, rack, row, key) {
  const end = racks.length - 1;
  const rows = (at) => racks[at].rows.length - 1;
  switch (key) {
    case "Home": return [0, 0];
    case "End": return [end, rows(end)];
    case "ArrowDown": return row < rows(rack) ? [rack, row + 1] : rack < end ? [rack + 1, 0] : null;
    case "ArrowUp": return row ? [rack, row - 1] : rack ? [rack - 1, rows(rack - 1)] : null;
    case "ArrowRight": return rack < end ? [rack + 1, Math.min(row, rows(rack + 1))] : null;
    case "ArrowLeft": return rack ? [rack - 1, Math.min(row, rows(rack - 1))] : null;
    default: return null;
  }
}
