package worker_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/worker"
)

// desk is a store whose clock only the test moves, and a worker on it.
type desk struct {
	*testing.T
	now    time.Time
	store  *memory.Store
	client *sluice.Client
	worker *worker.Worker
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	t.Parallel()
	d := &desk{T: t, now: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)}
	d.store = memory.New(memory.Options{Now: func() time.Time { return d.now }})
	d.client = sluice.NewClient(d.store, sluice.ClientOptions{Logger: quiet})
	d.worker = worker.New(d.store, worker.Options{Logger: quiet})
	return d
}

func (d *desk) add(queue, payload string, options sluice.EnqueueOptions) sluice.ID {
	d.Helper()
	receipt, err := sluice.QueueOf[string](queue).Enqueue(d.Context(), d.client, payload, options)
	if err != nil {
		d.Fatal(err)
	}
	return receipt.ID
}

func (d *desk) once(want int) {
	d.Helper()
	ran, err := d.worker.Once(d.Context())
	if err != nil || ran != want {
		d.Fatalf("ran %d jobs, want %d: %v", ran, want, err)
	}
}

func TestOnceRunsDueJobsInOrderAndThoseThatTheyEnqueue(t *testing.T) {
	d := newDesk(t)
	var ran []string
	for _, queue := range []string{"first", "second"} {
		worker.Handle(d.worker, sluice.QueueOf[string](queue), func(_ context.Context, job *worker.Job[string]) error {
			ran = append(ran, job.Payload)
			if job.Payload == "b" {
				d.add("first", "child", sluice.EnqueueOptions{})
			}
			return nil
		}, worker.QueueOptions{})
	}
	d.add("second", "b", sluice.EnqueueOptions{})
	d.add("first", "low", sluice.EnqueueOptions{Priority: 9})
	d.add("first", "high", sluice.EnqueueOptions{Priority: 1})
	d.add("first", "tomorrow", sluice.EnqueueOptions{Delay: 24 * time.Hour})
	d.once(4)
	if want := []string{"high", "low", "b", "child"}; !slices.Equal(ran, want) {
		t.Errorf("ran %v, want %v", ran, want)
	}
	if holders, err := presence.Holders(t.Context(), d.store); err != nil || len(holders) != 0 {
		t.Errorf("after Once, %d processes are listed: %v", len(holders), err)
	}
	d.now = d.now.Add(25 * time.Hour)
	d.once(1)
}

func TestOnceSettlesEveryOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		handler worker.Handler[string]
		state   sluice.State
		error   string
	}{
		"success":      {func(context.Context, *worker.Job[string]) error { return nil }, sluice.StateCompleted, ""},
		"error":        {func(context.Context, *worker.Job[string]) error { return errors.New("no luck") }, sluice.StateQueued, "no luck"},
		"panic":        {func(context.Context, *worker.Job[string]) error { panic("nil map") }, sluice.StateQueued, "panic: nil map"},
		"goexit":       {func(context.Context, *worker.Job[string]) error { runtime.Goexit(); return nil }, sluice.StateQueued, "Goexit"},
		"permanent":    {func(context.Context, *worker.Job[string]) error { return worker.Permanent(errors.New("closed")) }, sluice.StateDead, "closed"},
		"snooze":       {func(context.Context, *worker.Job[string]) error { return worker.Snooze(time.Hour) }, sluice.StateQueued, ""},
		"wrong type":   {nil, sluice.StateQueued, "payload"},
		"own deadline": {func(ctx context.Context, _ *worker.Job[string]) error { <-ctx.Done(); return ctx.Err() }, sluice.StateQueued, "attempt timed out"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			options := worker.QueueOptions{Timeout: 50 * time.Millisecond}
			if c.handler == nil {
				worker.Handle(d.worker, sluice.QueueOf[int]("q"), func(context.Context, *worker.Job[int]) error { return nil }, options)
			} else {
				worker.Handle(d.worker, sluice.QueueOf[string]("q"), c.handler, options)
			}
			id := d.add("q", "x", sluice.EnqueueOptions{})
			d.once(1)
			job, err := d.client.Job(t.Context(), id)
			if err != nil || job.State != c.state || !strings.Contains(job.Error, c.error) {
				t.Errorf("%s with error %q, want %s with %q in it: %v", job.State, job.Error, c.state, c.error, err)
			}
		})
	}
}

func TestOnceKeepsToTheRate(t *testing.T) {
	d := newDesk(t)
	settings := sluice.DefaultSettings()
	settings.Rate = sluice.Rate{Jobs: 2, Per: time.Hour} // one start each 30 min
	if _, err := d.client.EnsureQueue(t.Context(), "q", settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	worker.Handle(d.worker, sluice.QueueOf[string]("q"), func(context.Context, *worker.Job[string]) error { return nil }, worker.QueueOptions{})
	for range 3 {
		d.add("q", "x", sluice.EnqueueOptions{})
	}
	d.once(1)
	d.once(0)
	d.now = d.now.Add(31 * time.Minute)
	d.once(1)
}

func TestOnceEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		client := sluice.NewClient(store, sluice.ClientOptions{Logger: quiet})
		w := worker.New(store, worker.Options{Logger: quiet, Drain: time.Minute})
		ctx, stop := context.WithCancel(t.Context())
		worker.Handle(w, sluice.QueueOf[string]("q"), func(ctx context.Context, _ *worker.Job[string]) error {
			stop()
			<-ctx.Done()
			return context.Cause(ctx)
		}, worker.QueueOptions{})
		var ids []sluice.ID
		for range 2 {
			receipt, err := sluice.QueueOf[string]("q").Enqueue(t.Context(), client, "x", sluice.EnqueueOptions{})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, receipt.ID)
		}
		ran, err := w.Once(ctx)
		if err != nil || ran != 1 {
			t.Errorf("ran %d: %v", ran, err)
		}
		for _, id := range ids {
			if job, err := client.Job(t.Context(), id); err != nil || job.State != sluice.StateQueued || job.Attempts != 0 {
				t.Errorf("%s after %d attempts: %v", job.State, job.Attempts, err)
			}
		}
	})
}

func TestOnceLeavesAHandlerBehindThatIgnoresTheDrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		client := sluice.NewClient(store, sluice.ClientOptions{Logger: quiet})
		w := worker.New(store, worker.Options{Logger: quiet, Drain: time.Minute, Abandon: time.Second})
		ctx, stop := context.WithCancel(t.Context())
		release := make(chan struct{})
		worker.Handle(w, sluice.QueueOf[string]("q"), func(context.Context, *worker.Job[string]) error {
			stop()
			<-release
			return nil
		}, worker.QueueOptions{})
		receipt, err := sluice.QueueOf[string]("q").Enqueue(t.Context(), client, "x", sluice.EnqueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if ran, err := w.Once(ctx); ran != 1 || !errors.Is(err, worker.ErrDrainTimeout) {
			t.Errorf("ran %d: %v", ran, err)
		}
		if job, err := client.Job(t.Context(), receipt.ID); err != nil || job.State != sluice.StateQueued {
			t.Errorf("the job is %s: %v", job.State, err)
		}
		close(release)
	})
}
