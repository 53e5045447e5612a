package postgres_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// A producer must not make another queue shed jobs, and must learn nothing about that queue. When its own queue is
// full, the producer gets an error code, and numbers for programs.
func TestFullQueuesRefuseCallsOfFunctions(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	r.exec("update sluice.queue set max_waiting = 1, shed = true")
	r.exec("select sluice.enqueue(queue => q, payload => '1', priority => 9) from unnest('{scraper,payments}'::text[]) q")
	producer := r.as(r.producer)
	var code string
	err := producer.QueryRow(t.Context(), `select code from sluice.enqueue_many(jobs => '[{"queue": "payments", "payload": 1, "priority": 1}]')`).Scan(&code)
	if err != nil || code != "42501" {
		t.Errorf("a job for another queue: %v, %s", err, code)
	}
	refused := func(sql, want string) (full *pgconn.PgError) {
		t.Helper()
		_, err := producer.Exec(t.Context(), sql)
		if !errors.As(err, &full) || full.Code != "SL010" || !strings.Contains(full.Message, want) {
			t.Fatalf("%s: %v, want SL010 with %q", sql, err, want)
		}
		return full
	}
	_ = refused(`select sluice.enqueue(queue => 'scraper', payload => '1', priority => 9)`, "1 jobs wait, and its max_waiting is 1; try again after 0.25 s")
	_ = refused(`select sluice.start_flow('{"name": "f", "nodes": [{"name": "a", "queue": "scraper"}, {"name": "b", "queue": "scraper"}]}')`, "2 jobs of one call are more")
	full := refused(`select sluice.start_flow('{"name": "f", "nodes": [{"name": "a", "queue": "scraper", "priority": 10}]}')`, "try again")
	var said struct {
		Queue, Tenant        string
		Waiting, Limit, Jobs int
		RetrySeconds         float64 `json:"retry_seconds"`
	}
	if err := json.Unmarshal([]byte(full.Detail), &said); err != nil || said.Queue != "scraper" || said.Waiting != 1 || said.Limit != 1 || said.Jobs != 1 || said.RetrySeconds != 0.25 {
		t.Errorf("the detail is %s, %v", full.Detail, err)
	}
	if _, err := producer.Exec(t.Context(), `select sluice.start_flow('{"name": "f", "nodes": [{"name": "a", "queue": "scraper", "priority": 1}]}')`); err != nil {
		t.Errorf("an urgent flow: %v", err)
	}
	for queue, want := range map[string]string{"payments": "9", "scraper": "1"} {
		var priorities string
		err := r.owner.Pool().QueryRow(t.Context(), "select string_agg(priority::text, ' ') from sluice.live where queue = $1", queue).Scan(&priorities)
		if err != nil || priorities != want {
			t.Errorf("in %s wait jobs of priorities %q, %v; want %q", queue, priorities, err, want)
		}
	}
}

// TestQueuesRememberTheirCountsBesideEachOther enqueues in queues whose counts begin at one sequence. Each must keep its own
// count for a moment: a queue that counts at each call makes each enqueue as slow as its waiting jobs are many.
func TestQueuesRememberTheirCountsBesideEachOther(t *testing.T) {
	t.Parallel()
	store := openStore(t, migrated.Copy(t))
	run(t, store, `create table queues as
		select name from (select 'q' || n as name from generate_series(1, 200) n) q
		where hashtextextended(name || ' ', floor(extract(epoch from clock_timestamp()) * 100)::bigint >> 17) & 15 = 3 limit 4`)
	run(t, store, "insert into sluice.queue (name, max_waiting) select name, 10 from queues union all select 'spare', 0")
	run(t, store, "select sluice.enqueue(queue => 'spare', payload => '1') from generate_series(1, 80)")
	_, err := store.Pool().Exec(t.Context(), `do $do$ begin
		perform sluice.enqueue(queue => name, payload => '1') from queues;
		update sluice.live l set queue = q.name
		from (select name, row_number() over () as n from queues) q, (select id, row_number() over () as n from sluice.live where queue = 'spare') s
		where s.id = l.id and s.n % 4 + 1 = q.n; -- 20 more in each, which no count has seen
		perform sluice.enqueue(queue => name, payload => '1') from queues;
	end $do$`)
	if err != nil {
		t.Errorf("a queue has counted again at once: %v", err)
	}
}
