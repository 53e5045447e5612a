// Sets the theme before the page is painted, so that it never flashes.
document.documentElement.dataset.theme = localStorage.getItem("sluice-theme") || "system";
