import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import type { Job } from "sluice-client";
import { client, newQueue, Program, settings, working } from "./support.js";

const child = "build/test/child.js";

test("the job of a worker that is killed with SIGKILL runs again", async (t) => {
  const queue = newQueue();
  await settings(queue, { recover_interval: "1s" });
  const { id } = await client().enqueue(queue, 1);
  const program = new Program(t, child, [queue, "2s"]);
  assert.deepEqual(await program.said("started"), { started: id, attempt: 1 });
  program.kill("SIGKILL");
  await once(program.child, "exit");

  const seen: Job[] = [];
  working(t, queue, (job) => {
    seen.push(job);
    return "second";
  });
  assert.equal(await client().result(id), "second");
  assert.deepEqual(seen.map(({ id, attempt }) => ({ id, attempt })), [{ id, attempt: 1 }]);
  assert.equal((await client().job(id)).recoveries, 1);
});

test("the late outcome of a worker that was frozen beyond its lease is refused", async (t) => {
  const queue = newQueue();
  await settings(queue, { recover_interval: "1s" });
  const { id } = await client().enqueue(queue, 1);
  const program = new Program(t, child, [queue, "2s"]);
  await program.said("started");
  program.kill("SIGSTOP");

  let runs = 0;
  const worker = working(t, queue, () => {
    runs++;
    return "second";
  });
  assert.equal(await client().result(id), "second");
  program.child.send("finish");
  program.kill("SIGCONT");

  const lost = await program.said("error");
  assert.equal(lost.error, "LostError", String(lost.text));
  await worker.stop();
  program.child.send("stop");
  const [code] = await once(program.child, "exit");
  assert.equal(code, 0, "the frozen worker must go on, and end well");
  assert.equal(runs, 1);
  const job = await client().job(id);
  assert.deepEqual([job.state, job.result, job.recoveries, job.attempts], ["completed", "second", 1, 0]);
});
