import { InvalidError } from "./errors.js";

/** Duration is a number of milliseconds, or a text such as `500ms`, `30s`, `5m`, `1h30m` or `7d`. */
export type Duration = number | string;

const units: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * milliseconds reads a duration.
 *
 * @throws InvalidError that names the field, if it is no duration or negative
 */
export function milliseconds(field: string, duration: Duration): number {
  const read = typeof duration === "string" ? parse(duration) : duration;
  if (typeof read !== "number" || !Number.isFinite(read) || read < 0) {
    throw new InvalidError(field, `${JSON.stringify(duration)} must be a number of milliseconds, or a text such as "30s", "5m" or "7d"`);
  }
  return read;
}

function parse(text: string): number {
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(text)) {
    return Number.NaN;
  }
  let all = 0;
  for (const [, count, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)) {
    all += Number(count) * (units[unit ?? ""] ?? Number.NaN);
  }
  return all;
}

/** durationText writes milliseconds as the server reads them. */
export function durationText(ms: number): string {
  return `${Math.ceil(ms)}ms`;
}

/** longest is the longest time of a timer of JavaScript. */
const longest = 2 ** 31 - 1;

/** Timer is a timer that can be stopped. */
export interface Timer {
  stop(): void;
}

/** startTimer calls a function after some milliseconds, of which there may be more than a timer of JavaScript takes. */
export function startTimer(ms: number, call: () => void, options: { keepsProcess: boolean }): Timer {
  let handle: NodeJS.Timeout;
  const arm = (left: number): void => {
    handle = setTimeout(() => (left > longest ? arm(left - longest) : call()), Math.min(left, longest));
    if (!options.keepsProcess) {
      handle.unref();
    }
  };
  arm(ms);
  return { stop: () => clearTimeout(handle) };
}

/** pause waits, until the signal is aborted at most. It does not throw. The process does not end meanwhile, unless idle is true. */
export function pause(ms: number, signal?: AbortSignal, idle = false): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve();
      return;
    }
    const end = (): void => {
      timer.stop();
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = startTimer(ms, end, { keepsProcess: !idle });
    signal?.addEventListener("abort", end);
  });
}

/** now returns the milliseconds of a clock that nobody sets. */
export function now(): number {
  return performance.now();
}
