package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/worker"
)

type payment struct {
	Account string `json:"account"`
	Cents   int64  `json:"cents"`
}

var payments = sluice.QueueOf[payment]("payments")

var quiet = slog.New(slog.DiscardHandler)

// shop is a store in memory, a client and a worker of it, in a bubble of fake time.
type shop struct {
	*testing.T
	store  sluice.Store
	client *sluice.Client
	worker *worker.Worker
	ended  chan error
	stop   context.CancelFunc
}

// inShop runs a test in fake time, so that waiting for hours takes no time.
func inShop(t *testing.T, test func(s *shop)) {
	t.Parallel()
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		test(&shop{T: t, store: store, client: sluice.NewClient(store, sluice.ClientOptions{})})
	})
}

// run starts a worker that handles payments.
func (s *shop) run(options worker.Options, handler worker.Handler[payment]) {
	s.Helper()
	options.Logger = quiet
	s.worker = worker.New(s.store, options)
	worker.Handle(s.worker, payments, handler, worker.QueueOptions{})
	s.begin()
}

func (s *shop) begin() {
	ctx, stop := context.WithCancel(s.Context())
	s.stop = stop
	s.ended = make(chan error, 1)
	go func() { s.ended <- s.worker.Run(ctx) }()
	synctest.Wait()
}

// end makes the worker drain, and returns the error of Run.
func (s *shop) end() error {
	s.Helper()
	s.stop()
	return <-s.ended
}

// add enqueues a payment.
func (s *shop) add(options sluice.EnqueueOptions) sluice.ID {
	s.Helper()
	receipt, err := payments.Enqueue(s.Context(), s.client, payment{"acme", 4200}, options)
	if err != nil {
		s.Fatal(err)
	}
	return receipt.ID
}

// settings changes the settings of the queue.
func (s *shop) settings(change func(*sluice.Settings)) {
	s.Helper()
	act := sluice.Act{By: "test"}
	if _, err := s.client.EnsureQueue(s.Context(), payments.Name(), sluice.DefaultSettings(), act); err != nil {
		s.Fatal(err)
	}
	if _, err := s.client.ChangeSettings(s.Context(), payments.Name(), act, func(settings *sluice.Settings) error {
		change(settings)
		return nil
	}); err != nil {
		s.Fatal(err)
	}
}

// noJitter turns the jitter of the backoff off.
func noJitter(s *sluice.Settings) { s.Backoff.Jitter = 0 }

// becomes waits, in fake time, until a job is in a state.
func (s *shop) becomes(id sluice.ID, want sluice.State) sluice.Job {
	s.Helper()
	for i := range 20_000 {
		synctest.Wait()
		if job := s.job(id); job.State == want {
			return job
		}
		time.Sleep(min(time.Second, time.Duration(i+1)*time.Millisecond))
	}
	s.Fatalf("job %s is %s, want %s", id, s.job(id).State, want)
	return sluice.Job{}
}

func (s *shop) job(id sluice.ID) sluice.Job {
	s.Helper()
	job, err := s.client.Job(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	return job
}

func TestJobRunsAndItsResultIsStored(t *testing.T) {
	inShop(t, func(s *shop) {
		s.run(worker.Options{}, func(_ context.Context, job *worker.Job[payment]) error {
			return job.SetResult(map[string]any{"account": job.Payload.Account, "attempt": job.Attempt()})
		})
		job := s.becomes(s.add(sluice.EnqueueOptions{}), sluice.StateCompleted)
		if got := string(job.Result); got != `{"account":"acme","attempt":1}` {
			t.Errorf("result %s", got)
		}
		if err := s.end(); err != nil {
			t.Errorf("drain: %v", err)
		}
	})
}

func TestFailedJobIsRetriedAfterBackoffAndThenCompletes(t *testing.T) {
	inShop(t, func(s *shop) {
		s.settings(func(set *sluice.Settings) { noJitter(set); set.MaxAttempts = 4 })
		var starts []time.Time
		s.run(worker.Options{}, func(_ context.Context, job *worker.Job[payment]) error {
			starts = append(starts, time.Now())
			if job.Attempt() < 4 {
				return errors.New("no route to bank")
			}
			return nil
		})
		job := s.becomes(s.add(sluice.EnqueueOptions{}), sluice.StateCompleted)
		if job.Attempts != 3 {
			t.Errorf("%d failed attempts, want 3", job.Attempts)
		}
		for i, want := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second} {
			if got := starts[i+1].Sub(starts[i]); got < want || got > want+50*time.Millisecond {
				t.Errorf("wait %d was %s, want %s", i+1, got, want)
			}
		}
		_ = s.end()
	})
}

