package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/postgres"
)

// TestPlansOfFunctionsHoldWhenTheStoreFills makes a session plan its statements while the store is nearly empty. Then
// the store fills, the statistics stay old, and the test counts what the plans read.
func TestPlansOfFunctionsHoldWhenTheStoreFills(t *testing.T) {
	t.Parallel()
	settings := map[string]func(*sluice.Settings){
		"plain": func(*sluice.Settings) {},
		"limited": func(s *sluice.Settings) {
			s.Rate, s.Concurrency = sluice.Rate{Jobs: 1_000_000, Per: time.Minute}, 1_000
		},
		"fair": func(s *sluice.Settings) { s.Fair = true },
		"full": func(s *sluice.Settings) { s.MaxWaiting, s.TenantMaxWaiting = 20_000, 1_000 },
	}
	for queue, set := range settings {
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			url := migrated.Copy(t)
			store := openStore(t, url)
			client := sluice.NewClient(store, sluice.ClientOptions{})
			of := sluice.DefaultSettings()
			set(&of)
			if _, err := client.EnsureQueue(t.Context(), queue, of, sluice.Act{By: "test"}); err != nil {
				t.Fatal(err)
			}
			conn, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close(context.Background()) })
			useFunctions(t, conn, queue)
			for _, table := range []string{"live", "job", "done"} {
				run(t, store, "alter table sluice."+table+" set (autovacuum_enabled = off)")
			}
			run(t, store, "vacuum analyze")
			useFunctions(t, conn, queue)
			fill(t, store, queue)
			tx, err := conn.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			most := int64(10_000)
			if queue == "full" { // a count of the 20,000 jobs is good for 0.4 s
				begun := time.Now()
				refused(t, tx, queue, 50)
				most = 22_000 * (2 + int64(time.Since(begun)/(400*time.Millisecond)))
			} else {
				useFunctions(t, conn, queue)
			}
			const text = `select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint from pg_stat_xact_user_tables
				where schemaname = 'sluice' and relname in ('job', 'live', 'done', 'line', 'attempt', 'job_after')`
			var rows int64
			if err := errors.Join(conn.QueryRow(t.Context(), text).Scan(&rows), tx.Rollback(t.Context())); err != nil {
				t.Fatal(err)
			}
			if rows < 20 || rows > most {
				t.Errorf("to enqueue, claim and settle 20 jobs, or to refuse 50, read %d rows", rows)
			}
		})
	}
}

// useFunctions enqueues, claims, completes and fails some jobs.
func useFunctions(t *testing.T, conn *pgx.Conn, queue string) {
	t.Helper()
	for _, text := range []string{
		"select sluice.enqueue(queue => $1, payload => '1', tenant => 't' || n, key => gen_random_uuid()::text) from generate_series(1, 10) as n",
		"select sluice.enqueue_many(json_agg(json_build_object('queue', $1::text, 'payload', 1, 'tenant', 't' || n))) from generate_series(1, 10) as n",
		"select sluice.complete_many(array_agg(id), array_agg(token)) from sluice.claim(array[$1], 'h:1:x', batch => 10)",
		"select sluice.renew_many(array_agg(id), array_agg(token)) from sluice.claim(array[$1], 'h:1:x', batch => 5)",
		"select sluice.fail(id, token, 'broken') from sluice.claim(array[$1], 'h:1:x', batch => 5)",
		"select sluice.wait(array[$1])",
	} {
		if _, err := conn.Exec(t.Context(), text, queue); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

// refused makes calls that a full queue refuses. Their tenant has the hash of the queue.
func refused(t *testing.T, tx pgx.Tx, queue string, calls int) {
	t.Helper()
	const find = `select 't' || n from generate_series(1, 10000) as n, lateral (select floor(extract(epoch from clock_timestamp()) * 100)::bigint >> 17 as span) s
		where hashtextextended($1::text || ' t' || n, span) & 15 = hashtextextended($1::text || ' ', span) & 15 limit 1`
	var tenant string
	if err := tx.QueryRow(t.Context(), find, queue).Scan(&tenant); err != nil {
		t.Fatal(err)
	}
	for range calls {
		err := pgx.BeginFunc(t.Context(), tx, func(again pgx.Tx) error {
			_, err := again.Exec(t.Context(), "select sluice.enqueue(queue => $1, payload => '1', tenant => $2)", queue, tenant)
			return err
		})
		if !isCode(err, "SL010") {
			t.Fatalf("the answer is %v, want SL010", err)
		}
	}
}

// fill stores 20,000 jobs that wait, and 20,000 that have ended.
func fill(t *testing.T, store *postgres.Store, queue string) {
	t.Helper()
	run(t, store, fmt.Sprintf(`with stored as (
			insert into sluice.job (id, queue, tenant, priority, payload)
			select gen_random_uuid(), '%s', 'm' || n %% 1000, 5, '1' from generate_series(1, 40000) as n
			returning *
		), numbered as (select s.*, row_number() over () as n from stored s), ended as (
			insert into sluice.done (id, generation, queue, tenant, outcome, attempts, releases, recoveries, due_at, claimed_at, finished_at)
			select id, 1, queue, tenant, 'completed', 0, 0, 0, created_at, created_at, created_at from numbered where n %% 2 = 0
		)
		insert into sluice.live (id, queue, tenant, priority, due_at)
		select id, queue, tenant, priority, now() - interval '1 hour' from numbered where n %% 2 = 1`, queue))
}
