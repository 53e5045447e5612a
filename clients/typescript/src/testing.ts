/**
 * A fake for your tests. {@link FakeClient} notes what your code enqueues, and runs your handlers without a server and without waiting.
 *
 * @packageDocumentation
 */
import type { Acted, EnqueuedMany, Producer, Receipt, ResultOptions } from "./client.js";
import { milliseconds } from "./duration.js";
import { ApiError, CancelledError, causes, DeadError, InvalidError, NotFoundError, TimeoutError } from "./errors.js";
import { checkFraction, checkpointText, type Job } from "./held.js";
import { IdMaker } from "./id.js";
import { type EnqueueOptions, type NewJob, type WireJob, wireJob, wireText } from "./newjob.js";
import { PermanentError, RetryError, SnoozeError } from "./outcome.js";
import { completed } from "./settle.js";
import type { JobView } from "./view.js";
import type { Handler } from "./worker.js";

/** FakeJob is a job of a {@link FakeClient}, as your code enqueued it, and its fate so far. */
export interface FakeJob {
  readonly id: string;
  readonly queue: string;
  /** The body of the job, as JSON keeps it. */
  payload: unknown;
  /** The options of the enqueue. */
  options: EnqueueOptions;
  state: "queued" | "completed" | "dead" | "cancelled";
  createdAt: Date;
  /** The earliest start. */
  dueAt: Date;
  finishedAt?: Date;
  /** How many attempts have failed. */
  attempts: number;
  /** How many times the handler snoozed the job. */
  releases: number;
  /** The messages of all failed attempts, the oldest first. */
  errors: string[];
  result?: unknown;
  checkpoint?: unknown;
  /** The last report of the handler. */
  progress?: { fraction: number; message: string };
}

/** FakeOptions say how a {@link FakeClient} behaves. */
export interface FakeOptions {
  /** The instant at which the fake clock begins. Default: now. */
  now?: Date;
  /** How many failed attempts make a job dead that sets no `maxAttempts`. Default: 3. */
  maxAttempts?: number;
  /** The delay after a failed attempt, by its number from 1, in milliseconds. Default: 2 s, doubled each time, 1 minute at most. */
  backoff?: (attempt: number) => number;
}

/** mostRuns bounds the runs of one job, so that a handler that snoozes for ever is noticed. */
const mostRuns = 1000;

/** FakeClient stands in for a `Client`. It checks arguments in the same way, keeps all jobs in memory, and has its own clock. */
export class FakeClient implements Producer {
  /** All jobs, in the order of their enqueue. */
  readonly jobs: FakeJob[] = [];
  readonly #byId = new Map<string, FakeJob>();
  readonly #ids = new IdMaker();
  readonly #options: Required<Omit<FakeOptions, "now">>;
  /** By queue and key: the job that has the key, and until when. */
  readonly #keys = new Map<string, KeyHold>();
  /** The jobs with the same key that must end first. */
  readonly #behind = new WeakMap<FakeJob, FakeJob>();
  readonly #begun = new WeakSet<FakeJob>();
  readonly #running = new WeakSet<FakeJob>();
  #now: number;

  constructor(options: FakeOptions = {}) {
    this.#now = (options.now ?? new Date()).getTime();
    const backoff = (attempt: number): number => Math.min(60_000, 2000 * 2 ** (attempt - 1));
    this.#options = { maxAttempts: options.maxAttempts ?? 3, backoff: options.backoff ?? backoff };
  }

