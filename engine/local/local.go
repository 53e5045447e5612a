package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/pressure"
	"github.com/sluice-queue/sluice/worker"
)

const (
	// queuePrefix precedes the type of runs in the names of their queues.
	queuePrefix = "local:"
	// callTime is the deadline of a call.
	callTime = 30 * time.Second
	// lookUps is how many runs are looked up in parallel.
	lookUps = 8
)

// Options adjust an [Engine]. The zero value works.
type Options struct {
	// Worker adjusts the worker that executes runs in this process.
	Worker worker.Options
	// Settings are the initial settings of the runs' queues; later, the stored settings apply. Default:
	// [DefaultSettings].
	Settings sluice.Settings
}

// DefaultSettings returns the initial settings of a queue of runs. A failed run is not retried, only the
// target's timeout limits its duration, and every move is audited, because Ended reads the audit. Ended runs
// are kept for a week.
func DefaultSettings() sluice.Settings {
	s := sluice.DefaultSettings()
	s.MaxAttempts = 1
	s.Timeout = 0
	s.PayloadLimit = 64 << 20 // the queue of the job has limited it
	s.KeepDead = s.KeepCompleted
	s.Audit = sluice.AuditFull
	return s
}

// Engine runs Go functions. A process that only dispatches or follows needs no functions and does not call
// [Engine.Run]. Many goroutines may use an Engine at once.
type Engine struct {
	store    sluice.Store
	client   *sluice.Client
	settings sluice.Settings
	worker   *worker.Worker
	types    []string // types handled here

	mu    sync.Mutex
	known map[string]bool // queues that are stored
}

var (
	_ engine.Engine     = (*Engine)(nil)
	_ engine.Terminator = (*Engine)(nil)
)

// New makes an engine that keeps its runs in a store. New does not access the store.
func New(store sluice.Store, options Options) *Engine {
	if options.Settings == (sluice.Settings{}) {
		options.Settings = DefaultSettings()
	}
	store = sluice.GivenStore(store)
	return &Engine{
		store: store, client: sluice.NewClient(store, sluice.ClientOptions{Logger: options.Worker.Logger}),
		settings: options.Settings, worker: worker.New(store, options.Worker), known: make(map[string]bool),
	}
}

// QueueOf returns the queue whose jobs are the runs of a type.
func QueueOf(runType string) string { return queuePrefix + runType }

// Run executes runs of the handled types until ctx ends, and then drains; see [worker.Worker.Run]. A run that
// the drain cuts off is executed again.
func (e *Engine) Run(ctx context.Context) error {
	for _, runType := range e.types {
		if err := e.ensure(ctx, QueueOf(runType)); err != nil {
			if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				return nil // the caller stopped it before it began
			}
			return fmt.Errorf("local engine: %w", err)
		}
	}
	return e.worker.Run(ctx)
}

// ensure stores the settings of a queue of runs, if it has none.
func (e *Engine) ensure(ctx context.Context, queue string) error {
	e.mu.Lock()
	known := e.known[queue]
	e.mu.Unlock()
	if known {
		return nil
	}
	if _, err := e.client.EnsureQueue(ctx, queue, e.settings, sluice.Act{By: "sluice", Reason: "runs of the local engine"}); err != nil {
		return err
	}
	e.mu.Lock()
	e.known[queue] = true
	e.mu.Unlock()
	return nil
}

// Start stores runs as jobs of their queue. A run whose type no process handles waits; see [Engine.Check].
// Start refuses a run whose ref is empty, longer than [MaxRefBytes] or not UTF-8, or whose payload exceeds payload_limit
// of the runs' queue.
func (e *Engine) Start(ctx context.Context, target engine.Target, runs []engine.Run) []error {
	ctx, stop := context.WithTimeout(ctx, callTime)
	defer stop()
	queue, err := queueOf(target)
	if err == nil {
		err = e.ensure(ctx, queue)
	}
	if err != nil {
		return same(fault("start", err), len(runs))
	}
	answers := make([]error, len(runs))
	var jobs []sluice.NewJob
	var places []int
	for i, run := range runs {
		job, err := newJob(queue, target, run)
		if err != nil {
			answers[i] = refused(run.Ref, err)
			continue
		}
		if err := run.Begins(); err != nil {
			answers[i] = fmt.Errorf("start %.80q: %w", run.Ref, err)
			continue
		}
		jobs, places = append(jobs, job), append(places, i)
	}
	receipts, err := e.client.EnqueueMany(ctx, jobs)
	var batch *sluice.BatchError
	if err != nil && !errors.As(err, &batch) {
		err = fault("start", err)
	}
	var found []int // places of runs whose id was taken
	for k, i := range places {
		switch {
		case batch != nil && batch.Failed[k] != nil:
			answers[i] = refused(runs[i].Ref, batch.Failed[k])
		case err != nil && batch == nil:
			answers[i] = err
		case receipts[k].Duplicate:
			found = append(found, i)
		}
	}
	e.compare(ctx, queue, runs, found, answers)
	return answers
}

// refused returns the answer for a run that breaks a rule.
func refused(ref string, err error) error {
	if errors.Is(err, sluice.ErrInvalid) {
		return fmt.Errorf("start %.80q: %w: %w", ref, engine.ErrRefused, err)
	}
	if errors.Is(err, pressure.ErrFull) {
		return fmt.Errorf("start %.80q: %w: %w", ref, engine.ErrBusy, err)
	}
	return fault("start", err)
}

