// Lets a person choose colours. The choice is kept in this browser.
const theme = document.getElementById("theme");

export function setTheme(name) {
  localStorage.setItem("sluice-theme", name);
  document.documentElement.dataset.theme = name;
  theme.value = name;
  document.dispatchEvent(new CustomEvent("theme"));
}

theme.value = document.documentElement.dataset.theme;
theme.addEventListener("change", () => setTheme(theme.value));