  /** The time of the fake clock. Only {@link FakeClient.run} and {@link FakeClient.advance} move it. */
  get now(): Date {
    return new Date(this.#now);
  }

  /** advance moves the fake clock. */
  advance(duration: number | string): void {
    this.#now += milliseconds("duration", duration);
  }

  /** enqueue notes a job. @throws InvalidError and, for the key of another tenant's job, ApiError, as `Client.enqueue` */
  async enqueue(queue: string, payload: unknown, options: EnqueueOptions = {}): Promise<Receipt> {
    return this.#enqueue({ ...options, queue, payload });
  }

  /** enqueueMany notes many jobs. Jobs that break a rule are in `refused`. */
  async enqueueMany(jobs: Iterable<NewJob> | AsyncIterable<NewJob>): Promise<EnqueuedMany> {
    const sum: EnqueuedMany = { stored: 0, duplicates: 0, refused: [] };
    let index = 0;
    for await (const job of jobs) {
      try {
        sum[this.#enqueue(job).duplicate ? "duplicates" : "stored"]++;
      } catch (error) {
        if (!(error instanceof InvalidError || error instanceof ApiError)) {
          throw error;
        }
        sum.refused.push({ index, error });
      }
      index++;
    }
    return sum;
  }

  /** job reads a job. @throws NotFoundError if there is none */
  async job<P = unknown>(id: string): Promise<JobView<P>> {
    const job = this.#find(id);
    const { delay: _delay, keyWindow: _window, onDuplicate: _rule, timeout: _timeout, hold, ...kept } = job.options;
    const waits = job.attempts > 0 ? "retrying" : "scheduled";
    const later = job.dueAt.getTime() > this.#now ? waits : "ready";
    const label = this.#blocked(job) || hold ? "blocked" : later;
    const error = job.errors.at(-1);
    return {
      ...kept,
      priority: kept.priority ?? 5,
      id: job.id,
      queue: job.queue,
      payload: job.payload as P,
      state: job.state,
      label: job.state === "queued" ? label : job.state,
      generation: 1,
      createdAt: job.createdAt,
      dueAt: job.dueAt,
      attempts: job.attempts,
      releases: job.releases,
      recoveries: 0,
      ...(job.finishedAt && { finishedAt: job.finishedAt }),
      ...(job.checkpoint !== undefined && { checkpoint: job.checkpoint }),
      ...(job.result !== undefined && { result: job.result }),
      ...(error !== undefined && { error }),
    };
  }

  /** cancel cancels jobs that have not ended. */
  async cancel(ids: string | string[], _reason = ""): Promise<Acted> {
    const out: Acted = { done: 0, failed: [] };
    for (const id of typeof ids === "string" ? [ids] : ids) {
      const job = this.#byId.get(id);
      if (job === undefined) {
        out.failed.push({ id, error: notFound("cancel jobs") });
      } else if (job.state !== "queued") {
        const why = `the job is ${job.state}`;
        out.failed.push({ id, error: new ApiError({ status: 409, code: "not_allowed", what: "cancel jobs", why, do: "look at the object's state" }) });
      } else {
        this.#finish(job, "cancelled");
        out.done++;
      }
    }
    return out;
  }

  /**
   * result returns the result of a job that has ended.
   *
   * @throws TimeoutError if the job has not ended: call {@link FakeClient.run} first
   */
  async result<T = unknown>(id: string, _options: ResultOptions = {}): Promise<T> {
    const job = this.#find(id);
    switch (job.state) {
      case "completed":
        return job.result as T;
      case "dead":
        throw new DeadError(id, job.errors.at(-1) ?? "");
      case "cancelled":
        throw new CancelledError(id);
      default:
        throw new TimeoutError(`job ${id} has not ended; await fake.run(handler) first`);
    }
  }

  /**
   * run gives the jobs that wait to the handler, one after another, by due time and priority. It moves the fake clock to the next retry,
   * snooze or due time, until no job waits. Jobs that are enqueued meanwhile run too. Held jobs stay.
   *
   * @param handler is a handler for all queues, or an object of handlers by queue; jobs of other queues stay
   * @returns the jobs that ended, in the order of their ends
   */
  async run(handler: Handler<any> | Record<string, Handler<any>>): Promise<FakeJob[]> {
    const handlerOf = (queue: string): Handler | undefined => (typeof handler === "function" ? handler : handler[queue]);
    const ended: FakeJob[] = [];
    const runs = new Map<FakeJob, number>();
    for (;;) {
      this.#cancelWhatFailed();
      const next = this.#next((queue) => handlerOf(queue) !== undefined);
      const work = next && handlerOf(next.queue);
      if (!work) {
        return ended;
      }
      const run = (runs.get(next) ?? 0) + 1;
      if (run > mostRuns) {
        throw new Error(`run: job ${next.id} ran ${mostRuns} times, and still waits; does its handler snooze it for ever?`);
      }
      runs.set(next, run);
      this.#now = Math.max(this.#now, next.dueAt.getTime());
      if (next.options.expiresAt && next.options.expiresAt.getTime() <= this.#now) {
        this.#finish(next, "cancelled");
      } else {
        await this.#attempt(next, work);
      }
      if (next.state !== "queued") {
        ended.push(next);
      }
    }
  }

  #find(id: string): FakeJob {
    const job = this.#byId.get(id);
    if (job === undefined) {
      throw notFound("read a job");
    }
    return job;
  }

  #finish(job: FakeJob, state: "completed" | "dead" | "cancelled"): void {
    job.state = state;
    job.finishedAt = this.now;
  }

