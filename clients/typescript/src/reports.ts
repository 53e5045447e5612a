import { now, startTimer, type Timer } from "./duration.js";
import type { Held } from "./held.js";
import type { Transport } from "./http.js";

/** The most reports of one request, and the least milliseconds between two requests. */
const mostReports = 1000;
const interval = 1000;

/** Reports sends progress: of each job at most one report a second, of many jobs in one request. */
export class Reports {
  readonly #latest = new Map<Held, { fraction: number; message: string }>();
  #timer: Timer | undefined;
  #sentAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly transport: Transport,
    private readonly failed: (error: unknown) => void,
  ) {}

  /** add notes a report. A later one of the same job replaces it. */
  add(held: Held, fraction: number, message: string): void {
    this.#latest.set(held, { fraction, message });
    this.#timer ??= startTimer(Math.max(0, this.#sentAt + interval - now()), () => void this.#send(), { keepsProcess: false });
  }

  /** stop drops what was not sent. */
  stop(): void {
    this.#timer?.stop();
    this.#latest.clear();
  }

  async #send(): Promise<void> {
    this.#sentAt = now();
    const reports = [];
    for (const [held, report] of this.#latest) {
      if (reports.length === mostReports) {
        break;
      }
      this.#latest.delete(held);
      if (held.stage === "running") {
        reports.push({ id: held.id, token: held.token, fraction: report.fraction, ...(report.message && { message: report.message }) });
      }
    }
    try {
      if (reports.length > 0) {
        const body = JSON.stringify({ reports });
        await this.transport.send({ method: "POST", path: "/work/progress", what: "report progress", body, limit: 10_000 });
      }
    } catch (error) {
      this.failed(error); // the next report says it again
    }
    this.#timer = undefined;
    const [next] = this.#latest;
    if (next) {
      this.add(next[0], next[1].fraction, next[1].message);
    }
  }
}
