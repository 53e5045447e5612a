// Shows the value of a slider while it moves, and asks for the page with it when it is let go.
document.addEventListener("input", (event) => {
  const slider = event.target;
  if (slider.type !== "range") return;
  const output = slider.form.querySelector(`output[for="${slider.id}"]`);
  if (output) output.textContent = slider.value;
});

document.addEventListener("change", (event) => {
  if (event.target.type === "range") event.target.form.requestSubmit();
});
