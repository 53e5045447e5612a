// Package worker runs jobs: it claims them from a store under leases and calls typed handlers. While the
// handlers run, it renews the leases; afterwards it settles the outcomes.
//
// Begin with [New] and [Handle]: New makes a [Worker] of a store, and Handle registers a [Handler] for a queue.
// Then [Worker.Run] works until its context ends, and drains. A handler receives a [Job] and ends it with nil,
// an error, [Snooze], [RateLimited], [RetryAfter] or [Permanent]. [HandleMany] gives a handler several jobs in one call, a
// [Middleware] wraps all handlers, and [Worker.Once] runs only the jobs that are due.
//
// Each worker runs at most [Options].Slots handlers at once; start as many workers as the load needs. Recovery
// of dead workers' jobs is the task of package upkeep, which must run in some process. Next, read
// docs/concepts.md and docs/guide/limits.md; package dispatcher starts runs of an engine instead of handlers.
package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/began"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/internal/obey"
	"github.com/sluice-queue/sluice/internal/pause"
	"github.com/sluice-queue/sluice/internal/safe"
	"github.com/sluice-queue/sluice/internal/scrubbed"
	"github.com/sluice-queue/sluice/presence"
)

// Options adjust a [Worker]. The zero value works. [Worker.Run] rejects negative values, except of LogLimit.
type Options struct {
	// Slots is how many handlers run at once. Default 10.
	Slots int
	// Poll is how often the worker looks at all its queues, with one statement, if no signal reports jobs.
	// Signals only make the worker quicker; correctness relies on polling. While the store receives the signals
	// of every process, the worker looks only every 8th Poll. Changes without a signal, by SQL for example, are
	// then found that late. Default 1 s.
	Poll time.Duration
	// Drain is how long handlers may go on after Run's context has ended. Default 30 s.
	Drain time.Duration
	// Abandon is how long a handler may ignore the end of its context, by timeout or drain. Then the worker
	// settles its attempt without it. Default 5 s.
	Abandon time.Duration
	// PayloadChecker checks payloads before they run, in queues that have a payload_schema. Without one, the
	// worker buries the jobs of such a queue. Default: none.
	PayloadChecker sluice.PayloadChecker
	// Logger gets one line per event; see docs/events.md. Default: slog.Default.
	Logger *slog.Logger
	// LogLimit is how many lines of an event the worker logs for one queue within 10 s. Beyond the limit, it
	// logs only their number. Default 10; negative: all lines.
	LogLimit int
	// Middleware wraps each call of a handler, the first outermost. Default: none.
	Middleware []Middleware
	// Version is the version of your program, by which `sluice holders` chooses processes. Default:
	// [presence.ProgramVersion].
	Version string
	// OnFailure is called after each failed attempt, for example to report the error to an error tracker. The job's
	// slot waits for OnFailure; its context ends after 10 s. A job that is handed back or cancelled has not failed.
	// Neither has a job that its handler completed in a transaction. Default: none.
	OnFailure func(ctx context.Context, failure Failure)
	// Scrub removes secrets and personal data from errors, stacks and reasons before they are stored or logged.
	// A scrub.Scrubber may keep some families; scrub.Nothing keeps all. Default: scrub.Text.
	Scrub func(text string) string
}

// ErrDrainTimeout reports that handlers were still running at the end of the drain. The worker released their
// jobs, so they will run again.
var ErrDrainTimeout = errors.New("drain timed out")

// These causes end a handler's context before the handler does; see [context.Cause]. Two more are
// [sluice.ErrCancelled], when somebody cancelled the job, and [sluice.ErrLost], when another holder may have
// it.
var (
	// ErrTimeout means that the attempt exceeded its timeout, which the job, [QueueOptions] or the queue sets. The
	// attempt counts as failed.
	ErrTimeout = errors.New("attempt timed out")
	// ErrShutdown means that the worker's drain is over. The job is released; no attempt is counted.
	ErrShutdown = errors.New("worker shuts down")
)

