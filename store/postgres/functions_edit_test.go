package postgres_test

import (
	"sync"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
)

// TestOperatorsHoldReleaseAndEditJobsOfTheirQueuesOnly acts on a job of the operator's queue, and on a job of another
// queue.
func TestOperatorsHoldReleaseAndEditJobsOfTheirQueuesOnly(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	operator, worker, owner := r.as(r.operator), r.as(r.worker), r.as("postgres")
	r.exec(`select sluice.enqueue(queue => 'scraper', payload => '1', tenant => 'acme', labels => '{"kind":"old"}', timeout => '1 min', job_id => $1::text::uuid)`, mine)
	r.exec(`select sluice.enqueue(queue => 'payments', payload => '1', job_id => $1::text::uuid)`, foreign)
	both := "'{" + mine + "," + foreign + "}'"
	for _, c := range []struct{ call, want string }{
		{"hold(" + both + ", 'check it')", "held unknown"}, {"hold(" + both + ", 'check it')", "not allowed unknown"},
	} {
		if got := value[string](r, operator, "select string_agg(state, ' ') from sluice."+c.call); got != c.want {
			t.Errorf("%s: %s, want %s", c.call, got, c.want)
		}
	}
	if n := value[int](r, worker, `select count(*)::integer from sluice.claim(queues => '{scraper}', holder => 'w')`); n != 0 {
		t.Errorf("%d held jobs were claimed", n)
	}
	version := value[string](r, operator, `select sluice.job_version($1::text::uuid)`, mine)
	if is := value[bool](r, operator, `select sluice.job_version($1::text::uuid) is null`, foreign); !is {
		t.Error("the version of a job of another queue is told")
	}
	const edit = `select sluice.edit(job_id => $1::text::uuid, reason => 'wrong address', payload => '{"to" : "bob"}', priority => 2, timeout => '0',
		labels => '{"kind":"new"}', tenant => '', expect => $2)`
	next := value[string](r, operator, edit, mine, version)
	if next == version || next != value[string](r, operator, `select sluice.job_version($1::text::uuid)`, mine) {
		t.Errorf("the version was %s and is %s", version, next)
	}
	r.refused(operator, "SL009", edit, mine, version)
	r.refused(operator, "SL005", edit, foreign, version)
	for call, code := range map[string]string{
		"priority => 11": "SL004", "payload => '1', timeout => '31 days'": "SL004", "labels => '{\"a\":1}'": "SL004", "tenant => E'a\\nb'": "SL004", "expect => 'x'": "SL004",
		"payload => '{'": "22P02", "payload => to_json(repeat('a', 2000000))": "SL004",
	} {
		r.refused(operator, code, `select sluice.edit(job_id => $1::text::uuid, reason => 'r', `+call+`)`, mine)
	}
	got := value[string](r, owner, `select concat_ws(' ', payload_text, priority, tenant, labels, coalesce(timeout_ms, 0)) from sluice.jobs where id = $1::text::uuid`, mine)
	if want := `{"to" : "bob"} 2  {"kind": "new"} 0`; got != want {
		t.Errorf("the job is %s, want %s", got, want)
	}
	told := value[string](r, owner, `select concat_ws(' ', actor = $2, reason, before, after) from sluice.audit where job_id = $1::text::uuid and event = 'edit'`, mine, r.operator)
	if want := `t wrong address {"labels": {"kind": "old"}, "tenant": "acme", "timeout": "1m", "priority": 5, "payload_bytes": 1} ` +
		`{"labels": {"kind": "new"}, "tenant": "", "timeout": "0s", "priority": 2, "payload_bytes": 14}`; told != want {
		t.Errorf("the audit has %s, want %s", told, want)
	}
	if got := value[string](r, operator, "select string_agg(state, ' ') from sluice.release_hold("+both+")"); got != "queued unknown" {
		t.Errorf("released: %s", got)
	}
	if n := value[int](r, worker, `select count(*)::integer from sluice.claim(queues => '{scraper}', holder => 'w')`); n != 1 {
		t.Errorf("%d released jobs were claimed, want 1", n)
	}
	r.refused(operator, "SL003", `select sluice.edit(job_id => $1::text::uuid, reason => 'r', priority => 1)`, mine)
	r.refused(worker, "42501", `select sluice.edit(job_id => $1::text::uuid, reason => 'r', priority => 1)`, mine)
}

// TestProducersWaitForResults waits for the end of a job in one session, while another session completes the job.
func TestProducersWaitForResults(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	producer, worker := r.as(r.producer), r.as(r.worker)
	r.exec(`select sluice.enqueue(queue => 'payments', payload => '1', job_id => $1::text::uuid)`, foreign)
	value[bool](r, producer, `select duplicate from sluice.enqueue(queue => 'scraper', payload => '1', job_id => $1::text::uuid)`, mine)
	const result = `select concat_ws(' ', state, result::text, error, finished_at is not null) from sluice.result(job_id => $1::text::uuid, wait_seconds => $2)`
	for _, c := range []struct{ id, want string }{{mine, "queued f"}, {foreign, "unknown f"}, {unheard, "unknown f"}} {
		if got := value[string](r, producer, result, c.id, 0.02); got != c.want {
			t.Errorf("job %s: %s, want %s", c.id, got, c.want)
		}
	}
	var all sync.WaitGroup
	all.Go(func() {
		if got := value[string](r, producer, result, mine, 60.0); got != `completed {"cents":7} t` {
			t.Errorf("got %s", got)
		}
	})
	token := value[string](r, worker, `select token::text from sluice.claim(queues => '{scraper}', holder => 'w')`)
	value[bool](r, worker, `select sluice.complete(id => $1::text::uuid, token => $2::text::uuid, result => '{"cents":7}')`, mine, token)
	all.Wait()
	r.refused(producer, "SL004", `select sluice.result(job_id => $1::text::uuid, wait_seconds => 61)`, mine)
	if _, err := producer.Exec(t.Context(), "begin isolation level repeatable read"); err != nil {
		t.Fatal(err)
	}
	r.refused(producer, "SL004", `select sluice.result(job_id => $1::text::uuid, wait_seconds => 1)`, mine)
}

// unheard is the ID of a job that was never stored.
const unheard = "01890000-0000-7000-8000-00000000ffff"

func TestFunctionsWriteDurationsAsGoDoes(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	owner := r.as("postgres")
	for _, d := range []time.Duration{
		0, time.Millisecond, 999 * time.Millisecond, time.Second, 1500 * time.Millisecond, time.Minute, 90 * time.Second, time.Hour, 90 * time.Minute,
		time.Hour + time.Second, 24 * time.Hour, 36 * time.Hour, 30 * 24 * time.Hour, 25*time.Hour + 61*time.Second + 7*time.Millisecond,
	} {
		if got := value[string](r, owner, "select sluice._duration_text($1)", d.Milliseconds()); got != sluice.FormatDuration(d) {
			t.Errorf("%s is written %s, want %s", d, got, sluice.FormatDuration(d))
		}
	}
}
