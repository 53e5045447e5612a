import { durationText, now, pause } from "./duration.js";
import { CancelledError, LostError } from "./errors.js";
import type { Held } from "./held.js";
import type { Transport } from "./http.js";

/** The most jobs of one renewal. */
const mostJobs = 10_000;

/** Renewed are the events of {@link Leases}. */
export interface Renewed {
  /** A renewal failed. */
  failed(error: unknown): void;
  /** A job is lost. */
  lost(held: Held, reason: LostError | CancelledError): void;
  /** The server answers. */
  answered(): void;
}

/** Leases renews the leases of all jobs whose handlers run, each when a third of it is over. */
export class Leases {
  /** The shortest lease so far, in milliseconds. */
  shortest = 60_000;
  /** Ends the pause before the next renewal. */
  #wake = new AbortController();

  constructor(
    private readonly transport: Transport,
    private readonly held: Set<Held>,
    private readonly events: Renewed,
  ) {}

  /** taken looks at the lease of a job that was claimed. */
  taken(held: Held): void {
    this.shortest = Math.min(this.shortest, held.lease);
    this.#wake.abort();
  }

  /** keep renews until the signal is aborted. */
  async keep(signal: AbortSignal): Promise<void> {
    signal.addEventListener("abort", () => this.#wake.abort());
    for (let good = true; !signal.aborted; ) {
      this.#wake = new AbortController();
      const next = this.#running().reduce((least, held) => Math.min(least, dueIn(held)), Number.POSITIVE_INFINITY);
      await pause(good ? Math.max(next, 0) : this.retryPause, this.#wake.signal, true);
      good = signal.aborted || (await this.renew(0));
    }
  }

  /** The pause after a renewal that failed, in milliseconds. */
  get retryPause(): number {
    return Math.min(1000, this.shortest / 10);
  }

  /**
   * renew renews all leases of a length of which one is due within some milliseconds. False: the server did not answer.
   *
   * @param within default: all leases are renewed
   */
  async renew(within = Number.POSITIVE_INFINITY): Promise<boolean> {
    const running = this.#running();
    let good = true;
    for (const lease of new Set(running.map((held) => held.lease))) {
      const same = running.filter((held) => held.lease === lease);
      const due = same.some((held) => dueIn(held) <= within) ? same : [];
      for (let at = 0; at < due.length; at += mostJobs) {
        good = (await this.#renew(due.slice(at, at + mostJobs), lease)) && good;
      }
    }
    return good;
  }

  #running(): Held[] {
    return [...this.held].filter((held) => held.stage === "running");
  }

  async #renew(jobs: Held[], lease: number): Promise<boolean> {
    const sent = now();
    const left = jobs.reduce((least, held) => Math.min(least, held.leaseEnd - sent), lease / 3);
    try {
      const answer = await this.transport.send<{ lost: { id: string; cancelled: boolean }[] }>({
        method: "POST",
        path: "/work/renew",
        what: "renew leases",
        body: JSON.stringify({ lease: durationText(lease), jobs: jobs.map(({ id, token }) => ({ id, token })) }),
        limit: Math.max(left, 1000),
      });
      this.events.answered();
      const lost = new Map(answer.lost.map(({ id, cancelled }) => [id, cancelled]));
      for (const held of jobs) {
        const cancelled = lost.get(held.id);
        if (cancelled === undefined) {
          held.leaseEnd = sent + lease;
        } else {
          this.#lose(held, cancelled ? new CancelledError(held.id) : new LostError(held.id, "another worker has it, or will have it"));
        }
      }
      return true;
    } catch (error) {
      this.events.failed(error);
      for (const held of jobs) {
        if (held.leaseEnd <= now()) {
          this.#lose(held, new LostError(held.id, "its lease ended, because the server did not answer"));
        }
      }
      return false;
    }
  }

  #lose(held: Held, reason: LostError | CancelledError): void {
    if (held.stage === "running") {
      this.events.lost(held, reason);
    }
  }
}

/** dueIn returns in how many milliseconds a third of a lease is over. */
function dueIn(held: Held): number {
  return held.leaseEnd - (held.lease * 2) / 3 - now();
}
