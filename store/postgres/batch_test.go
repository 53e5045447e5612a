package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluice-queue/sluice"
	group "github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/store/postgres"
)

var importer = sluice.Act{By: "importer"}

// batchWorld is a store with helpers for tests of batches.
type batchWorld struct {
	*testing.T
	store *postgres.Store
}

func newBatchWorld(t *testing.T) batchWorld { return batchWorld{t, openStore(t, migrated.Copy(t))} }

func (w batchWorld) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w batchWorld) begin(options pgx.TxOptions) pgx.Tx {
	w.Helper()
	tx, err := w.store.Pool().BeginTx(w.Context(), options)
	w.ok(err)
	w.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

func (w batchWorld) open(to sluice.Enqueuer) group.Batch {
	w.Helper()
	b, err := group.Open(w.Context(), to, group.Batch{Callbacks: group.Callbacks{OnComplete: &group.Callback{Queue: "calls"}}}, importer)
	w.ok(err)
	return b
}

func (w batchWorld) close(to sluice.Enqueuer, id sluice.ID) {
	w.Helper()
	w.ok(group.Close(w.Context(), to, id, importer))
}

func (w batchWorld) add(to sluice.Enqueuer, id sluice.ID) error {
	_, err := sluice.NewClient(w.store, sluice.ClientOptions{}).Within(to).Enqueue(w.Context(), sluice.NewJob{
		Queue: "q", Payload: json.RawMessage(`{}`), EnqueueOptions: sluice.EnqueueOptions{Batch: id},
	})
	return err
}

// advanced advances batches twice, as upkeep does, and then reads the batch.
func (w batchWorld) advanced(id sluice.ID) group.Batch {
	w.Helper()
	for range 2 {
		_, err := w.store.AdvanceBatches(w.Context(), 1000)
		w.ok(err)
	}
	b, err := group.Read(w.Context(), w.store, id)
	w.ok(err)
	return b
}

func TestABatchItsJobsAndItsEndCommitTogether(t *testing.T) {
	t.Parallel()
	w := newBatchWorld(t)
	for _, commit := range []bool{false, true} {
		tx := w.begin(pgx.TxOptions{})
		b := w.open(w.store.InTx(tx))
		w.ok(w.add(w.store.InTx(tx), b.ID))
		w.close(w.store.InTx(tx), b.ID)
		if err := w.add(w.store.InTx(tx), b.ID); !errors.Is(err, sluice.ErrNotAllowed) {
			t.Errorf("an enqueue after the end: %v, want ErrNotAllowed", err)
		}
		if !commit {
			w.ok(tx.Rollback(t.Context()))
			if _, err := group.Read(t.Context(), w.store, b.ID); !errors.Is(err, sluice.ErrNotFound) {
				t.Errorf("after the rollback: %v, want ErrNotFound", err)
			}
			continue
		}
		w.ok(tx.Commit(t.Context()))
		if got := w.advanced(b.ID); got.Total != 1 || got.State() != group.StateClosed {
			t.Errorf("after the commit: %+v, want 1 job in a closed batch", got)
		}
	}
}

func TestABatchWaitsForTransactionsThatHaveAddedJobs(t *testing.T) {
	t.Parallel()
	w := newBatchWorld(t)
	b := w.open(w.store)
	tx := w.begin(pgx.TxOptions{})
	w.ok(w.add(w.store.InTx(tx), b.ID))
	w.close(w.store, b.ID) // the second transaction does not wait for the first
	if got := w.advanced(b.ID); got.State() != group.StateClosed || got.Total != 0 {
		t.Errorf("before the commit: %+v, want a closed batch", got)
	}
	other := w.open(w.store)
	w.close(w.store, other.ID)
	if got := w.advanced(other.ID); got.State() != group.StateSucceeded {
		t.Errorf("another batch: %+v, want it to be complete", got)
	}
	w.ok(tx.Commit(t.Context()))
	if got := w.advanced(b.ID); got.State() != group.StateClosed || got.Total != 1 {
		t.Errorf("after the commit: %+v, want a closed batch with 1 job", got)
	}
	tx = w.begin(pgx.TxOptions{})
	if err := w.add(w.store.InTx(tx), b.ID); !errors.Is(err, sluice.ErrNotAllowed) {
		t.Errorf("an enqueue after the end: %v, want ErrNotAllowed", err)
	}
}

func TestATransactionWithAnOldSnapshotAddsNothingToAClosedBatch(t *testing.T) {
	t.Parallel()
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		w := newBatchWorld(t)
		b := w.open(w.store)
		tx := w.begin(pgx.TxOptions{IsoLevel: level})
		if _, err := tx.Exec(t.Context(), "select 1 from sluice.queue"); err != nil {
			t.Fatal(err)
		}
		w.close(w.store, b.ID)
		if got := w.advanced(b.ID); got.State() != group.StateSucceeded {
			t.Fatalf("the batch is %+v, want it to be complete", got)
		}
		var server *pgconn.PgError
		if err := w.add(w.store.InTx(tx), b.ID); !errors.As(err, &server) || server.Code != "40001" {
			t.Errorf("%s: %v, want a serialization failure", level, err)
		}
	}
}

