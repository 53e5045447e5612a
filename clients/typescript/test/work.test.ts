import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import {
  ApiError,
  CancelledError,
  InvalidError,
  type Job,
  LostError,
  PermanentError,
  RetryError,
  SnoozeError,
  StoppingError,
  TimeoutError,
} from "sluice-client";
import { aborted, api, client, cutFirst, deferred, newQueue, Proxy, settings, working } from "./support.js";

test("jobs run beside each other, as many as the concurrency says", async (t) => {
  const queue = newQueue();
  const { refused } = await client().enqueueMany(Array.from({ length: 30 }, (_, i) => ({ queue, payload: i })));
  assert.deepEqual(refused, []);
  const full = deferred();
  const all = deferred();
  let [running, most, ended] = [0, 0, 0];
  working<number>(
    t,
    queue,
    async (job) => {
      most = Math.max(most, ++running);
      if (running === 4) {
        full.resolve();
      }
      await full.promise;
      await turn();
      running--;
      if (++ended === 30) {
        all.resolve();
      }
      return job.payload;
    },
    { concurrency: 4 },
  );
  await all.promise;
  assert.equal(most, 4);
});

test("a worker that waits gets a job of each of its queues", async () => {
  const queues = [newQueue(), newQueue()];
  const control = new AbortController();
  const done = client().work(queues, (job) => job.queue, { signal: control.signal });
  for (const queue of queues) {
    const { id } = await client().enqueue(queue, 1);
    assert.equal(await client().result(id), queue);
  }
  control.abort();
  await done;
});

test("a handler ends its job in each way", async (t) => {
  const queue = newQueue();
  const circle: Record<string, unknown> = {};
  circle.self = circle;
  const cases: Record<string, { end: () => unknown; label: string; error?: RegExp; result?: unknown }> = {
    value: { end: () => ({ sent: 1 }), label: "completed", result: { sent: 1 } },
    nothing: { end: () => undefined, label: "completed" },
    permanent: { end: () => thrown(new PermanentError("no such person")), label: "dead", error: /^no such person$/ },
    retry: { end: () => thrown(new RetryError({ after: "1h", message: "451 busy" })), label: "retrying", error: /^451 busy$/ },
    error: { end: () => thrown(new TypeError("x is undefined")), label: "retrying", error: /^TypeError: x is undefined$/ },
    cause: { end: () => thrown(new Error("outer", { cause: new Error("inner") })), label: "retrying", error: /^outer: inner$/ },
    text: { end: () => thrown("a text"), label: "retrying", error: /^a text$/ },
    bare: { end: () => thrown(Object.create(null)), label: "retrying", error: /^an error without a readable text$/ },
    object: { end: () => thrown(Object.assign(new Error("", { cause: "x" }), { message: {} })), label: "retrying", error: /^\[object Object\]: x$/ },
    stack: { end: () => thrown(Object.assign(new Error("odd"), { stack: [7] })), label: "retrying", error: /^odd$/ },
    long: { end: () => thrown(new Error("é".repeat(200_000))), label: "retrying", error: /^é+/ },
    large: { end: () => "a".repeat(1 << 20), label: "dead", error: /1048578 bytes must be at most 1048576/ },
    circle: { end: () => circle, label: "dead", error: /cannot become JSON/ },
    snooze: { end: () => thrown(new SnoozeError("1h")), label: "scheduled" },
  };
  await settings(queue, { backoff_base: "1h", backoff_max: "1h" });
  const ids = new Map<string, string>();
  for (const name of Object.keys(cases)) {
    ids.set(name, (await client().enqueue(queue, name)).id);
  }
  let left = ids.size;
  const all = deferred();
  const worker = working<string>(t, queue, async (job) => {
    if (--left === 0) {
      all.resolve();
    }
    return cases[job.payload]?.end();
  });
  await all.promise;
  await worker.stop();
  for (const [name, { label, error, result }] of Object.entries(cases)) {
    const job = await client().job(ids.get(name) ?? "");
    assert.equal(job.label, label, name);
    assert.deepEqual(job.result, result, name);
    assert.match(job.error ?? "", error ?? /^$/, name);
    assert.deepEqual([job.attempts, job.releases], [error ? 1 : 0, name === "snooze" ? 1 : 0], name);
  }
  const retry = await client().job(ids.get("retry") ?? "");
  assert.ok(Math.abs(retry.dueAt.getTime() - Date.now() - 3_600_000) < 600_000, "the next attempt is an hour away");
  const { attempts } = await api<{ attempts: { stack: string }[] }>("GET", `/jobs/${ids.get("error")}/attempts`);
  assert.match(attempts[0]?.stack ?? "", /work\.test/);
  assert.deepEqual(worker.errors, []);
});

