package postgres_test

import (
	"encoding/json"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/postgres"
)

// TestAnOldTransactionMakesNoLookAtBatchesDear adds up changes while an old transaction stays open. The server cannot
// remove the rows of added changes meanwhile. The test counts the pages that later calls read.
func TestAnOldTransactionMakesNoLookAtBatchesDear(t *testing.T) {
	t.Parallel()
	w := newBatchWorld(t)
	b := w.open(w.store)
	old := w.begin(pgx.TxOptions{})
	w.ok(w.add(w.store.InTx(old), b.ID))
	const rounds, rows = 20, 2000
	for range rounds {
		_, err := w.store.Pool().Exec(t.Context(), "insert into sluice.batch_change (batch, kind, jobs) select $1, 'total', 1 from generate_series(1, $2::integer)", [16]byte(b.ID), rows)
		w.ok(err)
		w.advanced(b.ID)
	}
	for _, name := range []string{"batch_due.sql", "batch_take.sql", "batch.sql", "batch_look.sql"} {
		arguments := map[string][]any{"batch_due.sql": nil, "batch_take.sql": {1000}, "batch.sql": {[16]byte(b.ID)}, "batch_look.sql": {[][16]byte{[16]byte(b.ID)}}}[name]
		if pages := pagesOf(t, w.store, name, arguments...); pages > 60 {
			t.Errorf("%s reads %d pages after %d changes that are added up", name, pages, rounds*rows)
		}
	}
	w.ok(old.Commit(t.Context()))
	if got := w.advanced(b.ID); got.Total != rounds*rows+1 {
		t.Errorf("the batch has %d jobs, want %d", got.Total, rounds*rows+1)
	}
}

// pagesOf runs a statement in a transaction that is rolled back, and counts the pages that the statement reads.
func pagesOf(t *testing.T, store *postgres.Store, name string, arguments ...any) int {
	t.Helper()
	text, err := postgres.StatementOf(name)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := store.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), postgres.WalkInOrder); err != nil {
		t.Fatal(err)
	}
	var plans []byte
	if err := tx.QueryRow(t.Context(), "explain (analyze, buffers, format json) "+text, arguments...).Scan(&plans); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var read []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal(plans, &read); err != nil {
		t.Fatal(err)
	}
	return read[0].Plan.Hit + read[0].Plan.Read
}

// TestChangesAreAddedUpOnceWhateverIsOpen adds jobs in transactions that overlap, end in any order and are sometimes
// rolled back. Meanwhile upkeep adds up a few changes at a time.
func TestChangesAreAddedUpOnceWhateverIsOpen(t *testing.T) {
	t.Parallel()
	w := newBatchWorld(t)
	b := w.open(w.store)
	client := sluice.NewClient(w.store, sluice.ClientOptions{})
	var mu sync.Mutex
	stored := 0
	var all sync.WaitGroup
	for n := range uint64(4) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(n, 3))
			for range 40 {
				tx, err := w.store.Pool().Begin(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				jobs := 1 + random.IntN(3)
				for range jobs {
					if _, err := client.Within(w.store.InTx(tx)).Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: json.RawMessage(`1`), EnqueueOptions: sluice.EnqueueOptions{Batch: b.ID}}); err != nil {
						t.Error(err)
					}
					if _, err := w.store.AdvanceBatches(t.Context(), 1+random.IntN(4)); err != nil {
						t.Error(err)
					}
				}
				if random.IntN(4) == 0 {
					err, jobs = tx.Rollback(t.Context()), 0
				} else {
					err = tx.Commit(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				stored += jobs
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if got := w.advanced(b.ID); got.Total != stored {
		t.Errorf("the batch has %d jobs, want %d", got.Total, stored)
	}
	var left int
	w.ok(w.store.Pool().QueryRow(t.Context(), "select count(*) from sluice.batch_change").Scan(&left))
	if left != 0 {
		t.Errorf("%d changes are left", left)
	}
}

// TestAnOldTransactionMakesNoLookForResultsDear removes results while an old snapshot stays open, and counts the pages
// that the next pass reads.
func TestAnOldTransactionMakesNoLookForResultsDear(t *testing.T) {
	t.Parallel()
	w := newBatchWorld(t)
	run(t, w.store, `insert into sluice.queue (name, keep_results_ms) values ('q', 60000)`)
	run(t, w.store, `insert into sluice.done (id, generation, queue, outcome, due_at, finished_at, attempts, releases, recoveries, result)
		select md5(n::text)::uuid, 1, 'q', 'completed', now(), now() - interval '1 hour' + n * interval '1 millisecond', 0, 0, 0, '1' from generate_series(1, 20000) n`)
	old := w.begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if _, err := old.Exec(t.Context(), "select count(*) from sluice.done"); err != nil {
		t.Fatal(err)
	}
	for after := ""; ; {
		out, err := w.store.Prune(t.Context(), after, 1000)
		w.ok(err)
		if after = out.Next; after == "" {
			break
		}
	}
	var left int
	w.ok(w.store.Pool().QueryRow(t.Context(), "select count(*) from sluice.done where octet_length(result) > 0").Scan(&left))
	if left != 0 {
		t.Errorf("%d results are left", left)
	}
	if pages := pagesOf(t, w.store, "results_forget.sql", 1000); pages > 60 {
		t.Errorf("a pass without work reads %d pages", pages)
	}
}
