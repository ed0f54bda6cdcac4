// A live log: follows, searches, wraps; offsets in bytes keep every piece in its place, once.

import { Ansi } from "tidepool/ansi";

const LINES = 20000;

export class Log {
  constructor(root) {
    this.root = root;
    this.text = root.querySelector("[data-log-text]");
    this.found = root.querySelector("[data-log-found]");
    this.search = root.querySelector("[data-log-search]");
    this.following = true;
    this.needle = "";
    this.listen();
    this.open(0);
  }

  listen() {
    const { root, text } = this;
    const wrap = root.querySelector("[data-log-wrap]");
    const follow = root.querySelector("[data-log-follow]");
    wrap.addEventListener("click", () => wrap.setAttribute("aria-pressed", String(text.classList.toggle("wrapped"))));
    this.setFollowing = (on) => { this.following = on; follow.setAttribute("aria-pressed", String(on)); if (on) this.toEnd(); };
    follow.addEventListener("click", () => this.setFollowing(!this.following));
    // Scrolling away from the end stops following; coming back starts it again.
    text.addEventListener("wheel", () => this.noteScroll(), { passive: true });
    text.addEventListener("touchmove", () => this.noteScroll(), { passive: true });
    text.addEventListener("keyup", () => this.noteScroll());
    for (const tab of root.querySelectorAll("[data-rank]")) {
      tab.addEventListener("click", () => this.open(Number(tab.dataset.rank)));
    }
    this.search.addEventListener("input", () => this.find(this.search.value));
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") { event.preventDefault(); this.step(event.shiftKey ? -1 : 1); }
    });
  }

  noteScroll() {
    requestAnimationFrame(() => {
      const left = this.text.scrollHeight - this.text.scrollTop - this.text.clientHeight;
      if ((left < 30) !== this.following) this.setFollowing(left < 30);
    });
  }

  /** Show another rank from its end. */
  async open(rank) {
    this.rank = rank;
    this.ended = null;
    this.queue = [];
    for (const tab of this.root.querySelectorAll("[data-rank]")) {
      tab.setAttribute("aria-selected", String(Number(tab.dataset.rank) === rank));
      tab.setAttribute("aria-pressed", String(Number(tab.dataset.rank) === rank));
    }
    this.root.querySelector("[data-log-download]").href = `${this.root.dataset.base}${rank}/download/`;
    await this.load();
  }

  async load(offset) {
    const { rank } = this;
    const query = offset === undefined ? "" : `?offset=${offset}`;
    let answer;
    try {
      answer = await fetch(`${this.root.dataset.base}${rank}/${query}`);
      if (!answer.ok) throw new Error(`the portal answered ${answer.status}`);
    } catch (error) {
      this.hint(`The output could not be loaded: ${error.message}. `, "Try again", () => this.load(offset));
      return;
    }
    let data = new Uint8Array(await answer.arrayBuffer());
    if (rank !== this.rank) return;
    let begins = Number(answer.headers.get("X-Offset"));
    const held = Number(answer.headers.get("X-Held"));
    if (this.ended === null || offset === undefined) this.clear(begins);
    else if (begins > this.ended) return this.later();
    else {
      // Pieces that came over the socket meanwhile are there already.
      data = data.subarray(this.ended - begins);
      begins = this.ended;
    }
    this.append(this.decoder.decode(data, { stream: true }));
    this.ended = begins + data.length;
    if (!held) this.hint("Nothing was printed yet.");
    if (this.ended < held) await this.load(this.ended);
    const waiting = this.queue.splice(0);
    for (const piece of waiting) this.hear(piece);
  }

  clear(begins) {
    this.text.replaceChildren();
    this.decoder = new TextDecoder();
    this.ansi = new Ansi();
    this.last = null;
    this.raw = "";
    this.empty = true;
    if (begins > 0) {
      const hint = document.createElement("span");
      hint.className = "hint line";
      hint.textContent = "What came before this is in the downloaded file.";
      this.text.append(hint);
    }
  }

  hint(words, button = "", act = null) {
    const hint = document.createElement("span");
    hint.className = "hint";
    hint.textContent = words;
    if (act) {
      const again = document.createElement("button");
      again.textContent = button;
      again.addEventListener("click", act);
      hint.append(again);
    }
    this.text.replaceChildren(hint);
    this.last = null;
    this.empty = true;
  }

  /** A piece came over the socket: keep it if it follows on, else fetch what is missing. */
  hear(event) {
    if (event.rank !== this.rank) return;
    if (this.ended === null) { this.queue.push(event); return; }
    const size = new TextEncoder().encode(event.text).length;
    // A replacement character stands for bytes of another number, so ask for those as they are.
    if (event.offset !== this.ended || event.text.includes("\ufffd")) {
      if (event.offset + size > this.ended) this.later();
      return;
    }
    this.append(event.text);
    this.ended += size;
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load(this.ended ?? undefined), 150);
  }

  append(piece) {
    if (!piece) return;
    if (this.empty && this.last === null) {
      for (const hint of this.text.querySelectorAll(".hint:not(.line)")) hint.remove();
      this.empty = false;
    }
    const lines = piece.replaceAll("\r\n", "\n").split("\n");
    const fresh = document.createDocumentFragment();
    lines.forEach((line, place) => {
      if (place > 0 || this.last === null) {
        if (place === lines.length - 1 && line === "") { this.last = null; return; }
        this.last = document.createElement("span");
        this.last.className = "line";
        this.raw = "";
        fresh.append(this.last);
      }
      this.raw += line;
      this.write(this.last, this.raw);
    });
    this.text.append(fresh);
    while (this.text.childElementCount > LINES) this.text.firstElementChild.remove();
    if (this.following) this.toEnd();
  }

  write(element, raw) {
    // A carriage return begins the line anew, as progress bars do.
    const shown = raw.replace(/\r+$/, "").split("\r").pop();
    element.replaceChildren();
    for (const [text, classes] of this.ansi.parse(shown)) this.span(element, text, classes);
  }

  span(element, text, classes) {
    const target = classes ? element.appendChild(document.createElement("span")) : element;
    if (classes) target.className = classes;
    if (!this.needle) { target.append(text); return; }
    const low = text.toLowerCase();
    let at = 0;
    for (let hit = low.indexOf(this.needle); hit >= 0; hit = low.indexOf(this.needle, at)) {
      target.append(text.slice(at, hit));
      const mark = document.createElement("mark");
      mark.textContent = text.slice(hit, hit + this.needle.length);
      target.append(mark);
      at = hit + this.needle.length;
    }
    target.append(text.slice(at));
  }

  find(words) {
    this.needle = words.toLowerCase();
    for (const mark of this.text.querySelectorAll("mark")) mark.replaceWith(mark.textContent);
    this.text.normalize();
    this.hits = [];
    this.at = -1;
    if (this.needle) {
      this.setFollowing(false);
      for (const line of this.text.querySelectorAll(".line")) {
        if (!line.textContent.toLowerCase().includes(this.needle)) continue;
        const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
        const nodes = [];
        while (walker.nextNode()) nodes.push(walker.currentNode);
        for (const node of nodes) {
          const holder = document.createElement("span");
          this.span(holder, node.data, "");
          node.replaceWith(...holder.childNodes);
        }
        this.hits.push(line);
      }
      this.step(1);
    }
    if (!this.needle || !this.hits.length) this.found.textContent = this.needle ? "not found" : "";
  }

  step(by) {
    if (!this.hits?.length) return;
    this.hits[this.at]?.classList.remove("current");
    this.at = (this.at + by + this.hits.length) % this.hits.length;
    const line = this.hits[this.at];
    line.classList.add("current");
    this.text.scrollTop = line.offsetTop - this.text.offsetTop - this.text.clientHeight / 2;
    this.found.textContent = `${this.at + 1} of ${this.hits.length} ${this.hits.length === 1 ? "line" : "lines"}`;
  }

  toEnd() {
    this.text.scrollTop = this.text.scrollHeight;
  }
}
