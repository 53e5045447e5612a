import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, InvalidError, type Job, NotFoundError, PermanentError, type Producer, RetryError, SnoozeError } from "sluice-client";
import { FakeClient } from "sluice-client/testing";

const start = new Date("2026-12-01T16:00:00Z");

test("the fake stands in for a client", async () => {
  const welcome = (by: Producer, to: string) => by.enqueue("mail", { to, at: start }, { key: to, labels: { kind: "welcome" } });
  const fake = new FakeClient();
  assert.ok(new Client() satisfies Producer);
  const first = await welcome(fake, "ada");
  assert.deepEqual(await welcome(fake, "ada"), { id: first.id, duplicate: true });
  assert.equal(fake.jobs.length, 1);
  assert.deepEqual(fake.jobs[0]?.payload, { to: "ada", at: start.toISOString() }, "as JSON keeps it");
  assert.deepEqual(fake.jobs[0]?.options.labels, { kind: "welcome" });
  assert.equal((await fake.job(first.id)).label, "ready");
  await assert.rejects(fake.job("01a1fb72-1dea-7abc-8fc6-99e4817522bb"), NotFoundError);
});

test("the fake checks arguments as the client does", async () => {
  const fake = new FakeClient();
  await assert.rejects(fake.enqueue("mail", 1, { priority: 11 }), InvalidError);
  await assert.rejects(fake.enqueue("a b", 1), InvalidError);
  await assert.rejects(fake.enqueue("mail", undefined), InvalidError);
  const many = await fake.enqueueMany([{ queue: "mail", payload: 1 }, { queue: "", payload: 1 }]);
  assert.deepEqual([many.stored, many.refused.map(({ index }) => index)], [1, [1]]);
});

test("the fake changes no job of another tenant that has the key, as the server", async () => {
  const fake = new FakeClient();
  const first = await fake.enqueue("mail", 1, { key: "k", tenant: "acme" });
  for (const onDuplicate of ["replace", "coalesce", "debounce"] as const) {
    const job = { queue: "mail", payload: 2, key: "k", tenant: "globex", onDuplicate };
    await assert.rejects(fake.enqueue("mail", 2, { key: "k", tenant: "globex", onDuplicate }), { name: "ApiError", status: 422, code: "invalid" });
    assert.deepEqual((await fake.enqueueMany([job])).refused.map(({ index }) => index), [0]);
  }
  assert.deepEqual(await fake.enqueue("mail", 2, { key: "k", tenant: "globex" }), { id: first.id, duplicate: true });
  assert.deepEqual(fake.jobs.map(({ state, payload }) => [state, payload]), [["queued", 1]]);
});

test("the fake runs retries and snoozes on its own clock", async () => {
  const fake = new FakeClient({ now: start, maxAttempts: 3 });
  const log: [unknown, number, number][] = [];
  const handler = async (job: Job<any>) => {
    log.push([job.payload, job.attempt, fake.now.getTime() - start.getTime()]);
    if (job.payload === "fails") throw new Error(`failure ${job.attempt}`);
    if (job.payload === "hopeless") throw new PermanentError("no such person");
    if (job.payload === "later" && job.attempt === 1) throw new RetryError({ after: "1h" });
    if (job.payload === "asleep" && !job.checkpoint) {
      await job.saveCheckpoint({ woken: 1 });
      throw new SnoozeError("7d");
    }
    job.progress(1, "done");
    return job.payload;
  };
  for (const payload of ["fails", "hopeless", "later", "asleep"]) {
    await fake.enqueue("mail", payload);
  }
  await fake.enqueue("mail", "due", { delay: "2h" });
  const ended = await fake.run(handler);
  assert.deepEqual(
    ended.map((job) => [job.payload, job.state, job.attempts, job.releases, job.errors]),
    [
      ["hopeless", "dead", 1, 0, ["no such person"]],
      ["fails", "dead", 3, 0, ["failure 1", "failure 2", "failure 3"]],
      ["later", "completed", 1, 0, ["the handler asked for another attempt"]],
      ["due", "completed", 0, 0, []],
      ["asleep", "completed", 0, 1, []],
    ],
  );
  const hour = 3_600_000;
  assert.deepEqual(log.slice(4), [["fails", 2, 2000], ["fails", 3, 6000], ["later", 2, hour], ["due", 1, 2 * hour], ["asleep", 1, 168 * hour]]);
  const asleep = ended.at(-1);
  assert.deepEqual([asleep?.checkpoint, asleep?.progress], [{ woken: 1 }, { fraction: 1, message: "done" }]);
  assert.equal(await fake.result(asleep?.id ?? ""), "asleep");
  await assert.rejects(fake.result(ended[0]?.id ?? ""), { name: "DeadError", failure: "no such person" });
});

