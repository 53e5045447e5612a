// Sets the theme and the height of rows before the page is painted, so that it never flashes.
document.documentElement.dataset.theme = localStorage.getItem("sluice-theme") || "system";
document.documentElement.dataset.rows = localStorage.getItem("sluice-rows") || "roomy";
// The stream may begin before the module that shows its state has come.
document.addEventListener("htmx:sse:after:connection", () => (document.documentElement.dataset.streamed = ""), { once: true });
