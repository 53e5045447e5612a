import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError, EnqueueManyError, InvalidError, type NewJob } from "sluice-client";
import { client, newQueue, Proxy, stored } from "./support.js";

async function* jobs(queue: string, count: number, odd: Record<number, object> = {}): AsyncGenerator<NewJob> {
  for (let i = 0; i < count; i++) {
    yield { queue, payload: i, ...odd[i] };
  }
}

test("many jobs are stored, and each refused one is named by its place", async () => {
  const queue = newQueue();
  const odd = { 3: { priority: 0 }, 1500: { expiresAt: new Date(1_000_000_000_000) }, 1600: { key: "a" }, 2400: { key: "a" } };
  const { stored: count, duplicates, refused } = await client().enqueueMany(jobs(queue, 2500, odd));
  assert.deepEqual([count, duplicates], [2497, 1]);
  assert.deepEqual(refused.map(({ index }) => index), [3, 1500]);
  assert.ok(refused[0]?.error instanceof InvalidError && refused[0].error.field === "priority");
  assert.ok(refused[1]?.error instanceof ApiError && refused[1].error.fields[0]?.field === "expires_at");
  assert.equal((await stored(queue)).length, 2497);
});

test("many jobs whose answers are lost are stored once", async (t) => {
  const queue = newQueue();
  const proxy = await Proxy.open(t);
  let requests = 0;
  proxy.cuts = () => requests++ % 2 === 0;
  const answer = await client({ url: proxy.url }).enqueueMany(jobs(queue, 2100));
  assert.deepEqual(answer, { stored: 2100, duplicates: 0, refused: [] });
  assert.equal(proxy.count, 3, "each of the 3 requests was cut once");
  assert.equal((await stored(queue)).length, 2100);
});

test("an iterable that fails leaves no doubt about the jobs before", async () => {
  const queue = newQueue();
  async function* broken(): AsyncGenerator<NewJob> {
    yield* jobs(queue, 1100);
    throw new Error("the file is torn");
  }
  await assert.rejects(client().enqueueMany(broken()), (error) => {
    assert.ok(error instanceof EnqueueManyError);
    assert.deepEqual([error.next, error.result.stored], [1000, 1000]);
    assert.match(error.message, /job 1000 and later ones have no answer: the file is torn/);
    return true;
  });
  assert.equal((await stored(queue)).length, 1000);
});

test("a server that goes away leaves no doubt about the jobs before", async (t) => {
  const queue = newQueue();
  const proxy = await Proxy.open(t);
  let requests = 0;
  const by = client({
    url: proxy.url,
    timeout: 10_000, // a slow machine stores the first 1,000 within it
    fetch: async (...given) => {
      if (++requests === 2) {
        proxy.close();
      }
      return fetch(...given);
    },
  });
  await assert.rejects(by.enqueueMany(jobs(queue, 1500)), (error) => {
    assert.ok(error instanceof EnqueueManyError);
    assert.deepEqual([error.next, error.result], [1000, { stored: 1000, duplicates: 0, refused: [] }]);
    return true;
  });
});

test("a request that a proxy finds too large is split", async () => {
  const queue = newQueue();
  let refused = 0;
  const by = client({
    fetch: async (url, init) => {
      if (String(init?.body).length > 2000) {
        refused++;
        return new Response("too large", { status: 413 });
      }
      return fetch(url, init);
    },
  });
  assert.deepEqual(await by.enqueueMany(jobs(queue, 50)), { stored: 50, duplicates: 0, refused: [] });
  assert.ok(refused > 0);
});

test("a job that the server cannot take yet is sent again, alone", async () => {
  const queue = newQueue();
  const sizes: number[] = [];
  const by = client({
    fetch: async (url, init) => {
      const sent = JSON.parse(String(init?.body)) as object[];
      sizes.push(sent.length);
      if (sizes.length > 1) {
        return fetch(url, init);
      }
      const response = await fetch(url, { ...init, body: JSON.stringify(sent.slice(1)) });
      const answer = (await response.json()) as { results: object[] };
      answer.results.unshift({ error: { status: 503, code: "store_unavailable", why: "the store does not answer" } });
      return Response.json(answer);
    },
  });
  assert.deepEqual(await by.enqueueMany(jobs(queue, 3)), { stored: 3, duplicates: 0, refused: [] });
  assert.deepEqual(sizes, [3, 1]);
});
