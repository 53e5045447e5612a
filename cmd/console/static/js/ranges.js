// Shows the value of a slider while it moves, and asks for the page with it when it is let go.
function show(slider) {
  const output = slider.form.querySelector(`output[for="${slider.id}"]`);
  if (output) output.textContent = slider.value;
}

document.addEventListener("input", ({ target }) => {
  if (target.type === "range") show(target);
});

// A picture that comes while somebody holds a slider brings the value that the page had.
document.addEventListener("htmx:after:swap", () => {
  for (const slider of document.querySelectorAll("input[type=range]")) if (slider.value !== slider.defaultValue) show(slider);
});

document.addEventListener("change", (event) => {
  if (event.target.type === "range") event.target.form.requestSubmit();
});
