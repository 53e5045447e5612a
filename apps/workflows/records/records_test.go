package records_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/apptest"
	"github.com/sluice-queue/sluice/apps/workflows/graph"
	"github.com/sluice-queue/sluice/apps/workflows/records"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/tenancy"
)

func TestMain(m *testing.M) {
	apptest.MoveIfAsked(openMover)
	pgtest.Main(m)
}

const simple = `{"start":"a","nodes":[{"id":"a","kind":"set","variable":"x","value":1}]}`

// onEach runs a test on both kinds of database.
func onEach(t *testing.T, try func(t *testing.T, d *records.Database)) {
	t.Parallel()
	addresses := map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "workflows.db") },
		"postgres": func(t *testing.T) string { return pgtest.NewDatabase(t) },
	}
	for name, address := range addresses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := records.Open(t.Context(), address(t))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close() })
			act := sluice.Act{By: "test"}
			_, err = d.Client.EnsureQueue(t.Context(), records.Queue, sluice.DefaultSettings(), act)
			check(t, err)
			for _, tier := range tenancy.PresetTiers() {
				_, err = tenancy.AddTier(t.Context(), d.Store, tier.Tier, act)
				check(t, err)
			}
			define(t, d, "acme")
			try(t, d)
		})
	}
}

func check(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// define makes a workspace with a definition of two versions.
func define(t *testing.T, d *records.Database, workspace string) {
	t.Helper()
	ctx := t.Context()
	check(t, d.SaveWorkspace(ctx, records.Workspace{ID: workspace, Name: "A", Plan: "PRO"}, "test"),
		d.SaveDefinition(ctx, workspace, records.Definition{ID: "order", Name: "Order"}),
		d.SaveVersion(ctx, workspace, "order", 1, []byte(simple)),
		d.SaveVersion(ctx, workspace, "order", 2, []byte(simple)))
}

// end claims the only job and ends it.
func end(t *testing.T, d *records.Database, id sluice.ID, event sluice.Event) {
	t.Helper()
	claimed, err := d.Store.Claim(t.Context(), claimOf(1))
	check(t, err)
	if len(claimed.Jobs) != 1 || claimed.Jobs[0].ID != id {
		t.Fatalf("claimed %+v, want the job of execution %s", claimed.Jobs, id)
	}
	errs, err := d.Store.Settle(t.Context(), []sluice.Settlement{{ID: id, Token: claimed.Jobs[0].Token, Holder: "test", Event: event, Error: "the run failed"}})
	check(t, err, errs[0])
}

func claimOf(limit int) sluice.ClaimRequest {
	return sluice.ClaimRequest{Queue: records.Queue, Limit: limit, Holder: "test", Lease: 200 * time.Millisecond, Token: sluice.NewToken()}
}

func depth(t *testing.T, d *records.Database) int {
	t.Helper()
	depth, err := d.Client.Depth(t.Context(), records.Queue)
	check(t, err)
	return depth.Ready
}

func TestAnExecutionAndItsJobAreStoredTogether(t *testing.T) {
	onEach(t, func(t *testing.T, d *records.Database) {
		ctx := t.Context()
		id, fresh, err := d.Enqueue(ctx, "acme", records.NewExecution{Definition: "order", Variables: map[string]any{"n": 1}})
		check(t, err)
		e, err := d.Execution(ctx, "acme", id)
		check(t, err)
		job, err := d.Client.Job(ctx, id)
		check(t, err)
		if !fresh || e.State != records.Waiting || e.Version != 2 || string(e.Variables) != `{"n":1}` {
			t.Errorf("got the execution %+v", e)
		}
		if job.Tenant != "acme" || job.State != sluice.StateQueued || !strings.Contains(string(job.Payload), id.String()) {
			t.Errorf("got the job %+v", job)
		}
		good := records.NewExecution{Definition: "order"}
		if _, _, err := d.EnqueueMany(ctx, "acme", []records.NewExecution{good, {Definition: "order", Priority: 11}}); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("got %v, want an ErrInvalid", err)
		}
		all, err := d.Executions(ctx, "acme", 10)
		check(t, err)
		if len(all) != 1 || depth(t, d) != 1 {
			t.Errorf("a call that failed left %d executions and %d jobs, want those of before: 1", len(all), depth(t, d))
		}
	})
}

