// Tells screen readers how the figures of the page have changed, every 10 s at the most.
const region = document.getElementById("spoken");
const every = 10_000;

// speak says the figures that are meant to be heard, if one has changed.
export function speak() {
  const figures = [...document.querySelectorAll("#live [data-spoken]")].map((e) => e.dataset.spoken).join(", ");
  if (figures !== region.textContent) region.textContent = figures;
}

setInterval(speak, every);