test("the fake obeys order, priority, hold, expiry, after and cancel", async () => {
  const fake = new FakeClient({ now: start });
  const seen: unknown[] = [];
  const { id: late } = await fake.enqueue("a", "late", { priority: 9 });
  await fake.enqueue("a", "first", { priority: 1 });
  await fake.enqueue("a", "held", { hold: "a look first" });
  const { id: fails } = await fake.enqueue("a", "fails", { maxAttempts: 1, priority: 3 });
  await fake.enqueue("a", "never", { after: [fails] });
  await fake.enqueue("a", "all the same", { after: [fails], afterFailure: "run" });
  await fake.enqueue("a", "by its own rule", { after: [fails, late], afterFailures: { [fails]: "run" } });
  await fake.enqueue("a", "after late", { after: [late], priority: 1 });
  await fake.enqueue("a", "expires", { dueAt: new Date(start.getTime() + 2000), expiresAt: new Date(start.getTime() + 3000) });
  await fake.enqueue("a", "long", { dueAt: new Date(start.getTime() + 1000) });
  const { id: gone } = await fake.enqueue("a", "gone");
  await fake.enqueue("other", "other queue");
  assert.deepEqual((await fake.cancel([gone, gone])).failed.map(({ error }) => error.code), ["not_allowed"]);
  await fake.run({
    a: (job) => {
      seen.push(job.payload);
      if (job.payload === "fails") throw new Error("no");
      if (job.payload === "long") fake.advance("1h");
    },
  });
  assert.deepEqual(seen, ["first", "fails", "all the same", "late", "after late", "by its own rule", "long"]);
  const states = Object.fromEntries(fake.jobs.map((job) => [job.payload, job.state]));
  assert.deepEqual([states.held, states.never, states.expires, states.gone], ["queued", "cancelled", "cancelled", "cancelled"]);
  assert.equal(states["other queue"], "queued");
});

test("the fake knows keys", async () => {
  const fake = new FakeClient({ now: start });
  const first = await fake.enqueue("a", 1, { key: "k" });
  assert.equal((await fake.enqueue("a", 2, { key: "k", onDuplicate: "replace" })).replaced, first.id);
  assert.equal((await fake.enqueue("a", 3, { key: "k", onDuplicate: "coalesce" })).duplicate, true);
  assert.equal((await fake.enqueue("b", 4, { key: "k" })).duplicate, false);
  const seen: unknown[] = [];
  await fake.run((job) => void seen.push(job.payload));
  assert.deepEqual(seen, [3, 4]);
  assert.equal((await fake.enqueue("a", 5, { key: "k" })).duplicate, false, "its job has ended");
  await fake.enqueue("a", 6, { key: "w", keyScope: "window", keyWindow: "1h" });
  await fake.run(() => 1);
  assert.equal((await fake.enqueue("a", 7, { key: "w", keyScope: "window", keyWindow: "1h" })).duplicate, true);
  fake.advance("2h");
  assert.equal((await fake.enqueue("a", 8, { key: "w", keyScope: "window", keyWindow: "1h" })).duplicate, false);
});

test("a merged job expires with the newest", async () => {
  const fake = new FakeClient({ now: start });
  const key = { key: "k", onDuplicate: "coalesce" } as const;
  const after = (minutes: number): Date => new Date(fake.now.getTime() + minutes * 60_000);
  await fake.enqueue("a", 1, { ...key, expiresAt: after(1) });
  await fake.enqueue("a", 2, { ...key, expiresAt: after(10) });
  fake.advance("5m");
  const seen: unknown[] = [];
  await fake.run((job) => void seen.push(job.payload));
  assert.deepEqual(seen, [2], "it did not expire with the first");
  const late = await fake.enqueue("a", 3, { ...key, delay: "1h" });
  await fake.enqueue("a", 4, { ...key, expiresAt: after(10) });
  assert.equal(fake.jobs.find((job) => job.id === late.id)?.options.expiresAt, undefined, "it would expire before it is due");
});

test("the fake throttles, and runs merged jobs after one that has begun", async () => {
  const fake = new FakeClient({ now: start });
  const throttle = { key: "t", keyScope: "window", keyWindow: "1h", onDuplicate: "coalesce" } as const;
  const seen: [unknown, number][] = [];
  const handler = async (job: Job<any>) => {
    seen.push([job.payload, fake.now.getTime() - start.getTime()]);
    if (job.payload === 1) {
      await fake.enqueue("a", 2, throttle);
      await fake.enqueue("a", 3, throttle);
    }
    if (job.payload === "first" && job.attempt === 1) {
      await fake.enqueue("a", "second", { key: "c", onDuplicate: "coalesce" });
      await fake.enqueue("a", "third", { key: "c", onDuplicate: "coalesce" });
      throw new Error("again");
    }
  };
  await fake.enqueue("a", 1, throttle);
  await fake.run(handler);
  const hour = 3_600_000;
  assert.deepEqual(seen.splice(0), [[1, 0], [3, hour]]);
  await fake.enqueue("a", "first", { key: "c", onDuplicate: "coalesce" });
  await fake.run(handler);
  assert.deepEqual(seen, [["first", hour], ["first", hour + 2000], ["third", hour + 2000]]);
  await fake.enqueue("a", 1, { key: "w", keyScope: "window", keyWindow: "1h", delay: "2h" });
  fake.advance("90m");
  assert.equal((await fake.enqueue("a", 2, { key: "w" })).duplicate, false, "its window has passed");
});

test("a handler that snoozes for ever is noticed", async () => {
  const fake = new FakeClient();
  await fake.enqueue("a", 1);
  const run = fake.run(() => {
    throw new SnoozeError("1m");
  });
  await assert.rejects(run, /for ever/);
});

test("ids are UUIDs of version 7 that sort by their making", async () => {
  const fake = new FakeClient({ now: new Date(1_790_000_000_000) });
  await fake.enqueueMany(Array.from({ length: 10_000 }, (_, payload) => ({ queue: "a", payload })));
  const ids = fake.jobs.map(({ id }) => id);
  assert.deepEqual(ids.toSorted(), ids);
  assert.equal(new Set(ids).size, ids.length);
  for (const id of ids.slice(0, 100)) {
    assert.match(id, /^01a0c450-6c00-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  }
});