func TestUpkeepDoesNotWaitForATransactionThatClosesABatch(t *testing.T) {
	t.Parallel()
	w := newBatchWorld(t)
	b, other := w.open(w.store), w.open(w.store)
	tx := w.begin(pgx.TxOptions{})
	w.close(w.store.InTx(tx), b.ID)
	w.close(w.store, other.ID)
	if got := w.advanced(other.ID); got.State() != group.StateSucceeded {
		t.Errorf("another batch: %+v, want it to be complete", got)
	}
	w.ok(w.add(w.store, b.ID))
	w.ok(tx.Commit(t.Context()))
	if got := w.advanced(b.ID); got.State() != group.StateClosed || got.Total != 1 {
		t.Errorf("after the commit: %+v, want a closed batch with 1 job", got)
	}
}

// TestFirstUpkeepsAddUpOneAtATime runs the first two upkeeps of a database side by side. The second must wait for the
// row that the first has made, and then lock it.
func TestFirstUpkeepsAddUpOneAtATime(t *testing.T) {
	t.Parallel()
	w := newBatchWorld(t)
	lock, err := postgres.StatementOf("batch_lock.sql")
	w.ok(err)
	first, second := w.begin(pgx.TxOptions{}), w.begin(pgx.TxOptions{})
	if _, err := first.Exec(t.Context(), lock); err != nil {
		t.Fatal(err)
	}
	locked := make(chan error, 1)
	go func() {
		_, err := second.Exec(t.Context(), lock)
		locked <- err
	}()
	waiting := "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
	for n := 0; n == 0; {
		w.ok(w.store.Pool().QueryRow(t.Context(), waiting).Scan(&n))
	}
	w.ok(first.Commit(t.Context()))
	w.ok(<-locked)
	third := w.begin(pgx.TxOptions{})
	var free int
	w.ok(third.QueryRow(t.Context(), "select count(*) from (select from sluice.batch_counted for update skip locked) l").Scan(&free))
	if free != 0 {
		t.Error("a third upkeep may add up beside the second")
	}
}

// TestChangesOfARestoredDatabaseAreCounted restores a database into a cluster whose transaction numbers are lower.
func TestChangesOfARestoredDatabaseAreCounted(t *testing.T) {
	t.Parallel()
	w := newBatchWorld(t)
	b := w.open(w.store)
	w.ok(w.add(w.store, b.ID))
	w.advanced(b.ID)
	if _, err := w.store.Pool().Exec(t.Context(), "update sluice.batch_counted set xid = 99999999999"); err != nil {
		t.Fatal(err)
	}
	w.ok(w.add(w.store, b.ID))
	if got, err := group.Read(t.Context(), w.store, b.ID); err != nil || got.Total != 2 {
		t.Errorf("before upkeep: %d jobs, %v, want 2", got.Total, err)
	}
	if got := w.advanced(b.ID); got.Total != 2 {
		t.Errorf("after upkeep: %d jobs, want 2", got.Total)
	}
	var left int
	w.ok(w.store.Pool().QueryRow(t.Context(), "select count(*) from sluice.batch_change").Scan(&left))
	if left != 0 {
		t.Errorf("%d changes are left, want 0", left)
	}
}

