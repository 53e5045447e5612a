// Lets a person choose colours, and how dense rows are. The choice is kept in this browser.
const rows = document.getElementById("row-height");
const theme = document.getElementById("theme");

export function setTheme(name) {
  localStorage.setItem("sluice-theme", name);
  document.documentElement.dataset.theme = name;
  theme.value = name;
  document.dispatchEvent(new CustomEvent("theme"));
}

theme.value = document.documentElement.dataset.theme;
theme.addEventListener("change", () => setTheme(theme.value));

rows.value = document.documentElement.dataset.rows;
rows.addEventListener("change", () => {
  localStorage.setItem("sluice-rows", rows.value);
  document.documentElement.dataset.rows = rows.value;
});
