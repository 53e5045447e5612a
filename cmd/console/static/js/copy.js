// Copies what a button names. Pages of another machine have no clipboard without TLS; there an older way works.
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

function copyBySelection(text) {
  const before = document.activeElement;
  const field = document.createElement("textarea");
  field.value = text;
  (document.querySelector("dialog[open]") || document.body).append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  before?.focus();
  return done;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  button.dataset.label ??= button.textContent; // a second click finds another text
  button.textContent = (await copy(button.dataset.copy)) ? "Copied" : "Not copied";
  setTimeout(() => (button.textContent = button.dataset.label), 1500);
});
