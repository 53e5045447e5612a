import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { inspect } from "node:util";
import { ApiError, Client, ConnectionError, type EnqueueOptions, InvalidError, NotFoundError } from "sluice-client";
import { FakeClient } from "sluice-client/testing";
import { client, cutFirst, newQueue, Proxy, serverUrl, settings, stored } from "./support.js";

const day = 86_400_000;

test("a job is stored with its options, and read back", async () => {
  const queue = newQueue();
  const [first, second] = [new Date(Date.now() + day), new Date(Date.now() + 2 * day)];
  const before = await client().enqueue(queue, null);
  const { id, duplicate } = await client().enqueue(
    queue,
    { to: "ada", at: first },
    {
      tenant: "acme",
      key: "mail-1",
      keyScope: "window",
      keyWindow: "1h30m",
      dueAt: first,
      expiresAt: second,
      priority: 2,
      labels: { country: "de" },
      maxAttempts: 7,
      timeout: 90_000,
      orderKey: "ada",
      limitKey: "example.com",
      cost: 3,
      after: [before.id],
      afterFailure: "run",
      afterFailures: { [before.id]: "wait" },
      hold: "a look first",
    },
  );
  assert.equal(duplicate, false);
  const job = await client().job<{ to: string; at: string }>(id);
  assert.deepEqual(job.payload, { to: "ada", at: first.toISOString() });
  assert.deepEqual(
    [job.queue, job.tenant, job.key, job.keyScope, job.priority, job.labels, job.maxAttempts, job.orderKey, job.after, job.afterFailure],
    [queue, "acme", "mail-1", "window", 2, { country: "de" }, 7, "ada", [before.id], "run"],
  );
  assert.deepEqual(job.afterFailures, { [before.id]: "wait" });
  assert.deepEqual([job.dueAt, job.expiresAt, job.state, job.label], [first, second, "queued", "blocked"]);
  assert.ok(job.createdAt instanceof Date && Math.abs(job.createdAt.getTime() - Date.now()) < day);
  const delayed = await client().job((await client().enqueue(queue, 1, { delay: "2d" })).id);
  assert.equal(delayed.label, "scheduled");
});

test("a job whose answer is lost is stored once", async (t) => {
  const queue = newQueue();
  const proxy = await Proxy.open(t);
  proxy.cuts = cutFirst(/^POST .*\/jobs$/);
  const receipt = await client({ url: proxy.url }).enqueue(queue, 1);
  assert.equal(proxy.count, 1);
  assert.equal(receipt.duplicate, false, "the second try finds the job of the first, which is no duplicate");
  assert.deepEqual(await stored(queue), [receipt.id]);
});

test("a job with the key or the id of another is a duplicate", async () => {
  const queue = newQueue();
  const first = await client().enqueue(queue, 1, { key: "a" });
  assert.deepEqual(await client().enqueue(queue, 2, { key: "a" }), { id: first.id, duplicate: true });
  assert.deepEqual(await client().enqueue(queue, 1, { id: first.id }), { id: first.id, duplicate: true });
  const third = await client().enqueue(queue, 3, { key: "a", onDuplicate: "replace" });
  assert.deepEqual([third.duplicate, third.replaced], [false, first.id]);
});

test("the server's refusal says the kind, the cause, the remedy and the field", async () => {
  const queue = newQueue();
  await settings(queue, { payload_limit: "10" });
  await assert.rejects(client().enqueue(queue, "more than ten bytes"), (error) => {
    assert.ok(error instanceof ApiError);
    assert.deepEqual([error.status, error.code, error.fields[0]?.field], [422, "invalid", "payload"]);
    assert.ok(error.why.includes("payload_limit") && error.do !== "" && error.requestId !== "", inspect(error));
    assert.ok(error.message.includes(error.why) && error.message.includes(error.requestId));
    return true;
  });
  await assert.rejects(client().job("01a1fb72-1dea-7abc-8fc6-99e4817522bb"), NotFoundError);
});

