package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

// nilError is an error whose Error panics on a nil pointer.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

// nilWrapper is an error that wraps another, and whose Unwrap panics on a nil pointer.
type nilWrapper struct{ inner error }

func (w *nilWrapper) Error() string { return w.inner.Error() }
func (w *nilWrapper) Unwrap() error { return w.inner }

func TestNothingInAnErrorEndsTheWorker(t *testing.T) {
	for name, c := range map[string]struct {
		returns error
		state   sluice.State
		says    string
	}{
		"Permanent of nil is nil":      {worker.Permanent(nil), sluice.StateCompleted, ""},
		"RetryAfter of nil is a retry": {worker.RetryAfter(time.Second, nil), sluice.StateDead, "asked to be called again"},
		"an error that is a nil":       {(*nilError)(nil), sluice.StateDead, "whose text cannot be had"},
		"a permanent one that is":      {worker.Permanent((*nilError)(nil)), sluice.StateDead, "whose text cannot be had"},
		"a nil that wraps":             {(*nilWrapper)(nil), sluice.StateDead, "*worker_test.nilWrapper, which cannot be unwrapped"},
		"a permanent one that wraps":   {worker.Permanent((*nilWrapper)(nil)), sluice.StateDead, "which cannot be unwrapped"},
		"one beside another":           {errors.Join(errors.New("no luck"), (*nilWrapper)(nil)), sluice.StateDead, "no luck\nan error of type *worker_test.nilWrapper"},
		"one that is wrapped":          {fmt.Errorf("pay %d: %w", 7, errors.Join(&nilWrapper{errors.New("a")}, (*nilWrapper)(nil))), sluice.StateDead, "pay 7: "},
	} {
		t.Run(name, func(t *testing.T) {
			inShop(t, func(s *shop) {
				s.run(worker.Options{}, func(context.Context, *worker.Job[payment]) error { return c.returns })
				job := s.becomes(s.add(sluice.EnqueueOptions{MaxAttempts: 1}), c.state)
				if !strings.Contains(job.Error, c.says) {
					t.Errorf("error %q, want %q in it", job.Error, c.says)
				}
				_ = s.end()
			})
		})
	}
}

// TestAnErrorThatCannotBeUnwrappedKeepsWhatTheHandlerAskedFor wraps such an error again, as a handler may.
func TestAnErrorThatCannotBeUnwrappedKeepsWhatTheHandlerAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		returns error
		calls   int
		waits   time.Duration
	}{
		"permanent":          {worker.Permanent((*nilWrapper)(nil)), 1, 0},
		"retry after":        {worker.RetryAfter(time.Hour, (*nilWrapper)(nil)), 2, time.Hour},
		"permanent beside":   {errors.Join(worker.Permanent(errors.New("account closed")), (*nilWrapper)(nil)), 1, 0},
		"retry after beside": {errors.Join((*nilWrapper)(nil), worker.RetryAfter(time.Hour, nil)), 2, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			inShop(t, func(s *shop) {
				var starts []time.Time
				s.run(worker.Options{}, func(context.Context, *worker.Job[payment]) error {
					starts = append(starts, time.Now())
					return fmt.Errorf("pay: %w", c.returns)
				})
				s.becomes(s.add(sluice.EnqueueOptions{MaxAttempts: 2}), sluice.StateDead)
				if waited := starts[len(starts)-1].Sub(starts[0]); len(starts) != c.calls || waited < c.waits {
					t.Errorf("%d calls within %s, want %d and %s", len(starts), waited, c.calls, c.waits)
				}
				_ = s.end()
			})
		})
	}
}

func TestAnErrorThatCannotBeUnwrappedIsAFailedAttemptOfEachJobOfACall(t *testing.T) {
	inShop(t, func(s *shop) {
		s.runMany(worker.Options{}, func(_ context.Context, jobs []*worker.Job[payment]) error {
			if err := jobs[0].Settle((*nilWrapper)(nil)); err != nil {
				t.Error(err)
			}
			return (*nilWrapper)(nil)
		}, worker.ManyOptions{Size: 2, QueueOptions: worker.QueueOptions{MaxAttempts: 1}})
		for _, id := range s.addMany(2) {
			if job := s.becomes(id, sluice.StateDead); !strings.Contains(job.Error, "cannot be unwrapped") {
				t.Errorf("error %q", job.Error)
			}
		}
		_ = s.end()
	})
}

