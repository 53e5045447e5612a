package forward_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/forward"
)

// runs has a name of its own, because two embedded ports are named Store.
type runs = engine.Store

// stopping is a store that calls stop with each claim. With hang, it answers calls of a verb only when their contexts end.
type stopping struct {
	*line
	runs
	stop func()
	hang string
}

func (s *stopping) wait(ctx context.Context, verb string) error {
	if s.hang != verb {
		return ctx.Err()
	}
	<-ctx.Done()
	return ctx.Err()
}

func (s *stopping) Claim(ctx context.Context, request sluice.ClaimRequest) (sluice.Claimed, error) {
	claimed, err := s.line.Claim(ctx, request)
	s.stop()
	return claimed, errors.Join(err, ctx.Err())
}

func (s *stopping) Job(ctx context.Context, id sluice.ID) (sluice.Job, error) {
	if err := s.wait(ctx, "job"); err != nil {
		return sluice.Job{}, err
	}
	return s.line.Job(ctx, id)
}

func (s *stopping) RecordIntent(ctx context.Context, intents []engine.Intent) ([]error, error) {
	if err := s.wait(ctx, "record intent"); err != nil {
		return nil, err
	}
	return s.runs.RecordIntent(ctx, intents)
}

// TestOnceThatIsStoppedLeavesNoClaims stops a forwarder just after its first claim. It sends the claimed jobs if it can,
// and otherwise hands them back. Run does the same.
func TestOnceThatIsStoppedLeavesNoClaims(t *testing.T) {
	t.Parallel()
	for hang, sends := range map[string]bool{"": true, "job": false, "record intent": false} {
		for name, run := range map[string]func(ctx context.Context, f *forward.Forwarder) error{
			"Once": func(ctx context.Context, f *forward.Forwarder) error {
				sent, err := f.Once(ctx)
				if want := map[bool]int{true: 1}[sends]; sent.Forwarded != want || !errors.Is(err, context.Canceled) {
					return errors.Join(errors.New("it was not cancelled, or sent another number of jobs"), err)
				}
				return nil
			},
			"Run": func(ctx context.Context, f *forward.Forwarder) error { return f.Run(ctx) },
		} {
			t.Run(name+" hangs in "+hang, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := newSea(t)
					id := s.add(sluice.EnqueueOptions{Key: "k"}) // the forwarder looks up jobs that have a key
					ctx, stop := context.WithCancel(t.Context())
					local := &stopping{line: s.local, runs: engine.Given(s.local), stop: stop, hang: hang}
					s.forwardToCentre.CallTimeout = time.Hour // longer than the drain
					begun := time.Now()
					if err := run(ctx, forward.New(local, s.centre, s.forwardToCentre)); err != nil {
						t.Error(err)
					}
					if took := time.Since(begun); took > 31*time.Second {
						t.Errorf("it ended after %s, want 30s or less", took)
					}
					if sends {
						s.is(s.edge, id, sluice.StateCompleted)
						s.is(s.mainland, id, sluice.StateQueued)
						return
					}
					if job := s.is(s.edge, id, sluice.StateQueued); job.Releases != 1 {
						t.Errorf("it has %d releases, want 1", job.Releases)
					}
					s.once(forward.Sent{Claimed: 1, Forwarded: 1})
				})
			})
		}
	}
}
