import { now, pause } from "./duration.js";
import { ApiError, CertificateError, ConnectionError, InvalidError, NotFoundError, noAnswer, type Problem } from "./errors.js";

/** Send is a request. */
export interface Send {
  method: "GET" | "POST";
  /** The path below `/api/v1`. */
  path: string;
  /** The request, for people. */
  what: string;
  /** The body, as JSON. */
  body?: string;
  headers?: Record<string, string>;
  /** The longest time of one try, in milliseconds. */
  limit: number;
  /** Ends the request. The error is then the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** Transport sends requests to a server. */
export class Transport {
  readonly #root: string;
  readonly #token: string;
  readonly #fetch: typeof fetch;

  constructor(url: string, token: string, fetch: typeof globalThis.fetch) {
    this.#root = `${rootOf(url, token)}/api/v1`;
    if (!/^[\x21-\x7e]*$/.test(token)) {
      throw new InvalidError("token", "must be the text that `sluice tokens create` printed, without blanks");
    }
    this.#token = token;
    this.#fetch = fetch;
  }

  /** send sends a request once. */
  async send<T>(request: Send): Promise<T> {
    request.signal?.throwIfAborted();
    const url = this.#root + request.path;
    const control = new AbortController();
    const timer = setTimeout(() => control.abort(new Error(`there was none within ${Math.ceil(request.limit)} ms`)), request.limit);
    const end = (): void => control.abort(request.signal?.reason);
    request.signal?.addEventListener("abort", end);
    try {
      const response = await this.#fetch(url, {
        method: request.method,
        headers: this.#headers(request),
        body: request.body ?? null,
        redirect: "manual",
        signal: control.signal,
      });
      const text = await response.text();
      return answerOf<T>(request, response, text);
    } catch (error) {
      if (error instanceof ApiError) {
        throw error;
      }
      request.signal?.throwIfAborted();
      throw noAnswer(request.what, url.replace(/\?.*/, ""), control.signal.aborted ? control.signal.reason : error);
    } finally {
      clearTimeout(timer);
      request.signal?.removeEventListener("abort", end);
    }
  }

  /**
   * sendAgain sends a request that may be sent more than once, until there is an answer or the time is over.
   *
   * @param timeout the most milliseconds for all tries
   * @param tried is told the number of each try, from 1
   */
  sendAgain<T>(request: Omit<Send, "limit">, timeout: number, tried?: (count: number) => void): Promise<T> {
    return again(timeout, request.signal, (limit, count) => {
      tried?.(count);
      return this.send<T>({ ...request, limit });
    });
  }

  #headers(request: Send): Record<string, string> {
    const headers: Record<string, string> = { Accept: "application/json", ...request.headers };
    if (request.body !== undefined) {
      headers["Content-Type"] = "application/json";
    }
    if (this.#token) {
      headers.Authorization = `Bearer ${this.#token}`;
    }
    return headers;
  }
}

/** again calls a function until it succeeds, fails for good, or the time is over. Limit is the most milliseconds for one call. */
export async function again<T>(
  timeout: number,
  signal: AbortSignal | undefined,
  call: (limit: number, count: number) => Promise<T>,
): Promise<T> {
  const until = now() + timeout;
  for (let count = 1; ; count++) {
    const left = until - now();
    try {
      // Half of the time for the first try: a connection that went dead is noticed, and another one tried.
      return await call(Math.max(left > 2000 ? left / 2 : left, 1), count);
    } catch (error) {
      const wait = waitAfter(error, count);
      if (wait === undefined || now() + wait >= until) {
        throw error;
      }
      await pause(wait, signal);
      signal?.throwIfAborted();
    }
  }
}

/** waitAfter returns how many milliseconds to wait before the request is sent again. Undefined: it must not be sent again. */
export function waitAfter(error: unknown, tries: number): number | undefined {
  const backoff = Math.min(5000, 50 * 2 ** Math.min(tries, 10)) * (0.5 + Math.random() / 2);
  if (error instanceof ApiError) {
    return error.temporary ? (error.retryAfter ?? backoff) : undefined;
  }
  return error instanceof ConnectionError && !(error instanceof CertificateError) ? backoff : undefined;
}

/** answerOf reads an answer. */
function answerOf<T>(request: Send, response: Response, text: string): T {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    body = undefined;
  }
  if (response.ok && body !== undefined) {
    return body as T;
  }
  const problem: Problem = isProblem(body) ? body : foreign(response);
  const error = response.status === 404 && problem.code === "not_found" ? NotFoundError : ApiError;
  throw new error({ what: request.what, ...problem, status: response.status }, retryAfter(response.headers.get("Retry-After")));
}

function isProblem(body: unknown): body is Problem {
  return typeof body === "object" && body !== null && typeof (body as Problem).code === "string";
}

/** foreign explains an answer that is not from Sluice. */
function foreign(response: Response): Problem {
  const remedy = "SLUICE_URL must be the address of `sluice serve` itself";
  if (response.status >= 300 && response.status < 400) {
    const to = response.headers.get("Location")?.replace(/\?.*/, "");
    return { code: "redirect", why: `the address redirects to ${to || "another one"}`, do: remedy };
  }
  return { why: `the answer has the status ${response.status} and is not from Sluice`, do: remedy };
}

/** retryAfter reads the header Retry-After, in milliseconds. */
function retryAfter(text: string | null): number | undefined {
  if (text === null || text.trim() === "") {
    return undefined;
  }
  const seconds = Number(text);
  const ms = Number.isNaN(seconds) ? Date.parse(text) - Date.now() : seconds * 1000;
  return Number.isNaN(ms) ? undefined : Math.max(ms, 0);
}

/** The hosts that are this machine, as URL writes them. */
const loopback = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** rootOf checks the address of a server, to which the token may be sent. */
function rootOf(url: string, token: string): string {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw new InvalidError("url", "must be an address such as http://127.0.0.1:7400");
  }
  if (parsed.protocol !== "http:" && parsed.protocol !== "https:") {
    throw new InvalidError("url", `must begin with http:// or https://, not ${parsed.protocol}`);
  }
  if (parsed.username || parsed.password) {
    throw new InvalidError("url", "must have no user and password; give the token as token, or in SLUICE_TOKEN");
  }
  if (token && parsed.protocol === "http:" && !loopback.test(parsed.hostname)) {
    throw new InvalidError("url", `http://${parsed.host} would show the token to everybody on the way; use https`);
  }
  return parsed.origin + parsed.pathname.replace(/\/+$/, "");
}
