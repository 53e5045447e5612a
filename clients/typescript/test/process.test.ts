import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Job } from "sluice-client";
import { client, deferred, newQueue, Program, Proxy, settings, working } from "./support.js";

const child = "build/test/child.js";

test("the job of a worker that is killed with SIGKILL runs again", async (t) => {
  const queue = newQueue();
  await settings(queue, { recover_interval: "1s" });
  const { id } = await client().enqueue(queue, 1);
  const program = new Program(t, child, [queue, "2s", "1"]);
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

for (const { name, concurrency, recoveries } of [
  { name: "the late outcome of a worker that was frozen beyond its lease is refused", concurrency: "1", recoveries: 1 },
  // The claim of its second slot waits at the server, which gives it the job too.
  { name: "a worker that was frozen begins no job that another worker has ended", concurrency: "2", recoveries: 2 },
]) {
  test(name, async (t) => {
    const queue = newQueue();
    await settings(queue, { recover_interval: "1s" });
    const { id } = await client().enqueue(queue, 1);
    const proxy = await Proxy.open(t);
    const claims = deferred();
    let count = 0;
    proxy.cuts = (request) => {
      if (request.endsWith("/work/claim") && ++count === Number(concurrency)) {
        claims.resolve();
      }
      return false;
    };
    const program = new Program(t, child, [queue, "2s", concurrency], proxy.url);
    assert.deepEqual(await program.said("started"), { started: id, attempt: 1 });
    await claims.promise;
    program.kill("SIGSTOP");
    while ((await client().job(id)).recoveries < recoveries) {
      await sleep(100);
    }

    let runs = 0;
    const worker = working(t, queue, () => {
      runs++;
      return "second";
    });
    assert.equal(await client().result(id), "second");
    program.child.send("finish");
    program.kill("SIGCONT");

    let lost = await program.said("error");
    while (String(lost.text).includes("send a heartbeat")) { // one that was under way at the stop
      lost = await program.said("error");
    }
    assert.equal(lost.error, "LostError", String(lost.text));
    await worker.stop();
    program.child.send("stop");
    const [code] = await once(program.child, "exit");
    assert.equal(code, 0, "the frozen worker must go on, and end well");
    assert.equal(runs, 1);
    assert.equal(program.heard("started"), false, "the handler of the frozen worker must run once");
    const job = await client().job(id);
    assert.deepEqual([job.state, job.result, job.recoveries, job.attempts], ["completed", "second", recoveries, 0]);
  });
}
