// Sets the theme before the page is painted, so that it never flashes.
document.documentElement.dataset.theme = localStorage.getItem("sluice-theme") || "system";
// The stream may begin before the module that shows its state has come.
document.addEventListener("htmx:sse:after:connection", () => (document.documentElement.dataset.streamed = ""), { once: true });
