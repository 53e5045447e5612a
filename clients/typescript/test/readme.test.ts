import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { client, guides, newQueue, Program, root, stored } from "./support.js";

/** written writes the programs of a page to files, with queues of the test. */
async function written(page: string, names: string[], queue: string): Promise<string> {
  const text = await readFile(page, "utf8");
  const folder = join(root, "build", queue);
  await mkdir(folder, { recursive: true });
  const programs = [...text.matchAll(/```js\n\/\/ (\S+)\n(.*?)```/gs)];
  assert.deepEqual(programs.map(([, name]) => name), names);
  for (const [, name = "", code = ""] of programs) {
    await writeFile(join(folder, name), code.replaceAll('"mail"', `"${queue}"`).replaceAll('"export"', `"${queue}-export"`));
  }
  return folder;
}

test("the programs of the README do what it says", async (t) => {
  const folder = await written(join(root, "README.md"), ["worker.mjs", "enqueue.mjs"], newQueue());
  new Program(t, join(folder, "worker.mjs"), []);
  assert.equal(await new Program(t, join(folder, "enqueue.mjs"), []).output(), "sent to ada\n");
});

test("the programs of the guide do what it says", async (t) => {
  const queue = newQueue();
  const names = ["shop.mjs", "mail.mjs", "worker.mjs", "export.mjs", "result.mjs", "mail.test.mjs"];
  const folder = await written(join(guides, "typescript.md"), names, queue);
  const worker = new Program(t, join(folder, "worker.mjs"), []);
  assert.equal(await new Program(t, join(folder, "shop.mjs"), []).output(), "100 stored, 0 refused\n");
  assert.equal(await new Program(t, join(folder, "result.mjs"), []).output(), "there is no such person\n");
  worker.kill("SIGTERM");
  assert.equal(await worker.output(), "");
  assert.match(await new Program(t, "--test", [join(folder, "mail.test.mjs")]).output(), /pass 1\b/);
  new Program(t, join(folder, "export.mjs"), []);
  const { id } = await client().enqueue(`${queue}-export`, 1);
  assert.deepEqual(await client().result(id), { pages: 9 });
});

test("the example of many jobs stores each line once", async (t) => {
  const queue = newQueue();
  const file = join(root, "build", `${queue}.jsonl`);
  await writeFile(file, '{"to":"ada"}\n{"to":"bob"}\n');
  for (const want of ["2 stored, 0 were there\n", "0 stored, 2 were there\n"]) {
    assert.equal(await new Program(t, "examples/import.mjs", [queue, file]).output(), want);
  }
  assert.equal((await stored(queue)).length, 2);
});

test("the example of a long job goes on where it was stopped", async (t) => {
  const queue = newQueue();
  const { id } = await client().enqueue(queue, { pages: 20, wait: 100 });
  const first = new Program(t, "examples/report.mjs", [queue]);
  let page = 0;
  while (page === 0) {
    await sleep(50); // the first checkpoint is soon there
    page = ((await client().job(id)).checkpoint as { page: number } | undefined)?.page ?? 0;
  }
  first.kill("SIGTERM");
  assert.equal(await first.output(), "");
  const stopped = await client().job(id);
  assert.deepEqual([stopped.state, stopped.attempts, stopped.releases], ["queued", 0, 1]);
  const second = new Program(t, "examples/report.mjs", [queue]);
  assert.deepEqual(await client().result(id), { sum: 210 });
  second.kill("SIGTERM");
  await second.output();
});
