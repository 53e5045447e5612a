import { durationText, now, pause } from "./duration.js";
import { ApiError, causes, LostError, StoppingError, TimeoutError } from "./errors.js";
import type { Held } from "./held.js";
import { mostResult } from "./held.js";
import { type Transport, waitAfter } from "./http.js";
import { jsonOf } from "./newjob.js";
import { PermanentError, RetryError, SnoozeError } from "./outcome.js";

/** Outcome is how an attempt ended, with the names of the API. */
export interface Outcome {
  outcome: "complete" | "fail" | "release";
  /** The result, as JSON. */
  result?: string;
  error?: string;
  stack?: string;
  permanent?: boolean;
  delay?: string;
  reason?: string;
}

/** mostText is the most characters of an error and of a stack. */
const mostText = 20_000;

/** completed returns the outcome of a handler that returned a value. */
export function completed(value: unknown): Outcome {
  try {
    const result = jsonOf("result", value);
    if (result === undefined) {
      return { outcome: "complete" };
    }
    if (Buffer.byteLength(result) <= mostResult) {
      return { outcome: "complete", result };
    }
    return { outcome: "fail", permanent: true, error: `invalid result: ${Buffer.byteLength(result)} bytes must be at most ${mostResult}` };
  } catch (error) {
    return { outcome: "fail", permanent: true, error: causes(error) }; // the work is done, and not to be repeated
  }
}

/** failed returns the outcome of a handler that threw an error. Reason is that of the job's aborted signal. */
export function failed(error: unknown, reason: unknown): Outcome {
  if (error instanceof SnoozeError) {
    return { outcome: "release", ...delayOf(error.delay) };
  }
  const stack = error instanceof Error && typeof error.stack === "string" ? { stack: error.stack.slice(0, mostText) } : {};
  const text = { error: (causes(error) || "the handler threw no error").slice(0, mostText), ...stack };
  if (error instanceof PermanentError) {
    return { outcome: "fail", ...text, permanent: true };
  }
  if (error instanceof RetryError) {
    return { outcome: "fail", ...text, ...delayOf(error.after) };
  }
  if (reason instanceof StoppingError) {
    return released(reason);
  }
  if (reason instanceof TimeoutError) {
    return { outcome: "fail", ...text, error: causes(reason) };
  }
  return { outcome: "fail", ...text };
}

/** released returns the outcome of a job that is handed back because the worker ends. */
export function released(reason: Error): Outcome {
  return { outcome: "release", reason: reason.message.slice(0, 1000) };
}

function delayOf(ms: number | undefined): { delay?: string } {
  return ms ? { delay: durationText(ms) } : {};
}

/** Pending is an outcome on its way. */
interface Pending {
  held: Held;
  text: string;
  outcome: Outcome;
  tries: number;
}

/** The most outcomes and bytes of one request, and the least milliseconds between two requests. */
const mostJobs = 1000;
const mostBytes = 4_000_000;
export const pace = 5;

/** Settled are the events of a {@link Settler}. */
export interface Settled {
  /** An outcome needs no more room. */
  freed(): void;
  /** Something went wrong; a job with an error is lost. */
  failed(error: unknown): void;
  /** The server answers. */
  answered(): void;
}

/** Settler sends outcomes, many in one request, again and again until the lease of the job has ended. */
export class Settler {
  /** How many outcomes are on their way. */
  count = 0;
  #pending: Pending[] = [];
  #sending: Promise<void> | undefined;

  constructor(
    private readonly transport: Transport,
    private readonly worker: string,
    private readonly events: Settled,
  ) {}

  /** add sends an outcome. */
  add(held: Held, outcome: Outcome): void {
    held.settling();
    this.count++;
    this.#push(held, outcome);
    if (!this.#sending) {
      this.#begin();
    }
  }

