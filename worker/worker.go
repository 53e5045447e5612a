// Package worker runs jobs: it claims them from a store under leases, hands them to typed handlers,
// renews the leases while they run, and settles what became of them.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/began"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/internal/pause"
	"github.com/sluice-queue/sluice/internal/safe"
	"github.com/sluice-queue/sluice/internal/scrubbed"
)

// Options adjust a Worker. The zero value works. Of negative values, but for LogLimit, Run says that they are wrong.
type Options struct {
	// Slots is how many handlers run at once. Default 10.
	Slots int
	// Poll is how often the queues are looked at when nobody says that they have jobs, all of them by one statement. Signals
	// make it quicker, and polling is what is relied on. While the store hears the signals of every process, they are looked at
	// a third as often: what somebody does without a signal, by SQL for example, is found that late. Default 1 s.
	Poll time.Duration
	// Drain is how long handlers may go on after Run's context has ended. Default 30 s.
	Drain time.Duration
	// Abandon is how long a handler may ignore that its context has ended, by its timeout or by the
	// drain, before its attempt is settled without it. Default 5 s.
	Abandon time.Duration
	// PayloadChecker checks payloads before they run, in queues that have a payload_schema.
	// Without one, jobs of such a queue are buried. Default: none.
	PayloadChecker sluice.PayloadChecker
	// Logger gets one line per event; see docs/events.md. Default: slog.Default.
	Logger *slog.Logger
	// LogLimit is how many lines of an event are logged for one queue within 10 s; of those beyond it only the number is.
	// Default 10, negative: all.
	LogLimit int
	// Scrub removes secrets and personal data from errors, stacks and reasons before they are stored or logged. That
	// of a scrub.Scrubber may leave some in, scrub.Nothing leaves all. Default: scrub.Text.
	Scrub func(text string) string
}

// ErrDrainTimeout says that handlers were still running when the drain was over. Their jobs were
// released, and will be handed out again.
var ErrDrainTimeout = errors.New("drain timed out")

// The causes with which a handler's context ends before the handler does; see context.Cause. Two more are
// sluice.ErrCancelled, when somebody cancelled the job, and sluice.ErrLost, when another holder may have it.
var (
	// ErrTimeout: the attempt took longer than the queue's timeout. It counts as failed.
	ErrTimeout = errors.New("attempt timed out")
	// ErrShutdown: the worker's drain is over. The job is released; no attempt is counted.
	ErrShutdown = errors.New("worker shuts down")
)

// Worker claims and runs jobs. Handle registers handlers, then Run does the work.
type Worker struct {
	store    sluice.Store
	options  Options
	settings *sluice.LiveSettings
	log      *event.Log
	tenants  *event.Tenants
	pauses   *pause.Looker
	holder   sluice.Holder
	wrong    error   // what is wrong with the options
	lanes    []*lane // in the order of claiming; guarded by mu, and never changed in place

	wake        chan struct{} // there may be something to claim
	looks       chan struct{} // there is something to look at
	look        chan struct{} // one of the waiting may be due
	ready       chan *run     // claimed jobs that wait for a slot, for some milliseconds at the most
	settlements chan decided  // what became of jobs
	unsettled   atomic.Int64  // settlements that were decided and are not written yet
	sparse      bool          // the last claims got little; used by the fetching alone
	begun       began.Tally   // for queues with a rate
	drained     chan struct{} // closed when draining and nothing runs
	noMore      chan struct{} // closed when no job will become ready any more
	shorter     chan struct{} // leases are to be looked after more often than before
	ask         chan struct{} // a claim may have been cancelled
	busy        atomic.Int64  // slots that run a handler
	givenUp     atomic.Int64  // settlements that could not be written
	settleBy    atomic.Int64  // when to give settlements up once draining, in ns since 1970; 0: not yet

	mu            sync.Mutex
	running       map[*run]struct{}  // claimed jobs whose handlers have not returned
	held          map[sluice.ID]*run // the newest of each job's
	doubted       map[*run]struct{}  // those that a signal calls cancelled; the store has not been asked yet
	waiting       []*run             // of those running, the ones that may not start yet
	early         int                // how many of those wait until they are due; they take no slot's place
	slots         int                // goroutines that run handlers
	relieving     bool               // it will be looked whether more of them are needed
	pace          time.Duration      // how long handlers take, on a moving average
	shortestLease time.Duration      // of the queues served so far
	looking       looking
	ran           bool
	stop          context.CancelCauseFunc // ends Run, with why
	draining      atomic.Bool
}

// New makes a worker of a store. It does no reading or writing itself.
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
	holder := sluice.NewHolderID()
	log := event.NewLog(options.Logger, holder, options.LogLimit)
	return &Worker{
		store: store, options: options, wrong: wrong, log: log, tenants: event.NewTenants(log, store), pauses: pause.NewLooker(store), settings: sluice.NewLiveSettings(store, sluice.LiveOptions{PayloadChecker: options.PayloadChecker, Logger: options.Logger}),
		holder: sluice.Holder{ID: holder, Role: sluice.RoleWorker, Slots: options.Slots, Version: version()},
		wake:   make(chan struct{}, 1), looks: make(chan struct{}, 1), settlements: make(chan decided, 4*options.Slots+settleBatch),
		look: make(chan struct{}, 1), ready: make(chan *run, 2*options.Slots+maxAhead), running: make(map[*run]struct{}), drained: make(chan struct{}), noMore: make(chan struct{}),
		held: make(map[sluice.ID]*run), doubted: make(map[*run]struct{}), ask: make(chan struct{}, 1), shorter: make(chan struct{}, 1), shortestLease: maxKeepInterval * leaseLooks,
	}
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return ""
}

