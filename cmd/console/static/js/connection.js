// Shows whether the page is live. The last picture stays, with its age, when the store or the server is away.
import { refreshTimes } from "./times.js";

const status = document.getElementById("connection");
const text = status.querySelector(".text");
const seconds = status.querySelector(".seconds");
const live = document.getElementById("live");
let state = "connecting";
let since = new Date(); // when the picture on the page was last known to be true
let began = Date.now(); // when the state began
let paused = false;
let held = null; // the newest message while paused
let trouble = null; // shows what the server said last, if it could paint no picture

const age = document.getElementById("age");

function show(next, words, at, why = "") {
  if (at) since = new Date(at);
  else if (next !== state && state === "live") since = new Date();
  if (next !== state) began = Date.now();
  state = next;
  count();
  status.dataset.state = next;
  document.body.dataset.connection = next;
  if (text.textContent !== words) text.textContent = words;
  age.hidden = ["connecting", "live", "off"].includes(next) || live.querySelector(":scope > .problem") !== null;
  age.title = why;
  age.querySelector(".why").textContent = why && `: ${why}`;
  const time = age.querySelector("time");
  time.title = "";
  time.dateTime = since.toISOString();
  refreshTimes(age);
}

// count shows how long the page waits. A screen reader hears only the word: the seconds would never let it end.
function count() {
  const waits = ["reconnecting", "stale", "slow"].includes(state);
  seconds.textContent = waits ? `${Math.round((Date.now() - began) / 1000)} s` : "";
}
setInterval(count, 1000);

export function isPaused() {
  return paused;
}

export function togglePause() {
  paused = !paused;
  if (paused) return show("paused", "paused");
  if (away) show("reconnecting", "reconnecting");
  else if (trouble) trouble();
  else show("live", "live");
  if (held) htmx.swap({ text: held, target: live, swap: "innerMorph" });
  held = null;
}

// The extension connects again by itself once there was a stream. It gives up if the first request fails.
let connected = document.documentElement.hasAttribute("data-streamed");
let tried = Date.now();
const retryAfter = 5000;

// The server says each 15 s that it lives. A connection that is silent for longer is dead, although nobody has closed it.
const silence = 40_000;
let heard = Date.now();
let away = false; // the connection is broken, or dead
setInterval(() => {
  if (!connected || document.hidden || Date.now() - heard < silence) return;
  heard = Date.now(); // the next connection has as long
  away = true;
  if (!paused) show("reconnecting", "reconnecting");
  live._htmx?.sse?.reader?.cancel(); // the extension connects again
}, 1000);

live.addEventListener("htmx:sse:after:connection", () => {
  connected = true;
  heard = Date.now();
  away = false;
  if (!paused) show("live", "live");
});
live.addEventListener("htmx:sse:close", () => {
  connected = false;
  tried = Date.now();
});
setInterval(() => {
  const url = live.getAttribute("hx-sse:connect");
  if (!url || connected || document.hidden || Date.now() - tried < retryAfter) return;
  tried = Date.now();
  show("reconnecting", "reconnecting");
  htmx.ajax("GET", url, { source: live });
}, 1000);
live.addEventListener("htmx:sse:before:message", (event) => {
  heard = Date.now();
  if (event.detail.message.event) return;
  trouble = null;
  if (paused) {
    held = event.detail.message.data;
    event.preventDefault();
    return;
  }
  show("live", "live");
});

// troubled shows that the picture grows old. A page that is paused stays so.
function troubled(how) {
  trouble = how;
  if (!paused) how();
}
live.addEventListener("stale", (event) => {
  const { why, at } = JSON.parse(event.detail.data);
  troubled(() => show("stale", "not known now", at, why));
});
live.addEventListener("slow", (event) => {
  const { at } = JSON.parse(event.detail.data);
  troubled(() => show("slow", "the store is slow", at, "the store is slow"));
});
live.addEventListener("ended", () => location.reload());
live.addEventListener("restarting", () => paused || show("reconnecting", "the server restarts"));
live.addEventListener("htmx:sse:error", (event) => {
  if (event.detail.status === 401) return location.reload(); // the session ended while the server was away
  away = true;
  if (!paused) show("reconnecting", "reconnecting");
});
if (!live.hasAttribute("hx-sse:connect")) show("off", "not live");
else if (document.documentElement.hasAttribute("data-streamed")) show("live", "live");
