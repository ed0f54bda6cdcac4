// The form of a new job: files are sent as soon as they are chosen, the preview follows what is typed.

import { toast, token } from "tidepool/base";
import { pack, walk, wanted } from "tidepool/archive";

const form = document.getElementById("job-form");
const drop = document.getElementById("drop");
const [file, folder] = [document.getElementById("id_file"), document.getElementById("folder")];
const id = document.getElementById("id_upload");
const words = document.getElementById("drop-words");
const progress = drop.querySelector("progress");
let sending = null;

drop.classList.add("scripted");
for (const element of drop.querySelectorAll("[data-scripted]")) element.hidden = false;

function say(text) {
  words.textContent = text;
}
function forget() {
  sending?.abort();
  sending = null;
  id.value = "";
  file.value = folder.value = "";
  progress.hidden = true;
  document.getElementById("drop-forget").hidden = true;
  say("Drop a file, an archive or a folder here");
  changed();
}
function changed() {
  id.dispatchEvent(new Event("change", { bubbles: true }));
}

function send(chosen) {
  forget();
  const request = new XMLHttpRequest();
  sending = request;
  const body = new FormData();
  body.set("file", chosen);
  request.open("POST", form.dataset.upload);
  request.setRequestHeader("X-CSRFToken", token());
  request.responseType = "json";
  progress.hidden = false;
  progress.value = 0;
  document.getElementById("drop-forget").hidden = false;
  say(`Sending ${chosen.name}…`);
  request.upload.addEventListener("progress", (event) => { progress.value = event.loaded / event.total; });
  request.addEventListener("load", () => {
    progress.hidden = true;
    sending = null;
    const answer = request.response ?? {};
    if (request.status === 200) {
      id.value = answer.upload;
      say(`${answer.filename}, ${answer.size}`);
      changed();
      return;
    }
    forget();
    toast(answer.detail ?? answer.error?.sentence ?? `The portal answered ${request.status}; the file was not kept.`);
  });
  request.addEventListener("error", () => { forget(); toast("The file could not be sent. Try again in a moment."); });
  request.send(body);
}

function sendAll(files, name) {
  if (!files.length) return toast("There was no file in it to send.");
  try {
    send(files.length === 1 && !files[0][0].includes("/") ? files[0][1] : pack(files, name));
  } catch (error) {
    toast(error.message);
  }
}

document.getElementById("pick-file").addEventListener("click", () => file.click());
document.getElementById("pick-folder").addEventListener("click", () => folder.click());
document.getElementById("drop-forget").addEventListener("click", forget);
file.addEventListener("change", () => { if (file.files.length) { const chosen = file.files[0]; send(chosen); } });
folder.addEventListener("change", () => {
  const all = [...folder.files];
  if (!all.length) return;
  const name = all[0].webkitRelativePath.split("/")[0];
  sendAll(all.map((one) => [one.webkitRelativePath.slice(name.length + 1), one]).filter(([path]) => wanted(path)), name);
});
for (const kind of ["dragenter", "dragover"]) {
  drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
}
for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, () => drop.classList.remove("over"));
drop.addEventListener("drop", async (event) => {
  event.preventDefault();
  const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean);
  if (!entries.length) return;
  try {
    sendAll(await walk(entries), entries[0].name.replace(/\.[^.]*$/, ""));
  } catch {
    toast("What was dropped could not be read.");
  }
});
form.addEventListener("submit", (event) => {
  if (sending) { event.preventDefault(); toast("The files are still being sent; submit when they are there."); return; }
  file.disabled = true; // it was sent ahead
});
for (const button of document.querySelectorAll("[data-fill]")) {
  button.addEventListener("click", () => {
    for (const [name, value] of Object.entries(JSON.parse(button.dataset.fill))) form.elements[name].value = value;
    changed();
    form.elements.command.focus();
  });
}
