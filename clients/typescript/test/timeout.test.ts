import assert from "node:assert/strict";
import { test } from "node:test";
import { client, newQueue, working } from "./support.js";

test("a handler that ignores its timeout fails all the same", async (t) => {
  const queue = newQueue();
  const { id } = await client().enqueue(queue, 1, { timeout: "50ms", maxAttempts: 1 });
  const never = new Promise(() => {});
  const worker = working(t, queue, () => never, { drainTimeout: 0 });
  await assert.rejects(client().result(id), /exceeded its timeout of 0\.05 s, and the handler ignored it$/);
  await worker.stop();
});
