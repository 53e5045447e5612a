/** SluiceError is the base of all errors of this package. */
export class SluiceError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** InvalidError says which argument breaks which rule. Nothing was sent. */
export class InvalidError extends SluiceError {
  /** The argument, such as `delay`. */
  readonly field: string;
  /** The rule that it breaks. */
  readonly rule: string;

  constructor(field: string, rule: string) {
    super(`invalid ${field}: ${rule}`);
    this.field = field;
    this.rule = rule;
  }
}

/** ConnectionError says that no answer came: the server may or may not have got the request. */
export class ConnectionError extends SluiceError {
  /** The address of the request, without secrets. */
  readonly url: string;

  constructor(what: string, url: string, cause: unknown, remedy = "is `sluice serve` running there? SLUICE_URL names another address") {
    super(`${what}: no answer from ${url}: ${causes(cause)}; ${remedy}`, { cause });
    this.url = url;
  }
}

/** CertificateError says that the client does not trust the server's certificate, or that the server does not accept the client's. */
export class CertificateError extends ConnectionError {}

/** The codes of Node's errors for a certificate that this side refuses, and for one that the other side does. */
const untrusted = /^(CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|ERR_TLS_CERT_)/;
const refused = /^ERR_SSL_.*ALERT.*(CERTIFICATE|UNKNOWN_CA)/;

/** noAnswer makes the error of a request without an answer, with the remedy. */
export function noAnswer(what: string, url: string, cause: unknown): ConnectionError {
  const codes: string[] = [];
  for (let at: unknown = cause; at instanceof Error && codes.length < 5; at = at.cause) {
    codes.push(String((at as { code?: unknown }).code));
  }
  if (codes.some((code) => untrusted.test(code))) {
    return new CertificateError(what, url, cause, "if the authority is yours, name the file of its certificate in NODE_EXTRA_CA_CERTS");
  }
  if (codes.some((code) => refused.test(code))) {
    return new CertificateError(what, url, cause, "show a certificate that holds, of the authority of the server's --tls-client-ca");
  }
  return new ConnectionError(what, url, cause);
}

/** FieldProblem is a part of a request that breaks a rule. */
export interface FieldProblem {
  /** The part, such as `body.ids[3]`. */
  field: string;
  /** The rule. */
  rule: string;
}

/** Problem is the text of an error as the server sends it (RFC 9457). */
export interface Problem {
  status?: number;
  code?: string;
  what?: string;
  why?: string;
  do?: string;
  detail?: string;
  title?: string;
  fields?: FieldProblem[];
  request_id?: string;
}

/** ApiError says that the server refused a request. Programs look at `code`, people at `why` and `do`. */
export class ApiError extends SluiceError {
  /** The HTTP status. */
  readonly status: number;
  /** The kind of problem, such as `not_found`, or `http_502` if something other than Sluice answered. */
  readonly code: string;
  /** The request that failed, such as `cancel jobs`. */
  readonly what: string;
  /** The cause. */
  readonly why: string;
  /** The remedy. Empty: not known. */
  readonly do: string;
  /** The id of the request in the server's log. Empty: not known. */
  readonly requestId: string;
  /** The parts of the request that break a rule. */
  readonly fields: readonly FieldProblem[];
  /** How long to wait before the request is sent again, in milliseconds. Undefined: the server did not say. */
  readonly retryAfter: number | undefined;

  constructor(problem: Problem, retryAfter?: number) {
    const status = problem.status ?? 0;
    const what = problem.what ?? "request";
    const why = problem.why ?? problem.detail ?? problem.title ?? `the answer has the status ${status}`;
    const remedy = problem.do ?? "";
    super(`${what}: ${why}${remedy && `; ${remedy}`}${problem.request_id ? ` (request ${problem.request_id})` : ""}`);
    this.status = status;
    this.code = problem.code ?? `http_${status}`;
    this.what = what;
    this.why = why;
    this.do = remedy;
    this.requestId = problem.request_id ?? "";
    this.fields = problem.fields ?? [];
    this.retryAfter = retryAfter;
  }

  /** Whether the same request can succeed later. */
  get temporary(): boolean {
    return [408, 429, 502, 503, 504].includes(this.status);
  }
}

/** NotFoundError says that there is no such thing, or that the token must not know of it. */
export class NotFoundError extends ApiError {}

/** TimeoutError says that a time that the caller set is over. */
export class TimeoutError extends SluiceError {}

/** EnqueueManyError says that `enqueueMany` ended before its last job. It names the jobs that are stored. */
export class EnqueueManyError extends SluiceError {
  /** What became of the jobs before `next`. */
  readonly result: { stored: number; duplicates: number; refused: Refused[] };
  /** The index of the first job without an answer. */
  readonly next: number;
  /** The ids of the jobs from `next` on that were sent, and may be stored. With the same ids they can be sent again. */
  readonly ids: readonly string[];

  constructor(result: EnqueueManyError["result"], next: number, ids: string[], cause: unknown) {
    super(`enqueue jobs: job ${next} and later ones have no answer: ${causes(cause)}`, { cause });
    this.result = result;
    this.next = next;
    this.ids = ids;
  }
}

/** Refused is a job of `enqueueMany` that was not stored. */
export interface Refused {
  /** The place of the job, from 0. */
  index: number;
  /** The reason: an {@link InvalidError} or an {@link ApiError}. */
  error: SluiceError;
}

/** DeadError says that the awaited job died: it spent its attempts, or failed for good. */
export class DeadError extends SluiceError {
  /** The job. */
  readonly id: string;
  /** The last failure of the job. */
  readonly failure: string;

  constructor(id: string, failure: string) {
    super(`job ${id} is dead: ${failure || "no error is stored"}`);
    this.id = id;
    this.failure = failure;
  }
}

/** CancelledError says that somebody cancelled the job: the awaited one, or the one that the handler has. Clean up and return. */
export class CancelledError extends SluiceError {
  /** The job. */
  readonly id: string;

  constructor(id: string) {
    super(`job ${id} was cancelled`);
    this.id = id;
  }
}

/** LostError says that the handler has the job no more. Somebody else has it, or will have it: touch nothing that the other may use. */
export class LostError extends SluiceError {
  /** The job. */
  readonly id: string;

  constructor(id: string, why: string) {
    super(`job ${id} is lost: ${why}`);
    this.id = id;
  }
}

/** StoppingError says that the worker ends, and that the handler did not return in time. The job goes back into its queue. */
export class StoppingError extends SluiceError {}

/** causes returns an error's message with those of its causes, on one line. */
export function causes(error: unknown): string {
  const texts: string[] = [];
  for (let at: unknown = error; at !== undefined && at !== null && texts.length < 5; at = at instanceof Error ? at.cause : undefined) {
    const text = at instanceof AggregateError && at.errors.length > 0 ? causes(at.errors[0]) : textOf(at);
    if (text && !texts.some((before) => before.includes(text))) {
      texts.push(text);
    }
  }
  return texts.join(": ");
}

function textOf(value: unknown): string {
  try {
    if (!(value instanceof Error)) {
      return String(value);
    }
    const [name, message] = [String(value.name), String(value.message)]; // a program may have set them to anything
    const plain = name === "Error" || value instanceof SluiceError;
    return plain || !message ? message || name : `${name}: ${message}`;
  } catch {
    return "an error without a readable text";
  }
}
