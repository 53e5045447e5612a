package postgres_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/schedule"
)

// nullCalls has a valid call of each function. For each argument, it has the outcome of a null: an error code, or the
// reason why the argument may be missing. `ID` and `TOKEN` belong to a job that the caller holds.
var nullCalls = map[string]struct {
	role      string
	arguments string // one line per argument: name=value=outcome
}{
	"claim": {"worker", `queues='{scraper}'=SL004
holder='w'=SL004
batch=1=SL004
lease_seconds=60=the setting of the queue
claim_token=gen_random_uuid()=a new one
reclaim=true=SL004
ageing=0=the setting of the queue`},
	"renew": {"worker", `id=ID=SL004
token=TOKEN=SL004
lease_seconds=60=the setting of the queue`},
	"renew_many": {"worker", `ids=array[ID]=SL004
tokens=array[TOKEN]=SL004
lease_seconds=60=the setting of the queue`},
	"progress": {"worker", `id=ID=SL004
token=TOKEN=SL004
fraction=0.5=SL004
message='half'=no message`},
	"checkpoint": {"worker", `id=ID=SL004
token=TOKEN=SL004
checkpoint='1'=no checkpoint`},
	"complete": {"worker", `id=ID=SL004
token=TOKEN=SL004
result='1'=no result`},
	"complete_many": {"worker", `ids=array[ID]=SL004
tokens=array[TOKEN]=SL004
results=array['1'::json]=no results`},
	"fail": {"worker", `id=ID=SL004
token=TOKEN=SL004
error='x'=no text
retryable=false=SL004
retry_seconds=1=the backoff of the queue
stack='s'=no stack`},
	"fail_many": {"worker", `ids=array[ID]=SL004
tokens=array[TOKEN]=SL004
errors=array['x']=no texts
retryable=array[false]=true of each
retry_seconds=array[1.0]=the backoff of the queue
stacks=array['s']=no stacks`},
	"release": {"worker", `id=ID=SL004
token=TOKEN=SL004
delay_seconds=1=its place stays
reason='r'=no reason`},
	"release_many": {"worker", `ids=array[ID]=SL004
tokens=array[TOKEN]=SL004
delay_seconds=1=their places stay
reason='r'=no reason`},
	"heartbeat": {"worker", `holder='w'=SL004
queues='{scraper}'=SL004
slots=1=none
busy=1=none
version='1'=none
mode='working'=SL004`},
	"leave": {"worker", `holder='w'=SL004`},
	"wait":  {"worker", `queues='{scraper}'=SL004`},
	"enqueue": {"producer", `queue='scraper'=SL004
payload='1'=SL004
tenant='t'=nobody
key='k'=no key
key_scope='unfinished'=SL004
key_window=null=no window
on_duplicate='keep'=SL004
due_at=now()=now
delay='0'=none
priority=5=SL004
expires_at=now() + interval '1 day'=never
labels='{}'=none
max_attempts=1=the setting of the queue
timeout=interval '1 minute'=the handler's or the queue's
order_key='o'=no order
after='{}'=none
after_failure=''=the default
hold='h'=nobody holds it
batch_id=sluice.open_batch()=none
limit_key='k'=none
cost=2=1
job_id=gen_random_uuid()=a new one
new_queue=false=SL004`},
	"enqueue_many": {"producer", `jobs='[{"queue":"scraper","payload":1}]'=SL004
new_queue=false=SL004`},
	"open_batch": {"producer", `name='n'=none
on_complete='{"queue":"scraper"}'=none
on_success='{"queue":"scraper"}'=none
on_death='{"queue":"scraper"}'=none
parent=sluice.open_batch()=none
batch_id=gen_random_uuid()=a new one`},
	"close_batch": {"producer", `batch_id=sluice.open_batch()=SL005`},
	"read_batch":  {"producer", `batch_id=sluice.open_batch()=no row`},
	"start_flow": {"producer", `flow='{"name":"f","nodes":[{"name":"a","queue":"scraper"}]}'=SL004
new_queue=false=SL004`},
	"node_results": {"worker", `job_id=ID=SL004
node='a'=SL004`},
	"requeue": {"operator", `ids=array[ID]=SL004
reason='r'=SL004
actor='a'=the role
act_id=gen_random_uuid()=no id
beside_open_run=false=SL004`},
	"hold": {"operator", `ids=array[ID]=SL004
reason='r'=SL004
actor='a'=the role
act_id=gen_random_uuid()=no id`},
	"release_hold": {"operator", `ids=array[ID]=SL004
reason='r'=no reason
actor='a'=the role
act_id=gen_random_uuid()=no id`},
	"job_version": {"operator", `job_id=ID=SL004`},
	"edit": {"operator", `job_id=WAITS=SL004
reason='r'=SL004
payload='1'=no change
priority=3=no change
due_at=now()=no change
timeout=interval '1 minute'=no change
labels='{}'=no change
tenant='t'=no change
limit_key='k'=no change
cost=2=no change
expect=sluice.job_version(WAITS)=any version
actor='a'=the role
act_id=gen_random_uuid()=no id`},
	"result": {"producer", `job_id=ID=SL004
wait_seconds=0=SL004`},
	"list_jobs": {"operator", `queue='scraper'=SL004
min_attempts=1=any number
min_recoveries=1=any number
batch=1=SL004`},
	"requeue_dead": {"operator", `queue='scraper'=SL004
reason='r'=SL004
batch=1=SL004
dry_run=true=SL004
actor='a'=the role`},
	"requeue_expired": {"operator", `queue='scraper'=SL004
batch=1=SL004
actor='a'=the role`},
	"pause": {"operator", `queue='scraper'=SL004
reason='r'=SL004
until=now() + interval '1 day'=until it is resumed
actor='a'=the role`},
	"resume": {"operator", `queue='scraper'=SL004
reason='r'=SL004
actor='a'=the role`},
	"list_schedules": {"operator", `queue='scraper'=of all
after='a'=from the first
batch=1=SL004`},
	"pause_schedule": {"operator", `name='nightly'=SL004
reason='r'=SL004
actor='a'=the role`},
	"resume_schedule": {"operator", `name='nightly'=SL004
reason='r'=SL004
actor='a'=the role`},
	"trigger_schedule": {"operator", `name='nightly'=SL004
reason='r'=SL004
actor='a'=the role
act_id=gen_random_uuid()=no id`},
	"why": {"operator", `job_id=ID=SL005`},
	"grant_worker": {"", `role=ROLE=42704
queues='{scraper}'=SL004`},
	"grant_producer": {"", `role=ROLE=42704
queues='{scraper}'=SL004`},
	"grant_operator": {"", `role=ROLE=42704
queues='{scraper}'=SL004`},
	"grant_reader": {"", `role=ROLE=42704`},
	"revoke_grants": {"", `role=ROLE=SL004
queues='{scraper}'=all of them, which takes away and gives nothing`},
}

