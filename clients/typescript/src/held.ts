import { now, startTimer, type Timer } from "./duration.js";
import { type CancelledError, InvalidError, LostError, TimeoutError } from "./errors.js";
import { jsonOf } from "./newjob.js";

/** Job is a job in the hands of its handler. */
export interface Job<P = unknown> {
  /** The id of the job. */
  readonly id: string;
  /** The queue of the job. */
  readonly queue: string;
  /** The owner of the job. Empty: none. */
  readonly tenant: string;
  /** The body of the job. */
  readonly payload: P;
  /** The number of this attempt, from 1. A lost or handed back claim does not count. */
  readonly attempt: number;
  /** How many failed attempts make the job dead. Undefined: the queue's setting. */
  readonly maxAttempts: number | undefined;
  /** Names and values of the producer. */
  readonly labels: Readonly<Record<string, string>>;
  /** The value that an earlier attempt, or this one, saved last. Undefined: none. */
  readonly checkpoint: unknown;
  /**
   * Aborted when the handler must end. The reason is a CancelledError, a LostError, a TimeoutError or a StoppingError. After the first two
   * the outcome of the handler counts no more.
   */
  readonly signal: AbortSignal;
  /**
   * progress shows people how far the attempt is. It returns at once; of many reports in a second, the last is sent.
   *
   * @param fraction is the part that is done, from 0 to 1
   * @param message is one line; after 1,000 characters it is cut
   */
  progress(fraction: number, message?: string): void;
  /**
   * saveCheckpoint stores a value of at most 1 MiB of JSON, which the next attempt gets.
   *
   * @throws LostError or CancelledError if the handler has the job no more; nothing was stored, and the handler should return
   */
  saveCheckpoint(value: unknown): Promise<void>;
}

/** Claimed is a claimed job as the server sends it. */
export interface Claimed {
  id: string;
  queue: string;
  tenant?: string;
  payload: unknown;
  attempts: number;
  max_attempts?: number;
  labels?: Record<string, string>;
  checkpoint?: unknown;
  token: string;
  lease_seconds: number;
  timeout_seconds?: number;
}

/** Verbs are what a handler can do with its job. */
export interface Verbs {
  report(held: Held, fraction: number, message: string): void;
  saveCheckpoint(held: Held, json: string): Promise<void>;
}

/** mostResult is the most bytes of a result and of a checkpoint. */
export const mostResult = 1 << 20;

/** Held is a claimed job that this process has. */
export class Held {
  readonly id: string;
  readonly token: string;
  readonly job: Job;
  /** How long the lease is, in milliseconds. */
  readonly lease: number;
  /** When the lease ends, by the clock of this process. */
  leaseEnd: number;
  /** Whether the handler runs, its outcome is on its way, or neither: it is stored, or the job is lost. */
  stage: "running" | "settling" | "over" = "running";
  readonly timeout: number;
  readonly #control = new AbortController();
  #timer: Timer | undefined;

  constructor(claimed: Claimed, verbs: Verbs) {
    this.id = claimed.id;
    this.token = claimed.token;
    this.lease = claimed.lease_seconds * 1000;
    this.leaseEnd = now() + this.lease;
    this.timeout = (claimed.timeout_seconds ?? 0) * 1000;
    this.job = this.#jobOf(claimed, verbs);
    if (this.timeout > 0) {
      const over = (): void => this.#control.abort(new TimeoutError(`the attempt exceeded its timeout of ${this.timeout / 1000} s`));
      this.#timer = startTimer(this.timeout, over, { keepsProcess: false });
    }
  }

  /** The reason of the aborted signal. Undefined: it is not aborted. */
  get reason(): unknown {
    return this.#control.signal.aborted ? this.#control.signal.reason : undefined;
  }

  /** tell aborts the signal of the job. The handler's outcome still counts. */
  tell(reason: Error): void {
    this.#control.abort(reason);
  }

  /** lose ends the job here: nothing about it is sent any more. */
  lose(reason: LostError | CancelledError): void {
    this.stage = "over";
    this.#timer?.stop();
    this.#control.abort(reason);
  }

  /** settling says that the handler has returned. */
  settling(): void {
    this.stage = "settling";
    this.#timer?.stop();
  }

  #jobOf(claimed: Claimed, verbs: Verbs): Job {
    const held = this;
    let checkpoint = claimed.checkpoint ?? undefined;
    return {
      id: claimed.id,
      queue: claimed.queue,
      tenant: claimed.tenant ?? "",
      payload: claimed.payload,
      attempt: claimed.attempts + 1,
      maxAttempts: claimed.max_attempts,
      labels: claimed.labels ?? {},
      signal: this.#control.signal,
      get checkpoint() {
        return checkpoint;
      },
      progress(fraction, message = "") {
        checkFraction(fraction);
        if (held.stage === "running") {
          verbs.report(held, fraction, String(message).slice(0, 1000));
        }
      },
      async saveCheckpoint(value) {
        const json = checkpointText(value);
        held.checkStillHeld();
        await verbs.saveCheckpoint(held, json);
        checkpoint = JSON.parse(json);
      },
    };
  }

  /** checkStillHeld throws if the job is lost or cancelled, or its handler has returned. */
  checkStillHeld(): void {
    if (this.stage === "over" && this.reason instanceof Error) {
      throw this.reason;
    }
    if (this.stage !== "running") {
      throw new LostError(this.id, "its handler has returned");
    }
  }
}

/** checkFraction checks the fraction of a progress report. */
export function checkFraction(fraction: number): void {
  if (!(fraction >= 0 && fraction <= 1)) {
    throw new InvalidError("fraction", `${fraction} must be from 0 to 1`);
  }
}

/** checkpointText writes a checkpoint as JSON. */
export function checkpointText(value: unknown): string {
  const json = jsonOf("checkpoint", value) ?? "null";
  if (Buffer.byteLength(json) > mostResult) {
    throw new InvalidError("checkpoint", `${Buffer.byteLength(json)} bytes must be at most ${mostResult}; keep the data elsewhere, and store its address`);
  }
  return json;
}