func TestJobIsBuriedAfterItsLastAttempt(t *testing.T) {
	inShop(t, func(s *shop) {
		s.run(worker.Options{}, func(context.Context, *worker.Job[payment]) error { return errors.New("no route to bank") })
		job := s.becomes(s.add(sluice.EnqueueOptions{MaxAttempts: 2}), sluice.StateDead)
		if job.Attempts != 2 || job.Error != "no route to bank" {
			t.Errorf("attempts %d, error %q", job.Attempts, job.Error)
		}
		_ = s.end()
	})
}

func TestWhatAHandlerReturnsDecides(t *testing.T) {
	cases := map[string]struct {
		handler worker.Handler[payment]
		want    sluice.State
		check   func(t *testing.T, s *shop, job sluice.Job)
	}{
		"a panic is a failed attempt, with its stack": {
			func(context.Context, *worker.Job[payment]) error { panic("ledger is nil") }, sluice.StateDead,
			func(t *testing.T, s *shop, job sluice.Job) {
				attempts, err := s.client.Attempts(t.Context(), job.ID)
				if err != nil || len(attempts) != 1 {
					t.Fatalf("%d attempts, %v", len(attempts), err)
				}
				if job.Error != "panic: ledger is nil" || !strings.Contains(attempts[0].Stack, "worker_test.go") {
					t.Errorf("error %q, stack %.200q", job.Error, attempts[0].Stack)
				}
			},
		},
		"ending the goroutine is a failed attempt": {
			func(context.Context, *worker.Job[payment]) error { runtime.Goexit(); return nil }, sluice.StateDead,
			func(t *testing.T, _ *shop, job sluice.Job) {
				if !strings.Contains(job.Error, "Goexit") {
					t.Errorf("error %q", job.Error)
				}
			},
		},
		"a permanent error buries at once": {
			func(context.Context, *worker.Job[payment]) error {
				return fmt.Errorf("post: %w", worker.Permanent(errors.New("account closed")))
			},
			sluice.StateDead,
			func(t *testing.T, _ *shop, job sluice.Job) {
				if job.Error != "account closed" || job.Attempts != 1 {
					t.Errorf("error %q after %d attempts", job.Error, job.Attempts)
				}
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inShop(t, func(s *shop) {
				s.settings(func(set *sluice.Settings) { set.MaxAttempts = 1 })
				s.run(worker.Options{Slots: 2}, c.handler)
				c.check(t, s, s.becomes(s.add(sluice.EnqueueOptions{}), c.want))
				s.add(sluice.EnqueueOptions{}) // the slot is free again
				s.becomes(s.add(sluice.EnqueueOptions{}), c.want)
				if err := s.end(); err != nil {
					t.Errorf("drain: %v", err)
				}
			})
		})
	}
}

func TestSnoozeWaitsAndCountsNoAttempt(t *testing.T) {
	inShop(t, func(s *shop) {
		var starts []time.Time
		s.run(worker.Options{}, func(_ context.Context, job *worker.Job[payment]) error {
			starts = append(starts, time.Now())
			if job.Releases < 2 {
				return worker.Snooze(10 * time.Minute)
			}
			return nil
		})
		job := s.becomes(s.add(sluice.EnqueueOptions{}), sluice.StateCompleted)
		if job.Attempts != 0 || job.Releases != 2 {
			t.Errorf("attempts %d, releases %d", job.Attempts, job.Releases)
		}
		if waited := starts[2].Sub(starts[0]); waited < 20*time.Minute || waited > 20*time.Minute+time.Second {
			t.Errorf("waited %s, want 20m", waited)
		}
		_ = s.end()
	})
}

func TestRetryAfterReplacesTheBackoffAndCounts(t *testing.T) {
	inShop(t, func(s *shop) {
		var starts []time.Time
		s.run(worker.Options{}, func(context.Context, *worker.Job[payment]) error {
			starts = append(starts, time.Now())
			return worker.RetryAfter(time.Hour, errors.New("bank is closed"))
		})
		job := s.becomes(s.add(sluice.EnqueueOptions{MaxAttempts: 2}), sluice.StateDead)
		if waited := starts[1].Sub(starts[0]); waited < time.Hour || waited > time.Hour+time.Second {
			t.Errorf("waited %s, want 1h", waited)
		}
		if !strings.Contains(job.Error, "bank is closed") {
			t.Errorf("error %q", job.Error)
		}
		_ = s.end()
	})
}