func TestFunctionsOpenFillReadAndCloseABatch(t *testing.T) {
	t.Parallel()
	w := newBatchWorld(t)
	var text string
	w.ok(w.store.Pool().QueryRow(t.Context(), `select sluice.enqueue(queue => 'calls', payload => '1', new_queue => true)::text`).Scan(&text))
	w.ok(w.store.Pool().QueryRow(t.Context(), `select sluice.open_batch(name => 'import', on_complete => '{"queue":"calls","payload":{"of":"{{batch}}"},"priority":2}')::text`).Scan(&text))
	id, err := sluice.ParseID(text)
	w.ok(err)
	b, err := group.Read(t.Context(), w.store, id)
	w.ok(err)
	if b.Name != "import" || b.OnComplete == nil || b.OnComplete.Queue != "calls" || b.OnComplete.Priority != 2 || string(b.OnComplete.Payload) != `{"of":"{{batch}}"}` || b.OnDeath != nil {
		t.Errorf("the batch is %+v", b)
	}
	for _, statement := range []string{
		`select sluice.enqueue(queue => 'q', payload => '{}', batch_id => $1::text::uuid, new_queue => true)`,
		`select sluice.enqueue_many(jobs => json_build_array(json_build_object('queue', 'q', 'payload', 1, 'batch_id', $1::text), json_build_object('queue', 'q', 'payload', 2, 'key', 'k', 'batch_id', $1::text)))`,
		`select sluice.close_batch($1::text::uuid)`,
	} {
		if _, err := w.store.Pool().Exec(t.Context(), statement, text); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	var total, completed int
	var closed bool
	w.ok(w.store.Pool().QueryRow(t.Context(), `select total, completed, closed_at is not null from sluice.read_batch($1::text::uuid)`, text).Scan(&total, &completed, &closed))
	if total != 3 || completed != 0 || !closed {
		t.Errorf("%d jobs, %d completed, closed: %t; want 3, 0, true", total, completed, closed)
	}
	_, err = w.store.Pool().Exec(t.Context(), `select sluice.enqueue(queue => 'q', payload => '{}', batch_id => $1::text::uuid)`, text)
	if !isCode(err, "SL003") {
		t.Errorf("an enqueue after the end: %v, want SL003", err)
	}
	_, err = w.store.Pool().Exec(t.Context(), `select sluice.open_batch(on_death => '{"queue":"calls","queues":1}')`)
	if !isCode(err, "SL004") {
		t.Errorf("a callback with another name: %v, want SL004", err)
	}
}

func TestFunctionRefusesToOpenAnotherBatchWithTheSameID(t *testing.T) {
	t.Parallel()
	w := newBatchWorld(t)
	pool := w.store.Pool()
	for _, queue := range []string{"calls", "other"} {
		_, err := pool.Exec(t.Context(), `insert into sluice.queue (name) values ($1)`, queue)
		w.ok(err)
	}
	call := &group.Callback{Queue: "calls", Payload: json.RawMessage(`{"a":1,"b":[2.0]}`)}
	stored, err := group.Open(t.Context(), w.store, group.Batch{Name: "import", Callbacks: group.Callbacks{OnComplete: call}}, sluice.Act{By: "test"})
	w.ok(err)
	for arguments, differs := range map[string]string{
		`name => 'import', on_complete => '{"queue":"calls","payload":{"a":1,"b":[2.0]}}'`:                                  "",
		`name => 'import', on_complete => '{"payload":{"a":1,"b":[2.0]},"queue":"calls","priority":5}', on_death => 'null'`: "",
		`on_complete => '{"queue":"calls","payload":{"a":1,"b":[2.0]}}'`:                                                    "name",
		`name => 'import', on_complete => '{"queue":"other","payload":{"a":1,"b":[2.0]}}'`:                                  "on_complete",
		`name => 'import', on_complete => '{"queue":"calls","payload":{"a":2}}'`:                                            "on_complete",
		`name => 'import', on_complete => '{"queue":"calls"}'`:                                                              "on_complete",
		`name => 'import', parent => sluice._new_id(), on_death => '{"queue":"calls"}'`:                                     "parent, on_complete, on_death",
	} {
		_, err := pool.Exec(t.Context(), `select sluice.open_batch(batch_id => $1, `+arguments+`)`, [16]byte(stored.ID))
		if differs == "" {
			w.ok(err)
		} else if !isCode(err, "SL004") || !strings.Contains(err.Error(), "is stored with another "+differs+";") {
			t.Errorf("%s: %v", arguments, err)
		}
	}
}
