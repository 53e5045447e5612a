import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import { Client, type ClientOptions, type Handler, type WorkOptions } from "sluice-client";

/** The folder of the package. */
export const root = fileURLToPath(new URL("../../", import.meta.url));

/** The folder of the guides. The tests may run in a copy of the package. */
export const guides = process.env.SLUICE_GUIDES ?? join(root, "../../docs/guide");

/** serverUrl returns the address of the server under test. */
export function serverUrl(): string {
  const url = process.env.SLUICE_URL;
  assert.ok(url, "SLUICE_URL is missing: start `sluice serve --migrate --db sqlite:jobs.db`, then SLUICE_URL=http://127.0.0.1:7400 npm test");
  return url;
}

const answer = await fetch(`${serverUrl()}/healthz`).catch((error: Error) => error);
assert.ok(answer instanceof Response && answer.ok, `no server answers at SLUICE_URL=${serverUrl()}: ${inspect(answer)}`);

/** client returns a client of the server under test. The options may name another address. */
export function client(options: ClientOptions = {}): Client {
  return new Client({ url: serverUrl(), ...options });
}

/** newQueue names a queue that no other test uses. */
export function newQueue(): string {
  return `ts-${randomUUID()}`;
}

/** api sends a request of an operator. */
export async function api<T>(method: string, path: string, body?: object): Promise<T> {
  const token = process.env.SLUICE_TOKEN;
  const headers = { "Content-Type": "application/json", ...(token && { Authorization: `Bearer ${token}` }) };
  for (;;) {
    const response = await fetch(`${serverUrl()}/api/v1${path}`, { method, headers, body: body === undefined ? null : JSON.stringify(body) });
    const text = await response.text();
    if (response.status === 429) {
      await sleep(1000 * Number(response.headers.get("Retry-After"))); // other tests use the same token
      continue;
    }
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text) as T;
  }
}

/** settings changes the settings of a queue. */
export async function settings(queue: string, set: Record<string, string>): Promise<void> {
  await api("PATCH", `/queues/${queue}/settings`, { set, reason: "test" });
}

/** stored lists the ids of all jobs of a queue. */
export async function stored(queue: string): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor = ""; ; ) {
    const query = new URLSearchParams({ where: `queue:${queue}`, limit: "1000", ...(cursor && { cursor }) });
    const page = await api<{ jobs: { id: string }[]; next?: string }>("GET", `/jobs?${query}`);
    ids.push(...page.jobs.map((job) => job.id));
    cursor = page.next ?? "";
    if (!cursor) {
      return ids;
    }
  }
}

/** Deferred is a promise with the function that fulfils it. */
export interface Deferred<T> {
  promise: Promise<T>;
  resolve: (value: T) => void;
}

export function deferred<T = void>(): Deferred<T> {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((to) => {
    resolve = to;
  });
  return { promise, resolve };
}

/** aborted waits until a signal is aborted, and returns the reason. */
export async function aborted(signal: AbortSignal): Promise<unknown> {
  if (!signal.aborted) {
    await once(signal, "abort");
  }
  return signal.reason;
}

/** Working is a worker of a test. */
export interface Working {
  /** stop aborts the signal, and waits for the end. */
  stop(): Promise<void>;
  done: Promise<void>;
  /** What went to onError. */
  errors: Error[];
}

/** working starts a worker. The test stops it. */
export function working<P = any>(t: Test, queue: string, handler: Handler<P>, options: WorkOptions & { client?: Client } = {}): Working {
  const { client: by = client(), ...rest } = options;
  const control = new AbortController();
  const errors: Error[] = [];
  const done = by.work<P>(queue, handler, { onError: (error) => void errors.push(error), ...rest, signal: control.signal });
  done.catch(() => {});
  const stop = async (): Promise<void> => {
    control.abort();
    await done;
  };
  t.after(() => stop().catch(() => {}));
  return { stop, done, errors };
}

/** Test is what a test needs of node:test's context. */
export interface Test {
  after(call: () => unknown): void;
}

/** Proxy forwards connections to the server, and can cut them. */
export class Proxy {
  /** cuts says whether the connection of a request is cut after the server has answered, and before the client gets the answer. */
  cuts: (request: string) => boolean = () => false;
  /** How many answers were cut. */
  count = 0;
  #sockets = new Set<Socket>();

  private constructor(
    readonly server: Server,
    readonly port: number,
  ) {}

  static async open(t: Test): Promise<Proxy> {
    const target = new URL(serverUrl());
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const proxy = new Proxy(server, (server.address() as AddressInfo).port);
    server.on("connection", (socket) => proxy.#forward(socket, Number(target.port), target.hostname));
    t.after(() => proxy.close());
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** reopen takes connections again. */
  async reopen(): Promise<void> {
    this.server.listen(this.port, "127.0.0.1");
    await once(this.server, "listening");
  }

  /** close ends all connections, and takes no more. */
  close(): void {
    this.server.close();
    for (const socket of this.#sockets) {
      socket.destroy();
    }
  }

  #forward(socket: Socket, port: number, host: string): void {
    const upstream = connect(port, host);
    let cut = false;
    for (const each of [socket, upstream]) {
      this.#sockets.add(each);
      each.on("error", () => {});
      each.on("close", () => {
        this.#sockets.delete(each);
        socket.destroy();
        upstream.destroy();
      });
    }
    socket.on("data", (data) => {
      const request = /^[A-Z]+ \S+/.exec(data.toString("latin1"));
      if (request) {
        cut = this.cuts(request[0]);
      }
      upstream.write(data);
    });
    upstream.on("data", (data) => {
      if (cut) {
        this.count++;
        socket.destroy();
        return;
      }
      socket.write(data);
    });
  }
}

/** cutFirst cuts the first answer to a request that the pattern matches. */
export function cutFirst(pattern: RegExp): (request: string) => boolean {
  let cut = false;
  return (request) => {
    const now = !cut && pattern.test(request);
    cut ||= now;
    return now;
  };
}

/** Program is a process of a test. */
export class Program {
  readonly child: ChildProcess;
  #messages: Record<string, unknown>[] = [];
  #arrived = deferred();

  constructor(t: Test, file: string, args: string[], url = serverUrl()) {
    this.child = spawn(process.execPath, [file, ...args], {
      cwd: root,
      env: { ...process.env, SLUICE_URL: url, NODE_TEST_CONTEXT: undefined },
      stdio: ["ignore", "pipe", "inherit", "ipc"],
    });
    this.child.on("message", (message: Record<string, unknown>) => {
      this.#messages.push(message);
      this.#arrived.resolve();
      this.#arrived = deferred();
    });
    t.after(() => {
      this.child.kill("SIGKILL");
    });
  }

  /** said waits for a message of the process with a field. */
  async said(field: string): Promise<Record<string, unknown>> {
    for (;;) {
      const arrived = this.#arrived.promise;
      const at = this.#messages.findIndex((message) => field in message);
      if (at >= 0) {
        return this.#messages.splice(at, 1)[0] ?? {};
      }
      await arrived;
    }
  }

  /** heard reports whether there is a message with a field that nobody has waited for. */
  heard(field: string): boolean {
    return this.#messages.some((message) => field in message);
  }

  /** output waits for the end, and returns the standard output. */
  async output(): Promise<string> {
    const ended = once(this.child, "close");
    let text = "";
    for await (const part of this.child.stdout ?? []) {
      text += part;
    }
    const [code, signal] = await ended;
    assert.equal(code, 0, `it ended with ${code ?? signal}, and printed ${text}`);
    return text;
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }
}