// Run claims and runs jobs until ctx ends, and then drains: it claims no more, lets the handlers
// that run go on for Options.Drain, ends their contexts, and releases what is left. It returns nil
// after a clean drain and ErrDrainTimeout after the other, and says ErrUnavailable if what became of
// some jobs could not be written. It ends within Options.Drain, Options.Abandon and a call's deadline.
// An error at the start, such as a store that is not there, is returned at once, and Run may be called
// again; later ones are logged and tried again.
func (w *Worker) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if err := w.begin(ctx, stop); err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil // it was told to end before it began
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
	helpers.Go(func() { w.lookOut(helping) })
	helpers.Go(func() { w.startWaiting(helping) })
	helpers.Go(func() { w.tenants.Run(helping) })
	drained := make(chan struct{})
	settler.Go(func() { w.settleAll(work, drained) })

	w.log.Tell(event.WorkerStarted, "", "queues", w.queues(), "slots", w.options.Slots)
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
	w.tellAllBegun(work)
	stopHelping()
	helpers.Wait()
	if leaveErr := w.store.Leave(context.WithoutCancel(ctx), w.holder.ID); leaveErr != nil {
		w.log.Tell(event.NotForgotten, "", "error", leaveErr)
	}
	if n := w.givenUp.Load(); n > 0 {
		err = errors.Join(err, fmt.Errorf("worker: what became of %d jobs could not be written; they will be handed out again: %w", n, sluice.ErrUnavailable))
	}
	w.log.Tell(event.WorkerStopped, "", "drained", err == nil)
	return err
}

// queues names those that are served.
func (w *Worker) queues() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.holder.Queues
}

// begin checks that the worker can work at all.
func (w *Worker) begin(ctx context.Context, stop context.CancelCauseFunc) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ran {
		return errors.New("worker: Run was called twice; make a new worker")
	}
	if err := sluice.CheckGiven("store", w.store); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	if len(w.lanes) == 0 {
		return errors.New("worker: no handler is registered; see Handle")
	}
	if w.wrong != nil {
		return fmt.Errorf("worker: %w", w.wrong)
	}
	w.holder.Queues = nil
	for _, lane := range w.lanes {
		if err := w.add(lane); err != nil {
			return err
		}
	}
	if err := w.store.Beat(ctx, w.holder); err != nil {
		return fmt.Errorf("worker: start: %w", err)
	}
	w.ran, w.stop = true, stop
	return nil
}

// drain waits for the handlers that run, first patiently, then with their contexts ended.
func (w *Worker) drain() error {
	w.settleBy.Store(time.Now().Add(w.options.Drain + w.options.Abandon).UnixNano())
	w.mu.Lock()
	w.draining.Store(true)
	left := len(w.running)
	if left == 0 {
		close(w.drained)
	}
	w.mu.Unlock()
	w.releaseWaiting("worker shut down", func(*run) bool { return true })
	if left > 0 {
		w.log.Tell(event.WorkerDraining, "", "jobs", left, "within", w.options.Drain)
	}
	if waitFor(w.drained, w.options.Drain) {
		return nil
	}
	for _, r := range w.runs() {
		r.cancel(ErrShutdown)
	}
	waitFor(w.drained, w.options.Abandon)
	for _, r := range w.runs() {
		if !r.claim.SettledInTx() && r.settle() {
			w.settlements <- decided{w.release(r.claim, "worker shut down, and the handler ignored it"), r.lane}
		}
	}
	return ErrDrainTimeout
}

// release hands a job back, uncounted.
func (w *Worker) release(c *sluice.Claim, reason string) sluice.Settlement {
	w.log.TellJob(event.JobReleased, c, "reason", reason)
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

// runs lists the handlers that run.
func (w *Worker) runs() []*run {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]*run, 0, len(w.running))
	for r := range w.running {
		out = append(out, r)
	}
	return out
}

// watch lets signals wake the fetching, and the asking whether runs were cancelled. A signal proves nothing: whoever can
// connect to the database can send one.
func (w *Worker) watch(ctx context.Context) {
	for ctx.Err() == nil {
		err := w.store.Watch(ctx, w.heed)
		if ctx.Err() != nil {
			return
		}
		w.log.Tell(event.SignalsLost, "", "error", err, "retry_in", w.options.Poll)
		waitFor(ctx.Done(), w.options.Poll)
	}
}

func (w *Worker) heed(signal sluice.Signal) {
	if !signal.Cancelled.IsZero() {
		w.doubt(signal.Cancelled)
		return
	}
	if signal.Queue == "" || signal.Hearing != "" {
		w.lookAtAll(signal.Hearing)
		return
	}
	for _, lane := range w.served() {
		if signal.Queue == lane.queue {
			lane.hungry.Store(true)
			w.nudge()
		}
	}
}

// nudge wakes the fetching.
func (w *Worker) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