func TestJobStartsWhenItIsDueAndNotBefore(t *testing.T) {
	inShop(t, func(s *shop) {
		var started time.Time
		s.run(worker.Options{}, func(context.Context, *worker.Job[payment]) error {
			started = time.Now()
			return nil
		})
		due := time.Now().Add(90*time.Minute + 123*time.Millisecond)
		s.becomes(s.add(sluice.EnqueueOptions{DueAt: due}), sluice.StateCompleted)
		if late := started.Sub(due); late < 0 || late > 20*time.Millisecond {
			t.Errorf("started %s after it was due", late)
		}
		_ = s.end()
	})
}

func TestEnqueueWakesAnIdleWorkerAtOnce(t *testing.T) {
	inShop(t, func(s *shop) {
		var started time.Time
		s.run(worker.Options{Poll: time.Hour}, func(context.Context, *worker.Job[payment]) error {
			started = time.Now()
			return nil
		})
		time.Sleep(10 * time.Minute)
		enqueued := time.Now()
		s.becomes(s.add(sluice.EnqueueOptions{}), sluice.StateCompleted)
		if waited := started.Sub(enqueued); waited > 10*time.Millisecond {
			t.Errorf("started after %s", waited)
		}
		_ = s.end()
	})
}

func TestPollingFindsJobsWhenEverySignalIsLost(t *testing.T) {
	inShop(t, func(s *shop) {
		s.store = deaf{s.store}
		var started time.Time
		s.run(worker.Options{}, func(context.Context, *worker.Job[payment]) error {
			started = time.Now()
			return nil
		})
		time.Sleep(10*time.Minute + 300*time.Millisecond)
		enqueued := time.Now()
		s.becomes(s.add(sluice.EnqueueOptions{}), sluice.StateCompleted)
		if waited := started.Sub(enqueued); waited > time.Second+10*time.Millisecond {
			t.Errorf("started after %s, want at most one poll interval", waited)
		}
		_ = s.end()
	})
}

// deaf is a store that loses every signal.
type deaf struct{ sluice.Store }

// Unwrap returns the decorated store.
func (s deaf) Unwrap() sluice.Store { return s.Store }

func (deaf) Watch(ctx context.Context, _ func(sluice.Signal)) error {
	<-ctx.Done()
	return nil
}

func TestLeasesOfLongJobsAreRenewedInOneCallPerWorker(t *testing.T) {
	inShop(t, func(s *shop) {
		counting := &countingRenewals{Store: s.store}
		s.store = counting
		release := make(chan struct{})
		s.run(worker.Options{Slots: 20}, func(context.Context, *worker.Job[payment]) error {
			<-release
			return nil
		})
		var ids []sluice.ID
		for range 20 {
			ids = append(ids, s.add(sluice.EnqueueOptions{}))
		}
		begun := time.Now()
		for time.Since(begun) < 10*time.Minute {
			time.Sleep(15 * time.Second)
			recovered, err := s.store.Recover(t.Context(), payments.Name(), 100, "upkeep")
			if err != nil || recovered != (sluice.Recovered{}) {
				t.Fatalf("recovered %+v, %v", recovered, err)
			}
		}
		if perMinute := counting.calls.Load() / 10; perMinute > 61 {
			t.Errorf("%d renewals a minute for 20 jobs", perMinute)
		}
		close(release)
		for _, id := range ids {
			s.becomes(id, sluice.StateCompleted)
		}
		_ = s.end()
	})
}

type countingRenewals struct {
	sluice.Store
	calls atomic.Int64
}

// Unwrap returns the decorated store.
func (c *countingRenewals) Unwrap() sluice.Store { return c.Store }

func (c *countingRenewals) Renew(ctx context.Context, renewals []sluice.Renewal) ([]sluice.ID, error) {
	c.calls.Add(1)
	return c.Store.Renew(ctx, renewals)
}

func TestTimeoutEndsTheContextAndFailsTheAttempt(t *testing.T) {
	inShop(t, func(s *shop) {
		s.settings(func(set *sluice.Settings) { set.Timeout, set.MaxAttempts = 30*time.Second, 1 })
		var cause error
		s.run(worker.Options{}, func(ctx context.Context, _ *worker.Job[payment]) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		})
		job := s.becomes(s.add(sluice.EnqueueOptions{}), sluice.StateDead)
		if !errors.Is(cause, worker.ErrTimeout) || !strings.Contains(job.Error, "timed out after 30s") {
			t.Errorf("cause %v, error %q", cause, job.Error)
		}
		_ = s.end()
	})
}