func TestAPanicOfScrubRemovesTheTextAndEndsNoWorker(t *testing.T) {
	inShop(t, func(s *shop) {
		scrub := func(text string) string { panic("it cannot read " + text) }
		s.run(worker.Options{Scrub: scrub}, func(context.Context, *worker.Job[payment]) error { return errors.New("token=s3cr3t") })
		job := s.becomes(s.add(sluice.EnqueueOptions{MaxAttempts: 1}), sluice.StateDead)
		if !strings.HasPrefix(job.Error, "[removed: ") {
			t.Errorf("error %q", job.Error)
		}
		_ = s.end()
	})
}

func TestWhatAHandlerReturnsDecidesAlsoAfterACompletionThatCameToNothing(t *testing.T) {
	for name, c := range map[string]struct {
		returns  error
		state    sluice.State
		attempts int
		waits    time.Duration
	}{
		"permanent":   {worker.Permanent(errors.New("account closed")), sluice.StateDead, 1, 0},
		"snooze":      {worker.Snooze(time.Hour), sluice.StateQueued, 0, time.Hour},
		"retry after": {worker.RetryAfter(time.Hour, errors.New("closed today")), sluice.StateQueued, 1, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			inShop(t, func(s *shop) {
				s.run(worker.Options{}, func(_ context.Context, job *worker.Job[payment]) error {
					job.MarkSettledInTx() // as CompleteTx does; then the transaction is rolled back
					return c.returns
				})
				id := s.add(sluice.EnqueueOptions{})
				time.Sleep(time.Second)
				job := s.job(id)
				if job.State != c.state || job.Attempts != c.attempts {
					t.Errorf("%s after %d attempts, want %s after %d", job.State, job.Attempts, c.state, c.attempts)
				}
				if wait := time.Until(job.DueAt); c.waits > 0 && (wait < c.waits-2*time.Second || wait > c.waits) {
					t.Errorf("due in %s, want %s", wait, c.waits)
				}
				_ = s.end()
			})
		})
	}
}

func TestOutageThatEndsAHandlerCountsNoAttempt(t *testing.T) {
	inShop(t, func(s *shop) {
		store := &failing{Store: s.store}
		s.store = store
		s.run(worker.Options{}, func(ctx context.Context, _ *worker.Job[payment]) error {
			<-ctx.Done()
			return ctx.Err()
		})
		id := s.add(sluice.EnqueueOptions{MaxAttempts: 1})
		time.Sleep(time.Second)
		store.renew.Store(true)
		store.claim.Store(true)
		time.Sleep(90 * time.Second)
		if job := s.job(id); job.State != sluice.StateQueued || job.Attempts != 0 || job.Releases != 1 {
			t.Errorf("%s, %d attempts, %d releases", job.State, job.Attempts, job.Releases)
		}
		_ = s.end()
	})
}

func TestLeaseIsRenewedInTimeHoweverRarelyTheWorkerPolls(t *testing.T) {
	for name, c := range map[string]struct{ poll, lease time.Duration }{
		"polls every 5 min":  {5 * time.Minute, time.Minute},
		"a lease of 500 ms":  {time.Second, 500 * time.Millisecond},
		"the shortest lease": {time.Second, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inShop(t, func(s *shop) {
				s.settings(func(set *sluice.Settings) { set.Lease, set.RecoverInterval = c.lease, 100*time.Millisecond })
				// The run takes many leases and at least two polls. Upkeep looks for expired leases 10 times per lease.
				takes := max(2*c.poll, 10*c.lease)
				tending, stop := context.WithCancel(s.Context())
				tended := make(chan struct{})
				go func() {
					defer close(tended)
					_ = upkeep.New(s.store, upkeep.Options{Interval: c.lease / 10, Logger: quiet}).Run(tending)
				}()
				var runs atomic.Int32
				s.run(worker.Options{Poll: c.poll}, func(context.Context, *worker.Job[payment]) error {
					runs.Add(1)
					time.Sleep(takes)
					return nil
				})
				time.Sleep(300 * time.Millisecond) // the worker has claimed once, and sleeps
				if job := s.becomes(s.add(sluice.EnqueueOptions{}), sluice.StateCompleted); job.Recoveries != 0 || runs.Load() != 1 {
					t.Errorf("%d recoveries, %d runs", job.Recoveries, runs.Load())
				}
				_ = s.end()
				stop()
				<-tended
			})
		})
	}
}

