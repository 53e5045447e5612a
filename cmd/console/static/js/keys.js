// Keys. Those that act on jobs need Shift if they cannot be taken back. A person can turn single keys off.
import { togglePause } from "./connection.js";
import { copy } from "./copy.js";
import { setTheme } from "./look.js";

const help = document.getElementById("help");
const on = document.getElementById("keys-on");
let going = false; // g was pressed
let here = ""; // the id of the row that j, k and the focus have reached: two tables of a page may name the same thing
let last = ""; // that of the row that was chosen last

const rows = () => [...document.querySelectorAll("#live tbody tr[data-row]")];
const current = () => rows().find((tr) => tr.id === here);

// mark shows the row again after a new picture.
function mark() {
  for (const tr of rows()) tr.classList.toggle("here", tr.id === here);
}
document.addEventListener("htmx:after:swap", mark);
document.addEventListener("focusin", ({ target }) => {
  const row = target.closest("#live tbody tr[data-row]");
  if (!row || row.id === here) return;
  here = row.id;
  mark();
});

function move(step) {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex((tr) => tr.id === here);
  const next = all[Math.min(Math.max(at + step, 0), all.length - 1)];
  here = next.id;
  mark();
  if (!next.querySelector("a, button")) next.tabIndex = -1; // such a row takes the focus itself
  (next.querySelector("a") || next.querySelector("button") || next).focus();
}

const box = (tr) => tr?.querySelector("input[type=checkbox]");

function choose() {
  box(current())?.click();
  last = here;
}

// chooseTo chooses the rows from the one that was chosen last to this one.
function chooseTo() {
  const all = rows();
  const ends = [last, here].map((id) => all.findIndex((tr) => tr.id === id)).sort((a, b) => a - b);
  for (const tr of all.slice(Math.max(ends[0], 0), ends[1] + 1)) if (box(tr)) box(tr).checked = true;
}

// act presses the button of an act: of the row where the person is, else of the page itself, and never that of another row.
// In a list whose rows can be chosen, it acts on the chosen rows, or on the row itself if none is chosen. It does nothing
// if more than one button fits. It reports whether a button was there.
function act(name) {
  const live = document.getElementById("live");
  const row = current();
  const chosen = live.querySelector(".chosen");
  const fits = (scope) => [...(scope?.querySelectorAll(`[data-act^="${name}"]`) || [])];
  let fit = fits(row);
  if (!fit.length && chosen) {
    fit = fits(chosen);
    const none = () => !live.querySelector("tbody :checked");
    if (fit.length && none() && box(row)) box(row).checked = true;
    if (none()) return false;
  } else if (!fit.length && !row) fit = fits(live).filter((button) => !button.closest("tr"));
  if (fit.length === 1) fit[0].click();
  return fit.length > 0;
}

function copyID() {
  const id = current()?.dataset.row || document.querySelector("#live [data-id]")?.dataset.id;
  if (id) copy(id);
}

function allThatMatch() {
  const all = document.getElementById("all-matching");
  if (!all) return;
  all.open = true;
  all.querySelector("[data-act]")?.focus();
}

// follow goes to a page beside this one.
function follow(...kinds) {
  kinds.map((kind) => document.querySelector(`#live a[rel=${kind}]`)).find(Boolean)?.click();
}

const themes = ["system", "light", "dark", "contrast"];
export const keys = {
  "/": ["search", () => (document.querySelector("input[type=search][name]") || document.querySelector("[data-open=palette]")).focus()],
  j: ["next row", () => move(1)],
  k: ["row before", () => move(-1)],
  x: ["choose the row", choose],
  X: ["choose the rows up to this one", chooseTo],
  A: ["choose all rows of the page", () => document.getElementById("choose-all")?.click()],
  "*": ["acts on all that match", allThatMatch],
  c: ["copy the ID", copyID],
  e: ["open the row's details", () => current()?.querySelector("summary")?.click()],
  r: ["retry", () => act("retry")],
  p: ["pause or resume", () => act("pause") || act("resume")],
  C: ["cancel (Shift)", () => act("cancel")],
  D: ["delete (Shift)", () => act("delete")],
  K: ["pause the queue (Shift)", () => act("pause-queue")],
  "[": ["an earlier time, or the first page", () => follow("prev", "first")],
  "]": ["a later time, or the next page", () => follow("next")],
  u: ["undo what was done last", () => [...document.querySelectorAll(".toast button[data-undo]")].at(-1)?.click()],
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
  const typing = event.target.closest("input:not([type=checkbox]), textarea, select, dialog[open]");
  if (typing || !on.checked || event.ctrlKey || event.metaKey || event.altKey) return;
  if (going) {
    going = false;
    return go(event.key);
  }
  if (event.key === "g") return void (going = true);
  if (/^[1-5]$/.test(event.key)) return document.querySelector(`#live nav.choices a:nth-of-type(${event.key})`)?.click();
  const known = keys[event.key];
  if (!known) return;
  event.preventDefault();
  known[1]();
});

const list = document.createElement("dl");
for (const [key, [what]] of [["g …", ["go to a page by its letter"]], ["1 … 5", ["choose a length of time, the shortest first"]], ...Object.entries(keys)]) {
  const term = document.createElement("dt");
  const kbd = document.createElement("kbd");
  kbd.textContent = key;
  term.append(kbd);
  const meaning = document.createElement("dd");
  meaning.textContent = what;
  list.append(term, meaning);
}
document.getElementById("help-keys").append(list);
