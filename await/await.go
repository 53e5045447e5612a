// Package await waits for the ends of jobs and reads their results.
//
// Begin with [New]: one [Waiter] serves all waiting callers of a process. [Waiter.Wait] waits for one job, and [Result]
// also decodes its result. [Store] is the port that SQLite, PostgreSQL and memory implement.
//
// Read next: docs/guide/results.md.
package await

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/progress"
)

// Waiter waits for jobs. Any number of goroutines may use it. While nobody waits, it costs nothing.
type Waiter struct {
	store sluice.Store
	port  Store
	past  progress.Store

	mu        sync.Mutex
	waiting   map[sluice.ID]*wait
	fresh     []sluice.ID   // waiting jobs that the store has not been asked for yet
	signalled []sluice.ID   // jobs whose end was signalled
	followed  int           // callers who want reports
	deaf      bool          // signals of other processes may be lost
	nudged    chan struct{} // room for one
	stop      context.CancelFunc
	failure   error // of the last call of the store; nil: it succeeded
}

// wait is one job and those who wait for it.
type wait struct {
	callers int
	done    chan struct{}          // closed when end or err is set
	reports []chan progress.Report // of callers who want reports; each has room for one
	told    time.Time              // of the last report
	end     End
	err     error
}

// New returns a waiter. It needs no Close: it works only while somebody waits. A store that cannot wait makes Wait fail
// with a [sluice.ErrNotFound].
func New(store sluice.Store) *Waiter {
	return &Waiter{store: sluice.GivenStore(store), port: Given(store), past: progress.Given(store), waiting: make(map[sluice.ID]*wait), nudged: make(chan struct{}, 1)}
}

// FailedError says that a job has ended without success.
type FailedError struct{ End End }

// Error names the job, its state and the last failure.
func (e *FailedError) Error() string {
	text := fmt.Sprintf("job %s is %s", e.End.ID, e.End.State)
	if e.End.Error != "" {
		text += ": " + e.End.Error
	}
	return text
}

// RemovedError says that a job has completed, but that upkeep has removed its result after keep_results of the queue. It is a
// [sluice.ErrNotFound].
type RemovedError struct{ End End }

// Error names the job and the setting.
func (e *RemovedError) Error() string {
	return fmt.Sprintf("job %s has completed at %s, and its result is no longer kept; keep_results of its queue says how long it is", e.End.ID, e.End.FinishedAt.UTC().Format(time.RFC3339))
}

// Unwrap returns [sluice.ErrNotFound].
func (e *RemovedError) Unwrap() error { return sluice.ErrNotFound }

// Wait waits until a job has ended, or ctx ends. A job that is dead or cancelled is a [*FailedError]. A job that is not
// stored is a [sluice.ErrNotFound]: it never was stored, or upkeep has deleted it.
//
// Wait answers some milliseconds after the end if the process that ends the job hears the store's signals, else within
// about a second. Requeueing the job later changes no answer. While the store cannot be read, Wait goes on; when ctx
// ends then, the error also says why.
func (w *Waiter) Wait(ctx context.Context, id sluice.ID) (End, error) {
	return w.wait(ctx, id, nil, nil)
}

// Follow is Wait, and calls each with the last report of the job's running attempt and with each newer one; see package
// progress. It calls each within about a second of the report, in the caller's goroutine, and may skip a report that another
// follows at once.
func (w *Waiter) Follow(ctx context.Context, id sluice.ID, each func(progress.Report)) (End, error) {
	return w.wait(ctx, id, make(chan progress.Report, 1), each)
}

func (w *Waiter) wait(ctx context.Context, id sluice.ID, reports chan progress.Report, each func(progress.Report)) (End, error) {
	if err := sluice.CheckGiven("waiter", w); err != nil {
		return End{}, err
	}
	one := w.join(id, reports)
	defer w.leave(id, one, reports)
	for over := false; !over; {
		select {
		case <-one.done:
			over = true
		case report := <-reports:
			each(report)
		case <-ctx.Done():
			return End{}, w.gaveUp(ctx, id)
		}
	}
	switch {
	case one.err != nil:
		return End{}, fmt.Errorf("wait for job %s: %w", id, one.err)
	case one.end.State == sluice.StateCompleted:
		return one.end, nil
	case one.end.State == "":
		return one.end, fmt.Errorf("wait for job %s: it is not stored; it never was, or upkeep has deleted it: %w", id, sluice.ErrNotFound)
	}
	return one.end, &FailedError{one.end}
}

func (w *Waiter) gaveUp(ctx context.Context, id sluice.ID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure != nil {
		return fmt.Errorf("wait for job %s: %w; the store could not be read: %w", id, context.Cause(ctx), w.failure)
	}
	return fmt.Errorf("wait for job %s: %w", id, context.Cause(ctx))
}

// Result waits for a job of a queue with results of type T, and decodes the result. A result that does not fit is a
// [sluice.ErrInvalid]. A job without a result gives the zero value. A result that upkeep has removed is a [*RemovedError]. Other errors are those of [Waiter.Wait].
func Result[T any](ctx context.Context, w *Waiter, id sluice.ID) (result T, err error) {
	end, err := w.Wait(ctx, id)
	switch {
	case err != nil:
		return result, err
	case end.ResultRemoved:
		return result, &RemovedError{end}
	case len(end.Result) == 0:
		return result, nil
	}
	if err := json.Unmarshal(end.Result, &result); err != nil {
		return result, &sluice.InvalidError{Field: "result", Rule: fmt.Sprintf("that of job %s does not fit %T: %v", id, result, err)}
	}
	return result, nil
}

// join adds a caller who waits for a job. The first of all starts the watch.
func (w *Waiter) join(id sluice.ID, reports chan progress.Report) *wait {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.waiting[id]
	if one == nil {
		one = &wait{done: make(chan struct{})}
		w.waiting[id] = one
		w.fresh = append(w.fresh, id)
		w.nudge()
	}
	one.callers++
	if reports != nil {
		one.reports, one.told = append(one.reports, reports), time.Time{}
		w.followed++
		w.nudge()
	}
	if w.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		w.stop, w.deaf, w.failure = stop, true, nil
		go w.watch(ctx)
	}
	return one
}

// leave removes a caller. The last of all ends the watch.
func (w *Waiter) leave(id sluice.ID, one *wait, reports chan progress.Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if reports != nil {
		one.reports = slices.DeleteFunc(one.reports, func(other chan progress.Report) bool { return other == reports })
		w.followed--
	}
	if one.callers--; one.callers == 0 && w.waiting[id] == one {
		delete(w.waiting, id)
	}
	if len(w.waiting) == 0 && w.stop != nil {
		w.stop()
		w.stop = nil
	}
}

func (w *Waiter) nudge() {
	select {
	case w.nudged <- struct{}{}:
	default:
	}
}
