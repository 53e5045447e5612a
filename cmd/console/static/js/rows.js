// Keeps the rows of a list where they are while the page is live: rows that are new wait behind a link, and rows that no
// longer match stay, pale. In other tables, no row moves below the pointer: rows that are new come last until it leaves.
const live = document.getElementById("live");
let over = null; // the table's body below the pointer
let late = ""; // the picture whose rows wait for their places

// steady puts the rows of a new picture into the order of the old one, and returns those that are new.
export function steady(before, after) {
  const next = new Map([...after.rows].map((tr) => [tr.id, tr]));
  const kept = [...before.rows].map((tr) => {
    const row = next.get(tr.id);
    next.delete(tr.id);
    if (row) return row;
    const away = tr.cloneNode(true);
    away.classList.add("away");
    away.title = "no longer on this page of the list";
    return away;
  });
  after.replaceChildren(...kept);
  return [...next.values()];
}

// aim keeps the rows below the pointer where they are, until a pointer that rests has let too many come.
function aim(picture) {
  const rows = over?.isConnected ? [...over.rows] : [];
  const after = rows.map((tr) => tr.id && picture.getElementById(tr.id)).find(Boolean)?.parentElement;
  if (!after || after.dataset.steady !== undefined || rows.length > 3 * after.rows.length || rows.some((tr) => !tr.id)) return false;
  const now = [...after.rows].map((tr) => tr.id).join();
  after.append(...steady(over, after));
  return now !== [...after.rows].map((tr) => tr.id).join();
}

document.addEventListener("pointerover", (event) => {
  const now = event.target.closest("#live tbody");
  if (now === over) return;
  over = now;
  if (late) htmx.swap({ text: late, target: live, swap: "innerMorph" });
  late = "";
});

live.addEventListener("htmx:sse:before:message", (event) => {
  const { message } = event.detail;
  const before = live.querySelector("tbody[data-steady]");
  if (message.event || !over && !before) return;
  const picture = document.createElement("template");
  picture.innerHTML = message.data;
  const moved = aim(picture.content);
  late = moved ? message.data : "";
  const after = picture.content.querySelector("tbody[data-steady]");
  if (before?.rows.length && after) wait(picture.content, steady(before, after).length, after.rows.length);
  else if (!moved) return;
  message.data = picture.innerHTML;
});

// wait shows a link to rows that are new.
function wait(picture, fresh, size) {
  const link = picture.getElementById("news");
  if (!fresh || !link) return;
  link.hidden = false;
  link.textContent = fresh === size ? `${fresh} or more newer: show` : `${fresh} newer: show`;
}

document.addEventListener("change", (event) => {
  if (event.target.id !== "choose-all") return;
  for (const box of document.querySelectorAll("#rows input[name=ids]")) box.checked = event.target.checked;
});