// Worker claims and runs jobs. [Handle] registers handlers, then [Worker.Run] does the work.
type Worker struct {
	store    sluice.Store
	options  Options
	settings *sluice.LiveSettings
	log      *event.Log
	tenants  *event.Tenants
	pauses   *pause.Watcher
	ear      *obey.Ear
	holder   presence.Holder
	wrong    error          // the error in the options
	serving  []*servedQueue // in the order of claiming; guarded by mu, and never changed in place

	wake        chan struct{}             // there may be something to claim
	looks       chan struct{}             // lookOut has queues to look at
	look        chan struct{}             // a waiting run may be due
	ready       chan *run                 // claimed jobs that wait for a slot
	settlements chan decided              // settlements to write
	unsettled   atomic.Int64              // settlements that are decided but not written yet
	sparse      bool                      // the last claims got few jobs; used by fetch alone
	begun       began.Tally               // for queues with a rate
	drains      chan struct{}             // closed when the drain begins
	drained     chan struct{}             // closed when draining and nothing runs
	noMore      chan struct{}             // closed when no more jobs will become ready
	reported    chan struct{}             // a handler has reported progress
	shorter     chan struct{}             // leases now need renewal more often than before
	ask         chan struct{}             // a claim may have been cancelled
	reports     atomic.Bool               // some running job has a report that is not stored yet
	reportedAt  time.Time                 // when reports were stored last; used by tellStore alone
	busy        atomic.Int64              // slots that run a handler
	givenUp     atomic.Int64              // settlements that could not be written
	settleBy    atomic.Pointer[time.Time] // when to give settlements up once draining; nil: not yet
	away        bool                      // the store did not answer when the drain's time was over; used by settleAll, then by Run

	mu            sync.Mutex
	running       map[*run]struct{}  // claimed jobs whose handlers have not returned
	held          map[sluice.ID]*run // the newest run of each job
	doubted       map[*run]struct{}  // runs that a signal reports as cancelled; the store has not been asked yet
	waiting       []*run             // the runs in running that may not start yet
	early         int                // how many runs in waiting are not yet due; they take no slot
	inMany        int                // how many runs in running are for a ManyHandler; they take no slot
	calls         int                // calls of a ManyHandler under way
	slots         int                // goroutines that run handlers
	relieving     bool               // relieve is scheduled
	pace          time.Duration      // how long handlers take, as a moving average
	shortestLease time.Duration      // of the queues served so far
	looking       looking
	ran           bool
	stop          context.CancelCauseFunc // ends Run with a cause
	draining      atomic.Bool
}

// New makes a worker of a store. New does not access the store.
func New(store sluice.Store, options Options) *Worker {
	wrong := safe.Options(options, "LogLimit")
	if options.Slots <= 0 {
		options.Slots = 10
	}
	if options.Poll <= 0 {
		options.Poll = time.Second
	}
	if options.Drain <= 0 {
		options.Drain = 30 * time.Second
	}
	if options.Abandon <= 0 {
		options.Abandon = 5 * time.Second
	}
	options.Logger = scrubbed.Logger(options.Logger, options.Scrub)
	store = scrubbed.Store(store, options.Scrub)
	holder := presence.NewID()
	log := event.NewLog(options.Logger, holder, options.LogLimit)
	return &Worker{
		store: store, options: options, wrong: wrong, log: log, tenants: event.NewTenants(log, store), pauses: pause.NewWatcher(store), ear: obey.New(log), settings: sluice.NewLiveSettings(store, sluice.LiveOptions{PayloadChecker: safe.Checker(options.PayloadChecker), Logger: options.Logger}),
		holder: presence.Holder{ID: holder, Role: presence.RoleWorker, Slots: options.Slots, Version: cmp.Or(options.Version, presence.ProgramVersion()), Protocol: presence.Protocol},
		wake:   make(chan struct{}, 1), looks: make(chan struct{}, 1), settlements: make(chan decided, 4*options.Slots+settleBatch),
		look: make(chan struct{}, 1), ready: make(chan *run, 2*options.Slots+maxAhead), running: make(map[*run]struct{}), drains: make(chan struct{}), drained: make(chan struct{}), noMore: make(chan struct{}),
		held: make(map[sluice.ID]*run), doubted: make(map[*run]struct{}), ask: make(chan struct{}, 1), shorter: make(chan struct{}, 1), reported: make(chan struct{}, 1), shortestLease: maxKeepInterval * leaseRounds,
	}
}

