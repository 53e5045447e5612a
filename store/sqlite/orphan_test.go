package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/engine"
)

// TestClaimsTakeAwayJobsWhoseRowIsGone deletes rows of jobs by plain SQL. Claims must hand out none of these jobs, and
// no limit may count them.
func TestClaimsTakeAwayJobsWhoseRowIsGone(t *testing.T) {
	t.Parallel()
	for way, change := range map[string]func(*sluice.Settings){
		"plain":     func(*sluice.Settings) {},
		"in flight": func(s *sluice.Settings) { s.Concurrency = 2 },
		"in turns":  func(s *sluice.Settings) { s.Fair, s.TenantConcurrency = true, 2 },
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			store := openStore(t, filepath.Join(t.TempDir(), "jobs.db"))
			client := sluice.NewClient(store, sluice.ClientOptions{})
			settings := sluice.DefaultSettings()
			change(&settings)
			if _, err := client.EnsureQueue(t.Context(), "q", settings, sluice.Act{By: "test"}); err != nil {
				t.Fatal(err)
			}
			for range 4 {
				if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte(`{}`), EnqueueOptions: sluice.EnqueueOptions{Tenant: "acme"}}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := store.DB().ExecContext(t.Context(), "delete from sluice_job where seq in (select seq from sluice_job order by seq limit 2)"); err != nil {
				t.Fatal(err)
			}
			got := 0
			for deadline := time.Now().Add(10 * time.Second); got < 2 && time.Now().Before(deadline); {
				claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 5, Holder: "h:1:x", Lease: time.Hour, Token: sluice.NewToken()})
				if err != nil {
					t.Fatal(err)
				}
				if got += len(claimed.Jobs); got == 0 && claimed.NextDue != 0 {
					t.Errorf("a claim that found only what is gone says to claim again in %s, want at once", claimed.NextDue)
				}
			}
			var lives int
			if err := store.DB().QueryRowContext(t.Context(), "select count(*) from sluice_live").Scan(&lives); err != nil || got != 2 || lives != 2 {
				t.Errorf("%d jobs were claimed, and %d live, want 2 and 2: %v", got, lives, err)
			}
			told, err := store.Audit(t.Context(), sluice.AuditFilter{Object: audit.ObjectJob, Name: "q", Limit: 10})
			if err != nil || len(told) != 2 || told[0].Event != audit.EventMissing {
				t.Errorf("the audit tells %v: %v", told, err)
			}
		})
	}
}

// TestRunsOfJobsWhoseRowIsGoneAreStray deletes the row of a job that has a run. The follower of runs removes the job,
// and the run counts as in flight until it has ended.
func TestRunsOfJobsWhoseRowIsGoneAreStray(t *testing.T) {
	t.Parallel()
	store := openStore(t, filepath.Join(t.TempDir(), "jobs.db"))
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
	if _, err := store.DB().ExecContext(t.Context(), "delete from sluice_job"); err != nil {
		t.Fatal(err)
	}
	if looked, err := engine.Given(store).Dispatches(t.Context(), engine.DispatchFilter{Queue: "q", ReadOnly: true}); err != nil || len(looked) != 0 {
		t.Errorf("who only looks sees %v: %v", looked, err)
	}
	if away, err := engine.Given(store).Dispatches(t.Context(), engine.DispatchFilter{Queue: "q"}); err != nil || len(away) != 0 {
		t.Errorf("who follows sees %v: %v", away, err)
	}
	var lives int
	if err := store.DB().QueryRowContext(t.Context(), "select count(*) from sluice_live").Scan(&lives); err != nil || lives != 0 {
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