func TestAttemptsAreThoseOfTheRequestTheDefinitionTheWorkspaceOrTheQueue(t *testing.T) {
	onEach(t, func(t *testing.T, d *records.Database) {
		ctx := t.Context()
		attempts := func(of string, asked, want int) {
			t.Helper()
			id, _, err := d.Enqueue(ctx, "acme", records.NewExecution{Definition: "order", MaxAttempts: asked})
			check(t, err)
			if job, err := d.Client.Job(ctx, id); err != nil || job.MaxAttempts != want {
				t.Errorf("the attempts of the %s are %d, %v; want %d", of, job.MaxAttempts, err, want)
			}
		}
		w, o := records.Workspace{ID: "acme", Name: "A", Plan: "PRO", MaxAttempts: 4}, records.Definition{ID: "order", Name: "Order", MaxAttempts: 2}
		attempts("queue", 0, 0)
		check(t, d.SaveWorkspace(ctx, w, "test"))
		attempts("workspace", 0, 4)
		check(t, d.SaveDefinition(ctx, "acme", o))
		attempts("definition", 0, 2)
		attempts("request", 9, 9)
		if stored, err := d.Workspace(ctx, "acme"); err != nil || stored != w {
			t.Errorf("the workspace is %+v, %v", stored, err)
		}
		o.MaxAttempts = 0
		check(t, d.SaveDefinition(ctx, "acme", o))
		attempts("workspace", 0, 4)
		check(t, d.DeleteWorkspace(ctx, "acme"))
		define(t, d, "acme")
		attempts("queue", 0, 0)
		o.MaxAttempts = -1
		if err := d.SaveDefinition(ctx, "acme", o); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("attempts below 0 gave %v, want an ErrInvalid", err)
		}
	})
}

func TestTheSameExecutionIsStoredOnce(t *testing.T) {
	onEach(t, func(t *testing.T, d *records.Database) {
		ctx := t.Context()
		e := records.NewExecution{ID: sluice.NewID(), Definition: "order", MaxAttempts: 7}
		_, fresh, err := d.Enqueue(ctx, "acme", e)
		check(t, err)
		again, repeated, err := d.Enqueue(ctx, "acme", e)
		check(t, err)
		if !fresh || repeated || again != e.ID || depth(t, d) != 1 {
			t.Errorf("got new %t, then %t, and %d jobs", fresh, repeated, depth(t, d))
		}
		define(t, d, "other")
		if _, _, err := d.Enqueue(ctx, "other", e); !errors.Is(err, sluice.ErrNotFound) {
			t.Errorf("an id of another workspace gave %v, want an ErrNotFound", err)
		}
		if _, err := d.Begin(ctx, "other", e.ID.String(), "run-1"); !errors.Is(err, graph.ErrGone) {
			t.Errorf("a run of another workspace began it: %v, want a graph.ErrGone", err)
		}
		if job, err := d.Client.Job(ctx, e.ID); err != nil || string(job.Payload) != `{"execution":"`+e.ID.String()+`","workspace":"acme"}` || job.MaxAttempts != 7 {
			t.Errorf("the input of the run is %s, after %d attempts it is given up, %v; want its workspace in it, and 7", job.Payload, job.MaxAttempts, err)
		}
		if _, err := d.Execution(ctx, "other", e.ID); !errors.Is(err, sluice.ErrNotFound) {
			t.Errorf("an execution of another workspace gave %v, want an ErrNotFound", err)
		}
		if _, _, err := d.Enqueue(ctx, "acme", records.NewExecution{Definition: "order", Version: 3}); !errors.Is(err, sluice.ErrNotFound) {
			t.Errorf("an unknown version gave %v, want an ErrNotFound", err)
		}
	})
}

