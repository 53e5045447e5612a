package temporal_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/engine/enginetest"
	adapter "github.com/sluice-queue/sluice/engine/temporal"
	"github.com/sluice-queue/sluice/internal/temporaltest"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/upkeep"
)

// brief is the retention in the namespace of forgetful.
const brief = 3 * time.Second

// forgetful is a bench on a server that deletes runs a few seconds after they end.
func forgetful(t *testing.T) *bench {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a Temporal server")
	}
	server, err := temporaltest.Start(t.Context(), temporaltest.Options{
		Namespaces: map[string]time.Duration{"short": brief}, Dynamic: map[string]string{"history.retentionTimerJitterDuration": "1s"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	c, counted := dialled(t, server.Address, "short", client.Options{})
	workers, _ := dialled(t, server.Address, "short", client.Options{})
	queue := "q-" + strings.ToLower(rand.Text())
	return &bench{
		client: c, workers: workers, calls: counted, engine: adapter.New(c, adapter.Options{Namespace: "short", Timeout: 5 * time.Minute}),
		target: engine.Target{Queue: queue, Type: "obey"},
	}
}

// trusting is an engine whose check reports no retention. A dispatcher believes that it keeps runs for ever, so only
// upkeep can prevent a second start.
type trusting struct{ engine.Engine }

func (trusting) Check(context.Context, engine.Target) (engine.Report, error) {
	return engine.Report{}, nil
}

// TestARunPastRetentionIsNeverStartedAgain lets two runs close while nobody follows them, until the server has deleted
// their histories. One belongs to a dispatched job, the other to a claim whose dispatcher died before it could settle.
func TestARunPastRetentionIsNeverStartedAgain(t *testing.T) {
	t.Parallel()
	b := forgetful(t)
	diary := &enginetest.Diary{}
	b.work(t, obey(diary))
	ctx, store, quiet := t.Context(), memory.New(memory.Options{}), slog.New(slog.DiscardHandler)
	jobs := sluice.NewClient(store, sluice.ClientOptions{})
	settings := sluice.DefaultSettings()
	settings.Engine, settings.RunType = "temporal", b.target.Type
	if _, err := jobs.EnsureQueue(ctx, b.target.Queue, settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := jobs.Enqueue(ctx, sluice.NewJob{Queue: b.target.Queue, Payload: []byte(`{"do":"complete"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	claimed, err := store.Claim(ctx, sluice.ClaimRequest{Queue: b.target.Queue, Limit: 2, Holder: "dead", Lease: time.Second, Token: sluice.NewToken(), Engine: "temporal"})
	if err != nil || len(claimed.Jobs) != 2 {
		t.Fatalf("claimed %d jobs: %v", len(claimed.Jobs), err)
	}
	for i, c := range claimed.Jobs {
		c.Ref = engine.RefOf(c.Job, settings)
		errs, err := engine.Given(store).RecordIntent(ctx, []engine.Intent{{ID: c.ID, Token: c.Token, Ref: c.Ref, Engine: "temporal", Lease: time.Second}})
		if err := errors.Join(append(errs, err)...); err != nil {
			t.Fatal(err)
		}
		b.started(t, engine.Run{Ref: c.Ref, Job: c.ID, Generation: 1, Attempt: 1, Payload: c.Payload})
		if i == 0 { // the other job's dispatcher has died
			errs, err := store.Settle(ctx, []sluice.Settlement{{ID: c.ID, Token: c.Token, Event: sluice.EventDispatch, Holder: "dead"}})
			if err := errors.Join(append(errs, err)...); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range claimed.Jobs {
		until(t, c.Ref+" has run, and the server has forgotten it", func() bool {
			return len(diary.Of(c.Ref)) > 0 && b.outcome(t, c.Ref).State == engine.Absent
		})
	}
	follow := upkeep.New(store, upkeep.Options{Engines: map[string]engine.Engine{"temporal": b.engine}, Logger: quiet})
	until(t, "both jobs are uncertain", func() bool {
		if _, err := follow.Once(ctx, true); err != nil {
			t.Fatal(err)
		}
		found, err := jobs.Jobs(ctx, sluice.JobFilter{Queue: b.target.Queue, States: []sluice.State{sluice.StateUncertain}})
		return err == nil && len(found.Jobs) == 2
	})
	next := dispatcher.New(store, dispatcher.Options{Engines: map[string]engine.Engine{"temporal": trusting{b.engine}}, Logger: quiet})
	if done, err := next.Once(ctx, b.target.Queue); err != nil || done.Claimed != 0 {
		t.Errorf("a dispatcher did %+v: %v", done, err)
	}
	for _, c := range claimed.Jobs {
		if n := len(diary.Of(c.Ref)); n != 1 {
			t.Errorf("%s ran %d times", c.Ref, n)
		}
		told, err := jobs.Audit(ctx, sluice.AuditFilter{JobID: c.ID})
		if err != nil || told[0].Event != sluice.EventDoubt || !strings.HasPrefix(told[0].Reason, "unknown outcome: ") {
			t.Errorf("the audit tells %+v: %v", told, err)
		}
	}
	act := sluice.Act{By: "ada", Reason: "it is in the bank's books"}
	if err := jobs.Resolve(ctx, []sluice.ID{claimed.Jobs[0].ID, claimed.Jobs[1].ID}, sluice.StateCompleted, act); err != nil {
		t.Error(err)
	}
}