test("an argument that breaks a rule is refused before anything is sent", async () => {
  const offline = new Client({ url: "http://127.0.0.1:1", fetch: () => assert.fail("a request was sent") });
  const at = new Date();
  const cases: [field: string, options: object][] = [
    ["priority", { priority: 11 }],
    ["maxAttempts", { maxAttempts: 0 }],
    ["delay", { delay: "soon" }],
    ["delay", { delay: -1 }],
    ["delay", { delay: 1, dueAt: at }],
    ["dueAt", { dueAt: "2026-12-01" }],
    ["dueAt", { dueAt: new Date("never") }],
    ["expiresAt", { dueAt: at, expiresAt: at }],
    ["key", { key: "" }],
    ["key", { keyScope: "forever" }],
    ["keyScope", { key: "a", keyScope: "always" }],
    ["keyWindow", { key: "a", keyScope: "window" }],
    ["onDuplicate", { key: "a", onDuplicate: "drop" }],
    ["labels", { labels: { a: 1 } }],
    ["labels", { labels: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`l${i}`, ""])) }],
    ["tenant", { tenant: "é".repeat(65) }],
    ["orderKey", { orderKey: "a\u200bb" }],
    ["after", { after: ["1"] }],
    ["id", { id: "1" }],
    ["afterFailure", { afterFailure: "skip" }],
    ["afterFailures", { afterFailures: { x: "run" } }],
    ["afterFailures", { afterFailures: { "01a1fb72-1dea-7abc-8fc6-99e4817522bb": "skip" } }],
    ["afterFailures", { afterFailures: "run" }],
    ["prioritty", { prioritty: 1 }],
  ];
  for (const [field, options] of cases) {
    await assert.rejects(offline.enqueue("mail", 1, options as EnqueueOptions), { name: "InvalidError", field }, inspect(options));
  }
  for (const payload of [undefined, () => 1, Symbol("a"), 1n, { big: 1n }]) {
    await assert.rejects(offline.enqueue("mail", payload), { name: "InvalidError", field: "payload" }, inspect(payload));
  }
  for (const queue of ["", "a b", "-a", "a".repeat(65), "sluice.notify.x"]) {
    await assert.rejects(offline.enqueue(queue, 1), { name: "InvalidError", field: "queue" }, queue);
  }
  for (const options of [{ url: "127.0.0.1:7400" }, { url: "ftp://x" }, { url: "http://u:secret@x" }, { token: "a b" }]) {
    assert.throws(
      () => new Client(options),
      (error) => error instanceof InvalidError && !error.message.includes("secret"),
    );
  }
});

test("a request is sent again as soon as the server asks for it", async () => {
  const answers = [
    new Response('{"status":429,"code":"full","why":"the queue is full"}', { status: 429, headers: { "Retry-After": "0" } }),
    new Response("bad gateway", { status: 502 }),
  ];
  const by = client({ fetch: async (...given) => answers.shift() ?? fetch(...given) });
  const queue = newQueue();
  const { id } = await by.enqueue(queue, 1);
  assert.deepEqual([answers.length, await stored(queue)], [0, [id]]);
});

test("a refusal that lasts longer than the client's timeout is thrown at once", async () => {
  const full = (): Response => new Response('{"code":"full","why":"the queue is full"}', { status: 429, headers: { "Retry-After": "3600" } });
  await assert.rejects(client({ fetch: async () => full() }).enqueue("mail", 1), (error) => {
    assert.ok(error instanceof ApiError);
    assert.deepEqual([error.code, error.retryAfter], ["full", 3_600_000]);
    return true;
  });
});

test("an unreachable server is a ConnectionError that says where and why, without the token", async (t) => {
  const proxy = await Proxy.open(t);
  proxy.close();
  const by = new Client({ url: proxy.url, token: "sluice_secret", timeout: 200 });
  await assert.rejects(by.enqueue("mail", 1), (error) => {
    assert.ok(error instanceof ConnectionError);
    assert.ok(error.message.includes(`${proxy.url}/api/v1/jobs`) && error.message.includes("ECONNREFUSED"), error.message);
    assert.ok(!inspect(error, { depth: 9 }).includes("secret") && !inspect(by, { depth: 9, showHidden: true }).includes("secret"));
    return true;
  });
});

