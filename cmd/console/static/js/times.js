// Shows instants as an age, or in a zone. The exact time is in the title.
const zone = document.getElementById("zone");
zone.value = localStorage.getItem("sluice-zone") || "ago";

const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

// span writes a number of seconds in one or two units.
export function span(seconds) {
  const whole = Math.floor(Math.abs(seconds));
  for (let i = 0; i < units.length; i++) {
    const [size, unit] = units[i];
    if (whole < size && size > 1) continue;
    const first = Math.floor(whole / size);
    const next = units[i + 1];
    const rest = next ? Math.floor((whole - first * size) / next[0]) : 0;
    return first < 10 && rest > 0 ? `${first} ${unit} ${rest} ${next[1]}` : `${first} ${unit}`;
  }
  return "0 s";
}

// ago says how far an instant is from now, in seconds.
export function ago(seconds) {
  if (Math.abs(seconds) < 1) return "now";
  return seconds < 0 ? `in ${span(seconds)}` : `${span(seconds)} ago`;
}

export function show(at, how) {
  if (how === "utc") return at.toISOString().replace("T", " ").slice(0, 19) + " UTC";
  if (how === "local") return at.toLocaleString(undefined, { dateStyle: "short", timeStyle: "medium" });
  return ago((Date.now() - at.getTime()) / 1000);
}

export function refreshTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    const text = show(at, zone.value);
    if (time.textContent !== text) time.textContent = text;
    if (!time.title) time.title = `${at.toLocaleString()} (${at.toISOString()})`;
  }
}

zone.addEventListener("change", () => {
  localStorage.setItem("sluice-zone", zone.value);
  refreshTimes(document);
});
setInterval(() => document.hidden || zone.value !== "ago" || refreshTimes(document), 1000);
