// Keeps the rows of a list where they are while the page is live: rows that are new wait behind a link, and rows that no
// longer match stay, pale. It also keeps what a person has opened.
const live = document.getElementById("live");

// steady puts the rows of a new picture into the order of the old one, and returns how many rows are new.
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
  return next.size;
}

live.addEventListener("htmx:sse:before:message", (event) => {
  const { message } = event.detail;
  const before = live.querySelector("tbody[data-steady]");
  if (message.event || !before || !before.rows.length) return;
  const picture = document.createElement("template");
  picture.innerHTML = message.data;
  const after = picture.content.querySelector("tbody[data-steady]");
  if (!after) return;
  const size = after.rows.length;
  const fresh = steady(before, after);
  const link = picture.content.getElementById("news");
  if (fresh && link) {
    link.hidden = false;
    link.textContent = fresh === size ? `${fresh} or more newer: show` : `${fresh} newer: show`;
  }
  message.data = picture.innerHTML;
});

// A person opens and closes details; a picture does not.
document.addEventListener("htmx:before:morph:attr", (event) => {
  if (event.detail.attrName === "open" && event.target.matches("details")) event.preventDefault();
});

document.addEventListener("change", (event) => {
  if (event.target.id !== "choose-all") return;
  for (const box of document.querySelectorAll("#rows input[name=ids]")) box.checked = event.target.checked;
});
