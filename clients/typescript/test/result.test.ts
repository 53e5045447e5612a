import assert from "node:assert/strict";
import { test } from "node:test";
import { CancelledError, DeadError, InvalidError, NotFoundError, PermanentError, TimeoutError } from "sluice-client";
import { client, cutFirst, newQueue, Proxy, working } from "./support.js";

test("result waits for the end of a job, also over cut connections", async (t) => {
  const queue = newQueue();
  const proxy = await Proxy.open(t);
  proxy.cuts = cutFirst(/\/end/);
  const { id } = await client().enqueue(queue, { a: 1 });
  const result = client({ url: proxy.url }).result<{ a: number }>(id);
  working(t, queue, (job) => job.payload);
  assert.deepEqual(await result, { a: 1 });
  assert.equal(proxy.count, 1);
});

test("result throws the typed end of a job without a result", async (t) => {
  const queue = newQueue();
  const { id: cancelled } = await client().enqueue(queue, 1);
  await client().cancel(cancelled);
  await assert.rejects(client().result(cancelled), CancelledError);
  const { id: dead } = await client().enqueue(queue, 2);
  working(t, queue, () => {
    throw new PermanentError("no such person");
  });
  await assert.rejects(client().result(dead), (error) => error instanceof DeadError && error.failure === "no such person" && error.id === dead);
  await assert.rejects(client().result("01a1fb72-1dea-7abc-8fc6-99e4817522bb"), NotFoundError);
  await assert.rejects(client().result("../tokens"), InvalidError);
});

test("result ends after its timeout, and when its signal is aborted", async () => {
  const { id } = await client().enqueue(newQueue(), 1);
  await assert.rejects(client().result(id, { timeout: "20ms" }), TimeoutError);
  await assert.rejects(client().result(id, { timeout: 0 }), TimeoutError);
  const control = new AbortController();
  const result = client().result(id, { signal: control.signal });
  control.abort(new Error("enough"));
  await assert.rejects(result, /enough/);
});
