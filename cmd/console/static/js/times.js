// Shows instants as an age, or in a zone. The exact time is in the title.
const zone = document.getElementById("zone");
const zones = document.createElement("optgroup");
zones.label = "in the zone";
zones.append(...Intl.supportedValuesOf("timeZone").map((name) => new Option(name)));
zone.append(zones);
zone.value = localStorage.getItem("sluice-zone") || "ago";
if (!zone.value) zone.value = "ago"; // the browser knows the zone no more

// placeOf is the zone for a choice, such as that of a tenant. Undefined: the browser's own.
export const placeOf = (how) => (how === "utc" ? "Etc/UTC" : how === "ago" || how === "local" ? undefined : how);

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
  if (how === "ago") return ago((Date.now() - at.getTime()) / 1000);
  const text = at.toLocaleString(how === "local" ? undefined : "sv-SE", { dateStyle: "short", timeStyle: "medium", timeZone: placeOf(how) });
  return how === "local" ? text : `${text} ${how}`;
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
