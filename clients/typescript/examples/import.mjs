// Enqueues a job for each line of a file: node examples/import.mjs QUEUE FILE
//
// Each job has the file and the line's number as key: after a crash, run it again, and no line is stored twice.
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { Client } from "sluice-client";

const [queue, file] = process.argv.slice(2);

async function* jobs() {
  let line = 0;
  for await (const text of createInterface({ input: createReadStream(file) })) {
    yield { queue, payload: JSON.parse(text), key: `${file}:${++line}`, keyScope: "forever" };
  }
}

const { stored, duplicates, refused } = await new Client().enqueueMany(jobs());
for (const { index, error } of refused) {
  console.error(`line ${index + 1}: ${error.message}`);
}
console.log(`${stored} stored, ${duplicates} were there`);
