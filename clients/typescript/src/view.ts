/** State is where a job is in its life. */
export type State = "queued" | "claimed" | "dispatched" | "uncertain" | "completed" | "dead" | "cancelled";

/** Progress is the last report of a running attempt. */
export interface Progress {
  /** The part that is done, from 0 to 1. */
  fraction: number;
  /** One line for people. Undefined: none. */
  message?: string;
  /** When the handler reported it. */
  at: Date;
}

/** JobView is a job as it is stored. A field that is undefined is not set. */
export interface JobView<P = unknown> {
  id: string;
  queue: string;
  tenant?: string;
  priority: number;
  key?: string;
  keyScope?: "unfinished" | "window" | "forever";
  keyUntil?: Date;
  /** The body of the job. Undefined if `withheld` is true. */
  payload: P;
  labels?: Record<string, string>;
  maxAttempts?: number;
  createdAt: Date;
  expiresAt?: Date;
  orderKey?: string;
  after?: string[];
  afterFailure?: "cancel" | "run" | "wait";
  afterFailures?: Record<string, "cancel" | "run" | "wait">;
  batch?: string;
  state: State;
  /** The state as people see it: `queued` is split into ready, scheduled, retrying and blocked. */
  label: State | "ready" | "scheduled" | "retrying" | "blocked";
  /** The number of the job's life, from 1. Each requeue begins the next one. */
  generation: number;
  dueAt: Date;
  /** How many attempts have failed. */
  attempts: number;
  /** How many claims were handed back. */
  releases: number;
  /** How many claims were lost with their worker. */
  recoveries: number;
  /** The process that has the job, or had it last. */
  holder?: string;
  claimedAt?: Date;
  dispatchedAt?: Date;
  leaseUntil?: Date;
  checkpoint?: unknown;
  blockedBy?: string;
  finishedAt?: Date;
  result?: unknown;
  /** The last failure. */
  error?: string;
  progress?: Progress;
  /** True: payload, checkpoint and result are missing because the token must not read them. */
  withheld?: boolean;
}

const instants = new Set(["keyUntil", "createdAt", "expiresAt", "dueAt", "claimedAt", "dispatchedAt", "leaseUntil", "finishedAt"]);

/** viewOf reads a job of the server. */
export function viewOf<P>(job: Record<string, unknown>): JobView<P> {
  const out: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(job)) {
    const ours = name.replace(/_[a-z]/g, (letters) => letters.slice(1).toUpperCase());
    out[ours] = instants.has(ours) ? new Date(value as string) : value;
  }
  const progress = out.progress as { fraction: number; message?: string; at: string } | undefined;
  if (progress) {
    out.progress = { fraction: progress.fraction, ...(progress.message ? { message: progress.message } : {}), at: new Date(progress.at) };
  }
  return out as unknown as JobView<P>;
}
