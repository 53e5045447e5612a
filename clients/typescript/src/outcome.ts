import { type Duration, milliseconds } from "./duration.js";
import { SluiceError } from "./errors.js";

/** PermanentError makes the job dead at once: throw it if another attempt cannot succeed. */
export class PermanentError extends SluiceError {}

/** RetryOptions say when a failed job is tried again. */
export interface RetryOptions extends ErrorOptions {
  /** The time until the next attempt. Default: the queue's backoff. */
  after?: Duration;
  /** The failure, for people. Default: that of `cause`. */
  message?: string;
}

/** RetryError fails the attempt, and says when the next one begins. The attempt counts. */
export class RetryError extends SluiceError {
  /** The time until the next attempt, in milliseconds. Undefined: the queue's backoff. */
  readonly after: number | undefined;

  constructor(options: RetryOptions = {}) {
    const { after, message, cause } = options;
    const text = message ?? (cause instanceof Error ? cause.message : "the handler asked for another attempt");
    super(text, cause === undefined ? undefined : { cause });
    this.after = after === undefined ? undefined : milliseconds("after", after);
  }
}

/** SnoozeError hands the job back for a while. No attempt counts. */
export class SnoozeError extends SluiceError {
  /** The time until the job is due again, in milliseconds. */
  readonly delay: number;

  constructor(duration: Duration) {
    super(`snoozed for ${duration}${typeof duration === "number" ? "ms" : ""}`);
    this.delay = milliseconds("duration", duration);
  }
}
