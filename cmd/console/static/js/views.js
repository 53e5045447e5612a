// Keeps views of the list of jobs under a name, in this browser alone: the address has all that a view is.
const list = document.getElementById("views");
const form = document.getElementById("save-view");
const place = `sluice-views ${document.body.dataset.base}`; // consoles below other paths have their own

function kept() {
  try {
    return JSON.parse(localStorage.getItem(place)) || [];
  } catch {
    return []; // somebody else's text
  }
}

function keep(views) {
  localStorage.setItem(place, JSON.stringify(views));
  show();
}

// address is the present view: its filter, state, columns and size, but not the place in the list.
function address() {
  const url = new URL(location.href);
  for (const name of ["after", "one"]) url.searchParams.delete(name);
  return url.pathname + url.search;
}

function row({ name, at }) {
  const link = document.createElement("a");
  link.href = new URL(at, location.origin).pathname + new URL(at, location.origin).search;
  link.textContent = name;
  if (at === address()) link.setAttribute("aria-current", "true");
  const remove = document.createElement("button");
  remove.type = "button";
  remove.textContent = "×";
  remove.setAttribute("aria-label", `Remove the view ${name}`);
  remove.addEventListener("click", () => {
    keep(kept().filter((view) => view.name !== name));
    document.getElementById("main").focus();
  });
  const item = document.createElement("li");
  item.append(link, remove);
  return item;
}

function show() {
  const views = kept();
  list.hidden = !views.length;
  list.replaceChildren(...views.map(row));
}

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  const name = form.elements.name.value.trim();
  if (!name) return;
  keep([...kept().filter((view) => view.name !== name), { name, at: address() }].sort((a, b) => a.name.localeCompare(b.name)));
  form.reset();
  form.closest("details").open = false;
});

addEventListener("storage", show); // another tab
show();
