// Every page: theme, keys, dialogs, times that grow older, and what went wrong on the way.

const root = document.documentElement;
const htmx = window.htmx;

export function token() {
  return JSON.parse(document.body.getAttribute("hx-headers"))["X-CSRFToken"];
}

/** Show a notice in the corner for a few seconds. */
export function toast(words, tone = "bad") {
  const notice = document.createElement("div");
  notice.className = `notice tone-${tone}`;
  notice.textContent = words;
  document.getElementById("toasts").append(notice);
  setTimeout(() => notice.remove(), 9000);
}

/** A colour token as the browser resolved it for the present theme. */
export function colour(name) {
  return resolve(`var(--${name})`);
}

/** Any colour of CSS, as a canvas takes it. */
export function resolve(words) {
  const probe = document.getElementById("probe");
  probe.style.color = words;
  return getComputedStyle(probe).color;
}

// times
function ago(seconds) {
  const distance = Math.abs(seconds);
  if (distance < 5) return "just now";
  for (const [unit, length] of [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]]) {
    if (distance >= length) {
      const count = `${Math.floor(distance / length)} ${unit}`;
      return seconds > 0 ? `${count} ago` : `in ${count}`;
    }
  }
  return "just now";
}
function renew() {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const words = ago((Date.now() - Date.parse(time.dateTime)) / 1000);
    if (time.textContent !== words) time.textContent = words;
  }
}
setInterval(renew, 5000);

// theme
for (const button of document.querySelectorAll("[data-choose-theme]")) {
  button.addEventListener("click", (event) => {
    event.preventDefault();
    const theme = button.dataset.chooseTheme;
    root.dataset.theme = theme;
    for (const other of document.querySelectorAll("[data-choose-theme]")) {
      other.setAttribute("aria-pressed", String(other === button));
    }
    const body = new FormData();
    body.set("theme", theme);
    fetch(button.form.action, { method: "POST", body, headers: { "X-CSRFToken": token() } });
    document.dispatchEvent(new CustomEvent("theme"));
  });
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  document.dispatchEvent(new CustomEvent("theme"));
});

// dialogs: a link with data-dialog opens its page's form in the dialog
const dialog = document.getElementById("dialog");
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.target === dialog.firstElementChild && !dialog.open) dialog.showModal();
});
document.addEventListener("click", (event) => {
  if (event.target === dialog || event.target.closest("[data-close]")) {
    if (dialog.open) event.preventDefault();
    dialog.close();
    document.getElementById("keys").close();
  }
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
  const copier = event.target.closest("[data-copy]");
  if (copier) {
    navigator.clipboard.writeText(document.querySelector(copier.dataset.copy).textContent.trim());
    toast("Copied.", "good");
  }
});

// what went wrong on the way to the portal
document.addEventListener("htmx:responseError", (event) => {
  const status = event.detail.xhr.status;
  toast(status === 403 ? "You may not do this." : `The portal answered ${status}. Reload the page to see how things stand.`);
});
const missed = new WeakSet();
document.addEventListener("htmx:sendError", ({ detail: { elt } }) => {
  // A browser on a node itself loses requests whenever the network of a job is made or taken away.
  if (elt.getAttribute("hx-trigger")?.includes("refresh")) {
    if (!missed.has(elt)) setTimeout(() => { missed.delete(elt); htmx.trigger(elt, "refresh"); }, 1000);
    return missed.add(elt);
  }
  toast("The portal did not answer. What you typed is still here; try again in a moment.");
});

// keys
const places = { f: "/", j: "/jobs/", n: "/nodes/", t: "/tenants/", p: "/promises/", k: "/tokens/", w: "/what-if/", s: "/jobs/new/" };
let going = 0;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  if (event.key === "?") return document.getElementById("keys").showModal();
  if (event.key === "/") {
    const search = document.querySelector("[data-search]");
    if (search) search.focus();
    else location.href = "/jobs/#search";
    return event.preventDefault();
  }
  if (Date.now() - going < 1500 && places[event.key]) location.href = places[event.key];
  going = event.key === "g" ? Date.now() : 0;
});
document.getElementById("show-keys")?.addEventListener("click", () => document.getElementById("keys").showModal());
if (location.hash === "#search") document.querySelector("[data-search]")?.focus();

// the zone of the browser, offered to those who have not chosen one
const zone = document.getElementById("browser-zone");
if (zone) zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone;

// A panel must not change under a finger: what was pressed would be gone before it is let go.
let pressed = null;
document.addEventListener("pointerdown", (event) => { pressed = event.target; });
for (const end of ["pointerup", "pointercancel"]) {
  document.addEventListener(end, () => setTimeout(() => { pressed = null; }), true);
}

/** Have a panel fetch itself anew, at most every 400 ms, and not while something in it is pressed. */
const due = new Map();
export function refresh(id) {
  if (due.has(id) || !document.getElementById(id)) return;
  due.set(id, setTimeout(() => {
    due.delete(id);
    const panel = document.getElementById(id);
    if (pressed && panel?.contains(pressed)) return refresh(id);
    if (panel) htmx.trigger(panel, "refresh");
  }, 400));
}

// a choice that is made by choosing
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-sends]")) event.target.form.requestSubmit();
});

// forms that ask before they are sent
document.addEventListener("submit", (event) => {
  const sure = event.target.dataset.sure;
  if (sure && !window.confirm(sure)) event.preventDefault();
});
