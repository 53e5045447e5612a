package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/tenancy"
)

// TestSettingsOfOurStatementsEndWithThem runs statements of the caller on the connection that the store uses. They must
// find no setting of the store, and no open transaction.
func TestSettingsOfOurStatementsEndWithThem(t *testing.T) {
	t.Parallel()
	store := openStore(t, migrated.Copy(t)+"&pool_max_conns=1")
	client := sluice.NewClient(store, sluice.ClientOptions{})
	untouched := func(after string, db interface {
		QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	},
	) {
		t.Helper()
		var touched int
		const settings = "select count(*) from pg_settings where name like 'enable\\_%' and setting = 'off' and boot_val = 'on'"
		if err := db.QueryRow(t.Context(), settings).Scan(&touched); err != nil || touched > 0 {
			t.Errorf("after %s %d settings of the planner are off (%v)", after, touched, err)
		}
	}
	if _, err := store.Depth(t.Context(), "q", sluice.DepthLimit); err != nil {
		t.Fatal(err)
	}
	untouched("a statement", store.Pool())
	if _, err := tenancy.AddTier(t.Context(), store, "gold", sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	untouched("a transaction", store.Pool())
	err := pgx.BeginFunc(t.Context(), store.Pool(), func(tx pgx.Tx) error {
		_, err := client.Within(store.InTx(tx)).Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte(`{}`)})
		untouched("an enqueue in the caller's transaction", tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, store, "alter table sluice.orphan_run rename to gone")
	if _, err := store.Depth(t.Context(), "q", sluice.DepthLimit); err == nil {
		t.Fatal("a statement on a table that is gone succeeded")
	}
	untouched("a statement that failed", store.Pool()) // the store has returned its only connection
}

// TestKeptPlansOutliveChangesOfTables changes a table between two runs of a statement with a kept plan.
func TestKeptPlansOutliveChangesOfTables(t *testing.T) {
	t.Parallel()
	store := openStore(t, migrated.Copy(t)+"&pool_max_conns=1")
	for range 2 {
		enqueueOf(t, store, 1, sluice.EnqueueOptions{}, "a", "b")
		if n := len(claimed(t, store, 10)); n != 2 {
			t.Errorf("claimed jobs of %d tenants, want 2", n)
		}
		run(t, store, "alter table sluice.live add column if not exists extra integer")
		run(t, store, "drop index if exists sluice.live_tenant_queue_due")
	}
}
