// A worker in a process of its own: it tells its parent what happens, and its handler returns when the parent says so.
import { Client } from "sluice-client";
import { deferred } from "./support.js";

const [queue = "", lease = "", concurrency = ""] = process.argv.slice(2);
const finish = deferred();
const stop = new AbortController();
process.on("message", (message) => (message === "finish" ? finish.resolve() : stop.abort()));

await new Client().work(
  queue,
  async (job) => {
    process.send?.({ started: job.id, attempt: job.attempt });
    await finish.promise;
    return "first";
  },
  { lease, concurrency: Number(concurrency), signal: stop.signal, onError: (error) => process.send?.({ error: error.name, text: error.message }) },
);
process.disconnect();
