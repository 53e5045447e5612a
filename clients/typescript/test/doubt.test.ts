import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, EnqueueManyError } from "sluice-client";

type Sent = { id: string; payload: number };

/** enqueue sends four jobs, 0 to 3, to a server that answers each request by a function. */
function enqueue(answer: (jobs: Sent[], request: number) => Response): ReturnType<Client["enqueueMany"]> {
  let requests = 0;
  const fetch = async (_: unknown, init?: RequestInit): Promise<Response> => answer(JSON.parse(String(init?.body)), requests++);
  const by = new Client({ url: "http://127.0.0.1:1", timeout: 300, fetch });
  return by.enqueueMany([0, 1, 2, 3].map((payload) => ({ queue: "a", payload, id: `01a1fb72-1dea-7abc-8fc6-99e48175220${payload}` })));
}

/** results answers for each job: an error for the last one. */
function results(jobs: Sent[], error: object): Response {
  return Response.json({ results: jobs.map(({ id, payload }) => (payload === 3 ? { error } : { id })) });
}

const away = { status: 503, code: "store_unavailable", why: "the store does not answer" };
const full = { status: 429, code: "full", why: "the queue is full" };

test("a job that the store did not take in time is in doubt, not refused", async () => {
  await assert.rejects(
    enqueue((jobs) => results(jobs, away)),
    (error) => {
      assert.ok(error instanceof EnqueueManyError);
      assert.deepEqual([error.next, error.result, error.ids.length], [0, { stored: 0, duplicates: 0, refused: [] }, 4]);
      assert.match(error.message, /the store does not answer/);
      return true;
    },
  );
});

test("a job for which a queue had no room in time is refused", async () => {
  const { stored, refused } = await enqueue((jobs) => results(jobs, full));
  assert.deepEqual([stored, refused.map(({ index }) => index)], [3, [3]]);
});

test("a job without room is in doubt when the next answer is lost", async () => {
  const answer = (jobs: Sent[], request: number): Response => {
    if (request > 0) {
      throw new Error("the connection was cut");
    }
    return results(jobs, full);
  };
  await assert.rejects(enqueue(answer), (error) => error instanceof EnqueueManyError && error.next === 0);
});

test("jobs of a request that was split are known up to the one in doubt", async () => {
  const answer = (jobs: Sent[]): Response => (jobs.length > 2 ? new Response("too large", { status: 413 }) : results(jobs, away));
  await assert.rejects(enqueue(answer), (error) => {
    assert.ok(error instanceof EnqueueManyError);
    assert.deepEqual([error.next, error.result.stored, error.ids.length], [2, 2, 2]);
    return true;
  });
});

test("a job that is too large alone is refused", async () => {
  const answer = (jobs: Sent[]): Response => (jobs.some(({ payload }) => payload === 3) ? new Response("too large", { status: 413 }) : results(jobs, away));
  const { stored, refused } = await enqueue(answer);
  assert.deepEqual([stored, refused.map(({ index }) => index)], [3, [3]]);
});
