package temporal_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	adapter "github.com/sluice-queue/sluice/engine/temporal"
)

// timed notes the time of the last start, and counts the starts.
type timed struct {
	engine.Engine
	mu   sync.Mutex
	all  int
	last time.Time
}

func (e *timed) Start(ctx context.Context, target engine.Target, runs []engine.Run) []error {
	for i := range runs {
		begin := runs[i].Begin
		runs[i].Begin = func() error {
			asked := time.Now()
			if err := begin(); err != nil {
				return err
			}
			e.mu.Lock()
			defer e.mu.Unlock()
			e.all, e.last = e.all+1, asked
			return nil
		}
	}
	return e.Engine.Start(ctx, target, runs)
}

func (e *timed) begun() (int, time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.all, e.last
}

// TestAPauseStopsStartsOnARealServer pauses in the middle of a batch, and asks the server for its runs.
func TestAPauseStopsStartsOnARealServer(t *testing.T) {
	t.Parallel()
	s := newBench(t, adapter.Options{Parallel: 2}, client.Options{})
	e := &timed{Engine: s.engine}
	b := newBank(t)
	act := sluice.Act{By: "test"}
	if _, err := b.client.ChangeSettings(t.Context(), "pay", act, func(q *sluice.Settings) error {
		q.RunTaskQueue, q.Batch = s.target.Queue, 2000
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	ids := b.enqueue(2000)
	b.dispatch(e)
	b.until("some were started", func() bool {
		n, _ := e.begun()
		return n > 20
	})
	if err := b.client.Pause(t.Context(), "pay", act); err != nil {
		t.Fatal(err)
	}
	paused := time.Now()
	b.until("what was claimed is handed back or dispatched", func() bool { return b.count(sluice.StateClaimed) == 0 })
	begun, last := e.begun()
	if late := last.Sub(paused); late > time.Second || begun == len(ids) {
		t.Errorf("%d of %d starts were begun, the last %s after the pause", begun, len(ids), late)
	}
	refs := make([]string, len(ids))
	for i, id := range ids {
		refs[i] = "pay-" + id.String()
	}
	outcomes, err := s.engine.Outcomes(t.Context(), engine.Target{Queue: "pay", TaskQueue: s.target.Queue}, refs)
	if err != nil {
		t.Fatal(err)
	}
	has := 0
	for i, run := range outcomes {
		job, err := b.client.Job(t.Context(), ids[i])
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case run.State != engine.Absent:
			has++
		case job.State != sluice.StateQueued || job.Attempts != 0:
			t.Fatalf("a job without a run is %s after %d attempts", job.State, job.Attempts)
		}
	}
	if has != begun {
		t.Errorf("the server has %d runs of %d that were begun", has, begun)
	}
}