func TestWorkerThatGetsItsOwnJobAgainKeepsTheNewClaim(t *testing.T) {
	inShop(t, func(s *shop) {
		store := &failing{Store: s.store}
		s.store = store
		var again atomic.Bool
		s.run(worker.Options{Slots: 2}, func(ctx context.Context, job *worker.Job[payment]) error {
			if !again.Swap(true) {
				time.Sleep(10 * time.Minute) // the handler ignores its context
				return errors.New("much too late")
			}
			time.Sleep(5 * time.Second)
			return ctx.Err()
		})
		id := s.add(sluice.EnqueueOptions{})
		time.Sleep(time.Second)
		store.renew.Store(true)
		time.Sleep(70 * time.Second)
		if out, err := s.store.Recover(s.Context(), payments.Name(), 100, "upkeep"); err != nil || out.Requeued != 1 {
			t.Fatalf("recovered %+v, %v", out, err)
		}
		store.renew.Store(false)
		if job := s.becomes(id, sluice.StateCompleted); job.Recoveries != 1 || job.Attempts != 0 {
			t.Errorf("%d recoveries, %d attempts", job.Recoveries, job.Attempts)
		}
		time.Sleep(15 * time.Minute)
		_ = s.end()
	})
}

func TestJobThatIsCancelledBeforeItsSlotIsFreeDoesNotBegin(t *testing.T) {
	inShop(t, func(s *shop) {
		var began sync.Map
		var slow atomic.Bool
		s.run(worker.Options{Slots: 1}, func(_ context.Context, job *worker.Job[payment]) error {
			began.Store(job.ID, true)
			if slow.Load() {
				time.Sleep(500 * time.Millisecond)
			}
			time.Sleep(10 * time.Microsecond) // so quick that the worker claims jobs ahead
			return nil
		})
		for range 200 {
			s.add(sluice.EnqueueOptions{})
		}
		time.Sleep(time.Second)
		slow.Store(true)
		jobs := make([]sluice.NewJob, 20)
		for i := range jobs {
			jobs[i] = sluice.NewJob{Queue: payments.Name(), Payload: []byte(`{}`)}
		}
		if _, err := s.client.EnqueueMany(s.Context(), jobs); err != nil {
			s.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		page, err := s.client.Jobs(s.Context(), sluice.JobFilter{States: []sluice.State{sluice.StateClaimed}})
		if err != nil {
			s.Fatal(err)
		}
		waits := slices.IndexFunc(page.Jobs, func(job sluice.Job) bool { _, begun := began.Load(job.ID); return !begun })
		if waits < 0 {
			s.Fatal("nothing was claimed ahead")
		}
		id := page.Jobs[waits].ID
		if err := s.client.Cancel(s.Context(), []sluice.ID{id}, sluice.Act{By: "test"}); err != nil {
			s.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, begun := began.Load(id); begun {
			s.Error("the handler of a cancelled job was called")
		}
		_ = s.end()
	})
}

func TestRunEndsSoonAlsoWhenNothingCanBeWritten(t *testing.T) {
	inShop(t, func(s *shop) {
		store := &failing{Store: s.store}
		s.store = store
		s.run(worker.Options{Drain: 5 * time.Second}, func(context.Context, *worker.Job[payment]) error { return nil })
		store.settle.Store(true)
		s.add(sluice.EnqueueOptions{})
		time.Sleep(time.Second)
		asked := time.Now()
		if err := s.end(); !errors.Is(err, sluice.ErrUnavailable) {
			t.Errorf("Run returned %v", err)
		}
		if took := time.Since(asked); took > 15*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

func TestQueueWithTwoHandlersIsRefused(t *testing.T) {
	inShop(t, func(s *shop) {
		w := worker.New(s.store, worker.Options{Logger: quiet})
		for range 2 {
			worker.Handle(w, payments, func(context.Context, *worker.Job[payment]) error { return nil }, worker.QueueOptions{})
		}
		if err := w.Run(s.Context()); err == nil || !strings.Contains(err.Error(), "two handlers") {
			t.Errorf("error %v", err)
		}
	})
}

func TestHandlerThatReturnsThatItsResultIsTooLargeIsNotRunAgain(t *testing.T) {
	inShop(t, func(s *shop) {
		s.run(worker.Options{}, func(ctx context.Context, job *worker.Job[payment]) error {
			large := strings.Repeat("a", sluice.MaxResultBytes)
			if err := job.SaveCheckpoint(ctx, large); !errors.Is(err, sluice.ErrInvalid) {
				t.Errorf("the checkpoint gives %v", err)
			}
			return job.SetResult(large)
		})
		job := s.becomes(s.add(sluice.EnqueueOptions{MaxAttempts: 5}), sluice.StateDead)
		if job.Attempts != 1 || !strings.Contains(job.Error, "1048578 bytes must be at most 1048576") {
			t.Errorf("it is dead after %d attempts: %s", job.Attempts, job.Error)
		}
		_ = s.end()
	})
}
