// Terminal output as text with classes: colours and weights are kept, other escapes are dropped.

const escape = /\x1b(?:\[([0-9;?]*)([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])/g;

/** Remember colours and weights from one piece of output to the next. */
export class Ansi {
  constructor() { this.style = {}; }

  /** Answer a line as a list of [text, class names]. */
  parse(line) {
    const parts = [];
    let at = 0;
    const push = (text) => { if (text) parts.push([text, this.classes()]); };
    for (const match of line.matchAll(escape)) {
      push(line.slice(at, match.index));
      at = match.index + match[0].length;
      if (match[2] === "m") this.apply(match[1].split(";").map(Number));
    }
    push(line.slice(at));
    return parts;
  }

  apply(codes) {
    for (let place = 0; place < codes.length; place += 1) {
      const code = codes[place];
      if (code === 38 || code === 48) {
        // A colour out of 256 or of 16 million: the nearest that we have is none.
        place += codes[place + 1] === 5 ? 2 : 4;
      } else if (!code) this.style = {};
      else if (code === 1) this.style.b = true;
      else if (code === 2) this.style.d = true;
      else if (code === 3) this.style.i = true;
      else if (code === 4) this.style.u = true;
      else if (code === 22) { delete this.style.b; delete this.style.d; }
      else if (code === 23) delete this.style.i;
      else if (code === 24) delete this.style.u;
      else if (code >= 30 && code <= 37) this.style.c = code - 30;
      else if (code >= 90 && code <= 97) this.style.c = code - 90;
      else if (code === 39) delete this.style.c;
      else if (code >= 40 && code <= 47) this.style.k = code - 40;
      else if (code === 49) delete this.style.k;
    }
  }

  classes() {
    return Object.entries(this.style).map(([name, value]) => (value === true ? name : `${name}${value}`)).join(" ");
  }
}