// Run claims and runs jobs until ctx ends, then drains. To drain, Run claims no more, lets running handlers go
// on for [Options].Drain, ends their contexts, and releases the remaining jobs.
//
// Run returns nil after a clean drain and [ErrDrainTimeout] otherwise. If it could not write the outcomes of
// some jobs, it returns [sluice.ErrUnavailable] too. Run ends within Options.Drain plus Options.Abandon, and if the
// store hangs, plus the deadlines of 3 calls.
//
// If somebody tells the process to stop, Run drains too, and returns a [presence.StoppedError]. Told to quiesce,
// Run goes on without new jobs until somebody lifts that.
//
// Run returns an error at the start at once, such as an unreachable store, and may then be called again. Later
// errors are logged, and the calls retried.
func (w *Worker) Run(ctx context.Context) error {
	ctx, stop := w.ear.Obeying(ctx)
	defer stop(nil)
	if err := w.begin(ctx, stop); err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil // the caller stopped the worker before it began
		}
		return err
	}
	// Handlers and store calls outlive ctx: they end with the drain.
	work, stopWork := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stopWork(nil)
	var helpers, settler sync.WaitGroup
	helping, stopHelping := context.WithCancel(work)
	defer stopHelping()
	helpers.Go(func() { w.watch(helping) })
	helpers.Go(func() { w.keep(helping) })
	helpers.Go(func() { w.tellStore(helping) })
	helpers.Go(func() { w.lookOut(helping) })
	helpers.Go(func() { w.startWaiting(helping) })
	helpers.Go(func() { w.tenants.Run(helping) })
	drained := make(chan struct{})
	settler.Go(func() { w.settleAll(work, drained) })

	w.log.Emit(event.WorkerStarted, "", "queues", w.queues(), "slots", w.options.Slots)
	defer w.log.Flush()
	w.fetch(ctx, work)
	err := w.drain()
	var wrong *misuse
	if errors.As(context.Cause(ctx), &wrong) {
		err = errors.Join(wrong.err, err)
	}
	close(w.noMore)
	close(drained)
	settler.Wait()
	if !w.away {
		w.reportAllBegun(work)
	}
	stopHelping()
	helpers.Wait()
	if leaveErr := presence.Given(w.store).Deregister(context.WithoutCancel(ctx), w.holder.ID); leaveErr != nil {
		w.log.Emit(event.NotForgotten, "", "error", leaveErr)
	}
	if n := w.givenUp.Load(); n > 0 {
		err = errors.Join(err, fmt.Errorf("worker: what became of %d jobs could not be written; they will be handed out again: %w", n, sluice.ErrUnavailable))
	}
	w.log.Emit(event.WorkerStopped, "", "drained", err == nil)
	if stopped := obey.Stopped(ctx); stopped != nil && err != nil {
		return errors.Join(stopped, err)
	} else if stopped != nil {
		return stopped
	}
	return err
}

// queues returns the names of the served queues.
func (w *Worker) queues() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.holder.Queues
}

