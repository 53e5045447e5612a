// Keys. Those that act on jobs need Shift if they cannot be taken back. A person can turn single keys off.
import { togglePause } from "./connection.js";
import { setTheme } from "./look.js";

const help = document.getElementById("help");
const on = document.getElementById("keys-on");
let going = false; // g was pressed
let row = -1;

const rows = () => [...document.querySelectorAll("#live tbody tr[data-row]")];

function move(step) {
  const all = rows();
  if (!all.length) return;
  row = Math.min(Math.max(row + step, 0), all.length - 1);
  all.forEach((tr, i) => tr.classList.toggle("here", i === row));
  (all[row].querySelector("a") || all[row]).focus();
}

function act(name) {
  const all = rows();
  const scope = all[row] || document.getElementById("live");
  const button = scope.querySelector(`[data-act^="${name}"]:not(:disabled)`);
  if (button) button.click();
}

const themes = ["system", "light", "dark", "contrast"];
export const keys = {
  "/": ["search", () => (document.querySelector("input[type=search][name]") || document.querySelector("[data-open=palette]")).focus()],
  j: ["next row", () => move(1)],
  k: ["row before", () => move(-1)],
  x: ["choose the row", () => rows()[row]?.querySelector("input[type=checkbox]")?.click()],
  c: ["copy the ID", () => rows()[row] && navigator.clipboard.writeText(rows()[row].dataset.row)],
  e: ["open the row's details", () => rows()[row]?.querySelector("summary")?.click()],
  r: ["retry", () => act("retry")],
  p: ["pause or resume", () => (act("pause"), act("resume"))],
  C: ["cancel (Shift)", () => act("cancel")],
  D: ["delete (Shift)", () => act("delete")],
  K: ["pause the queue (Shift)", () => act("pause-queue")],
  l: ["live on or off", togglePause],
  t: ["next theme", () => setTheme(themes[(themes.indexOf(document.documentElement.dataset.theme) + 1) % themes.length])],
  "?": ["these keys", () => help.showModal()],
};

on.checked = localStorage.getItem("sluice-keys") !== "off";
on.addEventListener("change", () => localStorage.setItem("sluice-keys", on.checked ? "on" : "off"));

function go(letter) {
  const link = document.querySelector(`#places a[data-letter="${CSS.escape(letter)}"]`);
  if (link) location.href = link.href;
}

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "k") {
    event.preventDefault();
    return document.getElementById("palette").showModal();
  }
  const typing = event.target.closest("input, textarea, select, dialog[open]");
  if (typing || !on.checked || event.ctrlKey || event.metaKey || event.altKey) return;
  if (going) {
    going = false;
    return go(event.key);
  }
  if (event.key === "g") return void (going = true);
  const known = keys[event.key];
  if (!known) return;
  event.preventDefault();
  known[1]();
});

const list = document.createElement("dl");
for (const [key, [what]] of [["g …", ["go to a page by its letter"]], ...Object.entries(keys)]) {
  const term = document.createElement("dt");
  const kbd = document.createElement("kbd");
  kbd.textContent = key;
  term.append(kbd);
  const meaning = document.createElement("dd");
  meaning.textContent = what;
  list.append(term, meaning);
}
document.getElementById("help-keys").append(list);
