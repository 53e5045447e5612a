package postgres_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/store/postgres"
)

// maintain does a task, for ann.
func maintain(ctx context.Context, t *testing.T, store *postgres.Store, task health.Task, dryRun bool) health.Maintained {
	t.Helper()
	out, err := health.Maintain(ctx, store, task, dryRun, sluice.Act{By: "ann", Reason: "many jobs were cancelled"})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// deadRows kills 1,000 rows of the table live, and waits until the server has counted them.
func deadRows(t *testing.T, store *postgres.Store) {
	t.Helper()
	if _, err := store.Pool().Exec(t.Context(), "alter table sluice.live set (autovacuum_enabled = off)"); err != nil {
		t.Fatal(err)
	}
	jobs := make([]sluice.NewJob, 1000)
	for i := range jobs {
		jobs[i] = sluice.NewJob{Queue: "mail", Payload: []byte("{}")}
	}
	receipts, err := sluice.NewClient(store, sluice.ClientOptions{}).EnqueueMany(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	var ids []sluice.ID
	for _, r := range receipts {
		ids = append(ids, r.ID)
	}
	if _, err := store.Cancel(t.Context(), ids, sluice.Act{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	for {
		var dead int
		if err := store.Pool().QueryRow(t.Context(), "select n_dead_tup from pg_stat_all_tables where relid = 'sluice.live'::regclass").Scan(&dead); err != nil {
			t.Fatal(err)
		}
		if dead >= 1000 {
			return
		}
		time.Sleep(50 * time.Millisecond) // a server tells of its counts each second
	}
}

func rowsIn(m health.Maintained, table string) int64 {
	i := slices.IndexFunc(m.Parts, func(p health.MaintainedPart) bool { return p.Name == table })
	if i < 0 {
		return -1
	}
	return m.Parts[i].Rows
}

func TestVacuumRemovesDeadRows(t *testing.T) {
	t.Parallel()
	store := openStore(t, migrated.Copy(t))
	deadRows(t, store)
	if would := maintain(t.Context(), t, store, health.TaskVacuum, true); rowsIn(would, "live") < 1000 || would.Parts[0].Name != "live" {
		t.Errorf("a dry run says %+v, want 1,000 rows of live first", would)
	}
	out := maintain(t.Context(), t, store, health.TaskVacuum, false)
	if rowsIn(out, "live") < 1000 || out.Rows < 1000 || out.Bytes <= 0 || len(out.Left) > 0 {
		t.Errorf("the vacuum says %+v, want 1,000 rows of live, and their bytes", out)
	}
	var vacuumed, analyzed int
	const unclean = "select count(*) filter (where last_vacuum is null), count(*) filter (where last_analyze is null) from pg_stat_all_tables where schemaname = 'sluice'"
	if err := store.Pool().QueryRow(t.Context(), unclean).Scan(&vacuumed, &analyzed); err != nil || vacuumed+analyzed > 0 {
		t.Errorf("%d tables are not vacuumed and %d not analyzed: %v", vacuumed, analyzed, err)
	}
	for _, conn := range store.Pool().AcquireAllIdle(t.Context()) {
		var statement, lock string
		if err := conn.QueryRow(t.Context(), "select current_setting('statement_timeout'), current_setting('lock_timeout')").Scan(&statement, &lock); err != nil || statement != "5min" || lock != "5min" {
			t.Errorf("after the vacuum, a connection has the timeouts %s and %s, %v, want those of the store", statement, lock, err)
		}
		conn.Release()
	}
	entries, err := store.Audit(t.Context(), sluice.AuditFilter{Object: audit.ObjectStore, Limit: 10})
	if err != nil || len(entries) != 1 || entries[0].Name != "vacuum" || entries[0].Actor != "ann" || entries[0].Reason != "many jobs were cancelled" {
		t.Errorf("the audit has %+v, %v, want the vacuum by ann", entries, err)
	}
	_, err = health.Maintain(t.Context(), store, health.TaskCheckpoint, false, sluice.Act{By: "ann"})
	if !errors.Is(err, sluice.ErrInvalid) || !strings.Contains(err.Error(), "by itself") {
		t.Errorf("a checkpoint: %v, want why there is none", err)
	}
}

// TestVacuumSaysWhichTablesAreLeft vacuums while somebody holds the lock that a vacuum takes.
func TestVacuumSaysWhichTablesAreLeft(t *testing.T) {
	t.Parallel()
	store := openStore(t, migrated.Copy(t))
	deadRows(t, store)
	tx, err := store.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "lock table sluice.queue in share update exclusive mode"); err != nil {
		t.Fatal(err)
	}
	out, err := store.Maintain(t.Context(), health.TaskVacuum, false)
	if err != nil || rowsIn(out, "live") < 1000 || len(out.Parts) < 20 || len(out.Left) != 1 || !strings.Contains(out.Left[0], "queue: ") || !strings.Contains(out.Left[0], "lock timeout") {
		t.Errorf("beside a lock it says %+v, %v, want queue alone left", out, err)
	}
	for wait := 700 * time.Millisecond; ; wait *= 2 { // a slow machine may need that only to look at the tables
		ctx, stop := context.WithTimeout(t.Context(), wait)
		out, err = store.Maintain(ctx, health.TaskVacuum, false)
		stop()
		if !errors.Is(err, context.DeadlineExceeded) {
			break
		}
	}
	if err != nil || len(out.Left) != 1 || !strings.Contains(out.Left[0], "the time was over before these were vacuumed: ") || !strings.Contains(out.Left[0], "queue") {
		t.Errorf("with little time it says %+v, %v, want queue among those left", out, err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestVacuumNeedsTheOwnerOrAGrant(t *testing.T) {
	t.Parallel()
	r := &roles{T: t, url: migrated.Copy(t)}
	r.owner = openStore(t, r.url)
	app := r.role("app")
	r.exec("grant usage on schema sluice to " + app)
	r.exec("grant select on all tables in schema sluice to " + app)
	store := openStore(t, asRole(r.url, app))
	var version int
	if err := r.owner.Pool().QueryRow(t.Context(), "select current_setting('server_version_num')::integer").Scan(&version); err != nil {
		t.Fatal(err)
	}
	out, err := store.Maintain(t.Context(), health.TaskVacuum, false)
	if err != nil || len(out.Parts) != 0 || len(out.Left) < 20 || !strings.Contains(strings.Join(out.Left, "\n"), "live belongs to another role") {
		t.Errorf("got %+v, %v, want that all tables are left", out, err)
	}
	if version >= 170000 {
		r.exec("grant maintain on sluice.live to " + app)
		if out, err := store.Maintain(t.Context(), health.TaskVacuum, false); err != nil || rowsIn(out, "live") < 0 {
			t.Errorf("with the grant: %+v, %v, want live vacuumed", out, err)
		}
	}
}
