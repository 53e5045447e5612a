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

/** Leases renews the leases of all jobs whose handlers run, every third of the lease. */
export class Leases {
  constructor(
    private readonly transport: Transport,
    private readonly held: Set<Held>,
    private readonly lease: number,
    private readonly events: Renewed,
  ) {}

  /** keep renews until the signal is aborted. */
  async keep(signal: AbortSignal): Promise<void> {
    let wait = this.lease / 3;
    while (!signal.aborted) {
      await pause(wait, signal, true);
      const good = signal.aborted || (await this.renew());
      wait = good ? this.lease / 3 : Math.min(1000, this.lease / 10);
    }
  }

  /** renew renews all leases now. False: the server did not answer. */
  async renew(): Promise<boolean> {
    const running = [...this.held].filter((held) => held.stage === "running");
    let good = true;
    for (let at = 0; at < running.length; at += mostJobs) {
      good = (await this.#renew(running.slice(at, at + mostJobs))) && good;
    }
    return good;
  }

  async #renew(jobs: Held[]): Promise<boolean> {
    const sent = now();
    const left = jobs.reduce((least, held) => Math.min(least, held.leaseEnd - sent), this.lease / 3);
    try {
      const answer = await this.transport.send<{ lost: { id: string; cancelled: boolean }[] }>({
        method: "POST",
        path: "/work/renew",
        what: "renew leases",
        body: JSON.stringify({ lease: durationText(this.lease), jobs: jobs.map(({ id, token }) => ({ id, token })) }),
        limit: Math.max(left, 1000),
      });
      this.events.answered();
      const lost = new Map(answer.lost.map(({ id, cancelled }) => [id, cancelled]));
      for (const held of jobs) {
        const cancelled = lost.get(held.id);
        if (cancelled === undefined) {
          held.leaseEnd = sent + this.lease;
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
