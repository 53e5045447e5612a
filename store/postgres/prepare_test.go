package postgres_test

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/postgres"
)

const preparedInserts = "select count(*) from pg_prepared_statements where statement like '%insert into sluice.job %' and statement not like '%pg_prepared_statements%'"

// openAs opens a store with one connection.
func openAs(t *testing.T, dsn string) *postgres.Store {
	t.Helper()
	store, err := postgres.Open(t.Context(), dsn+"&pool_max_conns=1", postgres.Options{CallTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// enqueues enqueues jobs one by one.
func enqueues(t *testing.T, to sluice.Enqueuer, jobs int) {
	t.Helper()
	for range jobs {
		if _, err := to.Enqueue(t.Context(), []sluice.Insert{plain()}); err != nil {
			t.Fatal(err)
		}
	}
}

// preparedOn counts the prepared inserts of a session.
func preparedOn(t *testing.T, row interface{ Scan(...any) error }) int {
	t.Helper()
	var n int
	if err := row.Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestInsertsInATransactionArePreparedWhereItsOwnStatementsAre(t *testing.T) {
	t.Parallel()
	url := migrated.Copy(t)
	store := openAs(t, url)
	for mode, want := range map[string]int{"": 1, "&default_query_exec_mode=cache_describe": 0, "&default_query_exec_mode=simple_protocol": 0} {
		config, err := pgxpool.ParseConfig(url + mode)
		if err != nil {
			t.Fatal(err)
		}
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			enqueues(t, store.InTx(tx), 2)
			if got := preparedOn(t, tx.QueryRow(t.Context(), preparedInserts, pgx.QueryExecModeSimpleProtocol)); got != want {
				t.Errorf("pgx.Tx, with %q: %d inserts are prepared, want %d", mode, got, want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		db := stdlib.OpenDB(*config.ConnConfig)
		t.Cleanup(func() { _ = db.Close() })
		tx, err := db.BeginTx(t.Context(), &sql.TxOptions{})
		if err != nil {
			t.Fatal(err)
		}
		enqueues(t, store.InSQLTx(tx), 2)
		if got := preparedOn(t, tx.QueryRowContext(t.Context(), preparedInserts, pgx.QueryExecModeSimpleProtocol)); got != want {
			t.Errorf("*sql.Tx, with %q: %d inserts are prepared, want %d", mode, got, want)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPreparedInsertsAreMadeAnewNowAndThen(t *testing.T) {
	t.Parallel()
	url := migrated.Copy(t)
	store := openAs(t, url)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	made := func() (at time.Time) {
		t.Helper()
		if err := pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
			enqueues(t, store.InTx(tx), 1)
			return tx.QueryRow(t.Context(), strings.Replace(preparedInserts, "count(*)", "prepare_time", 1)).Scan(&at)
		}); err != nil {
			t.Fatal(err)
		}
		return at
	}
	first := made()
	if again := made(); !again.Equal(first) {
		t.Error("the statement was prepared again, want the prepared one")
	}
	postgres.AgePlans(conn, time.Hour)
	if again := made(); again.Equal(first) {
		t.Error("the plan of an hour ago is used")
	}
}

func TestManyCallersEnqueueThroughAPoolerInTransactionMode(t *testing.T) {
	t.Parallel()
	server := migrated.Copy(t)
	_, at := pgtest.NewPooler(t, server, pgtest.PoolerOptions{Size: 3})
	store, err := postgres.Open(t.Context(), at+"&pool_max_conns=8", postgres.Options{CallTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	client := sluice.NewClient(store, sluice.ClientOptions{})
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			for n := range 20 {
				job := sluice.NewJob{Queue: "q", Payload: []byte(`{}`)}
				to, end := client, func(context.Context) error { return nil }
				if n%4 == 0 {
					tx, err := store.Pool().Begin(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					to, end = client.Within(store.InTx(tx)), tx.Commit
				}
				if _, err := to.Enqueue(t.Context(), job); err != nil {
					t.Error(err)
				}
				if err := end(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
	if depth, err := client.Depth(t.Context(), "q"); err != nil || depth.Ready != 16*20 {
		t.Errorf("%d jobs are stored, want %d: %v", depth.Ready, 16*20, err)
	}
}

func TestOthersAreNotToldTwiceOfAQueueBeforeTheyHeedIt(t *testing.T) {
	t.Parallel()
	store := openStore(t, migrated.Copy(t))
	if got := store.DueSignals([]string{"a", "b", "c"}, []string{"b"}); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("others are told of %v, want a and c", got)
	}
}
