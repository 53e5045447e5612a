package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/worker"
)

func TestMiddlewareWrapsEachHandlerInOrder(t *testing.T) {
	inShop(t, func(s *shop) {
		var said []string
		around := func(name string) worker.Middleware {
			return func(ctx context.Context, job *worker.Job[any], next func(context.Context) error) error {
				said = append(said, fmt.Sprintf("%s before %d cents", name, job.Payload.(payment).Cents))
				err := next(context.WithValue(ctx, asked{}, name))
				said = append(said, fmt.Sprintf("%s after %v", name, err))
				return err
			}
		}
		s.run(worker.Options{Middleware: []worker.Middleware{around("outer"), around("inner")}},
			func(ctx context.Context, job *worker.Job[payment]) error {
				said = append(said, fmt.Sprintf("handler with the context of %v", ctx.Value(asked{})))
				return job.SetResult("paid")
			})
		job := s.becomes(s.add(sluice.EnqueueOptions{}), sluice.StateCompleted)
		if err := s.end(); err != nil {
			t.Error(err)
		}
		want := []string{"outer before 4200 cents", "inner before 4200 cents", "handler with the context of inner", "inner after <nil>", "outer after <nil>"}
		if !slices.Equal(said, want) {
			t.Errorf("got %q, want %q", said, want)
		}
		if string(job.Result) != `"paid"` {
			t.Errorf("the result is %s", job.Result)
		}
	})
}

type asked struct{}

func TestMiddlewareDecidesTheOutcome(t *testing.T) {
	inShop(t, func(s *shop) {
		called := false
		s.run(worker.Options{Middleware: []worker.Middleware{
			func(_ context.Context, job *worker.Job[any], _ func(context.Context) error) error {
				if job.Tenant == "blocked" {
					return worker.Permanent(errors.New("the tenant is blocked"))
				}
				return nil
			},
		}}, func(context.Context, *worker.Job[payment]) error { called = true; return nil })
		job := s.becomes(s.add(sluice.EnqueueOptions{Tenant: "blocked"}), sluice.StateDead)
		if job.Error != "the tenant is blocked" {
			t.Errorf("the error is %q", job.Error)
		}
		s.becomes(s.add(sluice.EnqueueOptions{}), sluice.StateCompleted)
		if err := s.end(); err != nil || called {
			t.Errorf("the handler was called: %v; %v", called, err)
		}
	})
}

func TestFailuresAreReportedOnceEach(t *testing.T) {
	for name, c := range map[string]struct {
		handler worker.Handler[payment]
		options worker.QueueOptions
		says    []string
	}{
		"an error, then the last": {
			func(context.Context, *worker.Job[payment]) error { return errors.New("no luck") },
			worker.QueueOptions{MaxAttempts: 2, Backoff: func(n int, _ error) time.Duration { return time.Duration(n) * time.Hour }},
			[]string{"attempt 1: no luck, again in 1h0m0s", "attempt 2: no luck, dead"},
		},
		"a permanent error": {
			func(context.Context, *worker.Job[payment]) error { return worker.Permanent(errors.New("closed")) },
			worker.QueueOptions{},
			[]string{"attempt 1: permanent: closed, dead"},
		},
		"a panic": {
			func(context.Context, *worker.Job[payment]) error { panic("nil map") },
			worker.QueueOptions{MaxAttempts: 1},
			[]string{"attempt 1: panic: nil map, dead, with a stack"},
		},
		"a timeout of the handler's own": {
			func(ctx context.Context, _ *worker.Job[payment]) error { <-ctx.Done(); return ctx.Err() },
			worker.QueueOptions{MaxAttempts: 1, Timeout: 5 * time.Second},
			[]string{"attempt 1: attempt timed out: context deadline exceeded, dead"},
		},
		"a snooze, which is none": {
			func(_ context.Context, job *worker.Job[payment]) error {
				if job.Releases == 0 {
					return worker.Snooze(time.Minute)
				}
				return nil
			},
			worker.QueueOptions{},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inShop(t, func(s *shop) {
				var said []string
				s.worker = worker.New(s.store, worker.Options{Logger: quiet, OnFailure: func(ctx context.Context, f worker.Failure) {
					text := fmt.Sprintf("attempt %d: %v, ", f.Attempts+1, f.Err)
					if f.Dead {
						text += "dead"
					} else {
						text += "again in " + f.RetryIn.String()
					}
					if panicked := (*worker.PanicError)(nil); errors.As(f.Err, &panicked) && strings.Contains(string(panicked.Stack), "middleware_test.go") {
						text += ", with a stack"
					}
					if _, limited := ctx.Deadline(); !limited || ctx.Err() != nil {
						t.Errorf("the context of the hook has no time left: %v", ctx.Err())
					}
					said = append(said, text)
				}})
				worker.Handle(s.worker, payments, c.handler, c.options)
				s.begin()
				id := s.add(sluice.EnqueueOptions{})
				for !s.job(id).State.Finished() {
					time.Sleep(time.Minute)
				}
				if err := s.end(); err != nil {
					t.Error(err)
				}
				if !slices.Equal(said, c.says) {
					t.Errorf("got %q, want %q", said, c.says)
				}
			})
		})
	}
}

func TestAbandonedHandlerIsReported(t *testing.T) {
	inShop(t, func(s *shop) {
		failures := make(chan worker.Failure, 1)
		release := make(chan struct{})
		s.worker = worker.New(s.store, worker.Options{Logger: quiet, OnFailure: func(_ context.Context, f worker.Failure) { failures <- f }})
		worker.Handle(s.worker, payments, func(context.Context, *worker.Job[payment]) error { <-release; return nil },
			worker.QueueOptions{Timeout: time.Second, MaxAttempts: 1})
		s.begin()
		s.add(sluice.EnqueueOptions{})
		if f := <-failures; !errors.Is(f.Err, worker.ErrTimeout) || !f.Dead {
			t.Errorf("got %v, dead %v", f.Err, f.Dead)
		}
		close(release)
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestFunctionsOfTheProgramThatPanicChangeNoOutcome(t *testing.T) {
	inShop(t, func(s *shop) {
		s.worker = worker.New(s.store, worker.Options{Logger: quiet, OnFailure: func(context.Context, worker.Failure) { panic("tracker") }})
		worker.Handle(s.worker, payments, func(context.Context, *worker.Job[payment]) error { return errors.New("no luck") },
			worker.QueueOptions{MaxAttempts: 2, Backoff: func(int, error) time.Duration { panic("backoff") }})
		s.begin()
		if job := s.becomes(s.add(sluice.EnqueueOptions{}), sluice.StateDead); job.Attempts != 2 || job.Error != "no luck" {
			t.Errorf("%d attempts, error %q", job.Attempts, job.Error)
		}
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestOptionsOfAHandlerThatMakeNoSenseEndRun(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	w := worker.New(store, worker.Options{Logger: quiet})
	worker.Handle(w, payments, func(context.Context, *worker.Job[payment]) error { return nil }, worker.QueueOptions{Timeout: -time.Second})
	if err := w.Run(t.Context()); !errors.Is(err, sluice.ErrInvalid) || !strings.Contains(err.Error(), "Timeout") {
		t.Errorf("Run says %v", err)
	}
	w = worker.New(store, worker.Options{Logger: quiet, Middleware: []worker.Middleware{nil}})
	worker.Handle(w, payments, func(context.Context, *worker.Job[payment]) error { return nil }, worker.QueueOptions{})
	if err := w.Run(t.Context()); !errors.Is(err, sluice.ErrInvalid) || !strings.Contains(err.Error(), "Middleware") {
		t.Errorf("Run says %v", err)
	}
}
