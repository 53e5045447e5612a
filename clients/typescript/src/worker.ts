import { hostname } from "node:os";
import { type Duration, durationText, milliseconds, now, pause } from "./duration.js";
import { ApiError, type CancelledError, CertificateError, ConnectionError, InvalidError, LostError, StoppingError, TimeoutError } from "./errors.js";
import { type Claimed, Held, type Job, type Verbs } from "./held.js";
import { again, type Transport, waitAfter } from "./http.js";
import { randomHex } from "./id.js";
import { Leases } from "./leases.js";
import { queueName } from "./newjob.js";
import { Reports } from "./reports.js";
import { completed, failed, type Outcome, pace, released, Settler } from "./settle.js";

/** Handler does the work of a job. The value that it returns becomes the result; undefined: none. */
export type Handler<P = unknown> = (job: Job<P>) => unknown;

/** WorkOptions say how a worker works. */
export interface WorkOptions {
  /** How many jobs run at once. Default: 10. */
  concurrency?: number;
  /**
   * How long a claim holds unless it is renewed, which the worker does every third of it. After a crash the job runs again when its lease
   * has ended, and a handler learns of a cancel with the next renewal. From 1s to 24h. Default: the queue's setting.
   */
  lease?: Duration;
  /** Aborted to end the worker: it claims no more, and waits for the handlers that run. */
  signal?: AbortSignal;
  /** How long to wait for handlers at the end. Then their signals are aborted, and their jobs handed back. Default: `30s`. */
  drainTimeout?: Duration;
  /** The name of the worker, which must be another after each start. Default: host:pid:nonce. */
  worker?: string;
  /** The version of your program, by which people tell workers to stop. Default: none. */
  version?: string;
  /** Gets what the worker could not do, such as a lost job or an unreachable server. Default: it is written to standard error. */
  onError?: (error: Error) => void;
}

/** How long a claim waits for jobs, how much later its answer may come, and the time between heartbeats, in milliseconds. */
const claimWait = 30_000;
const slack = 15_000;
const beat = 10_000;
/** How long a handler has to end after its signal was aborted because the worker ends, or because of its timeout. */
const stopGrace = 1000;
const timeoutGrace = 10_000;

type Wanted = "work" | "quiesce" | "stop";

/** Worker claims jobs and gives them to a handler. */
export class Worker implements Verbs {
  readonly #name: string;
  readonly #queues: string[];
  readonly #concurrency: number;
  readonly #lease: number | undefined;
  readonly #drainTimeout: number;
  readonly #onError: (error: Error) => void;
  readonly #started = new Date();
  readonly #held = new Set<Held>();
  readonly #settler: Settler;
  readonly #leases: Leases;
  readonly #reports: Reports;
  /** Aborted when the worker has ended. */
  readonly #over = new AbortController();

  #running = 0;
  #ending = false;
  #quiesced = false;
  #failure: Error | undefined;
  /** Ends the claim that waits. */
  #claiming: AbortController | undefined;
  #claimedAt = Number.NEGATIVE_INFINITY;
  #wake: () => void = () => {};
  /** When the process was seen to run last, and the longest time without that since a claim was sent. */
  #seenAt = now();
  #unseen = 0;
  /** The requests that failed last, so that an outage is told once. */
  readonly #broken = new Set<string>();

