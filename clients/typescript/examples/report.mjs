// Works on long jobs that show their progress, and go on from their checkpoint: node examples/report.mjs QUEUE
//
// Stop it with Ctrl-C, and start it again: the report goes on at the page where it was.
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "sluice-client";

const [queue] = process.argv.slice(2);
const stop = new AbortController();
for (const name of ["SIGINT", "SIGTERM"]) {
  process.once(name, () => stop.abort());
}

async function report(job) {
  const { pages, wait = 100 } = job.payload;
  let { page, sum } = job.checkpoint ?? { page: 0, sum: 0 };
  while (page < pages) {
    await sleep(wait, undefined, { signal: job.signal }); // your own work; here it only plays
    page++;
    sum += page;
    job.progress(page / pages, `page ${page} of ${pages}`);
    await job.saveCheckpoint({ page, sum });
  }
  return { sum };
}

// After 1 s without an end, the signals of handlers are aborted, and the jobs handed back.
await new Client().work(queue, report, { signal: stop.signal, concurrency: 4, drainTimeout: "1s" });