func TestARunBeginsAndEndsOnce(t *testing.T) {
	onEach(t, func(t *testing.T, d *records.Database) {
		ctx := t.Context()
		id, _, err := d.Enqueue(ctx, "acme", records.NewExecution{Definition: "order", Version: 1})
		check(t, err)
		step := graph.Step{Number: 1, Node: "a", Kind: graph.Set, Result: []byte(`1`), EndedAt: time.Now()}
		for range 2 { // a repetition changes nothing
			work, err := d.Begin(ctx, "acme", id.String(), "run-1")
			check(t, err)
			if work.Graph.Start != "a" {
				t.Fatalf("got the graph %+v", work.Graph)
			}
			check(t, d.Step(ctx, id.String(), "run-1", step))
		}
		check(t, d.End(ctx, id.String(), "run-0", "of another run"))
		for range 2 {
			check(t, d.End(ctx, id.String(), "run-1", ""))
		}
		end(t, d, id, sluice.EventComplete)
		e, err := d.Execution(ctx, "acme", id)
		check(t, err)
		if e.State != records.Completed || e.Run != "run-1" || len(e.Steps) != 1 || e.StartedAt.IsZero() || e.EndedAt.IsZero() {
			t.Errorf("got %+v", e)
		}
		runs, err := d.CheckRuns(ctx)
		check(t, err)
		if runs != (records.RunsCheck{}) {
			t.Errorf("got %+v", runs)
		}
		_, err = d.Begin(ctx, "acme", id.String(), "run-2")
		check(t, err)
		if runs, err = d.CheckRuns(ctx); err != nil || runs.Several != 1 {
			t.Errorf("a second run is not found: %+v, %v", runs, err)
		}
	})
}

func TestWhatIsGoneFailsTheExecutionWithThatReason(t *testing.T) {
	for want, lose := range map[string]func(context.Context, *records.Database) error{
		"workspace acme is gone": func(ctx context.Context, d *records.Database) error {
			return d.DeleteWorkspace(ctx, "acme")
		},
		"definition order of workspace acme is gone": func(ctx context.Context, d *records.Database) error {
			return d.DeleteDefinition(ctx, "acme", "order")
		},
		"version 1 of definition order of workspace acme is gone": func(ctx context.Context, d *records.Database) error {
			return d.DeleteVersion(ctx, "acme", "order", 1)
		},
	} {
		t.Run(want, func(t *testing.T) {
			onEach(t, func(t *testing.T, d *records.Database) {
				ctx := t.Context()
				id, _, err := d.Enqueue(ctx, "acme", records.NewExecution{Definition: "order", Version: 1})
				check(t, err, lose(ctx, d))
				if _, err := d.Begin(ctx, "acme", id.String(), "run-1"); !errors.Is(err, graph.ErrGone) || err.Error() != want {
					t.Errorf("got %v", err)
				}
				end(t, d, id, sluice.EventBury)
				e, err := d.Execution(ctx, "acme", id)
				check(t, err)
				if e.State != records.Failed || e.Error != want {
					t.Errorf("got %+v", e)
				}
				runs, err := d.CheckRuns(ctx)
				check(t, err)
				if runs != (records.RunsCheck{}) {
					t.Errorf("it counts as having run: %+v", runs)
				}
			})
		})
	}
}

func TestAVersionIsNeverChanged(t *testing.T) {
	onEach(t, func(t *testing.T, d *records.Database) {
		ctx := t.Context()
		check(t, d.SaveVersion(ctx, "acme", "order", 1, []byte(simple)))
		if err := d.SaveVersion(ctx, "acme", "order", 1, []byte(strings.Replace(simple, "x", "y", 1))); !errors.Is(err, records.ErrConflict) {
			t.Errorf("got %v, want an ErrConflict", err)
		}
		if err := d.SaveVersion(ctx, "acme", "unknown", 1, []byte(simple)); !errors.Is(err, sluice.ErrNotFound) {
			t.Errorf("got %v, want an ErrNotFound", err)
		}
	})
}

func TestThePlanIsTheTier(t *testing.T) {
	onEach(t, func(t *testing.T, d *records.Database) {
		ctx := t.Context()
		check(t, d.SaveWorkspace(ctx, records.Workspace{ID: "acme", Plan: "ENTERPRISE"}, "test"))
		tenant, err := tenancy.Given(d.Store).Tenant(ctx, "acme")
		check(t, err)
		if tenant.Tier != "ENTERPRISE" {
			t.Errorf("got the tier %q", tenant.Tier)
		}
		_, err = tenancy.SetTier(ctx, d.Store, "acme", "", sluice.Act{By: "test"})
		check(t, err, d.SyncTiers(ctx, "test"))
		if tenant, err = tenancy.Given(d.Store).Tenant(ctx, "acme"); err != nil || tenant.Tier != "ENTERPRISE" {
			t.Errorf("after SyncTiers: tier %q, %v", tenant.Tier, err)
		}
		if err := d.SaveWorkspace(ctx, records.Workspace{ID: "acme", Plan: "GOLD"}, "test"); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("got %v, want an ErrInvalid", err)
		}
	})
}