  constructor(
    private readonly transport: Transport,
    queues: string[],
    private readonly handler: Handler,
    private readonly options: WorkOptions,
  ) {
    this.#queues = queues.map(queueName);
    if (this.#queues.length === 0 || this.#queues.length > 100) {
      throw new InvalidError("queues", `${this.#queues.length} queues must be from 1 to 100`);
    }
    if (typeof handler !== "function") {
      throw new InvalidError("handler", "must be a function");
    }
    this.#concurrency = options.concurrency ?? 10;
    if (!Number.isInteger(this.#concurrency) || this.#concurrency < 1 || this.#concurrency > 1_000_000) {
      throw new InvalidError("concurrency", `${options.concurrency} must be a whole number from 1 to 1000000`);
    }
    this.#lease = options.lease === undefined ? undefined : milliseconds("lease", options.lease);
    if (this.#lease !== undefined && (this.#lease < 1000 || this.#lease > 86_400_000)) {
      throw new InvalidError("lease", `${options.lease} must be from 1s to 24h`);
    }
    this.#drainTimeout = milliseconds("drainTimeout", options.drainTimeout ?? "30s");
    this.#name = options.worker ?? `${hostname().slice(0, 60)}:${process.pid}:${randomHex(4)}`;
    this.#onError = options.onError ?? ((error) => console.error(`sluice: ${error.message}`));
    const events = (what: string) => ({
      failed: (error: unknown) => this.#tell(what, error),
      answered: () => void this.#broken.delete(what),
    });
    this.#settler = new Settler(transport, this.#name, { ...events("settle"), freed: () => this.#wake() });
    this.#leases = new Leases(transport, this.#held, { ...events("renew"), lost: (held, reason) => this.#lose(held, reason) });
    this.#reports = new Reports(transport, (error) => this.#tell("progress", error));
  }

  /** run works until the signal is aborted, or the server or a person ends the worker. */
  async run(): Promise<void> {
    const { signal } = this.options;
    const end = (): void => this.#end();
    signal?.addEventListener("abort", end);
    if (signal?.aborted) {
      this.#ending = true;
    }
    const besides = [this.#leases.keep(this.#over.signal), this.#keepHeartbeat(), this.#watchStalls()];
    try {
      await this.#claimAll();
      await this.#drain();
    } finally {
      signal?.removeEventListener("abort", end);
      this.#reports.stop();
      this.#over.abort();
      await Promise.all(besides);
    }
    if (this.#failure) {
      throw this.#failure;
    }
  }

  /** report implements {@link Verbs}. */
  report(held: Held, fraction: number, message: string): void {
    this.#reports.add(held, fraction, message);
  }

  /** saveCheckpoint implements {@link Verbs}. */
  async saveCheckpoint(held: Held, json: string): Promise<void> {
    const body = `{"id":"${held.id}","token":"${held.token}","checkpoint":${json}}`;
    try {
      await again(Math.max(held.leaseEnd - now(), 1), undefined, (limit) => {
        held.checkStillHeld();
        return this.transport.send({ method: "POST", path: "/work/checkpoint", what: "save a checkpoint", body, limit });
      });
    } catch (error) {
      if (error instanceof ApiError && (error.code === "lost" || error.code === "not_found")) {
        await this.#leases.renew(); // tells whether the job was cancelled
        this.#lose(held, new LostError(held.id, error.why));
        held.checkStillHeld();
      }
      throw error;
    }
  }

  /** end claims no more. */
  #end(failure?: Error): void {
    this.#failure ??= failure;
    this.#ending = true;
    this.#claiming?.abort();
    this.#wake();
  }

  /** tell reports a failure; of an outage only the first. A failure that stays ends the worker. */
  #tell(what: string, error: unknown): void {
    const known = error instanceof Error ? error : new Error(String(error));
    if (isFinal(what, known)) {
      this.#end(known);
      return;
    }
    const outage = known instanceof ConnectionError || (known instanceof ApiError && (known.temporary || known.status >= 500));
    if (!outage || !this.#broken.has(what)) {
      this.#tellUser(known);
    }
    if (outage) {
      this.#broken.add(what);
    }
  }