// TestNoFunctionTakesANullForMoreThanItIs replaces every argument of every function with null. The function must refuse
// the call, or do what its comment says.
func TestNoFunctionTakesANullForMoreThanItIs(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	r.exec(`select sluice.enqueue(queue => 'scraper', payload => '1', job_id => $1::text::uuid)`, mine)
	_, err := schedule.Set(t.Context(), r.owner, "nightly", schedule.Definition{Queue: "scraper", Cron: "@daily"}, sluice.Act{By: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	token := value[string](r, r.as(r.worker), `select token::text from sluice.claim(queues => '{scraper}', holder => 'w')`)
	r.exec(`select sluice.enqueue(queue => 'scraper', payload => '1', delay => '1 day', job_id => $1::text::uuid)`, unheard)
	words := strings.NewReplacer("WAITS", "'"+unheard+"'::uuid", "ID", "'"+mine+"'::uuid", "TOKEN", "'"+token+"'::uuid", "ROLE", "'"+r.worker+"'")
	rows, err := r.owner.Pool().Query(t.Context(), `select p.proname, p.proargnames[:p.pronargs] from pg_proc p where p.pronamespace = 'sluice'::regnamespace and p.proname !~ '^_' and p.prorettype <> 'trigger'::regtype`)
	if err != nil {
		t.Fatal(err)
	}
	var name string
	var arguments []string
	has := make(map[string][]string)
	if _, err := pgx.ForEachRow(rows, []any{&name, &arguments}, func() error { has[name] = slices.Clone(arguments); return nil }); err != nil {
		t.Fatal(err)
	}
	roles := map[string]string{"worker": r.worker, "producer": r.producer, "operator": r.operator, "": "postgres"}
	for name, arguments := range has {
		call := nullCalls[name]
		lines := strings.Split(call.arguments, "\n")
		if len(lines) != len(arguments) || call.arguments == "" {
			t.Errorf("%s has the arguments %v: say of each what a null leads to", name, arguments)
			continue
		}
		conn := r.as(roles[call.role])
		for at := range lines {
			r.nullCall(conn, name, arguments, lines, at, words)
		}
	}
}

// nullCall calls a function with a null in place of one argument, and rolls the call back.
func (r *roles) nullCall(conn *pgx.Conn, name string, arguments, lines []string, at int, words *strings.Replacer) {
	r.Helper()
	var given []string
	want := ""
	for n, line := range lines {
		argument, rest, _ := strings.Cut(line, "=")
		last := strings.LastIndex(rest, "=")
		if argument != arguments[n] {
			r.Errorf("argument %d of %s is %s, not %s", n+1, name, arguments[n], argument)
		}
		if n == at {
			want = rest[last+1:]
			rest = "null="
			last = 4
		}
		given = append(given, fmt.Sprintf("%s => %s", argument, words.Replace(rest[:last])))
	}
	tx, err := conn.Begin(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	defer func() { _ = tx.Rollback(r.Context()) }()
	sql := fmt.Sprintf("select * from sluice.%s(%s)", name, strings.Join(given, ", "))
	_, err = tx.Exec(r.Context(), sql)
	if len(want) == 5 && strings.ToUpper(want) == want {
		if !isCode(err, want) {
			r.Errorf("%s: %v, want %s", sql, err, want)
		}
	} else if err != nil {
		r.Errorf("%s: %v, want %s", sql, err, want)
	}
}

// TestANullTokenMovesNothing passes null and the zero token to every function of a worker, alone and in an array.
// Another worker holds the jobs, or only a person may decide about them.
func TestANullTokenMovesNothing(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	worker := r.as(r.worker)
	r.exec(`select sluice.enqueue_many(jobs => (select json_agg(json_build_object('queue', 'scraper', 'payload', n)) from generate_series(1, 4) n))`)
	r.exec(`select sluice.claim(queues => '{scraper}', holder => 'other', batch => 3)`)
	r.exec(`update sluice.live l set state = s.state from (select id, (array['claimed', 'dispatched', 'uncertain'])[row_number() over (order by id)] as state
		from sluice.live where state = 'claimed') s where s.id = l.id`)
	const look = `select string_agg(l::text, ' ' order by l.id) || (select count(*) from sluice.done)::text from sluice.live l`
	before := value[string](r, r.as("postgres"), look)
	for _, token := range []string{"null", "'00000000-0000-0000-0000-000000000000'"} {
		for _, call := range []string{
			"complete(id, TOKEN)", "complete_many(array[id], array[TOKEN]::uuid[])", "fail(id, TOKEN, 'x')", "fail(id, TOKEN, 'x', retryable => false)",
			"fail_many(array[id], array[TOKEN]::uuid[], array['x'])", "release(id, TOKEN)", "release_many(array[id], array[TOKEN]::uuid[])",
			"renew(id, TOKEN)", "renew_many(array[id], array[TOKEN]::uuid[])", "checkpoint(id, TOKEN, '1')", "progress(id, TOKEN, 0.5)",
		} {
			r.refused(worker, "SL004", "select sluice."+strings.ReplaceAll(call, "TOKEN", token)+" from unnest($1::text::uuid[]) as id", r.ids())
		}
	}
	if after := value[string](r, r.as("postgres"), look); after != before {
		t.Errorf("the jobs are\n%s\nwant them as they were\n%s", after, before)
	}
}

// ids returns the IDs of the unfinished jobs as the text of an array.
func (r *roles) ids() string {
	r.Helper()
	return value[string](r, r.as("postgres"), "select array_agg(id)::text from sluice.live")
}

// TestARoleLearnsNothingOfJobsInOtherQueues names a job of another queue in every argument that takes a job. The answer
// must be that of a job that does not exist.
func TestARoleLearnsNothingOfJobsInOtherQueues(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	producer, operator, worker := r.as(r.producer), r.as(r.operator), r.as(r.worker)
	const unknown = "01890000-0000-7000-8000-00000000ffff"
	r.exec(`select sluice.enqueue(queue => 'payments', payload => '1', job_id => $1::text::uuid)`, foreign)
	r.exec(`select sluice.enqueue(queue => 'scraper', payload => '1', job_id => $1::text::uuid, after => array[$2::text::uuid])`, mine, foreign)
	r.refused(producer, "SL004", `select sluice.enqueue(queue => 'scraper', payload => '1', job_id => $1::text::uuid)`, foreign)
	for _, id := range []string{foreign, unknown} {
		r.refused(producer, "SL005", `select sluice.enqueue(queue => 'scraper', payload => '1', after => array[$1::text::uuid])`, id)
		r.refused(operator, "SL005", `select sluice.why(job_id => $1::text::uuid)`, id)
		batch := `[{"queue":"scraper","payload":1,"after":["` + id + `"]}]`
		if code := value[string](r, producer, `select code from sluice.enqueue_many(jobs => $1::text::json)`, batch); code != "SL005" {
			t.Errorf("after job %s: %s, want SL005", id, code)
		}
	}
	says := value[string](r, operator, `select string_agg(summary, '; ') from sluice.why(job_id => $1::text::uuid)`, mine)
	if !strings.Contains(says, "is not for this role to see") || strings.Contains(says, foreign+" is queued") {
		t.Errorf("why tells of a job of another queue: %s", says)
	}
	r.exec(`select sluice.claim(queues => '{scraper,payments}', holder => 'other', claim_token => $1::text::uuid)`, unknown)
	value[bool](r, producer, `select duplicate from sluice.enqueue(queue => 'scraper', payload => '1')`)
	r.exec(`select sluice.claim(queues => '{scraper}', holder => 'other', claim_token => $1::text::uuid)`, unknown)
	if got := value[int](r, worker, `select count(*)::int from sluice.claim(queues => '{scraper}', holder => 'w', claim_token => $1::text::uuid)`, unknown); got != 0 {
		t.Errorf("a token of another holder gives %d jobs", got)
	}
}

// TestInventedHoldersAreBounded sends heartbeats of more workers than a store takes.
func TestInventedHoldersAreBounded(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	worker := r.as(r.worker)
	r.exec(`select sluice.heartbeat(holder => 'w' || n, queues => '{scraper}') from generate_series(1, 1000) n`)
	r.refused(worker, "SL004", `select sluice.heartbeat(holder => 'one more', queues => '{scraper}')`)
	value[any](r, worker, `select sluice.heartbeat(holder => 'w7', queues => '{scraper}')::text`)
}
