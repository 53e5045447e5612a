import assert from "node:assert/strict";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test as always } from "node:test";
import { CertificateError, Client, type ClientOptions } from "sluice-client";
import { guides, newQueue, Program, root, working } from "./support.js";

const { SLUICE_TLS_URL: url = "", SLUICE_TLS_TOKEN: token = "", SLUICE_TLS_FOLDER: folder = "" } = process.env;
const test = url ? always : always.skip; // clients_test.go starts such a server
const { certified } = await import(join(root, "examples", "certified.mjs"));
delete process.env.SLUICE_TOKEN; // a server takes a token before a certificate

/** shows returns the options of a client that shows a certificate. */
function shows(name: string, authority = "authority"): ClientOptions {
  const file = (name: string): string => join(folder, `${name}.pem`);
  return { url, fetch: certified({ ca: file(authority), cert: file(name), key: file(`${name}-key`) }) };
}

test("a client that shows a certificate enqueues and works", async (t) => {
  const queue = newQueue();
  const client = new Client(shows("eu-worker"));
  const worker = working<number>(t, queue, (job) => job.payload * 2, { client });
  for (const payload of [1, 2, 3]) {
    const { id } = await client.enqueue(queue, payload);
    assert.equal(await client.result(id, { timeout: "60s" }), payload * 2);
  }
  await worker.stop(); // it aborts the claim that waits
  assert.deepEqual(worker.errors, []);
});

test("a certificate that one side refuses is told at once", async () => {
  for (const [options, remedy] of [
    [{ url, token }, /NODE_EXTRA_CA_CERTS/],
    [shows("eu-worker", "other"), /NODE_EXTRA_CA_CERTS/],
    [shows("foreign"), /--tls-client-ca/],
    [shows("ended"), /--tls-client-ca/],
  ] as const) {
    const client = new Client({ timeout: 600_000, ...options });
    for (const call of [() => client.enqueue("q", 1), () => client.work("q", () => 1)]) {
      await assert.rejects(call, (error: Error) => error instanceof CertificateError && remedy.test(error.message));
    }
  }
});

/** written writes a program, and the example that it may import, to a folder. */
async function written(code: string): Promise<string> {
  const at = join(root, "build", newQueue());
  await mkdir(at, { recursive: true });
  await copyFile(join(root, "examples", "certified.mjs"), join(at, "certified.mjs"));
  await writeFile(join(at, "program.mjs"), `${code}\nconsole.log((await client.job((await client.enqueue("guide", 1)).id)).state);\n`);
  return join(at, "program.mjs");
}

test("Node trusts the authority of NODE_EXTRA_CA_CERTS", async (t) => {
  process.env.NODE_EXTRA_CA_CERTS = join(folder, "authority.pem"); // counts for programs that start
  t.after(() => delete process.env.NODE_EXTRA_CA_CERTS);
  const code = `import { Client } from "sluice-client";\nconst client = new Client({ token: ${JSON.stringify(token)} });`;
  assert.equal(await new Program(t, await written(code), [], url).output(), "queued\n");
});

test("the program of the guide shows a certificate", async (t) => {
  const guide = await readFile(join(guides, "secure.md"), "utf8");
  const [, code = ""] = /```js\n(.*?)```/s.exec(guide) ?? [];
  const there = code.replace("https://jobs.example.com:7400", url).replaceAll(/"([\w-]+\.pem)"/g, (_, name) => JSON.stringify(join(folder, name)));
  assert.equal(await new Program(t, await written(there), []).output(), "queued\n");
});