// compare checks that runs which existed before belong to the same jobs.
func (e *Engine) compare(ctx context.Context, queue string, runs []engine.Run, found []int, answers []error) {
	ids := make([]sluice.ID, len(found))
	for k, i := range found {
		ids[k] = idOf(queue, runs[i].Ref)
	}
	stored, err := e.lookUp(ctx, ids)
	for k, i := range found {
		switch {
		case err != nil:
			answers[i] = fault("start", err)
		case stored[k] == nil:
			answers[i] = fault("start", fmt.Errorf("run %q was there, and is no more; start it again", runs[i].Ref))
		default:
			if has := outcomeOf(*stored[k], runs[i].Ref, false); has.State == engine.Foreign || has.Job != runs[i].Job {
				answers[i] = fmt.Errorf("start %q for job %s: %w, of job %s; let run_ref of the queue make names that differ", runs[i].Ref, runs[i].Job, engine.ErrRefTaken, has.Job)
			}
		}
	}
}

// Outcomes looks up each run. A cancelled run counts as ended, even if its function has not yet noticed the end
// of its context.
func (e *Engine) Outcomes(ctx context.Context, target engine.Target, refs []string) ([]engine.Outcome, error) {
	ctx, stop := context.WithTimeout(ctx, callTime)
	defer stop()
	queue, err := queueOf(target)
	if err != nil {
		return nil, fault("outcomes", err)
	}
	ids := make([]sluice.ID, len(refs))
	for i, ref := range refs {
		ids[i] = idOf(queue, ref)
	}
	stored, err := e.lookUp(ctx, ids)
	if err != nil {
		return nil, fault("outcomes", err)
	}
	out := make([]engine.Outcome, len(refs))
	for i, ref := range refs {
		out[i] = engine.Outcome{Ref: ref, State: engine.Absent}
		if stored[i] != nil {
			out[i] = outcomeOf(*stored[i], ref, target.Results)
		}
	}
	return out, nil
}

// lookUp reads the jobs of runs, some in parallel; nil for missing ones.
func (e *Engine) lookUp(ctx context.Context, ids []sluice.ID) ([]*sluice.Job, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	jobs := make([]*sluice.Job, len(ids))
	next := make(chan int)
	var all sync.WaitGroup
	for range min(lookUps, len(ids)) {
		all.Go(func() {
			for i := range next {
				job, err := e.store.Job(ctx, ids[i])
				switch {
				case err == nil:
					jobs[i] = &job
				case !errors.Is(err, sluice.ErrNotFound):
					stop(err) // the first error is the cause
				}
			}
		})
	}
	for i := range ids {
		next <- i
	}
	close(next)
	all.Wait()
	return jobs, context.Cause(ctx)
}

// Cancel cancels the jobs of runs. The function's context ends.
func (e *Engine) Cancel(ctx context.Context, target engine.Target, refs []string, reason string) []error {
	ctx, stop := context.WithTimeout(ctx, callTime)
	defer stop()
	queue, err := queueOf(target)
	if err != nil {
		return same(fault("cancel", err), len(refs))
	}
	ids := make([]sluice.ID, len(refs))
	for i, ref := range refs {
		ids[i] = idOf(queue, ref)
	}
	err = e.client.Cancel(ctx, ids, sluice.Act{By: "local engine", Reason: plainReason(reason)})
	var batch *sluice.BatchError
	if err != nil && !errors.As(err, &batch) {
		return same(fault("cancel", err), len(refs))
	}
	answers := make([]error, len(refs))
	for i := range refs {
		if batch == nil || errors.Is(batch.Failed[i], sluice.ErrNotFound) || errors.Is(batch.Failed[i], sluice.ErrNotAllowed) {
			continue // it never was, or has ended
		}
		if err := batch.Failed[i]; err != nil {
			answers[i] = fault("cancel", err)
		}
	}
	return answers
}

// Terminate does the same as Cancel. The run then counts as ended; the engine cannot stop a function that
// ignores its context.
func (e *Engine) Terminate(ctx context.Context, target engine.Target, refs []string, reason string) []error {
	return e.Cancel(ctx, target, refs, reason)
}

// Check returns the retention of the runs' queue, and how many workers serve it.
func (e *Engine) Check(ctx context.Context, target engine.Target) (engine.Report, error) {
	ctx, stop := context.WithTimeout(ctx, callTime)
	defer stop()
	report := engine.Report{Version: version()}
	name, err := queueOf(target)
	if err != nil {
		return report, fault("check", err)
	}
	queue, err := e.client.Queue(ctx, name)
	if errors.Is(err, sluice.ErrNotFound) { // no run was ever started, and no worker serves the queue
		report.Retention = retention(e.settings)
		return report, nil
	}
	if err != nil {
		return report, fault("check", err)
	}
	holders, err := presence.Holders(ctx, e.store)
	if err != nil {
		return report, fault("check", err)
	}
	report.Retention = retention(queue.Settings)
	for _, h := range holders {
		if h.Serves(name, queue.Now) {
			report.Pollers++
		}
	}
	return report, nil
}

// retention returns the least time that every ended run is kept; 0: for ever.
func retention(s sluice.Settings) time.Duration {
	var least time.Duration
	for _, state := range []sluice.State{sluice.StateCompleted, sluice.StateCancelled, sluice.StateDead} {
		if keep := s.Keep(state); keep > 0 && (least == 0 || keep < least) {
			least = keep
		}
	}
	return least
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return "local " + cmp.Or(info.Main.Version, "(devel)")
	}
	return "local"
}

// fault returns the error of a failed call as one of the engine errors.
func fault(verb string, err error) error {
	kind := engine.ErrUnavailable
	for _, lacking := range []error{sluice.ErrInvalid, sluice.ErrNotMigrated, sluice.ErrNewerSchema} {
		if errors.Is(err, lacking) {
			kind = engine.ErrTarget
		}
	}
	return fmt.Errorf("local engine: %s: %w: %w", verb, kind, err)
}

func same(err error, times int) []error { return slices.Repeat([]error{err}, times) }
