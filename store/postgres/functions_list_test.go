package postgres_test

import (
	"testing"

	"github.com/sluice-queue/sluice"
)

// TestOperatorsListTheJobsInTrouble lists jobs with many failed attempts or many lost holders. A role finds the
// unfinished and dead ones of its queue.
func TestOperatorsListTheJobsInTrouble(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	client := sluice.NewClient(r.owner, sluice.ClientOptions{})
	var ids []sluice.ID
	for range 4 {
		receipt, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "scraper", Payload: []byte(`"secret"`)})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, receipt.ID)
	}
	r.exec("update sluice.live set attempts = 6, error = 'no network' where id = $1::text::uuid", ids[1].String())
	r.exec("update sluice.live set recoveries = 3 where id = $1::text::uuid", ids[2].String())
	r.exec("update sluice.live set attempts = 6, recoveries = 3 where id = $1::text::uuid", ids[3].String())
	worker := r.as(r.worker)
	value[bool](r, worker, `select bool_and(f.id is not null) from sluice.claim(queues => '{scraper}', holder => 'w1', batch => 10) c, sluice.fail_many(ids => array[c.id], tokens => array[c.token], errors => array['x'], retryable => array[false]) f where c.id = $1::text::uuid`, ids[3].String())
	operator := r.as(r.operator)
	for arguments, want := range map[string]string{
		"":                                ids[3].String() + " dead 7 3," + ids[2].String() + " claimed 0 3," + ids[1].String() + " claimed 6 0," + ids[0].String() + " claimed 0 0",
		", min_attempts => 6":             ids[3].String() + " dead 7 3," + ids[1].String() + " claimed 6 0",
		", min_recoveries => 3":           ids[3].String() + " dead 7 3," + ids[2].String() + " claimed 0 3",
		", min_attempts => 6, batch => 1": ids[3].String() + " dead 7 3",
		", min_attempts => 1, min_recoveries => 1": ids[3].String() + " dead 7 3",
	} {
		if got := value[string](r, operator, "select string_agg(id || ' ' || state || ' ' || attempts || ' ' || recoveries, ',') from sluice.list_jobs(queue => 'scraper'"+arguments+")"); got != want {
			t.Errorf("list_jobs(…%s) lists\n%s\nwant\n%s", arguments, got, want)
		}
	}
	r.refused(operator, "42501", "select * from sluice.list_jobs(queue => 'payments')")
	r.refused(worker, "42501", "select * from sluice.list_jobs(queue => 'scraper')")
}
