import { type Duration, durationText, milliseconds } from "./duration.js";
import { InvalidError } from "./errors.js";
import { isId } from "./id.js";

/** EnqueueOptions say how a job runs. Without them a job is due at once. */
export interface EnqueueOptions {
  /** The id of the job, a UUID. Keep it to send the job again later: it is stored once. Default: a new one. */
  id?: string;
  /** The owner of the job, at most 128 bytes. Default: none. */
  tenant?: string;
  /** The idempotency key, unique within queue and scope, at most 255 bytes. Default: none. */
  key?: string;
  /** How long the key refuses other jobs: until the job has ended, for `keyWindow`, or for ever. Default: `unfinished`. */
  keyScope?: "unfinished" | "window" | "forever";
  /** The length of the scope `window`, and the longest delay of `debounce`. */
  keyWindow?: Duration;
  /** The fate of a job whose key another job has. Default: `keep`, which stores no other job. */
  onDuplicate?: "keep" | "replace" | "coalesce" | "debounce";
  /** The earliest start. Default: now. Give this or `delay`. */
  dueAt?: Date;
  /** The time from now to the earliest start. */
  delay?: Duration;
  /** From 1 (first) to 10 (last). Default: 5. */
  priority?: number;
  /** The job is cancelled if it still waits then. Default: never. */
  expiresAt?: Date;
  /** Names and values to find the job by, at most 16. Default: none. */
  labels?: Record<string, string>;
  /** How many failed attempts make the job dead. Default: the queue's setting. */
  maxAttempts?: number;
  /** The longest time of an attempt. Default: the queue's setting. */
  timeout?: Duration;
  /** Jobs of a queue with the same order key run one at a time, in order. Default: none. */
  orderKey?: string;
  /** The value, such as a host, by which limits that are per key bound the job. Default: none. */
  limitKey?: string;
  /** The units that the job takes of limits by cost, such as tokens. Default: 1. */
  cost?: number;
  /** The ids of jobs that must complete first. Default: none. */
  after?: string[];
  /** How the job goes on if one of `after` dies or is cancelled. Default: `cancel`. */
  afterFailure?: "cancel" | "run" | "wait";
  /** The rules for single jobs of `after`, by their ids. Default: `afterFailure` counts for all. */
  afterFailures?: Record<string, "cancel" | "run" | "wait">;
  /** The open batch of the job. Default: none. */
  batch?: string;
  /** The reason to hold the job until somebody releases it. Default: nobody holds the job. */
  hold?: string;
}

/** NewJob is a job to enqueue. */
export interface NewJob extends EnqueueOptions {
  /** The name of the queue: 1 to 64 letters, digits and `. _ : -`. */
  queue: string;
  /** The body of the job: anything that JSON can hold. */
  payload: unknown;
}

/** WireJob is a job as the server reads it. */
export type WireJob = Record<string, unknown> & { queue: string; payload: unknown; id: string };

type Reader = (field: string, value: never) => unknown;

const readers: Record<keyof EnqueueOptions, Reader> = {
  id: idOf,
  tenant: textOf(128),
  key: textOf(255),
  keyScope: oneOf("unfinished", "window", "forever"),
  keyWindow: span,
  onDuplicate: oneOf("keep", "replace", "coalesce", "debounce"),
  dueAt: instant,
  delay: span,
  priority: whole(10),
  expiresAt: instant,
  labels: labelsOf,
  maxAttempts: whole(1_000_000),
  timeout: span,
  orderKey: textOf(255),
  limitKey: textOf(255),
  cost: whole(1_000_000),
  after: (field, value: unknown) => listOf(field, value).map((id) => idOf(field, id)),
  afterFailure: oneOf("cancel", "run", "wait"),
  afterFailures: rulesOf,
  batch: idOf,
  hold: textOf(1000),
};

/**
 * wireJob checks a job, and returns it as the server reads it.
 *
 * @throws InvalidError if an argument breaks a rule
 */
export function wireJob(job: NewJob, newId: () => string): WireJob {
  if (typeof job !== "object" || job === null) {
    throw new InvalidError("job", "must be an object with queue and payload");
  }
  const { queue, payload, ...options } = job;
  const out: WireJob = { queue: queueName(queue), payload, id: "" };
  for (const [name, value] of Object.entries(options)) {
    const read = Object.hasOwn(readers, name) ? readers[name as keyof EnqueueOptions] : undefined;
    if (read === undefined) {
      throw new InvalidError(name, `there is no such option; the options are ${Object.keys(readers).join(", ")}`);
    }
    if (value !== undefined && value !== null) {
      out[snakeCase(name)] = read(name, value as never);
    }
  }
  checkTogether(job);
  out.id ||= newId();
  return out;
}

