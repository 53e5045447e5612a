/**
 * Enqueue jobs into Sluice, a durable dispatch queue, and work on them. Begin with {@link Client}.
 *
 * @packageDocumentation
 */
export {
  type Acted,
  Client,
  type ClientOptions,
  type EnqueuedMany,
  type Producer,
  type Receipt,
  type ResultOptions,
} from "./client.js";
export type { Duration } from "./duration.js";
export {
  ApiError,
  CancelledError,
  CertificateError,
  ConnectionError,
  DeadError,
  EnqueueManyError,
  type FieldProblem,
  InvalidError,
  LostError,
  NotFoundError,
  type Problem,
  type Refused,
  SluiceError,
  StoppingError,
  TimeoutError,
} from "./errors.js";
export type { Job } from "./held.js";
export type { EnqueueOptions, NewJob } from "./newjob.js";
export { PermanentError, RetryError, type RetryOptions, SnoozeError } from "./outcome.js";
export type { JobView, Progress, State } from "./view.js";
export type { Handler, WorkOptions } from "./worker.js";
