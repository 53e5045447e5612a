package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/store/postgres"
)

// orphanQueues are settings that lead claims through each of their code paths.
var orphanQueues = map[string]func(*sluice.Settings){
	"plain":     func(*sluice.Settings) {},
	"in flight": func(s *sluice.Settings) { s.Concurrency = 2 },
	"rate":      func(s *sluice.Settings) { s.Rate = sluice.Rate{Jobs: 1000, Per: time.Second} },
	"in turns":  func(s *sluice.Settings) { s.Fair, s.TenantConcurrency = true, 2 },
}

// TestClaimsTakeAwayJobsWhoseRowIsGone deletes rows of jobs by plain SQL. Claims must hand out none of these jobs, and
// no limit may count them.
func TestClaimsTakeAwayJobsWhoseRowIsGone(t *testing.T) {
	t.Parallel()
	for way, change := range orphanQueues {
		for by, claim := range map[string]func(context.Context, *postgres.Store, sluice.Token) (int, error){"Go": claimByGo, "SQL": claimByFunction} {
			t.Run(way+" by "+by, func(t *testing.T) {
				t.Parallel()
				store := openStore(t, migrated.Copy(t))
				client := sluice.NewClient(store, sluice.ClientOptions{})
				settings := sluice.DefaultSettings()
				change(&settings)
				if _, err := client.EnsureQueue(t.Context(), "q", settings, sluice.Act{By: "test"}); err != nil {
					t.Fatal(err)
				}
				var ids []sluice.ID
				for range 4 {
					receipt, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte(`{}`), EnqueueOptions: sluice.EnqueueOptions{Tenant: "acme"}})
					if err != nil {
						t.Fatal(err)
					}
					ids = append(ids, receipt.ID)
				}
				if _, err := store.Pool().Exec(t.Context(), "delete from sluice.job where id = any ($1)", [][16]byte{ids[0], ids[1]}); err != nil {
					t.Fatal(err)
				}
				got := 0
				for deadline := time.Now().Add(10 * time.Second); got < 2 && time.Now().Before(deadline); {
					n, err := claim(t.Context(), store, sluice.NewToken())
					if err != nil {
						t.Fatal(err)
					}
					got += n
				}
				var lives int
				if err := store.Pool().QueryRow(t.Context(), "select count(*) from sluice.live").Scan(&lives); err != nil || got != 2 || lives != 2 {
					t.Errorf("%d jobs were claimed, and %d live, want 2 and 2: %v", got, lives, err)
				}
				told, err := store.Audit(t.Context(), sluice.AuditFilter{JobID: ids[0], Limit: 10})
				if err != nil || len(told) == 0 || told[0].Event != audit.EventMissing {
					t.Errorf("the audit tells of the job %v: %v", told, err)
				}
			})
		}
	}
}

func claimByGo(ctx context.Context, store *postgres.Store, token sluice.Token) (int, error) {
	claimed, err := store.Claim(ctx, sluice.ClaimRequest{Queue: "q", Limit: 5, Holder: "h:1:x", Lease: time.Hour, Token: token})
	return len(claimed.Jobs), err
}

func claimByFunction(ctx context.Context, store *postgres.Store, token sluice.Token) (n int, err error) {
	err = store.Pool().QueryRow(ctx, "select count(*) from sluice.claim('{q}', 'h:1:x', 5, 3600, $1::uuid)", [16]byte(token)).Scan(&n)
	return n, err
}

// TestRunsOfJobsWhoseRowIsGoneAreStray deletes the row of a job that has a run. The follower of runs removes the job,
// and the run counts as in flight until it has ended.
func TestRunsOfJobsWhoseRowIsGoneAreStray(t *testing.T) {
	t.Parallel()
	store := openStore(t, migrated.Copy(t))
	client := sluice.NewClient(store, sluice.ClientOptions{})
	settings := sluice.DefaultSettings()
	settings.Engine = "temporal"
	if _, err := client.EnsureQueue(t.Context(), "q", settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	receipt, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	token := sluice.NewToken()
	claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 1, Holder: "h:1:x", Lease: time.Hour, Token: token, Engine: "temporal"})
	if err != nil || len(claimed.Jobs) != 1 {
		t.Fatalf("claimed %v: %v", claimed.Jobs, err)
	}
	intent := engine.Intent{ID: receipt.ID, Token: token, Ref: "run", Engine: "temporal", Lease: time.Hour}
	if errs, err := engine.Given(store).RecordIntent(t.Context(), []engine.Intent{intent}); err != nil || errs[0] != nil {
		t.Fatalf("intend: %v, %v", errs, err)
	}
	if _, err := store.Pool().Exec(t.Context(), "delete from sluice.job"); err != nil {
		t.Fatal(err)
	}
	if looked, err := engine.Given(store).Dispatches(t.Context(), engine.DispatchFilter{Queue: "q", ReadOnly: true}); err != nil || len(looked) != 0 {
		t.Errorf("who only looks sees %v: %v", looked, err)
	}
	if away, err := engine.Given(store).Dispatches(t.Context(), engine.DispatchFilter{Queue: "q"}); err != nil || len(away) != 0 {
		t.Errorf("who follows sees %v: %v", away, err)
	}
	var lives int
	if err := store.Pool().QueryRow(t.Context(), "select count(*) from sluice.live").Scan(&lives); err != nil || lives != 0 {
		t.Errorf("%d jobs live: %v", lives, err)
	}
	stray, err := engine.Given(store).OrphanRuns(t.Context(), "q", engine.OrphanRun{}, 10)
	if err != nil || len(stray) != 1 || stray[0].JobID != receipt.ID || stray[0].Ref != "run" {
		t.Errorf("the orphan runs are %+v: %v", stray, err)
	}
	told, err := store.Audit(t.Context(), sluice.AuditFilter{JobID: receipt.ID, Limit: 1})
	if err != nil || len(told) != 1 || told[0].Event != audit.EventMissing {
		t.Errorf("the audit tells %v: %v", told, err)
	}
}
