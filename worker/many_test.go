package worker_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/worker"
)

// runMany starts a worker that handles several payments per call.
func (s *shop) runMany(options worker.Options, handler worker.ManyHandler[payment], many worker.ManyOptions) {
	s.Helper()
	options.Logger = quiet
	s.worker = worker.New(s.store, options)
	worker.HandleMany(s.worker, payments, handler, many)
	s.begin()
}

func (s *shop) addMany(n int) (ids []sluice.ID) {
	s.Helper()
	jobs := make([]sluice.NewJob, n)
	for i := range jobs {
		job, err := payments.NewJob(payment{"acme", int64(i)}, sluice.EnqueueOptions{})
		if err != nil {
			s.Fatal(err)
		}
		jobs[i] = job
	}
	receipts, err := s.client.EnqueueMany(s.Context(), jobs)
	if err != nil {
		s.Fatal(err)
	}
	for _, r := range receipts {
		ids = append(ids, r.ID)
	}
	return ids
}

func TestCallsGetJobsUpToTheSizeOrWithinTheTime(t *testing.T) {
	inShop(t, func(s *shop) {
		var sizes []int
		s.runMany(worker.Options{}, func(_ context.Context, jobs []*worker.Job[payment]) error {
			sizes = append(sizes, len(jobs))
			return nil
		}, worker.ManyOptions{Size: 10, Within: time.Second})
		begun := time.Now()
		ids := s.addMany(23)
		for _, id := range ids {
			s.becomes(id, sluice.StateCompleted)
		}
		if took := time.Since(begun); took < time.Second || took > 3*time.Second {
			t.Errorf("the last call began after %s, want the second that it waits for more", took)
		}
		if err := s.end(); err != nil || !slices.Equal(sizes, []int{10, 10, 3}) {
			t.Errorf("calls of %v jobs, %v", sizes, err)
		}
	})
}

func TestJobsOfACallEndEachForItself(t *testing.T) {
	inShop(t, func(s *shop) {
		var failures []error
		s.runMany(worker.Options{OnFailure: func(_ context.Context, f worker.Failure) { failures = append(failures, f.Err) }},
			func(ctx context.Context, jobs []*worker.Job[payment]) error {
				errs := []error{
					jobs[0].SetResult("first"), jobs[0].Settle(nil),
					jobs[1].Settle(worker.Permanent(errors.New("no such account"))),
					jobs[2].Settle(worker.Snooze(time.Hour)),
				}
				if err := errors.Join(errs...); err != nil {
					t.Error(err)
				}
				if err := jobs[0].Settle(nil); !errors.Is(err, sluice.ErrNotAllowed) {
					t.Errorf("the second settlement of a job says %v", err)
				}
				if jobs[0].Context().Err() == nil || jobs[3].Context().Err() != nil || ctx.Err() != nil {
					t.Error("the context of a settled job must end, and no other")
				}
				return worker.RetryAfter(2*time.Hour, errors.New("bank closed"))
			}, worker.ManyOptions{Size: 4})
		ids := s.addMany(4)
		first := s.becomes(ids[0], sluice.StateCompleted)
		s.becomes(ids[1], sluice.StateDead)
		synctest.Wait()
		if err := s.end(); err != nil {
			t.Error(err)
		}
		if string(first.Result) != `"first"` {
			t.Errorf("the result is %s", first.Result)
		}
		if job := s.job(ids[2]); job.State != sluice.StateQueued || job.Attempts != 0 {
			t.Errorf("the snoozed job is %s after %d attempts", job.State, job.Attempts)
		}
		if job := s.job(ids[3]); job.State != sluice.StateQueued || job.Attempts != 1 || job.Error != "bank closed (retry after 2h0m0s)" {
			t.Errorf("the job that was left is %s after %d attempts: %s", job.State, job.Attempts, job.Error)
		}
		if len(failures) != 2 {
			t.Errorf("%d failures were reported, want 2: %v", len(failures), failures)
		}
	})
}

