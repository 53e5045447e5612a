package postgres_test

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice/stat"
)

// TestFunctionsCountByThemselves works with functions alone, with the few rights of roles. It reads the statistics
// after upkeep has added them up.
func TestFunctionsCountByThemselves(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	r.exec("update sluice.queue set max_attempts = 1 where name = 'scraper'")
	producer, worker, operator := r.as(r.producer), r.as(r.worker), r.as(r.operator)
	value[bool](r, producer, `select count(*) = 3 from sluice.enqueue_many('[{"queue": "scraper", "payload": 1, "tenant": "acme"},
		{"queue": "scraper", "payload": 2, "tenant": "acme"}, {"queue": "scraper", "payload": 3, "key": "k"}]')`)
	for _, duplicate := range []bool{false, true} {
		if got := value[bool](r, producer, `select duplicate from sluice.enqueue(queue => 'scraper', payload => '4', job_id => '`+mine+`')`); got != duplicate {
			t.Fatalf("duplicate: %v", got)
		}
	}
	undone, err := producer.Begin(t.Context())
	if err == nil {
		_, err = undone.Exec(t.Context(), `select sluice.enqueue(queue => 'scraper', payload => '5')`)
	}
	if err == nil {
		err = undone.Rollback(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	value[bool](r, worker, `with c as materialized (select id, token, payload::text as payload from sluice.claim('{scraper}', 'w1', 10))
		select bool_and(case payload when '4' then sluice.fail(id, token, 'no') = 'dead' when '3' then sluice.release(id, token) is not null else sluice.complete(id, token) end) from c`)
	value[bool](r, operator, `select count(*) = 1 from sluice.requeue_dead(queue => 'scraper', reason => 'test')`)
	value[bool](r, worker, `select count(*) = 2 from sluice.claim('{scraper}', 'w1', 10)`)
	r.exec(`update sluice.live set lease_until = now() - interval '1 minute' where state = 'claimed'`)
	value[bool](r, worker, `select count(*) = 2 from sluice.claim('{scraper}', 'w2', 10)`)

	for range 2 { // the second call finds nothing left to add up
		if _, err := r.owner.FoldStats(t.Context(), 500); err != nil {
			t.Fatal(err)
		}
	}
	got, err := stat.Of(t.Context(), r.owner, "scraper", 0)
	if err != nil {
		t.Fatal(err)
	}
	want := stat.Counts{Enqueued: 4, Requeued: 1, Claimed: 8, Completed: 2, Dead: 1, Failed: 1, Released: 1, Recovered: 2}
	if got.Counts != want {
		t.Errorf("%+v, want %+v", got.Counts, want)
	}
	if got.Wait.P95 < 10*time.Millisecond || got.Wait.P95 > time.Hour || got.Run.P50 <= 0 || got.Total.P50 < 10*time.Millisecond {
		t.Errorf("wait %v, run %v, total %v", got.Wait, got.Run, got.Total)
	}
	of, err := stat.OfTenant(t.Context(), r.owner, "scraper", "acme", 0)
	if want := (stat.Counts{Enqueued: 2, Claimed: 2, Completed: 2}); err != nil || of.Counts != want {
		t.Errorf("of the tenant %+v, want %+v, %v", of.Counts, want, err)
	}
}