function thrown(error: unknown): never {
  throw error;
}

test("a job that is tried again has the next number and the checkpoint", async (t) => {
  const queue = newQueue();
  const seen: unknown[] = [];
  const { id } = await client().enqueue(queue, 1, { maxAttempts: 5, labels: { a: "b" }, tenant: "acme" });
  working(t, queue, async (job) => {
    seen.push([job.attempt, job.maxAttempts, job.checkpoint, job.labels, job.tenant]);
    if (job.attempt === 1 && !job.checkpoint) {
      await job.saveCheckpoint({ page: 1 });
      throw new SnoozeError("1ms");
    }
    if (job.attempt === 1) {
      await job.saveCheckpoint({ page: 2 });
      assert.deepEqual(job.checkpoint, { page: 2 });
      throw new RetryError({ after: 1 });
    }
    return job.checkpoint;
  });
  assert.deepEqual(await client().result(id), { page: 2 });
  assert.deepEqual(seen, [
    [1, 5, undefined, { a: "b" }, "acme"],
    [1, 5, { page: 1 }, { a: "b" }, "acme"],
    [2, 5, { page: 2 }, { a: "b" }, "acme"],
  ]);
});

test("progress is shown, at most one report a second", async (t) => {
  const queue = newQueue();
  const { id } = await client().enqueue(queue, 1);
  const go = deferred();
  let sent = 0;
  const firstSent = deferred();
  const secondSent = deferred();
  const by = client({
    fetch: async (url, init) => {
      const response = await fetch(url, init);
      if (String(url).endsWith("/work/progress")) {
        (++sent === 1 ? firstSent : secondSent).resolve();
      }
      return response;
    },
  });
  working(
    t,
    queue,
    async (job) => {
      assert.throws(() => job.progress(1.5), InvalidError);
      job.progress(0.1, "page 1");
      await firstSent.promise;
      for (let i = 2; i <= 9; i++) {
        job.progress(i / 10, `page ${i}`);
      }
      await go.promise;
    },
    { client: by },
  );
  await secondSent.promise;
  assert.equal(sent, 2);
  const { progress } = await client().job(id);
  assert.deepEqual([progress?.fraction, progress?.message], [0.9, "page 9"]);
  assert.ok(progress?.at instanceof Date);
  go.resolve();
  assert.equal(await client().result(id), undefined);
});

test("a cancel aborts the signal of the handler, whose outcome then counts no more", async (t) => {
  const queue = newQueue();
  const { id } = await client().enqueue(queue, 1);
  const started = deferred();
  const told = deferred<unknown>();
  const worker = working(
    t,
    queue,
    async (job) => {
      started.resolve();
      const reason = await aborted(job.signal);
      await assert.rejects(job.saveCheckpoint(1), CancelledError);
      told.resolve(reason);
      return "late";
    },
    { lease: "1s" },
  );
  await started.promise;
  await client().cancel(id, "customer left");
  assert.ok((await told.promise) instanceof CancelledError);
  await worker.stop();
  const job = await client().job(id);
  assert.deepEqual([job.state, job.result], ["cancelled", undefined]);
});

test("a checkpoint of a cancelled job throws, before the next renewal", async (t) => {
  const queue = newQueue();
  const { id } = await client().enqueue(queue, 1);
  const cancelled = deferred();
  const started = deferred();
  const error = deferred<unknown>();
  working(t, queue, async (job) => {
    started.resolve();
    await cancelled.promise;
    await job.saveCheckpoint(1).catch(error.resolve);
    assert.ok(job.signal.aborted);
  });
  await started.promise;
  await client().cancel(id);
  cancelled.resolve();
  assert.ok((await error.promise) instanceof CancelledError);
});

test("a worker that ends claims no more, and waits for its handlers", async (t) => {
  const queue = newQueue();
  await client().enqueueMany([1, 2, 3].map((payload) => ({ queue, payload })));
  const started = deferred<Job>();
  const go = deferred();
  let runs = 0;
  const worker = working(
    t,
    queue,
    async (job) => {
      runs++;
      started.resolve(job);
      await go.promise;
      return "done";
    },
    { concurrency: 1 },
  );
  const job = await started.promise;
  const ended = worker.stop();
  assert.equal(job.signal.aborted, false);
  go.resolve();
  await ended;
  assert.equal(await client().result(job.id), "done");
  assert.equal(runs, 1);
});

test("a worker that waits for jobs ends at once", async (t) => {
  const queue = newQueue();
  const claimed = deferred();
  const by = client({
    fetch: (url, init) => {
      claimed.resolve();
      return fetch(url, init);
    },
  });
  const worker = working(t, queue, () => assert.fail("there is no job"), { client: by });
  await claimed.promise;
  await worker.stop();
  const { id } = await client().enqueue(queue, 1);
  assert.equal((await client().job(id)).label, "ready");
});

