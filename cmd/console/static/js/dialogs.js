// Opens the dialog of an act, and tells what came of it. The browser keeps the focus inside and gives it back.
const dialog = document.getElementById("dialog");
const toasts = document.getElementById("toasts");

// Only what comes into the dialog opens it: a live picture that comes between its end and its event "close" does not.
new MutationObserver(() => dialog.childElementCount && !dialog.open && dialog.showModal()).observe(dialog, { childList: true });

document.addEventListener("htmx:after:swap", () => {
  const problem = dialog.querySelector("[role=alert]:not([data-told])");
  if (!problem) return;
  problem.dataset.told = ""; // a page that changes behind the dialog takes the focus from no field
  problem.focus();
});

document.addEventListener("click", (event) => {
  const opened = event.target.closest("[data-open]");
  if (opened) document.getElementById(opened.dataset.open).showModal();
  if (event.target.closest("[data-close]")) event.target.closest("dialog").close();
});

dialog.addEventListener("close", () => dialog.open || dialog.replaceChildren()); // it may be open again

// toast shows a text for 10 s, or until somebody has read it, with a button that takes the act back at once. An act that needs
// more than that answers with its dialog.
export function toast(words, undo, stays) {
  const item = document.createElement("p");
  item.className = "toast";
  item.append(words);
  if (undo) {
    const button = document.createElement("button");
    button.textContent = "Undo";
    button.dataset.undo = "";
    button.addEventListener("click", () => {
      htmx.ajax("POST", undo, { target: "#dialog", swap: "innerHTML" });
      item.remove();
      document.getElementById("main").focus();
    });
    item.append(" ", button);
  }
  if (stays) {
    const close = document.createElement("button");
    close.textContent = "Close";
    close.addEventListener("click", () => item.remove());
    item.append(" ", close);
  } else setTimeout(() => item.remove(), 10_000);
  toasts.append(item);
}

document.addEventListener("done", (event) => {
  const { text, failed, undo, go, stays } = event.detail;
  dialog.close();
  if (go) return void (location.href = go);
  toast(failed ? `${text}, but for ${failed.length}: ${failed.slice(0, 3).join("; ")}` : text, undo, stays);
});