/** wireText returns the job as JSON. */
export function wireText(job: WireJob): string {
  if (job.payload === undefined || typeof job.payload === "function" || typeof job.payload === "symbol") {
    throw new InvalidError("payload", "it is missing; it must be something that JSON can hold, such as null");
  }
  return jsonOf("payload", job) ?? "";
}

/** jsonOf writes a value as JSON. Undefined: JSON has no such value. */
export function jsonOf(field: string, value: unknown): string | undefined {
  try {
    return JSON.stringify(value) as string | undefined;
  } catch (error) {
    throw new InvalidError(field, `it cannot become JSON: ${error instanceof Error ? error.message.split("\n")[0] : String(error)}`);
  }
}

/** queueName checks the name of a queue. */
export function queueName(name: unknown): string {
  if (typeof name !== "string" || !/^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$/.test(name)) {
    throw new InvalidError("queue", `${JSON.stringify(name)} must be 1 to 64 letters, digits and . _ : -, the first a letter or a digit`);
  }
  if (name.startsWith("sluice.")) {
    throw new InvalidError("queue", `${JSON.stringify(name)} begins with sluice., which is reserved for Sluice itself`);
  }
  return name;
}

/** checkTogether checks options that depend on each other. */
function checkTogether(job: NewJob): void {
  if (job.key === "") {
    throw new InvalidError("key", "it is empty; give it a value, or leave it out");
  }
  if (job.dueAt && job.delay !== undefined && milliseconds("delay", job.delay) > 0) {
    throw new InvalidError("delay", "dueAt and delay say the same thing; give one of them");
  }
  if (!job.key && (job.keyScope || job.keyWindow !== undefined || job.onDuplicate)) {
    throw new InvalidError("key", "keyScope, keyWindow and onDuplicate need a key");
  }
  if (job.keyScope === "window" && job.keyWindow === undefined) {
    throw new InvalidError("keyWindow", "the key scope window needs a window longer than 0");
  }
  if (job.dueAt && job.expiresAt && job.expiresAt <= job.dueAt) {
    throw new InvalidError("expiresAt", "the job would expire before it is due");
  }
}

function idOf(field: string, value: unknown): string {
  if (!isId(value)) {
    throw new InvalidError(field, `${JSON.stringify(value)} must be an id (8-4-4-4-12 hexadecimal digits)`);
  }
  return value.toLowerCase();
}

function textOf(limit: number): Reader {
  return (field, value: unknown) => {
    if (typeof value !== "string") {
      throw new InvalidError(field, `${JSON.stringify(value)} must be a text`);
    }
    const bytes = Buffer.byteLength(value);
    if (bytes > limit) {
      throw new InvalidError(field, `${bytes} bytes are more than ${limit}`);
    }
    if (/[\p{Cc}\p{Cf}]/u.test(value)) {
      throw new InvalidError(field, `${JSON.stringify(value)} has a control character, or a character that cannot be seen`);
    }
    return value;
  };
}

function oneOf(...allowed: string[]): Reader {
  return (field, value: unknown) => {
    if (!allowed.includes(value as string)) {
      throw new InvalidError(field, `${JSON.stringify(value)} must be one of ${allowed.join(", ")}`);
    }
    return value;
  };
}

function whole(most: number): Reader {
  return (field, value: unknown) => {
    if (!Number.isInteger(value) || (value as number) < 1 || (value as number) > most) {
      throw new InvalidError(field, `${JSON.stringify(value)} must be a whole number from 1 to ${most}`);
    }
    return value;
  };
}

function span(field: string, value: Duration): string {
  return durationText(milliseconds(field, value));
}

function instant(field: string, value: unknown): string {
  const year = value instanceof Date ? value.getUTCFullYear() : Number.NaN;
  if (!(year >= 1970 && year <= 9999)) {
    throw new InvalidError(field, `${String(value)} must be a valid Date of the years 1970 to 9999`);
  }
  return (value as Date).toISOString();
}

function listOf(field: string, value: unknown): unknown[] {
  if (!Array.isArray(value)) {
    throw new InvalidError(field, "must be a list of ids");
  }
  return value;
}

function rulesOf(field: string, value: unknown): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new InvalidError(field, "must be an object of rules by the ids of jobs");
  }
  const check = oneOf("cancel", "run", "wait") as (field: string, value: unknown) => unknown;
  return Object.fromEntries(Object.entries(value).map(([id, rule]) => [idOf(field, id), check(field, rule)]));
}

function labelsOf(field: string, value: unknown): Record<string, string> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new InvalidError(field, "must be an object whose values are texts");
  }
  const labels = Object.entries(value);
  if (labels.length > 16) {
    throw new InvalidError(field, `${labels.length} labels must be at most 16`);
  }
  const check = textOf(255) as (field: string, value: unknown) => string;
  for (const [name, text] of labels) {
    if (name === "") {
      throw new InvalidError(field, "a label needs a name");
    }
    check(field, name);
    check(field, text);
  }
  return value as Record<string, string>;
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