  /** begin sends what is pending. An outcome that comes when all are sent, but before that is noted, is sent next. */
  #begin(): void {
    this.#sending = this.#sendAll().finally(() => {
      this.#sending = undefined;
      if (this.#pending.length > 0) {
        this.#begin();
      }
    });
  }

  /** idle waits until no outcome is on its way. */
  async idle(): Promise<void> {
    while (this.#sending) {
      await this.#sending;
    }
  }

  #push(held: Held, outcome: Outcome): void {
    const { result, ...rest } = outcome;
    const text = JSON.stringify({ id: held.id, token: held.token, ...rest });
    this.#pending.push({ held, outcome, text: result === undefined ? text : `${text.slice(0, -1)},"result":${result}}`, tries: 0 });
  }

  async #sendAll(): Promise<void> {
    let failures = 0;
    for (let wait = 0; this.#pending.length > 0; ) {
      await pause(wait); // handlers that end in the same turn share the request
      const error = await this.#send(this.#take());
      failures = error === undefined ? 0 : failures + 1;
      wait = error === undefined ? pace : (waitAfter(error, failures) ?? 1000);
    }
  }

  /** take takes as many outcomes as fit into a request. */
  #take(): Pending[] {
    let bytes = 0;
    let count = 0;
    while (count < this.#pending.length && count < mostJobs) {
      bytes += Buffer.byteLength(this.#pending[count]?.text ?? "");
      if (count > 0 && bytes > mostBytes) {
        break;
      }
      count++;
    }
    return this.#pending.splice(0, count);
  }

  /** send sends a batch. An error says that some of it must be sent again, later. */
  async #send(batch: Pending[]): Promise<Error | undefined> {
    const body = `{"worker":${JSON.stringify(this.worker)},"jobs":[${batch.map((pending) => pending.text).join(",")}]}`;
    const left = batch.reduce((least, pending) => Math.min(least, pending.held.leaseEnd - now()), 10_000);
    const request = { method: "POST", path: "/work/settle", what: "settle jobs", body, limit: Math.max(left, 1000) } as const;
    try {
      const answer = await this.transport.send<{ failed: { id: string; error: object }[] }>(request);
      this.events.answered();
      const refused = new Map(answer.failed.map(({ id, error }) => [id, new ApiError(error)]));
      const later = batch.map((pending) => this.#answered(pending, refused.get(pending.held.id)));
      return later.find((error) => error !== undefined);
    } catch (error) {
      if (error instanceof ApiError && refusesSome(error, batch)) {
        return this.#sendApart(batch, error);
      }
      this.events.failed(error);
      for (const pending of batch) {
        this.#later(pending);
      }
      return error as Error;
    }
  }

  /** sendApart sends the outcomes of a batch, of which one may be at fault, one by one, so that it does not keep the others. */
  async #sendApart(batch: Pending[], refusal: ApiError): Promise<Error | undefined> {
    const [first] = batch;
    if (first && batch.length === 1) {
      this.#end(first, refusal);
      return undefined;
    }
    let later: Error | undefined;
    for (const pending of batch) {
      later = (await this.#send([pending])) ?? later;
    }
    return later;
  }

  /** answered ends an outcome that is stored or refused. It returns an error if the outcome must be sent again, later. */
  #answered(pending: Pending, refusal: ApiError | undefined): Error | undefined {
    if (refusal === undefined) {
      this.#end(pending);
    } else if (refusal.code === "lost" || refusal.code === "not_found") {
      const doubt = pending.tries > 0 ? "; the outcome may have been stored before, when its answer was lost" : "";
      this.#end(pending, new LostError(pending.held.id, refusal.why + doubt));
    } else if (refusal.temporary || refusal.status >= 500) {
      this.#later(pending);
      return refusal;
    } else if (refusal.code === "invalid" && pending.outcome.outcome === "complete") {
      this.#push(pending.held, { outcome: "fail", permanent: true, error: refusal.why });
    } else {
      this.#end(pending, refusal);
    }
    return undefined;
  }

  /** later keeps an outcome until it can be sent again. After the lease it is sent no more, but each is sent twice at least. */
  #later(pending: Pending): void {
    pending.tries++;
    if (pending.tries < 2 || now() < pending.held.leaseEnd) {
      this.#pending.push(pending);
    } else {
      this.#end(pending, new LostError(pending.held.id, "its lease ended before the server said that it has the outcome"));
    }
  }

  #end(pending: Pending, error?: Error): void {
    if (error) {
      this.events.failed(error);
    }
    pending.held.stage = "over";
    this.count--;
    this.events.freed();
  }
}

/** refusesSome reports whether a single outcome may be the cause of an error: it breaks a rule, or the server fails on it. */
function refusesSome(error: ApiError, batch: Pending[]): boolean {
  return error.status === 422 || error.status === 413 || (error.status >= 500 && !error.temporary && batch.length > 1);
}