  #enqueue(job: NewJob): Receipt {
    const wire = wireJob(job, () => this.#ids.next(this.#now));
    const { payload } = JSON.parse(wireText(wire)) as WireJob;
    const same = this.#byId.get(wire.id);
    if (same) {
      return { id: same.id, duplicate: true };
    }
    const { queue, payload: _given, ...options } = job;
    const delay = options.delay === undefined ? 0 : milliseconds("delay", options.delay);
    const made: FakeJob = {
      id: wire.id,
      queue,
      payload,
      options,
      state: "queued",
      createdAt: this.now,
      dueAt: options.dueAt ?? new Date(this.#now + delay),
      attempts: 0,
      releases: 0,
      errors: [],
    };
    return options.key ? this.#takeKey(made, options.key) : this.#store(made);
  }

  /** takeKey gives a new job its key, or merges it into the job that has the key. */
  #takeKey(made: FakeJob, key: string): Receipt {
    const { onDuplicate: rule = "keep", keyScope = "unfinished", keyWindow = 0, tenant = "", labels = {}, expiresAt } = made.options;
    const window = milliseconds("keyWindow", keyWindow);
    const place = JSON.stringify([made.queue, key]);
    const hold = this.#holderOfKey(place);
    let replaced: string | undefined;
    let begins = this.#now;
    if (hold) {
      const { job: first, until } = hold;
      if (rule !== "keep" && (first.options.tenant ?? "") !== tenant) {
        throw keyOfOther(key, rule);
      }
      const waits = first.state === "queued" && !this.#running.has(first);
      const throttles = rule === "coalesce" && keyScope === "window" && until !== Infinity;
      const merges = ((rule === "coalesce" || rule === "debounce") && until === undefined) || throttles;
      if (rule === "replace" && waits) {
        this.#finish(first, "cancelled");
        replaced = first.id;
        this.#follow(made, this.#behind.get(first));
      } else if (merges && waits && !this.#begun.has(first)) {
        first.payload = made.payload;
        if (rule === "debounce") {
          const last = window > 0 ? first.createdAt.getTime() + window : Infinity;
          first.dueAt = new Date(Math.min(made.dueAt.getTime(), last));
        }
        const expires = !expiresAt || expiresAt > first.dueAt ? expiresAt : first.options.expiresAt;
        first.options = { ...first.options, labels, expiresAt: expires };
        return { id: first.id, duplicate: true };
      } else if (merges && until === undefined) {
        this.#follow(made, first);
      } else if (merges && until !== undefined) {
        begins = until;
        made.dueAt = new Date(until);
      } else {
        return { id: first.id, duplicate: true };
      }
    }
    const ends = { window: begins + window, forever: Infinity, unfinished: undefined }[keyScope];
    this.#keys.set(place, { job: made, until: ends });
    return replaced === undefined ? this.#store(made) : { ...this.#store(made), replaced };
  }