test("after the drain timeout the handler's signal is aborted, and the job is handed back", async (t) => {
  const queue = newQueue();
  const { id: obeys } = await client().enqueue(queue, "obeys");
  const { id: ignores } = await client().enqueue(queue, "ignores");
  const started = [deferred(), deferred()];
  const reasons: unknown[] = [];
  const worker = working<string>(
    t,
    queue,
    async (job) => {
      started[job.payload === "obeys" ? 0 : 1]?.resolve();
      reasons.push(await aborted(job.signal));
      if (job.payload === "ignores") {
        await new Promise(() => {});
      }
      job.signal.throwIfAborted();
    },
    { drainTimeout: "10ms" },
  );
  await Promise.all(started.map(({ promise }) => promise));
  await worker.stop();
  assert.equal(reasons.filter((reason) => reason instanceof StoppingError).length, 2);
  for (const id of [obeys, ignores]) {
    const job = await client().job(id);
    assert.deepEqual([job.label, job.attempts, job.releases], ["ready", 0, 1]);
  }
});

test("an attempt that exceeds its timeout is told, and fails", async (t) => {
  const queue = newQueue();
  const { id } = await client().enqueue(queue, 1, { timeout: "50ms", maxAttempts: 1 });
  working(t, queue, async (job) => {
    assert.ok((await aborted(job.signal)) instanceof TimeoutError);
    job.signal.throwIfAborted();
  });
  await assert.rejects(client().result(id), { name: "DeadError", failure: "the attempt exceeded its timeout of 0.05 s" });
});

test("a claim whose answer is lost is asked again, and its job runs once", async (t) => {
  const queue = newQueue();
  const proxy = await Proxy.open(t);
  proxy.cuts = cutFirst(/\/work\/claim$/);
  const { id } = await client().enqueue(queue, 1);
  let runs = 0;
  const worker = working(t, queue, () => ++runs, { client: client({ url: proxy.url }) });
  assert.equal(await client().result(id), 1);
  await worker.stop();
  const { recoveries, releases } = await client().job(id);
  assert.deepEqual([proxy.count, recoveries, releases], [1, 0, 0]);
  assert.deepEqual(worker.errors.map(({ name }) => name), ["ConnectionError"]);
});

test("outcomes whose answers are lost are sent again, and count once", async (t) => {
  const queue = newQueue();
  const proxy = await Proxy.open(t);
  let settles = 0;
  proxy.cuts = (request) => request.endsWith("/work/settle") && settles++ % 2 === 0;
  const { id: good } = await client().enqueue(queue, "good");
  const { id: bad } = await client().enqueue(queue, "bad");
  const ran = deferred();
  const run = (job: Job<string>) => {
    if (job.payload === "bad") {
      ran.resolve();
      throw new RetryError({ after: "1h" });
    }
    return "done";
  };
  const worker = working<string>(t, queue, run, { client: client({ url: proxy.url }) });
  assert.equal(await client().result(good), "done");
  await ran.promise;
  await worker.stop();
  assert.ok(proxy.count > 0);
  assert.equal((await client().job(bad)).attempts, 1);
});

test("a failure that is sent again too late is left in doubt", async (t) => {
  const queue = newQueue();
  const proxy = await Proxy.open(t);
  const { id } = await client().enqueue(queue, 1);
  const began = deferred();
  const first = working(
    t,
    queue,
    () => {
      proxy.cuts = (request) => request.includes("/work/settle");
      void first.stop();
      began.resolve();
      throw new RetryError({ message: "again", after: 1 });
    },
    { client: client({ url: proxy.url }), concurrency: 1 },
  );
  await began.promise;
  working(t, queue, async () => {
    proxy.cuts = () => false; // the first is answered now
    await first.done;
    return "by another";
  });
  assert.equal(await client().result(id), "by another");
  assert.equal((await client().job(id)).attempts, 1); // the failure was stored
  assert.match(first.errors.at(-1)?.message ?? "", /is lost: .*; the outcome may have been stored before, when its answer was lost$/);
});