func TestOneJobOfACallIsCancelled(t *testing.T) {
	inShop(t, func(s *shop) {
		var ids []sluice.ID
		s.runMany(worker.Options{}, func(ctx context.Context, jobs []*worker.Job[payment]) error {
			if err := s.client.Cancel(s.Context(), []sluice.ID{jobs[1].ID}, sluice.Act{By: "ada"}); err != nil {
				t.Error(err)
			}
			<-jobs[1].Context().Done()
			if cause := context.Cause(jobs[1].Context()); !errors.Is(cause, sluice.ErrCancelled) {
				t.Errorf("its context ended by %v", cause)
			}
			if err := jobs[1].Settle(nil); !errors.Is(err, sluice.ErrCancelled) {
				t.Errorf("settling it says %v", err)
			}
			if ctx.Err() != nil || jobs[0].Context().Err() != nil {
				t.Error("the other jobs of the call go on")
			}
			return nil
		}, worker.ManyOptions{Size: 3})
		ids = s.addMany(3)
		s.becomes(ids[0], sluice.StateCompleted)
		s.becomes(ids[2], sluice.StateCompleted)
		if job := s.job(ids[1]); job.State != sluice.StateCancelled {
			t.Errorf("the cancelled job is %s", job.State)
		}
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestCallThatBreaksFailsTheJobsThatItLeft(t *testing.T) {
	for name, c := range map[string]struct {
		breaks func()
		says   string
	}{
		"panic":  {func() { panic("nil map") }, "panic: nil map"},
		"goexit": {runtime.Goexit, "the handler ended its goroutine (runtime.Goexit)"},
	} {
		t.Run(name, func(t *testing.T) {
			inShop(t, func(s *shop) {
				s.settings(func(settings *sluice.Settings) { settings.MaxAttempts = 1 })
				s.runMany(worker.Options{}, func(_ context.Context, jobs []*worker.Job[payment]) error {
					if err := jobs[0].Settle(nil); err != nil {
						t.Error(err)
					}
					c.breaks()
					return nil
				}, worker.ManyOptions{Size: 2, Within: time.Millisecond})
				ids := s.addMany(2)
				s.becomes(ids[0], sluice.StateCompleted)
				if job := s.becomes(ids[1], sluice.StateDead); job.Error != c.says {
					t.Errorf("the error is %q", job.Error)
				}
				s.becomes(s.addMany(1)[0], sluice.StateCompleted) // the worker still works
				if err := s.end(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestCallTimesOutAndDrains(t *testing.T) {
	inShop(t, func(s *shop) {
		var causes []error
		s.runMany(worker.Options{Drain: time.Minute}, func(ctx context.Context, _ []*worker.Job[payment]) error {
			<-ctx.Done()
			causes = append(causes, context.Cause(ctx))
			return ctx.Err()
		}, worker.ManyOptions{Size: 2, QueueOptions: worker.QueueOptions{Timeout: 5 * time.Second, MaxAttempts: 1}})
		ids := s.addMany(2)
		for _, id := range ids {
			s.becomes(id, sluice.StateDead)
		}
		if len(causes) != 1 || !errors.Is(causes[0], worker.ErrTimeout) {
			t.Errorf("the call ended by %v", causes)
		}
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
	t.Run("drain", func(t *testing.T) {
		inShop(t, func(s *shop) {
			s.runMany(worker.Options{Drain: time.Second}, func(ctx context.Context, _ []*worker.Job[payment]) error {
				<-ctx.Done()
				return context.Cause(ctx)
			}, worker.ManyOptions{Size: 2})
			ids := s.addMany(5) // two jobs run, two wait for the next call, and one waits in the queue
			time.Sleep(time.Minute)
			if err := s.end(); !errors.Is(err, worker.ErrDrainTimeout) {
				t.Errorf("Run says %v", err)
			}
			for _, id := range ids {
				if job := s.job(id); job.State != sluice.StateQueued || job.Attempts != 0 {
					t.Errorf("after the drain, a job is %s after %d attempts", job.State, job.Attempts)
				}
			}
		})
	})
}

func TestCallsKeepToRateConcurrencyAndOrder(t *testing.T) {
	inShop(t, func(s *shop) {
		s.settings(func(settings *sluice.Settings) {
			settings.Rate, settings.Concurrency = sluice.Rate{Jobs: 60, Per: time.Minute}, 5
		})
		var begun []time.Time
		most := 0
		s.runMany(worker.Options{}, func(_ context.Context, jobs []*worker.Job[payment]) error {
			most = max(most, len(jobs))
			for range jobs {
				begun = append(begun, time.Now())
			}
			keys := map[string]bool{}
			for _, job := range jobs {
				if keys[job.OrderKey] {
					t.Error("two jobs of one order key are in a call")
				}
				keys[job.OrderKey] = job.OrderKey != ""
			}
			return nil
		}, worker.ManyOptions{Size: 10, Within: 10 * time.Second})
		for i := range 30 {
			s.add(sluice.EnqueueOptions{OrderKey: fmt.Sprint(i % 3)})
		}
		time.Sleep(20 * time.Minute)
		if err := s.end(); err != nil {
			t.Error(err)
		}
		if len(begun) != 30 || most > 5 {
			t.Errorf("%d jobs ran, at most %d in a call; want 30, and 5 by the concurrency", len(begun), most)
		}
		for i := 60; i < len(begun); i++ {
			if begun[i].Sub(begun[i-60]) < time.Minute {
				t.Errorf("more than 60 jobs began within a minute")
			}
		}
	})
}

func TestDrainHandsBackAJobThatWaitsForOthers(t *testing.T) {
	inShop(t, func(s *shop) {
		s.runMany(worker.Options{}, func(context.Context, []*worker.Job[payment]) error { return nil }, worker.ManyOptions{Within: time.Hour})
		id := s.addMany(1)[0]
		time.Sleep(time.Minute)
		begun := time.Now()
		if err := s.end(); err != nil || time.Since(begun) > time.Second {
			t.Errorf("the drain took %s: %v", time.Since(begun), err)
		}
		if job := s.job(id); job.State != sluice.StateQueued || job.Attempts != 0 {
			t.Errorf("the job is %s after %d attempts", job.State, job.Attempts)
		}
	})
}

func TestOnceRunsCallsOfSeveralJobs(t *testing.T) {
	d := newDesk(t)
	var sizes []int
	worker.HandleMany(d.worker, sluice.QueueOf[string]("q"), func(_ context.Context, jobs []*worker.Job[string]) error {
		sizes = append(sizes, len(jobs))
		return jobs[0].Settle(worker.Snooze(time.Hour))
	}, worker.ManyOptions{Size: 3})
	worker.Handle(d.worker, sluice.QueueOf[string]("one"), func(context.Context, *worker.Job[string]) error { return nil }, worker.QueueOptions{})
	for range 5 {
		d.add("q", "x", sluice.EnqueueOptions{})
	}
	d.add("one", "x", sluice.EnqueueOptions{})
	d.once(6)
	if !slices.Equal(sizes, []int{3, 2}) {
		t.Errorf("calls of %v jobs", sizes)
	}
	if depth, err := d.client.Depth(t.Context(), "q"); err != nil || depth.Scheduled != 2 {
		t.Errorf("depth %+v, %v", depth, err)
	}
}

func TestCallsTakeNoSlotOfOtherQueues(t *testing.T) {
	inShop(t, func(s *shop) {
		release := make(chan struct{})
		s.worker = worker.New(s.store, worker.Options{Logger: quiet, Slots: 1})
		worker.HandleMany(s.worker, payments, func(context.Context, []*worker.Job[payment]) error { <-release; return nil }, worker.ManyOptions{Size: 5})
		mails := sluice.QueueOf[string]("mail")
		worker.Handle(s.worker, mails, func(context.Context, *worker.Job[string]) error { return nil }, worker.QueueOptions{})
		s.begin()
		s.addMany(20)
		time.Sleep(time.Minute)
		receipt, err := mails.Enqueue(s.Context(), s.client, "ada", sluice.EnqueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s.becomes(receipt.ID, sluice.StateCompleted)
		close(release)
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestOptionsOfCallsThatMakeNoSenseEndRun(t *testing.T) {
	t.Parallel()
	handler := func(context.Context, []*worker.Job[payment]) error { return nil }
	for name, register := range map[string]func(*worker.Worker){
		"negative size": func(w *worker.Worker) { worker.HandleMany(w, payments, handler, worker.ManyOptions{Size: -1}) },
		"negative time": func(w *worker.Worker) {
			worker.HandleMany(w, payments, handler, worker.ManyOptions{Within: -time.Second})
		},
		"nil handler": func(w *worker.Worker) { worker.HandleMany(w, payments, nil, worker.ManyOptions{}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worker.New(memory.New(memory.Options{}), worker.Options{Logger: quiet})
			register(w)
			if err := w.Run(t.Context()); !errors.Is(err, sluice.ErrInvalid) {
				t.Errorf("Run says %v", err)
			}
		})
	}
	job := &worker.Job[payment]{}
	if err := job.Settle(nil); !errors.Is(err, sluice.ErrNotAllowed) {
		t.Errorf("a job made by hand says %v", err)
	}
	if job.Context().Err() != nil {
		t.Error("the context of a job made by hand has ended")
	}
}
