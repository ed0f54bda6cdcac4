// A folder as one tar archive, made in the browser: the portal takes in one file a job.

const skipped = new Set([".git", "__pycache__", "node_modules", ".venv", ".ipynb_checkpoints"]);

/** Whether a path of a folder should be sent. */
export function wanted(path) {
  return !path.split("/").some((part) => skipped.has(part) || part.endsWith(".pyc"));
}

function header(path, size, time) {
  const block = new Uint8Array(512);
  const write = (at, text) => block.set(new TextEncoder().encode(text), at);
  const octal = (number, length) => Math.floor(number).toString(8).padStart(length, "0");
  const bytes = new TextEncoder().encode(path);
  let cut = 0;
  if (bytes.length > 100) {
    // Long paths are kept in two pieces, cut at a slash.
    cut = path.lastIndexOf("/", 154);
    if (cut < 0 || bytes.length - cut > 100) throw new Error(`The path ${path} is too long for an archive.`);
  }
  write(0, cut ? path.slice(cut + 1) : path);
  write(100, `${octal(0o644, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0${octal(size, 11)}\0${octal(time / 1000, 11)}\0`);
  write(148, "        0");
  write(257, "ustar\x0000");
  if (cut) write(345, path.slice(0, cut));
  const sum = block.reduce((total, byte) => total + byte, 0);
  write(148, `${octal(sum, 6)}\0 `);
  return block;
}

/** Pack [path, File] pairs; the folder that they share is left out of their paths. */
export function pack(files, name) {
  const parts = [];
  for (const [path, file] of files) {
    parts.push(header(path, file.size, file.lastModified), file);
    if (file.size % 512) parts.push(new Uint8Array(512 - (file.size % 512)));
  }
  parts.push(new Uint8Array(1024));
  return new File(parts, `${name}.tar`, { type: "application/x-tar" });
}

/** Every file below what was dropped, with its path. */
export async function walk(entries) {
  const found = [];
  async function visit(entry, path) {
    if (!wanted(path)) return;
    if (entry.isFile) {
      found.push([path, await new Promise((done, failed) => entry.file(done, failed))]);
      return;
    }
    const reader = entry.createReader();
    for (;;) {
      const batch = await new Promise((done, failed) => reader.readEntries(done, failed));
      if (!batch.length) return;
      for (const child of batch) await visit(child, path ? `${path}/${child.name}` : child.name);
    }
  }
  const lone = entries.length === 1 && entries[0].isDirectory;
  for (const entry of entries) await visit(entry, lone ? "" : entry.name);
  return found;
}
