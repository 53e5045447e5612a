package postgres_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/postgres"
)

// roles is a database with a role for each group of functions.
type roles struct {
	*testing.T
	url                        string
	owner                      *postgres.Store
	worker, producer, operator string
}

func newRoles(t *testing.T) *roles {
	t.Helper()
	r := &roles{T: t, url: migrated.Copy(t)}
	r.owner = openStore(t, r.url)
	r.worker, r.producer, r.operator = r.role("worker"), r.role("producer"), r.role("operator")
	r.exec(`select sluice.grant_worker(role => $1, queues => '{scraper}')`, r.worker)
	r.exec(`select sluice.grant_producer(role => $1, queues => '{scraper}')`, r.producer)
	r.exec(`select sluice.grant_operator(role => $1, queues => '{scraper}')`, r.operator)
	for _, queue := range []string{"scraper", "payments"} {
		_, err := r.owner.SaveQueue(t.Context(), sluice.Queue{Name: queue, Settings: sluice.DefaultSettings()}, sluice.Act{By: "ada", Reason: "test"})
		if err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// role makes a role that can log in; roles are of the whole server.
func (r *roles) role(kind string) string {
	r.Helper()
	at, err := url.Parse(r.url)
	if err != nil {
		r.Fatal(err)
	}
	name := strings.TrimPrefix(at.Path, "/") + "_" + kind
	r.exec("create role " + name + " login")
	r.Cleanup(func() { r.dropRole(name) }) // the database must be dropped first, because the role has rights in it
	return name
}

func (r *roles) dropRole(name string) {
	r.Helper()
	for _, sql := range []string{"drop owned by " + name, "drop role " + name} {
		if _, err := r.owner.Pool().Exec(context.Background(), sql); err != nil {
			r.Errorf("%s: %v", sql, err)
		}
	}
}

func (r *roles) exec(sql string, arguments ...any) {
	r.Helper()
	if _, err := r.owner.Pool().Exec(r.Context(), sql, arguments...); err != nil {
		r.Fatalf("%s: %v", sql, err)
	}
}

// as connects with a role.
func (r *roles) as(role string) *pgx.Conn {
	r.Helper()
	at, err := url.Parse(r.url)
	if err != nil {
		r.Fatal(err)
	}
	at.User = url.User(role)
	conn, err := pgx.Connect(r.Context(), at.String())
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = conn.Close(r.Context()) })
	return conn
}

// refused checks that a statement of a role fails with a code.
func (r *roles) refused(conn *pgx.Conn, code, sql string, arguments ...any) {
	r.Helper()
	rows, err := conn.Query(r.Context(), sql, append([]any{pgx.QueryExecModeSimpleProtocol}, arguments...)...)
	if err == nil {
		rows.Close()
		err = rows.Err()
	}
	if !isCode(err, code) {
		r.Errorf("%s: %v, want SQLSTATE %s", sql, err, code)
	}
}

func value[T any](r *roles, conn *pgx.Conn, sql string, arguments ...any) T {
	r.Helper()
	rows, err := conn.Query(r.Context(), sql, append([]any{pgx.QueryExecModeSimpleProtocol}, arguments...)...)
	if err != nil {
		r.Fatalf("%s: %v", sql, err)
	}
	out, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		r.Fatalf("%s: %v", sql, err)
	}
	return out
}

// The IDs of a job in the roles' queue and of a job in another queue.
const (
	mine    = "01890000-0000-7000-8000-000000000001"
	foreign = "01890000-0000-7000-8000-000000000002"
)