test("a worker that is told no lease takes that of each queue, and renews it", async (t) => {
  const [short, long] = [newQueue(), newQueue()];
  await settings(short, { lease: "1s" });
  await settings(long, { lease: "1h" });
  const [renewed, control] = [deferred(), new AbortController()];
  t.after(() => control.abort());
  const leases: Record<string, number> = {};
  const renewals: string[] = [];
  const by = client({
    fetch: async (url, init) => {
      const response = await fetch(url, init);
      if (String(url).endsWith("/work/claim")) {
        const { jobs } = (await response.clone().json()) as { jobs: { queue: string; lease_seconds: number }[] };
        jobs.forEach((job) => (leases[job.queue] = job.lease_seconds));
      }
      if (String(url).endsWith("/work/renew") && renewals.push((JSON.parse(String(init?.body)) as { lease: string }).lease) === 5) {
        renewed.resolve(); // the first lease would be over long since
      }
      return response;
    },
  });
  const ids = await Promise.all([long, short].map(async (queue) => (await client().enqueue(queue, 1)).id));
  const done = by.work([short, long], () => renewed.promise, { signal: control.signal, onError: (error) => assert.fail(error) });
  await Promise.all(ids.map((id) => client().result(id)));
  control.abort();
  await done;
  assert.deepEqual([leases[short], leases[long], new Set(renewals)], [1, 3600, new Set(["1000ms"])]);
  assert.deepEqual(await Promise.all(ids.map(async (id) => (await client().job(id)).recoveries)), [0, 0]);
});

test("a handler whose lease cannot be renewed is told that the job is lost", async (t) => {
  const queue = newQueue();
  const proxy = await Proxy.open(t);
  const { id } = await client().enqueue(queue, 1);
  const reason = deferred<unknown>();
  const worker = working(
    t,
    queue,
    async (job) => {
      proxy.close();
      reason.resolve(await aborted(job.signal));
      return "late";
    },
    { client: client({ url: proxy.url }), lease: "1s" },
  );
  assert.ok((await reason.promise) instanceof LostError);
  await worker.stop();
  assert.equal((await client().job(id)).result, undefined);
});

test("a worker outlives an outage of the server, and tells of it once", async (t) => {
  const queue = newQueue();
  const proxy = await Proxy.open(t);
  const refused = deferred();
  let tries = 0;
  const by = client({
    url: proxy.url,
    fetch: async (url, init) => {
      try {
        return await fetch(url, init);
      } catch (error) {
        if (String(url).endsWith("/work/claim") && ++tries === 3) {
          refused.resolve();
        }
        throw error;
      }
    },
  });
  const claimed = deferred();
  proxy.cuts = (request) => {
    if (request.endsWith("/work/claim")) {
      claimed.resolve();
    }
    return false;
  };
  const worker = working(t, queue, () => "done", { client: by });
  await claimed.promise;
  proxy.close();
  await refused.promise;
  const { id } = await client().enqueue(queue, 1);
  await proxy.reopen();
  assert.equal(await client().result(id), "done");
  await worker.stop();
  assert.equal(worker.errors.filter(({ message }) => message.startsWith("claim jobs")).length, 1);
});

test("an outcome that the server refuses keeps no other from being stored", async (t) => {
  const queue = newQueue();
  let refusals = 0;
  const by = client({
    fetch: async (url, init) => {
      if (String(url).endsWith("/work/settle")) {
        const { jobs } = JSON.parse(String(init?.body)) as { jobs: { id: string; outcome: string; result?: string }[] };
        if (jobs.length > 1) {
          refusals++;
          return new Response('{"code":"invalid","why":"one of them breaks a rule"}', { status: 422 });
        }
        if (jobs[0]?.result === "bad") {
          return Response.json({ done: 0, failed: [{ id: jobs[0].id, error: { status: 422, code: "invalid", why: "the result is bad" } }] });
        }
      }
      return fetch(url, init);
    },
  });
  const all = deferred();
  const ids = new Map<string, string>();
  for (const payload of ["good", "bad", "better"]) {
    ids.set(payload, (await client().enqueue(queue, payload)).id);
  }
  let left = ids.size;
  const run = async (job: Job<string>) => {
    if (--left === 0) {
      all.resolve();
    }
    await all.promise;
    return job.payload;
  };
  const worker = working<string>(t, queue, run, { client: by });
  assert.equal(await client().result(ids.get("good") ?? ""), "good");
  assert.equal(await client().result(ids.get("better") ?? ""), "better");
  await assert.rejects(client().result(ids.get("bad") ?? ""), { name: "DeadError", failure: "the result is bad" });
  await worker.stop();
  assert.ok(refusals > 0);
});

test("a worker that the server refuses ends with the refusal", async () => {
  const refusal = '{"status":401,"code":"unauthorized","why":"the token is not known","do":"ask an admin for another"}';
  const by = client({ fetch: async () => new Response(refusal, { status: 401 }) });
  await assert.rejects(by.work("mail", () => 1), (error) => {
    assert.ok(error instanceof ApiError && error.status === 401 && error.message.includes("ask an admin"));
    return true;
  });
  await assert.rejects(client().work([], () => 1), InvalidError);
  await assert.rejects(client().work("mail", () => 1, { lease: "1ms" }), InvalidError);
  await assert.rejects(client().work("mail", () => 1, { concurrency: 0 }), InvalidError);
});
