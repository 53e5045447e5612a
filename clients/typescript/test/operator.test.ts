import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { api, client, deferred, newQueue, working } from "./support.js";

/** Observed sees the requests of a worker. */
class Observed {
  /** The bodies of all heartbeats. */
  readonly beats: Record<string, unknown>[] = [];
  #claims = 0;
  readonly #claimed = deferred();
  #answered = deferred<string>();

  readonly fetch: typeof fetch = async (url, init) => {
    const claims = String(url).endsWith("/work/claim");
    try {
      const response = await fetch(url, init);
      if (String(url).endsWith("/work/heartbeat")) {
        this.beats.push(JSON.parse(String(init?.body)) as Record<string, unknown>);
        const { wanted } = (await response.clone().json()) as { wanted: string };
        this.#answered.resolve(wanted);
        this.#answered = deferred();
      }
      return response;
    } finally {
      if (claims && ++this.#claims === 2) {
        this.#claimed.resolve();
      }
    }
  };

  /** quiet waits until two claims have ended: the one that waits, and the one whose jobs the worker hands back. */
  quiet(): Promise<void> {
    return this.#claimed.promise;
  }

  /** told waits for a heartbeat that is answered with an instruction. */
  async told(wanted: string): Promise<void> {
    while ((await this.#answered.promise) !== wanted) {}
  }
}

/** instruct gives all processes of a version an instruction. */
async function instruct(version: string, wanted: string): Promise<void> {
  await api("POST", "/holders/instructions", { target: { version }, wanted, reason: "test" });
}

describe("an operator", { concurrency: true }, () => {
  test("sees the worker, and stops it", async (t) => {
    const [queue, version] = [newQueue(), newQueue()];
    const seen = new Observed();
    const first = seen.told("work");
    const worker = working(t, queue, () => 1, { client: client({ fetch: seen.fetch }), version, worker: `h:1:${version}`, concurrency: 3 });
    await first;
    const { holders } = await api<{ holders: { id: string; version: string; slots: number; queues: string[] }[] }>("GET", "/holders");
    const shown = holders.find((holder) => holder.version === version);
    assert.ok(shown?.id.startsWith(`h:1:${version}`));
    assert.deepEqual([shown?.slots, shown?.queues], [3, [queue]]);
    await instruct(version, "stop");
    await worker.done;
    assert.deepEqual(seen.beats.at(-1), { worker: `h:1:${version}`, leaving: true });
  });

  test("quiesces the worker, which claims nothing until it is told to work", async (t) => {
    const [queue, version] = [newQueue(), newQueue()];
    const seen = new Observed();
    const first = seen.told("work");
    const worker = working(t, queue, () => "done", { client: client({ fetch: seen.fetch }), version });
    await first;
    const quiesced = seen.told("quiesce");
    await instruct(version, "quiesce");
    await quiesced;
    await seen.quiet();
    const { id } = await client().enqueue(queue, 1);
    const works = seen.told("work");
    assert.equal((await client().job(id)).label, "ready");
    await instruct(version, "work");
    await works;
    assert.equal(seen.beats.at(-1)?.mode, "quiesced");
    assert.equal(await client().result(id), "done");
    await worker.stop();
  });
});