  #lose(held: Held, reason: LostError | CancelledError): void {
    if (held.stage === "running") {
      held.lose(reason);
      this.#held.delete(held);
      this.#tellUser(reason);
      this.#wake();
    }
  }

  /** tellUser calls onError. An error of onError itself ends the process, as any that nobody catches. */
  #tellUser(error: Error): void {
    try {
      this.#onError(error);
    } catch (thrown) {
      queueMicrotask(() => {
        throw thrown;
      });
    }
  }

  /** The jobs that may be claimed now. Outcomes that wait long for the server take room too. */
  get #free(): number {
    return this.#concurrency - this.#running - Math.max(0, this.#settler.count - this.#concurrency);
  }

  async #claimAll(): Promise<void> {
    while (!this.#ending) {
      if (this.#quiesced || this.#free < 1) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        continue;
      }
      const early = this.#claimedAt + pace - now();
      if (early > 0) {
        await pause(early); // handlers that end one after another are replaced together
        continue;
      }
      this.#claimedAt = now();
      const { jobs, late } = await this.#claim(this.#free);
      await this.#start(jobs, late);
    }
  }

  /**
   * claim waits for jobs. It asks again after a lost answer, so that no job is left without a handler. Late says that the leases of the
   * jobs may have begun long ago.
   */
  async #claim(limit: number): Promise<{ jobs: Claimed[]; late: boolean }> {
    const token = randomHex(16);
    const control = new AbortController();
    this.#see();
    this.#unseen = 0;
    this.#claiming = control;
    for (let tries = 1; ; tries++) {
      try {
        const jobs = await this.#sendClaim({ limit, token, wait: durationText(claimWait), again: tries > 1 }, claimWait + slack, control.signal);
        this.#claiming = undefined;
        this.#see();
        return { jobs, late: tries > 1 || jobs.some((job) => this.#unseen > (job.lease_seconds * 1000) / 3) };
      } catch (error) {
        if (!control.signal.aborted) {
          this.#tell("claim", error);
          await pause(waitAfter(error, tries) ?? 1000, control.signal);
        }
        if (control.signal.aborted) {
          this.#claiming = undefined;
          await this.#giveBack(token);
          return { jobs: [], late: false };
        }
      }
    }
  }

  async #sendClaim(claim: { limit: number; token: string; wait?: string; again: boolean }, limit: number, signal?: AbortSignal): Promise<Claimed[]> {
    const lease = this.#lease !== undefined && { lease: durationText(this.#lease) };
    const body = JSON.stringify({ worker: this.#name, queues: this.#queues, ...lease, ...claim });
    const answer = await this.transport.send<{ jobs: Claimed[] }>({ method: "POST", path: "/work/claim", what: "claim jobs", body, limit, signal });
    this.#broken.delete("claim");
    return answer.jobs;
  }

  /** giveBack hands back the jobs of a claim whose answer nobody waits for, so that they need not wait for the end of their leases. */
  async #giveBack(token: string): Promise<void> {
    if (this.#failure) {
      return;
    }
    try {
      const jobs = await this.#sendClaim({ limit: 1, token, again: true }, 5000);
      for (const claimed of jobs) {
        this.#settler.add(new Held(claimed, this), released(new StoppingError("the worker claims no more")));
      }
    } catch (error) {
      this.#tell("claim", error);
    }
  }

  /**
   * start gives jobs to the handler. The leases of late ones are renewed first, so that no handler begins a job that another worker has: the
   * answer may have waited for a frozen process.
   */
  async #start(jobs: Claimed[], late: boolean): Promise<void> {
    const all = jobs.map((claimed) => this.#take(claimed));
    while (late && all.some((held) => held.stage === "running") && !(await this.#leases.renew())) {
      await pause(this.#leases.retryPause);
    }
    for (const held of all) {
      if (held.stage === "running") {
        this.#run(held);
      }
    }
  }

  /** take notes a claimed job. */
  #take(claimed: Claimed): Held {
    for (const older of this.#held) {
      if (older.id === claimed.id) {
        this.#lose(older, new LostError(older.id, "it was claimed anew"));
      }
    }
    const held = new Held(claimed, this);
    this.#held.add(held);
    this.#leases.taken(held);
    return held;
  }

  /** run gives a job to the handler. */
  #run(held: Held): void {
    this.#running++;
    this.#watchTimeout(held);
    void this.#handle(held).then((outcome) => {
      this.#running--;
      this.#settle(held, outcome);
      this.#wake();
    });
  }

  /** see notes that the process runs. */
  #see(): void {
    this.#unseen = Math.max(this.#unseen, now() - this.#seenAt);
    this.#seenAt = now();
  }

  async #watchStalls(): Promise<void> {
    while (!this.#over.signal.aborted) {
      this.#see();
      await pause(this.#leases.shortest / 10, this.#over.signal, true);
    }
  }

  async #handle(held: Held): Promise<Outcome> {
    try {
      return completed(await this.handler(held.job));
    } catch (error) {
      return failed(error, held.reason);
    }
  }

  /** settle sends an outcome, unless the job is lost or has one. */
  #settle(held: Held, outcome: Outcome): void {
    if (held.stage === "running") {
      this.#held.delete(held);
      this.#settler.add(held, outcome);
    }
  }

  /** watchTimeout fails the job of a handler that ignores its timeout. The handler keeps its slot. */
  #watchTimeout(held: Held): void {
    held.job.signal.addEventListener("abort", async () => {
      if (held.reason instanceof TimeoutError) {
        await pause(timeoutGrace, this.#over.signal, true);
        this.#settle(held, { outcome: "fail", error: `${held.reason.message}, and the handler ignored it` });
      }
    });
  }

  /** drain waits for the handlers, then tells them to end, then hands their jobs back. */
  async #drain(): Promise<void> {
    await this.#noneRuns(this.#drainTimeout);
    for (const held of this.#held) {
      held.tell(new StoppingError("the worker ends, and the handler did not return in time"));
    }
    await this.#noneRuns(Math.min(stopGrace, this.#drainTimeout));
    for (const held of [...this.#held]) {
      this.#settle(held, released(new StoppingError("the worker ends")));
    }
    await this.#settler.idle();
  }

  /** noneRuns waits until no handler with a job runs, for some milliseconds at most. */
  async #noneRuns(most: number): Promise<void> {
    const until = now() + most;
    while (this.#held.size > 0 && now() < until) {
      const woken = new AbortController();
      this.#wake = () => woken.abort();
      await pause(until - now(), woken.signal);
    }
  }

  /** keepHeartbeat shows people the worker, and obeys them. It keeps the process alive. */
  async #keepHeartbeat(): Promise<void> {
    while (!this.#over.signal.aborted) {
      await this.#heartbeat();
      await pause(beat, this.#over.signal);
    }
    if (!this.#failure) {
      await this.#sendHeartbeat({ leaving: true }).catch(() => undefined); // silence is noticed too
    }
  }

  async #heartbeat(): Promise<void> {
    try {
      const { wanted } = await this.#sendHeartbeat({
        queues: this.#queues,
        slots: this.#concurrency,
        busy: this.#running,
        started_at: this.#started.toISOString(),
        mode: this.#ending ? "stopping" : this.#quiesced ? "quiesced" : "working",
        ...(this.options.version && { version: this.options.version }),
      });
      this.#broken.delete("heartbeat");
      this.#obey(wanted);
    } catch (error) {
      this.#tell("heartbeat", error);
    }
  }

  #sendHeartbeat(body: object): Promise<{ wanted: Wanted }> {
    const text = JSON.stringify({ worker: this.#name, ...body });
    return this.transport.send({ method: "POST", path: "/work/heartbeat", what: "send a heartbeat", body: text, limit: 5000 });
  }

  #obey(wanted: Wanted): void {
    if (wanted === "stop" && !this.#over.signal.aborted) {
      this.#end();
    }
    const quiesced = wanted !== "work";
    if (quiesced !== this.#quiesced) {
      this.#quiesced = quiesced;
      this.#claiming?.abort();
      this.#wake();
    }
  }
}

/** isFinal reports whether the worker is refused: for a certificate, a wrong address or token, or a claim that breaks a rule. */
function isFinal(what: string, error: Error): boolean {
  if (!(error instanceof ApiError)) {
    return error instanceof CertificateError;
  }
  const refused = error.status >= 300 && error.status < 500 && !error.temporary && error.status !== 409;
  return refused && (what === "claim" || error.status === 401 || error.status === 403);
}