// TestWorkerRoleCanClaimAndFinishInItsQueuesAndNothingElse tries each act of a worker in its own queue, and acts that a
// worker must not do.
func TestWorkerRoleCanClaimAndFinishInItsQueuesAndNothingElse(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	producer, worker := r.as(r.producer), r.as(r.worker)
	value[bool](r, producer, `select duplicate from sluice.enqueue(queue => 'scraper', payload => '{"name":"2 EL Olivenöl"}', job_id => $1::text::uuid)`, mine)
	r.exec(`select sluice.enqueue(queue => 'payments', payload => '{}', job_id => $1::text::uuid)`, foreign)
	r.exec(`select sluice.claim(queues => '{payments}', holder => 'other', claim_token => $1::text::uuid)`, foreign)

	token := value[string](r, worker, `select token::text from sluice.claim(queues => '{scraper}', holder => 'w1', lease_seconds => 180)`)
	if left := value[float64](r, worker, `select extract(epoch from sluice.renew(id => $1::text::uuid, token => $2::text::uuid, lease_seconds => 180) - now())::float8`, mine, token); left < 119 || left > 181 {
		t.Errorf("the lease lasts %f s more, want about 180", left)
	}
	value[any](r, worker, `select sluice.checkpoint(id => $1::text::uuid, token => $2::text::uuid, checkpoint => '{"page":1}')::text`, mine, token)
	value[any](r, worker, `select sluice.heartbeat(holder => 'w1', queues => '{scraper}')::text`)
	value[any](r, worker, `select sluice.leave(holder => 'w1')::text`)
	if state := value[string](r, worker, `select sluice.fail(id => $1::text::uuid, token => $2::text::uuid, error => 'no network', retry_seconds => 0)`, mine, token); state != "queued" {
		t.Errorf("the first failure leads to %s, want queued", state)
	}
	token = value[string](r, worker, `select token::text from sluice.claim(queues => '{scraper}', holder => 'w1')`)
	value[bool](r, worker, `select sluice.complete(id => $1::text::uuid, token => $2::text::uuid, result => '{"canonical":"olive oil"}')`, mine, token)

	for _, table := range []string{"job", "live", "done", "attempt", "job_key", "queue", "tier", "tenant", "audit", "holder", "flow", "tenant_queue", "tenant_change", "tenant_limit", "queue_grant", "pace", "recheck", "function_set", "stat_call", "migration"} {
		for _, sql := range []string{"select * from sluice.%s", "delete from sluice.%s", "insert into sluice.%s default values", "truncate sluice.%s", "drop table sluice.%s", "do 'begin lock table sluice.%s; end'"} {
			r.refused(worker, "42501", fmt.Sprintf(sql, table))
		}
	}
	r.refused(worker, "42501", "select * from sluice.jobs")
	r.refused(worker, "42501", "drop view sluice.jobs")
	r.refused(worker, "42501", "update sluice.live set token = null")
	r.refused(worker, "42501", "update sluice.queue set paused = true")
	r.refused(worker, "42501", "create table sluice.mine (a int)")
	r.refused(worker, "42501", "create function sluice.claim(a int) returns int language sql as 'select 1'")
	r.refused(worker, "42501", "select nextval('sluice.order_place')")
	r.refused(worker, "42501", "select * from sluice.claim(queues => '{payments}', holder => 'w1')")
	r.refused(worker, "42501", "select * from sluice.claim(queues => '{scraper,payments}', holder => 'w1')")
	r.refused(worker, "42501", "select * from sluice.wait(queues => '{payments}')")
	r.refused(worker, "42501", "select sluice.heartbeat(holder => 'w1', queues => '{payments}')")
	// A job of another queue must look like a job that does not exist, even with the right token.
	r.refused(worker, "SL001", "select sluice.complete(id => '"+foreign+"', token => '"+foreign+"')")
	r.refused(worker, "SL001", "select sluice.fail(id => '"+foreign+"', token => '"+foreign+"', error => 'x')")
	r.refused(worker, "SL001", "select sluice.release(id => '"+foreign+"', token => '"+foreign+"')")
	r.refused(worker, "SL001", "select sluice.renew(id => '"+foreign+"', token => '"+foreign+"')")
	r.refused(worker, "SL001", "select sluice.progress(id => '"+foreign+"', token => '"+foreign+"', fraction => 0.5)")
	r.refused(worker, "SL001", "select sluice.checkpoint(id => '"+foreign+"', token => '"+foreign+"', checkpoint => '1')")
	if state := value[string](r, worker, `select state from sluice.complete_many(ids => array[$1::text::uuid], tokens => array[$1::text::uuid])`, foreign); state != "lost" {
		t.Errorf("completing a foreign job is %s, want lost", state)
	}
	job, err := r.owner.Job(t.Context(), mustID(t, foreign))
	if err != nil || job.State != sluice.StateClaimed || job.LeaseUntil.After(time.Now().Add(61*time.Second)) {
		t.Errorf("the foreign job is %+v, %v", job, err)
	}
	r.onlyOf(worker, "worker")
	r.onlyOf(producer, "producer")
	r.onlyOf(r.as(r.operator), "operator")
}

