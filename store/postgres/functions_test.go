package postgres_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/postgres"
)

// updateFunctions writes the checksum of the functions: go test ./store/postgres -run FunctionsVersion -functions.
var updateFunctions = flag.Bool("functions", false, "write the checksum of the functions for the present version")

// TestFunctionsVersionIsRaisedWithTheirText fails if the text changes without the version. Otherwise two programs of
// one version would replace each other's functions again and again.
func TestFunctionsVersionIsRaisedWithTheirText(t *testing.T) {
	t.Parallel()
	const path = "functions.sum"
	checksum, err := postgres.FunctionsChecksum()
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%d %s\n", postgres.FunctionsVersion, checksum)
	if *updateFunctions {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	has, err := os.ReadFile(path)
	if err != nil || string(has) != want {
		t.Errorf("%s says %q, the functions are %q: if the version in the file was released, raise FunctionsVersion; then run this test with -functions (%v)", path, has, want, err)
	}
}

func TestMigrateMakesTheFunctionsOnceAndReplacesOlderOnes(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	migrated := func(want int) {
		t.Helper()
		pending, err := postgres.PendingMigrations(t.Context(), r.url)
		if err != nil || len(pending) != want {
			t.Errorf("%d steps are pending, %v; want %d", len(pending), err, want)
		}
		steps, err := postgres.Migrate(t.Context(), r.url)
		if err != nil || len(steps) != want {
			t.Errorf("migrating ran %d steps, %v; want %d", len(steps), err, want)
		}
	}
	migrated(0)
	r.exec("update sluice.function_set set version = version + 1, checksum = 'of a newer program'")
	migrated(0)
	r.exec("update sluice.function_set set version = 0")
	r.exec("create or replace function sluice.leave(holder text) returns void language sql as 'select 1'")
	r.exec("revoke all on function sluice.complete(uuid, uuid, json) from " + r.worker)
	migrated(1)
	migrated(0)
	r.onlyOf(r.as(r.worker), "worker")
}

// TestFailFollowsTheRetryRuleOfTheQueue fails a job until it is dead, and fails another job for good at once.
func TestFailFollowsTheRetryRuleOfTheQueue(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	r.exec("update sluice.queue set max_attempts = 3, backoff_base_ms = 10000, backoff_factor = 3, backoff_jitter_ms = 0, backoff_max_ms = 20000 where name = 'scraper'")
	worker := r.as(r.worker)
	r.exec(`select sluice.enqueue(queue => 'scraper', payload => '{}', job_id => '` + mine + `')`)
	for attempt, want := range []struct {
		state string
		wait  float64
	}{{"queued", 10}, {"queued", 20}, {"dead", 0}} {
		token := value[string](r, worker, `select token::text from sluice.claim(queues => '{scraper}', holder => 'w1') where attempt = $1 and attempts_left = $2`, attempt+1, 3-attempt)
		for range 2 { // the second call stands for a lost answer
			if state := value[string](r, worker, `select sluice.fail(id => $1::text::uuid, token => $2::text::uuid, error => 'no network')`, mine, token); state != want.state {
				t.Fatalf("attempt %d leads to %s, want %s", attempt+1, state, want.state)
			}
		}
		if want.state == "queued" {
			wait := value[float64](r, r.as("postgres"), `select extract(epoch from due_at - now())::float8 from sluice.live`)
			if wait < want.wait-9 || wait > want.wait {
				t.Errorf("attempt %d is tried again in %f s, want %f", attempt+1, wait, want.wait)
			}
			r.exec("update sluice.live set due_at = now()")
		}
	}
	attempts, err := r.owner.Attempts(t.Context(), mustID(t, mine))
	if err != nil || len(attempts) != 3 || attempts[0].Error != "no network" {
		t.Errorf("attempts %+v, %v", attempts, err)
	}
	operator := r.as(r.operator)
	if state := value[string](r, operator, `select state from sluice.requeue_dead(queue => 'scraper', reason => 'nightly', dry_run => true)`); state != "dead" {
		t.Errorf("a dry run says %s", state)
	}
	if state := value[string](r, operator, `select state from sluice.requeue_dead(queue => 'scraper', reason => 'Retry requested by nightly workflow', actor => 'nightly')`); state != "queued" {
		t.Errorf("requeueing says %s", state)
	}
	told := value[string](r, r.as("postgres"), `select actor || ': ' || reason from sluice.audit where event = 'requeue'`)
	if want := "nightly (" + r.operator + "): Retry requested by nightly workflow"; told != want {
		t.Errorf("the audit has %q, want %q", told, want)
	}
	token := value[string](r, worker, `select token::text from sluice.claim(queues => '{scraper}', holder => 'w1') where attempt = 1 and generation = 2`)
	if state := value[string](r, worker, `select sluice.fail(id => $1::text::uuid, token => $2::text::uuid, error => 'is no food', retryable => false)`, mine, token); state != "dead" {
		t.Errorf("a permanent error leads to %s", state)
	}
}

// TestClaimOfSeveralQueuesTakesTurnsAndTakesBackWhatWasLeft claims from two queues, few jobs at a time and many. Then
// it claims the jobs of a dead worker.
func TestClaimOfSeveralQueuesTakesTurnsAndTakesBackWhatWasLeft(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	owner := r.as("postgres")
	r.exec(`select sluice.enqueue_many(jobs => (select json_agg(json_build_object('queue', case n % 2 when 0 then 'scraper' else 'payments' end, 'payload', n)) from generate_series(1, 100) n))`)
	for range 20 {
		value[int](r, owner, `select count(*)::int from sluice.claim(queues => '{scraper,payments}', holder => 'dead', batch => 1)`)
	}
	each := value[int](r, owner, `select min(n)::int from (select count(*) as n from sluice.live where state = 'claimed' group by queue) q`)
	if each < 2 {
		t.Errorf("of 20 claims of one job one queue got %d", each)
	}
	if got := value[int](r, owner, `select count(*)::int from sluice.claim(queues => '{scraper,payments}', holder => 'dead', batch => 1000)`); got != 80 {
		t.Errorf("claimed %d more jobs, want 80", got)
	}
	r.exec("update sluice.live set lease_until = now() - interval '1 second'")
	if got := value[int](r, owner, `select count(*)::int from sluice.claim(queues => '{scraper,payments}', holder => 'w2', batch => 1000, reclaim => false)`); got != 0 {
		t.Errorf("claimed %d jobs without taking back, want none", got)
	}
	if got := value[int](r, owner, `select count(*)::int from sluice.claim(queues => '{scraper,payments}', holder => 'w2', batch => 1000) where recoveries = 1 and attempts = 0`); got != 100 {
		t.Errorf("claimed %d jobs of a dead worker, want 100", got)
	}
}

// TestClaimIsAsLargeAndAsOftenAsTheQueueSays sets batch, interval and jitter.
func TestClaimIsAsLargeAndAsOftenAsTheQueueSays(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	owner := r.as("postgres")
	r.exec("update sluice.queue set batch = 3, interval_ms = 60000, jitter_ms = 3600000 where name = 'scraper'")
	r.exec(`select sluice.enqueue_many(jobs => (select json_agg(json_build_object('queue', 'scraper', 'payload', n)) from generate_series(1, 20) n))`)
	claimed := func(holder string) int {
		return value[int](r, owner, `select count(*)::int from sluice.claim(queues => '{scraper}', holder => $1, batch => 10) where start_at between now() and now() + interval '1 hour'`, holder)
	}
	for _, c := range []struct {
		holder string
		want   int
	}{{"a", 3}, {"a", 0}, {"b", 3}} {
		if got := claimed(c.holder); got != c.want {
			t.Errorf("%s claimed %d jobs, want %d", c.holder, got, c.want)
		}
	}
	r.exec("update sluice.pace set claimed_at = claimed_at - interval '1 minute'")
	if got := claimed("a"); got != 3 {
		t.Errorf("a minute later %d jobs, want 3", got)
	}
}

// TestClaimThatIsSentAgainGivesTheSameJobs repeats a claim with the same token, as after a lost answer.
func TestClaimThatIsSentAgainGivesTheSameJobs(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	owner := r.as("postgres")
	r.exec(`select sluice.enqueue_many(jobs => (select json_agg(json_build_object('queue', 'scraper', 'payload', n)) from generate_series(1, 9) n))`)
	claim := `select string_agg(id::text, ' ' order by id) from sluice.claim(queues => '{scraper}', holder => 'w1', batch => 4, claim_token => '` + foreign + `')`
	if first, second := value[string](r, owner, claim), value[string](r, owner, claim); first != second || strings.Count(first, " ") != 3 {
		t.Errorf("claimed %q, and again %q", first, second)
	}
}

// TestAJobThatOthersLockIsLetGoByALaterClaim keeps a job locked while the job before it ends, and while a claim looks for jobs
// to let go.
func TestAJobThatOthersLockIsLetGoByALaterClaim(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	owner, other := r.as("postgres"), r.as("postgres")
	r.exec(`select sluice.enqueue(queue => 'scraper', payload => '1', order_key => 'account') from generate_series(1, 2)`)
	const claim = `select count(*)::int from sluice.claim(queues => '{scraper}', holder => 'w1')`
	if got := value[int](r, owner, claim); got != 1 {
		t.Fatalf("claimed %d jobs, want the first of its order", got)
	}
	do := func(sql string) {
		t.Helper()
		if _, err := other.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	do("begin")
	do("select from sluice.live where state = 'queued' for update")
	r.exec(`select sluice.complete(id, token) from sluice.live where state = 'claimed'`)
	if got := value[int](r, owner, claim); got != 0 {
		t.Errorf("claimed %d jobs that another has locked", got)
	}
	do("rollback")
	if got := value[int](r, owner, claim); got != 1 {
		t.Errorf("then claimed %d jobs, want the second of its order", got)
	}
}

// TestEnqueueInsideATransactionStandsOrFallsWithIt rolls a transaction back, and commits another one.
func TestEnqueueInsideATransactionStandsOrFallsWithIt(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	conn := r.as(r.producer)
	for _, end := range []string{"rollback", "commit"} {
		for _, sql := range []string{"begin", `select sluice.enqueue(queue => 'scraper', payload => '{}', key => 'k')`, end} {
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
	}
	if got := value[int](r, r.as("postgres"), "select count(*)::int from sluice.live"); got != 1 {
		t.Errorf("%d jobs, want 1", got)
	}
}

// TestAWorkerWaitsForAQueueThatNobodyKnows serves two queues without settings: a queue whose jobs have all ended, and a
// queue without jobs. In both cases, a claim returns nothing and no error.
func TestAWorkerWaitsForAQueueThatNobodyKnows(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	owner := r.as("postgres")
	r.exec(`select sluice.enqueue(queue => 'mail', payload => '1', new_queue => true)`)
	done := `select count(sluice.complete(c.id, c.token))::int from sluice.claim(queues => '{mail,nobody}', holder => 'w', batch => 10) c`
	for i, want := range []int{1, 0, 0} {
		if got := value[int](r, owner, done); got != want {
			t.Errorf("claim %d gave %d jobs, want %d", i+1, got, want)
		}
	}
	if got := value[int](r, owner, "select count(*)::int from sluice.wait(queues => '{mail,nobody}') w where w.seconds is null and not w.limited"); got != 2 {
		t.Errorf("nothing waits in %d queues, want 2", got)
	}
	if got := value[int](r, owner, "select r.requeued + r.buried from sluice.requeue_expired(queue => 'mail') r"); got != 0 {
		t.Errorf("%d jobs were taken back, want 0", got)
	}
}

// TestALostClaimSaysWhetherTheJobWasCancelled renews a claim whose job was cancelled, and a claim that was taken back.
// Only after a cancel may the worker clean up.
func TestALostClaimSaysWhetherTheJobWasCancelled(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	owner := r.as("postgres")
	ask := func(id sluice.ID, token string) (hint string) {
		_, err := owner.Exec(t.Context(), "select sluice.renew($1, $2)", id.String(), token)
		var pgErr *pgconn.PgError
		if errors.As(err, &pgErr) && pgErr.Code == "SL001" {
			return pgErr.Hint
		}
		t.Errorf("renew says %v, want SQLSTATE SL001", err)
		return ""
	}
	id, err := sluice.ParseID(mine)
	if err != nil {
		t.Fatal(err)
	}
	r.exec("select sluice.enqueue(queue => 'scraper', payload => '{}', job_id => '" + mine + "')")
	token := value[string](r, owner, "select token::text from sluice.claim(queues => '{scraper}', holder => 'w')")
	if hint := ask(id, foreign); !strings.Contains(hint, "undo") {
		t.Errorf("of another's claim the hint is %q", hint)
	}
	for _, act := range []struct {
		does func(context.Context, []sluice.ID, sluice.Act) ([]error, error)
		want string
	}{{r.owner.Cancel, "clean up"}, {r.owner.Requeue, "undo"}} {
		if errs, err := act.does(t.Context(), []sluice.ID{id}, sluice.Act{By: "ada", Reason: "test"}); err != nil || errs[0] != nil {
			t.Fatal(errs, err)
		}
		if hint := ask(id, token); !strings.Contains(hint, act.want) {
			t.Errorf("the hint is %q, want it to say %q", hint, act.want)
		}
	}
}

// TestValuesOfDriversAreTakenAsTheGuideSays passes payloads as jsonb, and IDs as text.
func TestValuesOfDriversAreTakenAsTheGuideSays(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	owner := r.as("postgres")
	r.refused(owner, "42883", `select sluice.enqueue(queue => 'scraper', payload => '{}'::jsonb)`)
	r.exec(`select sluice.enqueue(queue => 'scraper', payload => '{}'::jsonb::json, job_id => '` + mine + `')`)
	token := value[string](r, owner, `select token::text from sluice.claim(queues => array['scraper'], holder => 'w')`)
	states := `select state from sluice.complete_many(ids => array[$1::text]::text[]::uuid[], tokens => array[$2::text]::text[]::uuid[])`
	if state := value[string](r, owner, states, mine, token); state != "completed" {
		t.Errorf("the job is %s, want it completed", state)
	}
}

// TestWrongCallsGiveTypedErrorsAndChangeNothing makes every wrong call that has an error code.
func TestWrongCallsGiveTypedErrorsAndChangeNothing(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	owner := r.as("postgres")
	r.exec("update sluice.queue set payload_schema = '{}', payload_limit = 20 where name = 'payments'")
	r.exec(`select sluice.enqueue(queue => 'scraper', payload => '{}', job_id => '` + mine + `')`)
	for sql, code := range map[string]string{
		`select sluice.enqueue(queue => 'scrapper', payload => '1')`:                                                                   "SL002",
		`select sluice.pause(queue => 'scrapper', reason => 'x')`:                                                                      "SL002",
		`select sluice.requeue_dead(queue => 'scrapper', reason => 'x')`:                                                               "SL002",
		`select sluice.complete(gen_random_uuid(), gen_random_uuid(), to_json(repeat('a', 1048575)))`:                                  "SL004",
		`select sluice.checkpoint(gen_random_uuid(), gen_random_uuid(), to_json(repeat('a', 1048575)))`:                                "SL004",
		`select sluice.complete(gen_random_uuid(), gen_random_uuid(), to_json(repeat('a', 1048574)))`:                                  "SL001",
		`select sluice.claim(queues => '{sluice.notify.hook}', holder => 'w')`:                                                         "SL004",
		`select sluice.enqueue('sluice.notify.hook', '1')`:                                                                             "SL004",
		`select sluice.claim(queues => '{}', holder => 'w')`:                                                                           "SL004",
		`select sluice.claim(queues => null, holder => 'w')`:                                                                           "SL004",
		`select sluice.claim(queues => '{scraper,null}', holder => 'w')`:                                                               "SL004",
		`select sluice.claim(queues => '{scraper}', holder => '')`:                                                                     "SL004",
		`select sluice.claim(queues => '{scraper}', holder => 'w', batch => 0)`:                                                        "SL004",
		`select sluice.claim(queues => '{scraper}', holder => 'w', batch => 1001)`:                                                     "SL004",
		`select sluice.claim(queues => '{scraper}', holder => 'w', lease_seconds => -1)`:                                               "SL004",
		`select sluice.claim(queues => '{scraper}', holder => 'w', lease_seconds => 'NaN')`:                                            "SL004",
		`select sluice.enqueue(queue => 'scraper', payload => '{"a":')`:                                                                "22P02",
		`select sluice.enqueue(queue => 'scraper', payload => null)`:                                                                   "SL004",
		`select sluice.enqueue(queue => 'a b', payload => '1')`:                                                                        "SL004",
		`select sluice.enqueue(queue => 'scraper', payload => '1', priority => 11)`:                                                    "SL004",
		`select sluice.enqueue(queue => 'scraper', payload => '1', job_id => 'ffffffff-ffff-ffff-ffff-ffffffffffff')`:                  "SL004",
		`select sluice.enqueue(queue => 'scraper', payload => '1', tenant => E'a\nb')`:                                                 "SL004",
		`select sluice.enqueue(queue => 'scraper', payload => '1', key => repeat('k', 256))`:                                           "SL004",
		`select sluice.enqueue(queue => 'scraper', payload => '1', key_scope => 'window')`:                                             "SL004",
		`select sluice.enqueue(queue => 'scraper', payload => '1', key => 'k', key_scope => 'always')`:                                 "SL004",
		`select sluice.enqueue(queue => 'scraper', payload => '1', delay => '1 s', due_at => now())`:                                   "SL004",
		`select sluice.enqueue(queue => 'scraper', payload => '1', due_at => 'infinity')`:                                              "SL004",
		`select sluice.enqueue(queue => 'scraper', payload => '1', labels => '{"a": 1}')`:                                              "SL004",
		`select sluice.enqueue(queue => 'scraper', payload => '1', labels => '[]')`:                                                    "SL004",
		`select sluice.enqueue(queue => 'scraper', payload => '1', timeout => '31 days')`:                                              "SL004",
		`select sluice.enqueue(queue => 'scraper', payload => '1', timeout => '0.5 ms')`:                                               "SL004",
		`select sluice.enqueue(queue => 'scraper', payload => '1', max_attempts => 0)`:                                                 "SL004",
		`select sluice.enqueue(queue => 'scraper', payload => '1', after => array['` + foreign + `'::uuid])`:                           "SL005",
		`select sluice.enqueue(queue => 'payments', payload => '1')`:                                                                   "SL004",
		`select sluice.enqueue(queue => 'payments', payload => '"123456789012345678901"')`:                                             "SL004",
		`select sluice.enqueue(queue => 'scraper', payload => '1', key => U&'a\202Eb')`:                                                "SL004",
		`select sluice.enqueue(queue => 'scraper', payload => '1', tenant => U&'a\200Bb')`:                                             "SL004",
		`select sluice.enqueue(queue => 'scraper', payload => '1', tenant => U&'a\+0E0041b')`:                                          "SL004",
		`select sluice.claim(queues => '{scraper}', holder => 'w', ageing => 1e300)`:                                                   "SL004",
		`select sluice.claim(queues => '{scraper}', holder => 'w', ageing => 'NaN')`:                                                   "SL004",
		`select sluice.claim(queues => '{scraper}', holder => 'w', ageing => -1)`:                                                      "SL004",
		`select sluice.enqueue(queue => 'scraper', payload => '1', delay => '10000000 years')`:                                         "SL004",
		`select sluice.enqueue(queue => 'scraper', payload => '1', key => 'k', key_scope => 'window', key_window => '10000000 years')`: "SL004",
		`select sluice.enqueue(queue => 'scraper', payload => '1', expires_at => now() - interval '1 s')`:                              "SL004",
		`select sluice.enqueue(queue => 'scraper', payload => '1', delay => '2 h', expires_at => now() + interval '1 h')`:              "SL004",
		`select sluice.pause(queue => 'scraper', reason => 'x', until => 'infinity')`:                                                  "SL004",
		`select sluice.enqueue_many(jobs => '{}')`:                                                                                     "SL004",
		`select sluice.complete(id => '` + mine + `', token => '` + foreign + `')`:                                                     "SL001",
		`select sluice.fail(id => '` + foreign + `', token => '` + foreign + `', error => 'x')`:                                        "SL001",
		`select sluice.renew(id => '` + mine + `', token => '` + foreign + `')`:                                                        "SL001",
		`select sluice.release(id => '` + mine + `', token => '` + foreign + `', delay_seconds => -1)`:                                 "SL004",
		`select sluice.complete_many(ids => array['` + mine + `'::uuid], tokens => '{}')`:                                              "SL004",
		`select sluice.requeue(ids => array['` + mine + `'::uuid], reason => ' ')`:                                                     "SL004",
		`select sluice.pause(queue => 'scraper', reason => 'x', until => now() - interval '1 s')`:                                      "SL004",
		`select sluice.why(job_id => '` + foreign + `')`:                                                                               "SL005",
		`select sluice.grant_worker(role => 'nobody such', queues => '{scraper}')`:                                                     "42704",
		`select sluice.grant_worker(role => 'postgres', queues => '{}')`:                                                               "SL004",
		`select sluice.complete(id => 'no uuid', token => '` + foreign + `')`:                                                          "22P02",
	} {
		r.refused(owner, code, sql)
		_, err := owner.Exec(t.Context(), sql)
		var server *pgconn.PgError
		if errors.As(err, &server) && strings.HasPrefix(code, "SL") && (server.Hint == "" || server.Message == "") {
			t.Errorf("%s: the error has no hint: %+v", sql, server)
		}
	}
	rows := value[string](r, owner, `select string_agg(coalesce(code, 'stored'), ' ' order by no) from sluice.enqueue_many(jobs => '[{"queue":"scraper","payload":1},{"queue":"scraper"},
		{"queue":"scrapper","payload":1},{"queue":"scraper","payload":1,"priority":"high"},{"queue":"scraper","payload":1,"prio":1},7,
		{"queue":"scraper","payload":1,"after":["`+foreign+`"]},{"queue":"scraper","payload":1,"labels":{"a":"\u0000"}},{"queue":"scraper","payload":1,"key":"\u0000"},{"queue":"scraper","payload":{"b":1,"a":[ ]}}]')`)
	if rows != "stored SL004 SL002 SL004 SL004 SL004 SL005 SL004 SL004 stored" {
		t.Errorf("the batch: %s", rows)
	}
	if got := value[string](r, owner, `select string_agg(convert_from(payload, 'UTF8'), ' ' order by octet_length(payload)) from sluice.job`); got != `1 {} {"b":1,"a":[ ]}` {
		t.Errorf("stored: %s", got)
	}
}

// TestNewQueuesOfFunctionsAreThoseThatTheStoreTakes names new queues where queues must be declared, and where no more
// queues may be made.
func TestNewQueuesOfFunctionsAreThoseThatTheStoreTakes(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	owner := r.as("postgres")
	for code, policy := range map[string]string{
		"SL002": "insert into sluice.queue_policy (declared) values (true) on conflict (id) do update set declared = true",
		"SL008": "insert into sluice.queue_policy (max_queues) values (1) on conflict (id) do update set max_queues = 1, declared = false",
	} {
		r.exec(policy)
		r.refused(owner, code, `select sluice.enqueue(queue => 'scrapper', payload => '1', new_queue => true)`)
		rows := value[string](r, owner, `select string_agg(coalesce(code, 'stored'), ' ' order by no) from sluice.enqueue_many(
			jobs => '[{"queue":"scraper","payload":1},{"queue":"scrapper","payload":1}]', new_queue => true)`)
		if rows != "stored "+code {
			t.Errorf("the batch: %s", rows)
		}
	}
	r.exec("update sluice.queue_policy set max_queues = 100, declared = false")
	r.exec(`select sluice.enqueue(queue => 'scrapper', payload => '1', new_queue => true)`)
}

// TestDocsOfSQLRun runs the statements of docs/sql.md, each block with the role of its section.
func TestDocsOfSQLRun(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/sql.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	r := newRoles(t)
	owner := "postgres"
	as := []string{owner, "scraper", "matcher", owner}
	if len(blocks) != len(as) {
		t.Fatalf("%d blocks, want %d", len(blocks), len(as))
	}
	names := strings.NewReplacer("'matcher'", "'"+r.worker+"'", "role => 'scraper'", "role => '"+r.producer+"'", "'nightly'", "'"+r.operator+"'")
	results := make([]int64, 0)
	for i, block := range blocks {
		role := map[string]string{"matcher": r.worker, "scraper": r.producer}[as[i]]
		conn := r.as(orElse(role, owner))
		for _, statement := range strings.SplitAfter(block[1], ";\n") {
			if statement = strings.TrimSpace(statement); statement == "" || strings.HasPrefix(statement, "create role") {
				continue // newRoles has created the roles under other names
			}
			tag, err := conn.Exec(t.Context(), names.Replace(statement), pgx.QueryExecModeSimpleProtocol)
			if err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
			results = append(results, tag.RowsAffected())
		}
	}
	if got := fmt.Sprint(results); got != "[1 1 1 1 2 1 1 1 6 1 0 0]" {
		t.Errorf("the statements gave %s rows", got)
	}
	jobs, err := r.owner.Jobs(t.Context(), sluice.JobFilter{Queue: "scraper", States: []sluice.State{sluice.StateCompleted}, Limit: 10})
	if err != nil || len(jobs.Jobs) != 1 || time.Since(jobs.Jobs[0].FinishedAt) > time.Hour {
		t.Errorf("completed: %+v, %v", jobs, err)
	}
}
