import { type Duration, durationText, milliseconds, now, pause } from "./duration.js";
import { ApiError, CancelledError, DeadError, EnqueueManyError, InvalidError, type Refused, TimeoutError } from "./errors.js";
import { again, Transport, waitAfter } from "./http.js";
import { IdMaker, isId } from "./id.js";
import { type EnqueueOptions, type NewJob, wireJob, wireText } from "./newjob.js";
import { type JobView, type State, viewOf } from "./view.js";
import { type Handler, Worker, type WorkOptions } from "./worker.js";

/** ClientOptions say where the server is. */
export interface ClientOptions {
  /** The address of `sluice serve`. Default: SLUICE_URL, then `http://127.0.0.1:7400`. */
  url?: string;
  /** The token of the caller. Default: SLUICE_TOKEN, then none. */
  token?: string;
  /** The most milliseconds for one call, with all its tries. Default: 30,000. */
  timeout?: number;
  /** Sends the requests. Default: the `fetch` of Node. */
  fetch?: typeof globalThis.fetch;
}

/** Receipt is the answer to an enqueue. */
export interface Receipt {
  /** The id of the job. For a duplicate, the job that has the key. */
  id: string;
  /** True: the job was not stored, because another has its key or its id. */
  duplicate: boolean;
  /** The waiting job that this one replaced. */
  replaced?: string;
}

/** EnqueuedMany says what became of many jobs. */
export interface EnqueuedMany {
  /** How many jobs are new. */
  stored: number;
  /** How many jobs were there before. */
  duplicates: number;
  /** The jobs that were not stored, by their places. */
  refused: Refused[];
}

/** Acted says what became of the jobs of an act. */
export interface Acted {
  /** How many jobs the act changed. */
  done: number;
  /** The other jobs, with the reasons. */
  failed: { id: string; error: ApiError }[];
}

/** ResultOptions bound the wait for a result. */
export interface ResultOptions {
  /** The longest wait. Default: for ever. */
  timeout?: Duration;
  /** Ends the wait; the error is the signal's reason. */
  signal?: AbortSignal;
}

/** Producer is the part of a client that enqueues and waits. A test gives your code a `FakeClient` instead. */
export interface Producer {
  enqueue(queue: string, payload: unknown, options?: EnqueueOptions): Promise<Receipt>;
  enqueueMany(jobs: Iterable<NewJob> | AsyncIterable<NewJob>): Promise<EnqueuedMany>;
  job<P = unknown>(id: string): Promise<JobView<P>>;
  cancel(ids: string | string[], reason?: string): Promise<Acted>;
  result<T = unknown>(id: string, options?: ResultOptions): Promise<T>;
}

/** The most jobs and bytes of one request. Proxies refuse more than 1 MiB by default. */
const mostJobs = 1000;
const mostBytes = 1_000_000;
const mostActed = 10_000;
/** The longest that one request waits for the end of a job, and how much later its answer may come. */
const longPoll = 30_000;
const slack = 15_000;

/** Client enqueues jobs into a Sluice server and works on them. It may be shared, and needs no end. */
export class Client implements Producer {
  readonly #transport: Transport;
  readonly #timeout: number;
  readonly #ids = new IdMaker();

  /** @throws InvalidError if an option breaks a rule */
  constructor(options: ClientOptions = {}) {
    const { url = process.env.SLUICE_URL || "http://127.0.0.1:7400", token = process.env.SLUICE_TOKEN ?? "" } = options;
    this.#timeout = milliseconds("timeout", options.timeout ?? 30_000);
    this.#transport = new Transport(url, token, options.fetch ?? ((...given) => fetch(...given)));
  }

