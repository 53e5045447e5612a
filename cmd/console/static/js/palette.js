// The palette: pages, acts of this page, queues and tenants by their names, a filter of jobs, and an ID that opens its job.
const palette = document.getElementById("palette");
const input = document.getElementById("palette-text");
const list = document.getElementById("palette-list");
const base = document.body.dataset.base;
let chosen = 0;

const id = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

function entries(text) {
  const found = [];
  const words = text.trim();
  const plain = /^[^\s:"]+$/.test(words) && !id.test(words);
  if (id.test(words)) found.push({ name: `Job ${words}`, run: () => (location.href = `${base}/jobs/${words}`) });
  for (const link of document.querySelectorAll(".side a, #live th a")) found.push({ name: link.textContent.trim(), run: () => (location.href = link.href) });
  for (const button of document.querySelectorAll("#main [data-act]")) found.push({ name: `${button.textContent} (${button.dataset.act})`, run: () => (palette.close(), button.click()) });
  if (plain) found.push({ name: `Job with the key ${words}`, run: () => (location.href = `${base}/jobs?q=${encodeURIComponent(`key:${words}`)}&one=1`) });
  if (plain) for (const kind of ["queue", "tenant"]) found.push({ name: `The ${kind} ${words}`, run: () => (location.href = `${base}/${kind}s/${encodeURIComponent(words)}`) });
  if (words.includes(":")) found.push({ name: `Jobs that match ${words}`, run: () => (location.href = `${base}/jobs?q=${encodeURIComponent(words)}`) });
  const lower = words.toLowerCase();
  return found.filter((entry) => entry.name.toLowerCase().includes(lower)).slice(0, 12);
}

let shown = [];
function show() {
  shown = entries(input.value);
  chosen = Math.min(chosen, Math.max(shown.length - 1, 0));
  list.replaceChildren(...shown.map((entry, i) => {
    const item = document.createElement("li");
    item.role = "option";
    item.id = `palette-${i}`;
    item.ariaSelected = String(i === chosen);
    item.textContent = entry.name;
    item.addEventListener("click", entry.run);
    return item;
  }));
  input.setAttribute("aria-activedescendant", shown.length ? `palette-${chosen}` : "");
}

// The event of the opening comes after the first keys, if the machine is slow: it must not forget them.
palette.addEventListener("toggle", show);
palette.addEventListener("close", () => {
  if (palette.open) return; // again
  input.value = "";
  chosen = 0;
});
input.addEventListener("input", () => {
  chosen = 0;
  show();
});
input.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) {
    event.preventDefault();
    chosen = (chosen + step + shown.length) % Math.max(shown.length, 1);
    show();
  } else if (event.key === "Enter") {
    event.preventDefault();
    if (shown[chosen]) shown[chosen].run();
  }
});
