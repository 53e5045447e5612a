package faulttest

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/engine/local"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

// localEngines returns the engines of a process: an engine that keeps its runs in the store itself.
func localEngines(store sluice.Store) map[string]engine.Engine {
	return map[string]engine.Engine{"local": local.New(store, local.Options{Worker: worker.Options{Logger: quiet}})}
}

// runDispatcher is a dispatcher process.
func runDispatcher(ctx context.Context, store sluice.Store) error {
	return dispatcher.New(store, dispatcher.Options{Engines: localEngines(store), Batch: 10, Poll: 50 * time.Millisecond, Logger: quiet}).Run(ctx)
}

// runFollowingUpkeep is an upkeep process that can follow runs.
func runFollowingUpkeep(ctx context.Context, store sluice.Store) error {
	return upkeep.New(store, upkeep.Options{Interval: 100 * time.Millisecond, Engines: localEngines(store), Logger: quiet}).Run(ctx)
}

// followLease is the lease of a leader that follows runs. It is the shortest lease that upkeep allows.
const followLease = 2 * time.Second

// works is a store behind a pooler, with jobs that an engine runs.
type works struct {
	*bank
	finish chan struct{} // closed: runs may end
	mu     sync.Mutex
	begun  map[sluice.ID]int
}

func newWorks(t *testing.T) *works {
	t.Helper()
	_, through := pgtest.NewPooler(t, pgtest.NewDatabase(t), pgtest.PoolerOptions{})
	store, err := openAt(t.Context(), through)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	w := &works{finish: make(chan struct{}), begun: make(map[sluice.ID]int)}
	w.bank = &bank{T: t, address: through, queue: "shipment", store: store, client: sluice.NewClient(store, sluice.ClientOptions{})}
	settings := sluice.DefaultSettings()
	settings.Engine, settings.RunType = "local", "ship"
	settings.Lease, settings.RecoverInterval, settings.FollowInterval = time.Second, 200*time.Millisecond, 200*time.Millisecond
	if _, err := w.client.EnsureQueue(t.Context(), w.queue, settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	w.execute()
	return w
}

// execute runs an engine. Its runs begin at once, and end when finish is closed.
func (w *works) execute() {
	engine := local.New(w.store, local.Options{Worker: worker.Options{Slots: 100, Poll: 50 * time.Millisecond, Logger: quiet}})
	local.Handle(engine, "ship", func(_ context.Context, run *local.Run[int]) (any, error) {
		w.mu.Lock()
		w.begun[run.Job]++
		w.mu.Unlock()
		<-w.finish
		return nil, nil
	}, worker.QueueOptions{})
	ctx, stop := context.WithCancel(w.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = engine.Run(ctx)
	}()
	w.Cleanup(func() {
		stop()
		<-ended
	})
}

func (w *works) enqueue(n int) {
	w.Helper()
	jobs := make([]sluice.NewJob, n)
	for i := range jobs {
		jobs[i] = sluice.NewJob{Queue: w.queue, Payload: fmt.Appendf(nil, "%d", i)}
	}
	if _, err := w.client.EnqueueMany(w.Context(), jobs); err != nil {
		w.Fatal(err)
	}
}

// becomes waits until n jobs are in a state.
func (w *works) becomes(state sluice.State, n int) (jobs []sluice.Job) {
	w.Helper()
	for deadline := time.Now().Add(10 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		page, err := w.client.Jobs(w.Context(), sluice.JobFilter{Queue: w.queue, States: []sluice.State{state}, Limit: 1000})
		if err == nil && len(page.Jobs) == n {
			return page.Jobs
		}
		if time.Now().After(deadline) {
			w.Fatalf("%d jobs are %s, want %d, %v", len(page.Jobs), state, n, err)
		}
	}
}

// follower waits until one of the processes leads the task that follows runs, and returns the process and its lead.
func (w *works) follower(processes ...*exec.Cmd) (process *exec.Cmd, lead presence.Leader) {
	w.Helper()
	for deadline := time.Now().Add(10 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		leads, err := presence.Given(w.store).Leaders(w.Context())
		for _, process := range processes {
			of := fmt.Sprintf(":%d:", process.Process.Pid)
			for _, lead := range leads {
				if lead.Held && lead.Task == presence.FollowTask("local") && strings.Contains(lead.Holder, of) {
					return process, lead
				}
			}
		}
		if time.Now().After(deadline) {
			w.Fatalf("nobody follows: %+v, %v", leads, err)
		}
	}
}

// TestAnotherFollowsThroughAPoolerOnceTheOneThatLedIsKilled kills the process that follows runs. Its lead is a row, so
// the connections that the pooler keeps hold nothing of the killed process.
func TestAnotherFollowsThroughAPoolerOnceTheOneThatLedIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorks(t)
	upkeeps := []*exec.Cmd{w.spawn("following upkeep"), w.spawn("following upkeep")}
	first := w.spawn("dispatcher")
	w.enqueue(40)
	w.becomes(sluice.StateDispatched, 40)

	killed, before := w.follower(upkeeps...)
	for _, process := range []*exec.Cmd{killed, first} {
		signalTo(t, process, syscall.SIGKILL)
		_ = process.Wait() // it was killed
	}
	rest := slices.DeleteFunc(upkeeps, func(p *exec.Cmd) bool { return p == killed })
	_, after := w.follower(rest...)
	// A lease that was renewed just before the kill ends one lease later. The rest of the time is for a busy machine.
	if late := after.Since.Sub(before.Until); late < 0 || late > followLease+10*time.Second {
		t.Errorf("the other follows %s after the lease of the one that was killed", late)
	}
	w.spawn("dispatcher")
	w.enqueue(20)
	w.becomes(sluice.StateDispatched, 60)
	close(w.finish)
	jobs := w.becomes(sluice.StateCompleted, 60)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, job := range jobs {
		if job.Attempts > 0 || w.begun[job.ID] != 1 {
			t.Errorf("job %s was run %d times after %d attempts", job.ID, w.begun[job.ID], job.Attempts)
		}
	}
}