  /**
   * enqueue stores a job. After a lost answer it sends the job again, under the same id: the job is stored once.
   *
   * @throws InvalidError if an argument breaks a rule
   * @throws ApiError if the server refuses the job
   * @throws ConnectionError if no answer came within the client's timeout: the job may be stored
   */
  async enqueue(queue: string, payload: unknown, options: EnqueueOptions = {}): Promise<Receipt> {
    const job = wireJob({ ...options, queue, payload }, () => this.#ids.next());
    const body = wireText(job);
    const found = await this.#transport.sendAgain<Found>({ method: "POST", path: "/jobs", what: "enqueue a job", body }, this.#timeout);
    return receiptOf(found, options.id === undefined ? job.id : "");
  }

  /**
   * enqueueMany stores any number of jobs, in order, with a request for each 1,000. Jobs that break a rule are in `refused`; the others
   * are stored.
   *
   * @throws EnqueueManyError if the server does not answer any more, or not for each job, or the iterable fails. It has what became of the
   *   jobs before.
   */
  async enqueueMany(jobs: Iterable<NewJob> | AsyncIterable<NewJob>): Promise<EnqueuedMany> {
    const sum: EnqueuedMany = { stored: 0, duplicates: 0, refused: [] };
    let chunk: Item[] = [];
    let bytes = 0;
    let index = 0;
    const flush = async (): Promise<void> => {
      while (chunk.length > 0) {
        chunk = chunk.slice(await this.#sendSome(chunk, sum));
      }
      bytes = 0;
    };
    try {
      for await (const job of jobs) {
        const item = this.#itemOf(job, index++, sum);
        if (item === undefined) {
          continue;
        }
        const size = Buffer.byteLength(item.text);
        if (chunk.length === mostJobs || (chunk.length > 0 && bytes + size > mostBytes)) {
          await flush();
        }
        chunk.push(item);
        bytes += size;
      }
      await flush();
    } catch (error) {
      const next = chunk[0]?.index ?? index;
      const refused = sum.refused.filter((job) => job.index < next);
      throw new EnqueueManyError({ ...sum, refused }, next, chunk.filter((item) => item.sent).map((item) => item.id), error);
    }
    sum.refused.sort((a, b) => a.index - b.index);
    return sum;
  }

  /**
   * job reads a job.
   *
   * @throws NotFoundError if there is no such job
   */
  async job<P = unknown>(id: string): Promise<JobView<P>> {
    const path = `/jobs/${checkId(id)}`;
    return viewOf<P>(await this.#transport.sendAgain<Record<string, unknown>>({ method: "GET", path, what: "read a job" }, this.#timeout));
  }

  /**
   * cancel cancels jobs that have not ended; running handlers are told. The token needs the role operator.
   *
   * @param reason is for the audit
   */
  async cancel(ids: string | string[], reason = ""): Promise<Acted> {
    const all = (typeof ids === "string" ? [ids] : ids).map(checkId);
    const out: Acted = { done: 0, failed: [] };
    for (let at = 0; at < all.length; at += mostActed) {
      const answer = await this.#transport.sendAgain<{ done: number; failed: { id: string; error: object }[] }>(
        {
          method: "POST",
          path: "/jobs/cancel",
          what: "cancel jobs",
          body: JSON.stringify({ ids: all.slice(at, at + mostActed), ...(reason && { reason }) }),
          headers: { "Idempotency-Key": this.#ids.next() }, // a second try cancels nothing twice
        },
        this.#timeout,
      );
      out.done += answer.done;
      out.failed.push(...answer.failed.map(({ id, error }) => ({ id, error: new ApiError(error) })));
    }
    return out;
  }

  /**
   * result waits for the end of a job, and returns its result. Undefined: the job has none.
   *
   * @throws DeadError if the job died, CancelledError if it was cancelled, NotFoundError if there is none
   * @throws TimeoutError if the job has not ended within the timeout
   */
  async result<T = unknown>(id: string, options: ResultOptions = {}): Promise<T> {
    checkId(id);
    const { signal } = options;
    const timeout = options.timeout === undefined ? Number.POSITIVE_INFINITY : milliseconds("timeout", options.timeout);
    const until = now() + timeout;
    let failingSince: number | undefined;
    for (let tries = 1; ; ) {
      const wait = Math.max(0, Math.min(longPoll, until - now()));
      const begun = now();
      try {
        const path = `/jobs/${id}/end?wait=${durationText(wait)}`;
        const end = await this.#transport.send<End>({ method: "GET", path, what: "wait for a job", limit: wait + slack, signal });
        if (end.ended) {
          return resultOf<T>(end);
        }
        failingSince = undefined;
        tries = 1;
      } catch (error) {
        failingSince ??= now();
        const after = waitAfter(error, tries++);
        if (after === undefined || now() + after > Math.min(failingSince + this.#timeout, until)) {
          throw error;
        }
        await pause(after, signal);
        continue;
      }
      if (now() >= until) {
        throw new TimeoutError(`job ${id} has not ended within ${Math.round(timeout)} ms`);
      }
      if (now() - begun < wait - 1) {
        await pause(Math.min(250, until - now()), signal); // the server ends, and answered early
      }
    }
  }

  /**
   * work claims jobs of the queues and gives each to the handler, until the signal is aborted or an operator stops the worker. It then
   * waits for the handlers that run. The value that a handler returns is the result of the job.
   *
   * A handler fails its job by throwing: a {@link PermanentError}, a {@link RetryError}, a {@link SnoozeError}, or anything else, which is
   * tried again by the backoff of the queue.
   *
   * @throws ApiError if the server refuses the worker, such as for a wrong token
   */
  async work<P = unknown>(queues: string | string[], handler: Handler<P>, options: WorkOptions = {}): Promise<void> {
    await new Worker(this.#transport, typeof queues === "string" ? [queues] : queues, handler as Handler<unknown>, options).run();
  }

  /** itemOf checks a job of many. Undefined: it breaks a rule, and is noted as refused. */
  #itemOf(job: NewJob, index: number, sum: EnqueuedMany): Item | undefined {
    try {
      const wire = wireJob(job, () => this.#ids.next());
      return { index, id: wire.id, made: job.id === undefined ? wire.id : "", text: wireText(wire), sent: false };
    } catch (error) {
      if (!(error instanceof InvalidError)) {
        throw error;
      }
      sum.refused.push({ index, error });
      return undefined;
    }
  }

  /**
   * sendSome stores the first of some jobs with one request, and sends those again that the server cannot take yet. It returns how many
   * have an answer: all, or half if the request was too large.
   */
  async #sendSome(items: Item[], sum: EnqueuedMany): Promise<number> {
    const answers = new Map<Item, Found | undefined>();
    let left = items;
    let answered = false;
    try {
      await again(this.#timeout, undefined, async (limit) => {
        answered = false;
        for (const item of left) {
          item.sent = true;
        }
        const body = `[${left.map((item) => item.text).join(",")}]`;
        const { results } = await this.#transport.send<{ results: Found[] }>({ method: "POST", path: "/jobs", what: "enqueue jobs", body, limit });
        answered = true;
        left.forEach((item, i) => void answers.set(item, results[i]));
        left = left.filter((item) => refusalOf(answers.get(item))?.temporary);
        const refusal = left[0] && refusalOf(answers.get(left[0]));
        if (refusal) {
          throw refusal;
        }
      });
    } catch (error) {
      const [first] = items;
      if (first && error instanceof ApiError && error.status === 413) {
        if (items.length > 1) {
          return this.#sendSome(items.slice(0, items.length >> 1), sum);
        }
        sum.refused.push({ index: first.index, error });
        return 1;
      }
      const full = left.every((item) => refusalOf(answers.get(item))?.code === "full");
      if (!answered || !full) {
        throw error; // a job may be stored all the same
      }
    }
    for (const item of items) {
      tally(sum, item, answers.get(item));
    }
    return items.length;
  }
}

/** Item is a job of many on its way. */
interface Item {
  index: number;
  /** The id, and that if the client made it: then a duplicate with that id is the job itself. */
  id: string;
  made: string;
  text: string;
  /** Whether it was sent, and may be stored. */
  sent: boolean;
}

/** Found is what the server says of one job. */
interface Found {
  id?: string;
  duplicate?: boolean;
  replaced?: string;
  error?: object;
}

/** End is how a job ended. */
interface End {
  id: string;
  state: State;
  ended: boolean;
  result?: unknown;
  error?: string;
}

/** refusalOf returns why the server has not stored a job of many. Undefined: it has. */
function refusalOf(found: Found | undefined): ApiError | undefined {
  if (found === undefined) {
    return new ApiError({ code: "no_answer", what: "enqueue jobs", why: "the answer has no line for the job", status: 503 });
  }
  return found.error && new ApiError(found.error);
}

/** tally counts one job of many. */
function tally(sum: EnqueuedMany, item: Item, found: Found = {}): void {
  const error = refusalOf(found);
  if (error) {
    sum.refused.push({ index: item.index, error });
  } else if (receiptOf(found, item.made).duplicate) {
    sum.duplicates++;
  } else {
    sum.stored++;
  }
}

/** receiptOf reads an answer. Made is the id that the client made: then a duplicate with that id is its own first try. */
function receiptOf(found: Found, made: string): Receipt {
  const id = found.id ?? made;
  const receipt: Receipt = { id, duplicate: Boolean(found.duplicate) && id !== made };
  if (found.replaced) {
    receipt.replaced = found.replaced;
  }
  return receipt;
}

function resultOf<T>(end: End): T {
  switch (end.state) {
    case "dead":
      throw new DeadError(end.id, end.error ?? "");
    case "cancelled":
      throw new CancelledError(end.id);
    default:
      return end.result as T;
  }
}

function checkId(id: string): string {
  if (!isId(id)) {
    throw new InvalidError("id", `${JSON.stringify(id)} must be the id of a job (8-4-4-4-12 hexadecimal digits)`);
  }
  return id;
}