// begin checks that the worker can work, and sends its first heartbeat. stop ends Run if a handler that is registered
// later is invalid.
func (w *Worker) begin(ctx context.Context, stop context.CancelCauseFunc) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ran {
		return errors.New("worker: Run was called twice, or beside Once; make a new worker")
	}
	if err := sluice.CheckGiven("store", w.store); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	if len(w.serving) == 0 {
		return errors.New("worker: no handler is registered; see Handle")
	}
	if w.wrong != nil {
		return fmt.Errorf("worker: %w", w.wrong)
	}
	w.holder.Queues = nil
	for _, servedQueue := range w.serving {
		if err := w.add(servedQueue); err != nil {
			return err
		}
	}
	holder := w.holder
	holder.Mode = presence.ModeWorking
	told, err := presence.Given(w.store).Heartbeat(ctx, holder)
	if err != nil {
		return fmt.Errorf("worker: start: %w", err)
	}
	w.ran, w.stop = true, stop
	w.ear.Hear(told)
	return nil
}

// drain waits for the running handlers, and ends their contexts if they are still running after Options.Drain.
func (w *Worker) drain() error {
	w.ear.Stopping()
	by := time.Now().Add(w.options.Drain + w.options.Abandon)
	w.settleBy.Store(&by)
	w.mu.Lock()
	w.draining.Store(true)
	close(w.drains)
	left := len(w.running)
	w.endDrain()
	w.mu.Unlock()
	w.releaseWaiting("worker shut down", func(*run) bool { return true })
	if left > 0 {
		w.log.Emit(event.WorkerDraining, "", "jobs", left, "within", w.options.Drain)
	}
	if waitFor(w.drained, w.options.Drain) {
		return nil
	}
	for _, r := range w.runs() {
		r.cancel(ErrShutdown)
	}
	waitFor(w.drained, w.options.Abandon)
	for _, r := range w.runs() {
		if d, is := w.giveUp(r); is {
			w.decide(d)
		}
	}
	return ErrDrainTimeout
}

// giveUp hands back the job of a handler that ignores the end of the drain, unless the job is settled, or may be in the
// handler's own transaction.
func (w *Worker) giveUp(r *run) (decided, bool) {
	if r.claim.SettledInTx() || !r.settle() {
		return decided{}, false
	}
	return decided{w.release(r.claim, "worker shut down, and the handler ignored it"), r.servedQueue}, true
}

// release hands a job back; no attempt is counted.
func (w *Worker) release(c *sluice.Claim, reason string) sluice.Settlement {
	w.log.EmitJob(event.JobReleased, c, "reason", reason)
	return sluice.Settlement{
		ID: c.ID, Token: c.Token, Holder: w.holder.ID, Claim: c, Event: sluice.EventRelease, Reason: reason, InTx: c.SettledInTx(),
	}
}

func waitFor(done <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// runs lists the runs of all claimed jobs, including those that wait.
func (w *Worker) runs() []*run {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]*run, 0, len(w.running))
	for r := range w.running {
		out = append(out, r)
	}
	return out
}

// watch turns signals into claims and into questions about cancelled runs. A signal proves nothing: everyone
// who can connect to the database can send one.
func (w *Worker) watch(ctx context.Context) {
	for ctx.Err() == nil {
		err := w.store.Watch(ctx, w.heed)
		if ctx.Err() != nil {
			return
		}
		w.log.Emit(event.SignalsLost, "", "error", err, "retry_in", w.options.Poll)
		waitFor(ctx.Done(), w.options.Poll)
	}
}

func (w *Worker) heed(signal sluice.Signal) {
	if !signal.Ended.IsZero() {
		return
	}
	if !signal.Cancelled.IsZero() {
		w.doubt(signal.Cancelled)
		return
	}
	if signal.Queue == "" || signal.Hearing != "" {
		w.lookAtAll(signal.Hearing)
		return
	}
	for _, servedQueue := range w.served() {
		if signal.Queue == servedQueue.queue {
			servedQueue.hungry.Store(true)
			w.nudge()
		}
	}
}

// nudge wakes fetch.
func (w *Worker) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