test("an answer that is not from Sluice is an ApiError that says so", async (t) => {
  const server = createServer((_, response) => response.end("<h1>login</h1>"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const by = new Client({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` });
  await assert.rejects(by.enqueue("mail", 1), (error) => {
    assert.ok(error instanceof ApiError);
    assert.deepEqual([error.status, error.code], [200, "http_200"]);
    assert.match(error.why, /not from Sluice/);
    return true;
  });
});

test("a token goes to no other machine without encryption", () => {
  for (const url of ["http://jobs.example.com:7400", "http://10.0.0.1", "http://[fe80::1]:7400", "http://localhost.example", "http://127.0.0.1.example"]) {
    assert.throws(() => new Client({ url, token: "sluice_secret" }), /would show the token to everybody on the way; use https/, url);
  }
  for (const url of ["https://jobs.example.com", "http://localhost:7400", "http://127.0.0.2", "http://[::1]:7400"]) {
    new Client({ url, token: "sluice_secret" });
  }
  new Client({ url: "http://jobs.example.com", token: "" }); // it shows nothing
});

test("an address that redirects is told, and ends a worker", async (t) => {
  const server = createServer((_, response) => response.writeHead(308, { Location: "https://sluice.example/login?state=secret" }).end());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const by = new Client({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  for (const call of [() => by.enqueue("mail", 1), () => by.work("mail", () => 1)]) {
    await assert.rejects(call, (error) => {
      assert.ok(error instanceof ApiError);
      assert.deepEqual([error.status, error.code], [308, "redirect"]);
      assert.match(error.message, /redirects to https:\/\/sluice\.example\/login; SLUICE_URL must be/);
      return true;
    });
  }
});

test("address and token come from the environment", async (t) => {
  const before = { ...process.env };
  t.after(() => {
    process.env = before;
  });
  const url = serverUrl();
  process.env.SLUICE_URL = `${url}/`;
  process.env.SLUICE_TOKEN = "sluice_1234";
  let seen: [string, string | null] | undefined;
  const by = new Client({
    fetch: async (url, init) => {
      seen = [String(url), new Headers(init?.headers).get("Authorization")];
      return new Response('{"id":"a"}');
    },
  });
  await by.enqueue("mail", 1);
  assert.deepEqual(seen, [`${url}/api/v1/jobs`, "Bearer sluice_1234"]);
});

test("cancel ends waiting jobs, and says which jobs it left", async () => {
  const queue = newQueue();
  const { id } = await client().enqueue(queue, 1);
  const none = "01a1fb72-1dea-7abc-8fc6-99e4817522bb";
  const { done, failed } = await client().cancel([id, none], "customer left");
  assert.equal(done, 1);
  assert.deepEqual(failed.map((each) => [each.id, each.error.code]), [[none, "not_found"]]);
  assert.equal((await client().job(id)).state, "cancelled");
});

test("the fake treats keys as the server does", async () => {
  const queue = newQueue();
  const now = new Date();
  const dueAt = new Date(now.getTime() + 86_400_000);
  const throttle = { keyScope: "window", keyWindow: "2h", onDuplicate: "coalesce" } as const;
  const forever = { keyScope: "forever" } as const;
  const window = { keyScope: "window", keyWindow: "1h" } as const;
  const steps: (EnqueueOptions | "cancel")[] = [
    ...[{ key: "a" }, { key: "a" }, { key: "a", onDuplicate: "replace" }, { key: "a", onDuplicate: "coalesce" }, { key: "a", ...forever }],
    ...["cancel", { key: "a" }, { key: "a", ...forever }, { key: "a", ...forever, onDuplicate: "replace" }],
    ...[{ key: "w", ...window }, "cancel", { key: "w", ...window }, { key: "f", ...forever }, "cancel", { key: "f" }],
    ...[{ key: "d", dueAt }, { key: "d", onDuplicate: "debounce", delay: "2h" }, { key: "d", onDuplicate: "debounce", delay: "1m" }],
    ...[{ key: "m", delay: "1s" }, { key: "m", onDuplicate: "debounce", keyWindow: "2h", delay: "1d" }],
    ...[{ key: "t", ...throttle }, { key: "t", ...throttle }, "cancel", { key: "t", ...throttle }, { key: "t", ...throttle }],
    ...[{ key: "t", onDuplicate: "coalesce" }, { key: "t", onDuplicate: "debounce" }, "cancel", { key: "t", ...throttle }],
    ...[{ key: "t", ...window, onDuplicate: "replace" }, { key: "u" }, { key: "u", ...throttle }, "cancel", { key: "u", ...throttle }],
    ...[{ key: "e", ...forever }, { key: "e", ...throttle }, "cancel", { key: "e", ...throttle }],
    ...[{ key: "r", ...forever }, { key: "r", onDuplicate: "replace" }, "cancel", { key: "r" }],
  ] as (EnqueueOptions | "cancel")[];
  const fates = [];
  for (const producer of [new FakeClient({ now }), client()]) {
    const ids: string[] = [];
    const fate: unknown[] = [];
    for (const [payload, step] of steps.entries()) {
      if (step === "cancel") {
        await producer.cancel([...new Set(ids)]);
        continue;
      }
      const { id, duplicate, replaced } = await producer.enqueue(queue, payload, step);
      ids.push(id);
      fate.push([ids.indexOf(id), duplicate, replaced && ids.indexOf(replaced)]);
    }
    for (const id of ids) {
      const { payload, state, dueAt } = await producer.job(id);
      fate.push([payload, state, Math.round((dueAt.getTime() - now.getTime()) / 3_600_000)]);
    }
    fates.push(fate);
  }
  assert.deepEqual(fates[0], fates[1]);
});