func TestHandlerThatIgnoresItsTimeoutIsAbandoned(t *testing.T) {
	inShop(t, func(s *shop) {
		s.settings(func(set *sluice.Settings) { set.Timeout, set.MaxAttempts = 30*time.Second, 2; noJitter(set) })
		var starts atomic.Int32
		returned := make(chan struct{})
		s.run(worker.Options{Slots: 2}, func(_ context.Context, _ *worker.Job[payment]) error {
			if starts.Add(1) == 1 {
				<-returned // the handler ignores its context
				return errors.New("too late to say anything")
			}
			return nil
		})
		job := s.becomes(s.add(sluice.EnqueueOptions{}), sluice.StateCompleted)
		attempts, err := s.client.Attempts(t.Context(), job.ID)
		if err != nil || len(attempts) != 1 || !strings.Contains(attempts[0].Error, "ignored it") {
			t.Errorf("attempts %+v, %v", attempts, err)
		}
		close(returned)
		if err := s.end(); err != nil {
			t.Errorf("drain: %v", err)
		}
	})
}

func TestCancelReachesTheRunningHandler(t *testing.T) {
	for name, wrap := range map[string]func(sluice.Store) sluice.Store{
		"by a signal":                    func(s sluice.Store) sluice.Store { return s },
		"by renewal, signals being lost": func(s sluice.Store) sluice.Store { return deaf{s} },
	} {
		t.Run(name, func(t *testing.T) {
			inShop(t, func(s *shop) {
				s.store = wrap(s.store)
				causes := make(chan error, 1)
				s.run(worker.Options{}, func(ctx context.Context, _ *worker.Job[payment]) error {
					<-ctx.Done()
					causes <- context.Cause(ctx)
					return nil // the worker ignores the handler's result now
				})
				id := s.add(sluice.EnqueueOptions{})
				s.becomes(id, sluice.StateClaimed)
				cancelled := time.Now()
				if err := s.client.Cancel(t.Context(), []sluice.ID{id}, sluice.Act{By: "ada"}); err != nil {
					t.Fatal(err)
				}
				if cause := <-causes; !errors.Is(cause, sluice.ErrCancelled) || errors.Is(cause, sluice.ErrLost) {
					t.Errorf("cause %v, want ErrCancelled alone", cause)
				}
				if took := time.Since(cancelled); took > 2*time.Second {
					t.Errorf("the handler was told after %s", took)
				}
				synctest.Wait()
				if job := s.job(id); job.State != sluice.StateCancelled {
					t.Errorf("state %s", job.State)
				}
				_ = s.end()
			})
		})
	}
}

func TestCheckpointIsResumed(t *testing.T) {
	inShop(t, func(s *shop) {
		type progress struct{ Uploaded bool }
		var uploads int
		s.run(worker.Options{}, func(ctx context.Context, job *worker.Job[payment]) error {
			var at progress
			found, err := job.LoadCheckpoint(&at)
			if err != nil {
				return err
			}
			if !at.Uploaded {
				uploads++
				if err := job.SaveCheckpoint(ctx, progress{Uploaded: true}); err != nil {
					return err
				}
			}
			if !found {
				return errors.New("chain is down")
			}
			return nil
		})
		s.becomes(s.add(sluice.EnqueueOptions{}), sluice.StateCompleted)
		if uploads != 1 {
			t.Errorf("uploaded %d times", uploads)
		}
		_ = s.end()
	})
}

func TestPauseStopsClaimsAndResumeContinues(t *testing.T) {
	inShop(t, func(s *shop) {
		s.settings(func(set *sluice.Settings) { set.Paused = true })
		s.run(worker.Options{}, func(context.Context, *worker.Job[payment]) error { return nil })
		id := s.add(sluice.EnqueueOptions{})
		time.Sleep(time.Hour)
		synctest.Wait()
		if job := s.job(id); job.State != sluice.StateQueued {
			t.Fatalf("state %s while paused", job.State)
		}
		if err := s.client.Resume(t.Context(), payments.Name(), sluice.Act{By: "ada"}); err != nil {
			t.Fatal(err)
		}
		s.becomes(id, sluice.StateCompleted)
		_ = s.end()
	})
}
