package safe_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/forward"
	"github.com/sluice-queue/sluice/internal/safe"
	"github.com/sluice-queue/sluice/internal/verbtest"
	"github.com/sluice-queue/sluice/observe"
	"github.com/sluice-queue/sluice/step"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

// broken is an observer that panics in every verb of a store while on is set. With ends set it panics at their ends too.
type broken struct{ on, ends atomic.Bool }

func (b *broken) Begin(ctx context.Context, c *observe.Call) context.Context {
	if b.on.Load() {
		panic("a fault in " + c.Name)
	}
	return ctx
}

func (b *broken) End(_ context.Context, c *observe.Call) {
	if b.on.Load() && b.ends.Load() {
		panic("a fault at the end of " + c.Name)
	}
}

func TestPanicOfEveryVerbIsAnError(t *testing.T) {
	t.Parallel()
	b := &broken{}
	b.on.Store(true)
	for says, store := range map[string]sluice.Store{
		"a fault in":       observe.Store(memory.New(memory.Options{}), b),
		"the store is nil": nil,
	} {
		errs := verbtest.Call(t.Context(), safe.Store(store), func(name string, panicked any) { t.Errorf("%s panics: %v", name, panicked) })
		for name, err := range errs {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s gives %v, want %q in it", name, err, says)
			}
		}
	}
}

// TestThoseWhoWorkOutliveAStoreThatPanics makes every verb panic for a while under a worker, a dispatcher and an
// upkeep.
func TestThoseWhoWorkOutliveAStoreThatPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, quiet := &broken{}, slog.New(slog.NewTextHandler(io.Discard, nil))
		inner := memory.New(memory.Options{})
		store := observe.Store(inner, b)
		client := sluice.NewClient(inner, sluice.ClientOptions{})
		w := worker.New(store, worker.Options{Logger: quiet})
		mail := sluice.QueueOf[string]("mail")
		worker.Handle(w, mail, func(context.Context, *worker.Job[string]) error { return nil }, worker.QueueOptions{})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 3)
		go func() { ended <- w.Run(ctx) }()
		go func() { ended <- dispatcher.New(store, dispatcher.Options{Logger: quiet}).Run(ctx) }()
		go func() { ended <- upkeep.New(store, upkeep.Options{Logger: quiet}).Run(ctx) }()
		time.Sleep(time.Minute)
		b.on.Store(true)
		receipt, err := mail.Enqueue(ctx, client, "hello", sluice.EnqueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		b.on.Store(false)
		time.Sleep(time.Minute)
		if job, err := client.Job(ctx, receipt.ID); err != nil || job.State != sluice.StateCompleted {
			t.Errorf("the job is %s: %v", job.State, err)
		}
		stop()
		for range 3 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

// TestAPanicOfAnObserverStopsNoStep: steps are no verbs of a store, which give such a panic as their error.
func TestAPanicOfAnObserverStopsNoStep(t *testing.T) {
	t.Parallel()
	b := &broken{}
	store := safe.Store(observe.Store(memory.New(memory.Options{}), b))
	for name, panics := range map[string]func(end func(step.End)){
		"at the begin": func(end func(step.End)) { end(step.End{}) },
		"at the end":   func(end func(step.End)) { b.on.Store(true); end(step.End{}) },
	} {
		b.on.Store(name == "at the begin")
		b.ends.Store(true)
		under, end := step.Begin(t.Context(), store, step.Step{Name: step.Upkeep})
		if under == nil || under.Err() != nil {
			t.Errorf("%s: the step works under %v", name, under)
		}
		panics(end)
	}
}

// TestNoStoreIsAnErrorOfRun passes no store to the functions that need one.
func TestNoStoreIsAnErrorOfRun(t *testing.T) {
	t.Parallel()
	w := worker.New(nil, worker.Options{})
	worker.Handle(w, sluice.QueueOf[string]("mail"), func(context.Context, *worker.Job[string]) error { return nil }, worker.QueueOptions{})
	for name, run := range map[string]func(context.Context) error{
		"forwarder": forward.New(nil, memory.New(memory.Options{}), forward.Options{Queues: []string{"mail"}}).Run,
		"worker":    w.Run, "upkeep": upkeep.New(nil, upkeep.Options{}).Run, "dispatcher": dispatcher.New(nil, dispatcher.Options{}).Run,
	} {
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		if err := run(ctx); err == nil || !strings.Contains(err.Error(), "the store is nil") {
			t.Errorf("%s gives %v", name, err)
		}
		stop()
	}
}