// onlyOf checks that a role may call the functions of its group, and no other function of Sluice.
func (r *roles) onlyOf(conn *pgx.Conn, group string) {
	r.Helper()
	functions, err := postgres.Functions()
	if err != nil {
		r.Fatal(err)
	}
	may := map[string]bool{"_text_of": true} // this helper reads no table
	for _, f := range functions {
		may[f.Name] = f.Group == group
	}
	rows, err := r.owner.Pool().Query(r.Context(), "select p.oid::int8, p.proname::text from pg_proc p where p.pronamespace = 'sluice'::regnamespace")
	if err != nil {
		r.Fatal(err)
	}
	type row struct {
		OID  int64
		Name string
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	if err != nil || len(all) < 50 {
		r.Fatalf("%d functions, %v", len(all), err)
	}
	for _, f := range all {
		if got := value[bool](r, conn, fmt.Sprintf("select has_function_privilege(%d::oid, 'execute')", f.OID)); got != may[f.Name] {
			r.Errorf("a %s may call %s: %v", group, f.Name, got)
		}
	}
}

func mustID(t *testing.T, text string) sluice.ID {
	t.Helper()
	id, err := sluice.ParseID(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestNobodyIsGrantedAnything checks what a role without grants may do.
func TestNobodyIsGrantedAnything(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	nobody := r.as(r.role("nobody"))
	r.refused(nobody, "42501", "select * from sluice.claim(queues => '{scraper}', holder => 'w1')")
	r.refused(nobody, "42501", "select * from sluice.jobs")
	r.onlyOf(nobody, "nobody")
	// A role whose grants are revoked may do nothing any more.
	r.exec(`select sluice.revoke_grants(role => $1)`, r.worker)
	r.refused(r.as(r.worker), "42501", "select * from sluice.claim(queues => '{scraper}', holder => 'w1')")
	r.onlyOf(r.as(r.worker), "nobody")
}

// TestWhatARoleMakesDoesNotGetInBetween creates tables, functions and operators in schemas that a search path finds
// first, and temporary ones. Functions that run as their owner must not use them.
func TestWhatARoleMakesDoesNotGetInBetween(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	r.exec("create schema evil")
	r.exec("grant all on schema evil, public to " + r.worker)
	worker := r.as(r.worker)
	for _, sql := range []string{
		"create table evil.live (id uuid)", "create temp table queue_grant (role regrole, may text, queue text)", "create temp table live as select 1 as a",
		`create function evil.now() returns timestamptz language plpgsql as 'begin raise exception ''evil ran as %'', current_user; end'`,
		`create function evil.format(text, variadic text[]) returns text language plpgsql as 'begin raise exception ''evil ran as %'', current_user; end'`,
		`create function evil.coalesce_text(text, text) returns text language plpgsql as 'begin raise exception ''evil ran as %'', current_user; end'`,
		`create operator evil.|| (function = evil.coalesce_text, leftarg = text, rightarg = text)`,
		"create type evil.uuid as enum ('evil')", "create domain evil.text as int",
		"set search_path = evil, pg_temp, pg_catalog, public",
	} {
		if _, err := worker.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	r.exec(`select sluice.enqueue(queue => 'scraper', payload => '{}', job_id => '` + mine + `')`)
	token := value[string](r, worker, `select token::pg_catalog.text from sluice.claim(queues => '{scraper}', holder => 'w1')`)
	value[bool](r, worker, `select sluice.complete(id => '`+mine+`', token => '`+token+`')`)
	r.refused(worker, "42501", "select * from sluice.claim(queues => '{payments}', holder => 'w1')")
	// A role cannot become another role by a setting, or claim with an odd queue name.
	r.refused(worker, "42501", "set role postgres")
	r.refused(worker, "42501", "select set_config('role', 'postgres', false)")
	r.refused(worker, "42501", "set session authorization postgres")
	for _, text := range []string{"x'; drop table sluice.job; --", `"; select 1`, "payments", "*", "''"} {
		r.refused(worker, map[bool]string{true: "42501", false: "SL004"}[text == "payments"], "select * from sluice.claim(queues => array[$1::pg_catalog.text], holder => 'w1')", text)
	}
}

// TestRoleInForceCounts logs in as one role and changes to another, as gateways do, and then claims.
func TestRoleInForceCounts(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	gate := r.role("gate")
	r.exec("alter role " + gate + " noinherit")
	r.exec("grant " + r.worker + " to " + gate)
	conn := r.as(gate)
	r.refused(conn, "42501", "select * from sluice.claim(queues => '{scraper}', holder => 'w1')")
	if _, err := conn.Exec(t.Context(), "set role "+r.worker); err != nil {
		t.Fatal(err)
	}
	r.exec(`select sluice.enqueue(queue => 'scraper', payload => '{}')`)
	value[string](r, conn, `select token::text from sluice.claim(queues => '{scraper}', holder => 'w1')`)
	// The owner that has changed to the worker's role has no more rights than the worker.
	owner, err := r.owner.Pool().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Release()
	if _, err := owner.Exec(t.Context(), "set role "+r.worker); err != nil {
		t.Fatal(err)
	}
	r.refused(owner.Conn(), "42501", "select * from sluice.claim(queues => '{payments}', holder => 'w1')")
	if _, err := owner.Exec(t.Context(), "reset role"); err != nil {
		t.Fatal(err)
	}
}

// TestRoleReadsAndClosesItsOwnBatches opens batches as several roles, and then reads and closes them as a producer of one queue. A
// foreign batch must look like one that is not stored, because jobs show the batch that they are in.
func TestRoleReadsAndClosesItsOwnBatches(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	producer, team, other := r.as(r.producer), r.role("team"), r.role("other")
	r.exec("grant " + team + " to " + r.producer)
	r.exec(`select sluice.grant_producer(role => $1, queues => '{payments}')`, team)
	r.exec(`insert into sluice.queue (name) values ('foreign')`)
	open := func(conn *pgx.Conn, queue string) string {
		t.Helper()
		return value[string](r, conn, `select sluice.open_batch(on_complete => case when $1::text <> '' then json_build_object('queue', $1::text, 'payload', 1) end)::text`, queue)
	}
	owner, err := r.owner.Pool().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Release()
	asTeam := r.as(team)
	for name, c := range map[string]struct {
		batch string
		may   bool
	}{
		"its own":                         {open(producer, ""), true},
		"of a role that it has":           {open(asTeam, "payments"), true},
		"of another, with a call of ours": {open(owner.Conn(), "scraper"), true},
		"of another, without calls":       {open(owner.Conn(), ""), false},
		"of another, with a foreign call": {open(owner.Conn(), "foreign"), false},
	} {
		if rows := value[int](r, producer, `select count(*)::int from sluice.read_batch($1::text::uuid)`, c.batch); rows == 1 != c.may {
			t.Errorf("%s: it reads %d batches", name, rows)
		}
		if c.may {
			value[any](r, producer, `select sluice.close_batch($1::text::uuid)::text`, c.batch)
		} else {
			r.refused(producer, "SL005", "select sluice.close_batch('"+c.batch+"')")
		}
		_, err := producer.Exec(t.Context(), `select sluice.open_batch(name => 'another', batch_id => $1::text::uuid)`, c.batch)
		if tells := err != nil && strings.Contains(err.Error(), "another name"); !isCode(err, "SL004") || tells != c.may {
			t.Errorf("%s: opened again otherwise: %v", name, err)
		}
		if closed := value[bool](r, owner.Conn(), `select closed_at is not null from sluice.read_batch($1::text::uuid)`, c.batch); closed != c.may {
			t.Errorf("%s: it is closed: %t", name, closed)
		}
	}
	r.exec(`select sluice.grant_producer(role => $1, queues => '{*}')`, other)
	r.refused(r.as(other), "SL005", "select sluice.close_batch('"+open(owner.Conn(), "")+"')")
}