  /** follow lets a job run after another with the same key. */
  #follow(job: FakeJob, first: FakeJob | undefined): void {
    if (first) {
      this.#behind.set(job, first);
    }
  }

  #store(job: FakeJob): Receipt {
    this.jobs.push(job);
    this.#byId.set(job.id, job);
    return { id: job.id, duplicate: false };
  }

  /** holderOfKey returns the job whose key refuses a new one. */
  #holderOfKey(place: string): KeyHold | undefined {
    const hold = this.#keys.get(place);
    if (hold?.until !== undefined) {
      return hold.until > this.#now ? hold : undefined;
    }
    let job = hold?.job;
    while (job && job.state !== "queued") {
      job = this.#behind.get(job); // it has its key again
    }
    return job && { job, until: undefined };
  }

  /** blocked reports whether a job waits for another one. */
  #blocked(job: FakeJob): boolean {
    if (this.#behind.get(job)?.state === "queued") {
      return true;
    }
    return (job.options.after ?? []).some((id) => {
      const state = this.#byId.get(id)?.state ?? "completed";
      return state !== "completed" && !(ruleFor(job, id) === "run" && state !== "queued");
    });
  }

  /** cancelWhatFailed cancels jobs that run after a job that died or was cancelled. */
  #cancelWhatFailed(): void {
    const fails = (job: FakeJob): boolean =>
      job.state === "queued" &&
      (job.options.after ?? []).some((id) => ruleFor(job, id) === "cancel" && ["dead", "cancelled"].includes(this.#byId.get(id)?.state ?? ""));
    for (let job = this.jobs.find(fails); job; job = this.jobs.find(fails)) {
      this.#finish(job, "cancelled");
    }
  }

  /** next returns the job that runs next. */
  #next(served: (queue: string) => boolean): FakeJob | undefined {
    let best: FakeJob | undefined;
    for (const job of this.jobs) {
      if (job.state !== "queued" || job.options.hold || !served(job.queue) || this.#blocked(job)) {
        continue;
      }
      if (!best || this.#order(job, best) < 0) {
        best = job;
      }
    }
    return best;
  }

  #order(a: FakeJob, b: FakeJob): number {
    const due = (job: FakeJob): number => Math.max(job.dueAt.getTime(), this.#now);
    return due(a) - due(b) || (a.options.priority ?? 5) - (b.options.priority ?? 5);
  }

  async #attempt(job: FakeJob, handler: Handler): Promise<void> {
    const control = new AbortController();
    this.#begun.add(job);
    this.#running.add(job);
    try {
      const outcome = completed(await handler(this.#jobOf(job, control.signal)));
      if (outcome.outcome !== "complete") {
        throw new PermanentError(outcome.error ?? "");
      }
      if (job.state === "queued") {
        job.result = outcome.result === undefined ? undefined : JSON.parse(outcome.result);
        this.#finish(job, "completed");
      }
    } catch (error) {
      this.#failed(job, error);
    } finally {
      this.#running.delete(job);
      control.abort(); // whatever the handler left running
    }
  }

  #failed(job: FakeJob, error: unknown): void {
    if (job.state !== "queued") {
      return; // the handler cancelled it
    }
    if (error instanceof SnoozeError) {
      job.releases++;
      job.dueAt = new Date(this.#now + error.delay);
      return;
    }
    job.attempts++;
    job.errors.push(causes(error));
    if (error instanceof PermanentError || job.attempts >= (job.options.maxAttempts ?? this.#options.maxAttempts)) {
      this.#finish(job, "dead");
      return;
    }
    const wait = error instanceof RetryError && error.after !== undefined ? error.after : this.#options.backoff(job.attempts);
    job.dueAt = new Date(this.#now + wait);
  }

  #jobOf(job: FakeJob, signal: AbortSignal): Job {
    return {
      id: job.id,
      queue: job.queue,
      tenant: job.options.tenant ?? "",
      payload: structuredClone(job.payload),
      attempt: job.attempts + 1,
      maxAttempts: job.options.maxAttempts,
      labels: job.options.labels ?? {},
      signal,
      get checkpoint() {
        return job.checkpoint;
      },
      progress(fraction, message = "") {
        checkFraction(fraction);
        job.progress = { fraction, message: String(message).slice(0, 1000) };
      },
      async saveCheckpoint(value) {
        job.checkpoint = JSON.parse(checkpointText(value));
      },
    };
  }
}

/** ruleFor returns how a job goes on if another one, which it runs after, dies or is cancelled. */
function ruleFor(job: FakeJob, id: string): "cancel" | "run" | "wait" {
  return job.options.afterFailures?.[id] ?? job.options.afterFailure ?? "cancel";
}

/** KeyHold is a job that has a key, until an instant; undefined: until the job has ended. */
interface KeyHold {
  job: FakeJob;
  until: number | undefined;
}

function keyOfOther(key: string, rule: string): ApiError {
  const why = `a job of another tenant holds ${JSON.stringify(key)}, and ${rule} would change it`;
  return new ApiError({ status: 422, code: "invalid", what: "enqueue a job", why, do: "begin the key with the name of the tenant, or set onDuplicate to keep" });
}

function notFound(what: string): NotFoundError {
  return new NotFoundError({ status: 404, code: "not_found", what, why: "there is no such job", do: "list what there is" });
}
